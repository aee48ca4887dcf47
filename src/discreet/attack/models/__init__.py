"""Attacks against a trained model: what it holds of its training records, and whether it gives members away."""
