"""The verbs of the front door: they call the other rooms in the right order."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
