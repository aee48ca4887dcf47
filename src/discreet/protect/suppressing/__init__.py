"""Suppression and masking of key cells."""
