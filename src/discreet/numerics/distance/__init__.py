"""Distances between records of mixed columns, and who is near whom. Shared by several rooms."""

from __future__ import annotations

from discreet.numerics.distance.search import Neighbors, nearest, ties_within
from discreet.numerics.distance.space import Distance, MissingRule, MixedSpace, Points, Scale, as_float

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
