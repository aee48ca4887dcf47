"""Recoding: coarser values, identifiers, order and rounding."""
