"""Synthetic files from noisy margins: what is measured under a privacy budget, and records that agree with it."""
