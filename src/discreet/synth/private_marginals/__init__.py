"""Synthetic files from noisy margins: what is measured under a privacy budget, and records that agree with it."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
