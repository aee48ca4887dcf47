"""Differentially private samples."""
