"""Graphs of people that may be published."""
