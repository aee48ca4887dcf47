"""Synthetic tables of counts, and what they guarantee."""
