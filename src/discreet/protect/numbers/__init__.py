"""Perturbation of numbers."""
