"""Suppressing cells: which further cells must be left out, and what the outcome is."""
