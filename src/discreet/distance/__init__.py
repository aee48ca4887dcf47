"""Distances between records of mixed columns, and who is near whom. Shared by several rooms."""

from discreet.distance.search import Neighbors, nearest, ties_within
from discreet.distance.space import Distance, MissingRule, MixedSpace, Points, Scale, as_float

__all__ = [
    "Distance",
    "MissingRule",
    "MixedSpace",
    "Neighbors",
    "Points",
    "Scale",
    "as_float",
    "nearest",
    "ties_within",
]
