"""Distances between records of mixed columns, and who is near whom. Shared by several rooms."""

from discreet.distance.search import Neighbours, nearest, ties_within
from discreet.distance.space import Distance, MissingRule, MixedSpace, Points, Scale

__all__ = [
    "Distance",
    "MissingRule",
    "MixedSpace",
    "Neighbours",
    "Points",
    "Scale",
    "nearest",
    "ties_within",
]
