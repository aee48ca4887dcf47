"""Successive releases of one file."""
