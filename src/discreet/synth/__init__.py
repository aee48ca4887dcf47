"""Make synthetic microdata: records of nobody that analyses can be tried on."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
