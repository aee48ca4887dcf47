"""Which bin does every number fall into? One pass over millions of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.compiling import compiled

_EVEN = 1e-6  # of a bin: how far borders may be from equally spaced ones for a bin to be found by its place

_IN_A_TABLE = 2**18  # whole numbers that a table of bins may list
_EXACT = 2.0**53  # up to which every whole number is one in floating point


def bins_of(
    numbers: Floats, edges: Floats, small_type: type[np.unsignedinteger[Any]]
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The bin of every number; a border belongs to the bin above it, and what lies outside to the first or last bin.

    Examples
    --------
    >>> bins_of(np.array([-1.0, 0.0, 0.9, 1.0, 7.0]), np.array([0.0, 1.0, 2.0]), np.uint8).tolist()
    [0, 0, 0, 1, 1]
    """
    even = np.linspace(edges[0], edges[-1], len(edges))
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    if np.isfinite(width) and (np.abs(edges - even) <= _EVEN * width).all():
        made = np.empty(len(numbers), dtype=small_type)
        _evenly(numbers, edges, made)
        return made
    inner = np.searchsorted(edges, numbers, side="right") - 1
    return np.asarray(np.clip(inner, 0, len(edges) - 2), dtype=small_type)


def bins_of_whole(
    numbers: npt.NDArray[np.int64], edges: Floats, small_type: type[np.unsignedinteger[Any]]
) -> npt.NDArray[np.unsignedinteger[Any]] | None:
    """The bin of every whole number, looked up in a table of all of them; None where that table would be too long.

    Examples
    --------
    >>> bins_of_whole(np.array([-5, 0, 1, 9]), np.array([0.0, 1.0, 2.0]), np.uint8).tolist()
    [0, 0, 1, 1]
    """
    if not edges[-1] - edges[0] <= _IN_A_TABLE or np.abs(edges).max() > _EXACT:
        return None
    first = int(np.floor(edges[0]))
    all_of_them = np.arange(first, int(np.ceil(edges[-1])) + 1)
    made = np.empty(len(numbers), dtype=small_type)
    _looked_up_within(bins_of(all_of_them.astype(np.float64), edges, small_type), first, numbers, made)
    return made


@compiled
def _looked_up_within(table: Any, first: int, numbers: Any, made: Any) -> None:
    """The entry of every number in a table that begins at the first; beyond its ends the first or last entry."""
    last = first + len(table) - 1
    for i in range(len(numbers)):
        made[i] = table[min(max(numbers[i], first), last) - first]


@compiled
def _evenly(numbers: Any, edges: Any, made: Any) -> None:
    """Find bins by their place and correct what rounding did to it: the borders decide, as they stand."""
    last = len(edges) - 2
    first = edges[0]
    scale = (last + 1) / (edges[-1] - first)
    for i in range(len(numbers)):
        number = numbers[i]
        if number >= edges[last]:
            made[i] = last
        elif number < edges[1]:
            made[i] = 0
        else:
            place = min(int((number - first) * scale), last)
            while edges[place] > number:
                place -= 1
            while edges[place + 1] <= number:
                place += 1
            made[i] = place
