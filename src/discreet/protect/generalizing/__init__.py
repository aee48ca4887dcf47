"""Generalization: optimal levels, local recoding and the privacy models they reach."""
