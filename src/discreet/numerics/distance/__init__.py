"""Distances between records of mixed columns, and who is near whom. Shared by several rooms."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
