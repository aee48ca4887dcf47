"""Secondary suppression by Gaussian elimination, on nothing but the matrix of inner cells and published cells."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
