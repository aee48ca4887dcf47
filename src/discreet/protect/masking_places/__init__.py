"""Masking places: shifted points and density maps."""
