"""Swapping values or records between people."""
