"""Perturbation of numbers and categories: noise, microaggregation, shuffling, PRAM."""
