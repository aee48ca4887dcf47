"""Strategies that draw what nobody would write on purpose, and what must hold of it all the same."""
