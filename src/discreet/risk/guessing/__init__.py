"""Isolation against blind guessing."""
