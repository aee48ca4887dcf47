"""The page: the whole job in a browser, on top of the same functions. Started by ``discreet app``."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
