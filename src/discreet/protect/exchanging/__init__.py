"""Perturbation of categories: PRAM and swapping."""
