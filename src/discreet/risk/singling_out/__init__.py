"""Singling out: isolation against blind guessing."""
