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
def count_triple(first: Any, second: Any, third: Any, widths: tuple[int, int], cells: int) -> Integers:
    """Count the cells of one three-way table: its margins are three two-way tables, for little more than one."""
    tallies = np.zeros((2, cells), dtype=np.int64)
    rows = len(first)
    whole = rows - rows % 2
    for i in range(0, whole, 2):
        tallies[0, (np.int64(first[i]) * widths[0] + second[i]) * widths[1] + third[i]] += 1
        j = i + 1
        tallies[1, (np.int64(first[j]) * widths[0] + second[j]) * widths[1] + third[j]] += 1
    for i in range(whole, rows):
        tallies[0, (np.int64(first[i]) * widths[0] + second[i]) * widths[1] + third[i]] += 1
    total: Integers = tallies.sum(axis=0)
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def looked_up(table: Any, codes: Any) -> Any:
    """The entry of a table for every code; NumPy would first write all codes anew as machine words."""
    found = np.empty(len(codes), dtype=table.dtype)
    for i in range(len(codes)):
        found[i] = table[codes[i]]
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def place_among(values: Any, keys: Any, places: Any) -> int:
    """Write the place of every 64-bit value among a few keys, all different, and count those that are none of them.

    A value that is none of them has the place after the last.
    """
    slots = 4
    while slots < 4 * len(keys):
        slots *= 2
    taken = np.full(slots, -1, dtype=np.int64)
    for place in range(len(keys)):
        at = np.int64(keys[place] & np.uint64(slots - 1))
        while taken[at] >= 0:
            at = (at + 1) & (slots - 1)
        taken[at] = place
    strangers = 0
    for i in range(len(values)):
        at = np.int64(values[i] & np.uint64(slots - 1))
        while taken[at] >= 0 and keys[taken[at]] != values[i]:
            at = (at + 1) & (slots - 1)
        if taken[at] >= 0:
            places[i] = taken[at]
        else:
            places[i] = len(keys)
            strangers += 1
    return strangers


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
