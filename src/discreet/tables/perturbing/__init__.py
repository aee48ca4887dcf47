"""Perturbing tables: cell keys, rounding and noise."""
