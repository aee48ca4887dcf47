"""Counting the cells of many tables over columns of small codes."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from discreet.arrays import Floats, Integers


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_pair(first: Any, second: Any, width: int, cells: int) -> Integers:
    """Count the cells of one two-way table.

    Four tallies side by side, because neighboring records often fall into one cell, and an addition has to wait for
    the one before it in the same place.
    """
    tallies = np.zeros((4, cells), dtype=np.int64)
    rows = len(first)
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        tallies[0, np.int64(first[i]) * width + second[i]] += 1
        tallies[1, np.int64(first[i + 1]) * width + second[i + 1]] += 1
        tallies[2, np.int64(first[i + 2]) * width + second[i + 2]] += 1
        tallies[3, np.int64(first[i + 3]) * width + second[i + 3]] += 1
    for i in range(whole, rows):
        tallies[0, np.int64(first[i]) * width + second[i]] += 1
    total: Integers = tallies.sum(axis=0)
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_one(codes: Any, cells: int) -> Integers:
    """Count the cells of a one-way table, with tallies side by side as in `count_pair`."""
    tallies = np.zeros((4, cells), dtype=np.int64)
    rows = len(codes)
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        tallies[0, codes[i]] += 1
        tallies[1, codes[i + 1]] += 1
        tallies[2, codes[i + 2]] += 1
        tallies[3, codes[i + 3]] += 1
    for i in range(whole, rows):
        tallies[0, codes[i]] += 1
    total: Integers = tallies.sum(axis=0)
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def weigh_pair(first: Any, second: Any, width: int, cells: int, weights: Floats) -> Floats:
    """Sum the weights of the cells of one two-way table."""
    sums = np.zeros(cells, dtype=np.float64)
    for i in range(len(first)):
        sums[np.int64(first[i]) * width + second[i]] += weights[i]
    return sums
