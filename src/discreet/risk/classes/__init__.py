"""Equivalence classes: who is alone, and what a class gives away."""
