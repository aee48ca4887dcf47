"""Aggregated series and load curves."""
