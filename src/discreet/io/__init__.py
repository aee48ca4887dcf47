"""Files and databases in and out, with the roles of their columns."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
