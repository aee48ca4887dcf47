"""Draws from many small laws in constant time each (Walker's alias tables, compiled), or by running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled


@compiled
def alias_tables(laws: Any) -> Any:
    """Prepare rows of probabilities for drawing in constant time (Walker 1977, Vose 1991).

    Returns
    -------
    cut, other
        In cell j of a row stay with j below ``cut``, else take ``other``.
    """
    rows, width = laws.shape
    cut = np.ones((rows, width))
    other = np.empty((rows, width), np.int32)
    small = np.empty(width, np.int64)
    large = np.empty(width, np.int64)
    scaled = np.empty(width)
    for row in range(rows):
        few, many, best = 0, 0, 0
        for j in range(width):
            other[row, j] = j
            scaled[j] = laws[row, j] * width
            if laws[row, j] > laws[row, best]:
                best = j
            if scaled[j] < 1.0:
                small[few] = j
                few += 1
            else:
                large[many] = j
                many += 1
        while few > 0 and many > 0:
            few -= 1
            low = small[few]
            high = large[many - 1]
            cut[row, low] = scaled[low]
            other[row, low] = high
            scaled[high] -= 1.0 - scaled[low]
            if scaled[high] < 1.0:
                many -= 1
                small[few] = high
                few += 1
        for left in range(few):
            # Only rounding leaves a cell here; one that must never be drawn hands over to the likeliest.
            if laws[row, small[left]] == 0.0:
                cut[row, small[left]] = 0.0
                other[row, small[left]] = best
    return cut, other


@compiled
def draw(codes: Any, uniforms: Any, cut: Any, other: Any) -> Any:
    """Draw a new code for each record from the law of its old one; negative codes stay."""
    width = cut.shape[1]
    drawn = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        row = codes[i]
        if row < 0:
            drawn[i] = row
            continue
        place = uniforms[i] * width
        j = min(int(place), width - 1)
        drawn[i] = j if place - j < cut[row, j] else other[row, j]
    return drawn


def drawn_places(upto: Floats, size: int, rng: np.random.Generator) -> Integers:
    """Draw places in proportion to a mass, of which ``upto`` are the running sums.

    Examples
    --------
    >>> drawn_places(np.array([0.0, 1.0, 1.0]), 3, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    found = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
    return np.asarray(np.minimum(found, len(upto) - 1))


def places_within(upto: Floats, first: Integers, last: Integers, share: Floats) -> Integers:
    """Find, for each run of places from ``first`` to before ``last``, the one that holds a share of its mass.

    Examples
    --------
    >>> places_within(np.array([1.0, 2.0, 4.0]), np.array([1]), np.array([3]), np.array([0.5])).tolist()
    [2]
    """
    below = np.where(first > 0, upto[np.maximum(first - 1, 0)], 0.0)
    aim = below + share * (upto[last - 1] - below)
    # Rounding may carry a draw past the end of its run.
    return np.asarray(np.clip(np.searchsorted(upto, aim, side="right"), first, last - 1))
