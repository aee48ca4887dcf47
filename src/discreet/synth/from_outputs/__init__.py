"""Teaching data: microdata on which published analyses reproduce, made from the results alone."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
