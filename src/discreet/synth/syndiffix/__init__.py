"""SynDiffix: synthetic tables from ranges that hold enough people, as many tables of one file as are needed."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
