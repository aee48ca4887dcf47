"""Margins and dependence apart: Gaussian and vine copulas as synthesizers."""
