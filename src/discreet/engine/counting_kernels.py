"""Counting the cells of many tables over columns of small codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.compiling import compiled, inner


def count_pair(first: Any, second: Any, width: int, cells: int) -> Integers:
    """Count the cells of one two-way table."""
    tallies = np.zeros((4, cells), dtype=np.int64)  # made here: code that makes arrays takes long to compile
    _tally_pair(first, second, width, tallies)
    total: Integers = tallies.sum(axis=0)
    return total


@compiled
def _tally_pair(first: Any, second: Any, width: int, tallies: Integers) -> None:
    """Count the cells of one two-way table in parts.

    Four tallies side by side, because neighboring records often fall into one cell, and an addition has to wait for
    the one before it in the same place. Places without a sign, because one with a sign might count from the end, and
    would be looked at for it.
    """
    a, b, c, d = tallies[0], tallies[1], tallies[2], tallies[3]
    rows = len(first)
    whole = rows - rows % 4
    wide = np.uint64(width)
    for i in range(0, whole, 4):
        a[np.uint64(first[i]) * wide + np.uint64(second[i])] += 1
        b[np.uint64(first[i + 1]) * wide + np.uint64(second[i + 1])] += 1
        c[np.uint64(first[i + 2]) * wide + np.uint64(second[i + 2])] += 1
        d[np.uint64(first[i + 3]) * wide + np.uint64(second[i + 3])] += 1
    for i in range(whole, rows):
        a[np.uint64(first[i]) * wide + np.uint64(second[i])] += 1


def count_triple(first: Any, second: Any, third: Any, widths: tuple[int, int], cells: int) -> Integers:
    """Count the cells of one three-way table: its margins are three two-way tables, for little more than one."""
    tallies = np.zeros((2, cells), dtype=np.int64)
    _tally_triple(first, second, third, widths, tallies)
    total: Integers = tallies.sum(axis=0)
    return total


@compiled
def _tally_triple(first: Any, second: Any, third: Any, widths: tuple[int, int], tallies: Integers) -> None:
    a, b = tallies[0], tallies[1]
    rows = len(first)
    whole = rows - rows % 2
    wide, narrow = np.uint64(widths[0]), np.uint64(widths[1])
    for i in range(0, whole, 2):
        a[(np.uint64(first[i]) * wide + np.uint64(second[i])) * narrow + np.uint64(third[i])] += 1
        j = i + 1
        b[(np.uint64(first[j]) * wide + np.uint64(second[j])) * narrow + np.uint64(third[j])] += 1
    for i in range(whole, rows):
        a[(np.uint64(first[i]) * wide + np.uint64(second[i])) * narrow + np.uint64(third[i])] += 1


@compiled
def looked_up(table: Any, codes: Any) -> Any:
    """The entry of a table for every code; NumPy would first write all codes anew as machine words."""
    found = np.empty(len(codes), dtype=table.dtype)
    for i in range(len(codes)):
        found[i] = table[codes[i]]
    return found


@compiled
def place_among(values: Any, keys: Any, places: Any) -> int:
    """Write the place of every 64-bit value among a few keys, all different, and count those that are none of them.

    A value that is none of them has the place after the last.
    """
    # Sparse, because a search that goes on is one that the processor did not expect.
    slots = 16
    while slots < 16 * len(keys):
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


# Compiled loops that look whole numbers up among many others, or keep the lowest of them.


_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@inner
def _slot(value: int, last: int) -> int:
    mixed = np.uint64(value) * _MIX
    return np.int64((mixed ^ (mixed >> _SHIFT)) & np.uint64(last))  # type: ignore[return-value]


@compiled
def laid_out(keys: Integers) -> Any:
    """Lay whole numbers, all different, out in a table of slots."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    for place in range(len(keys)):
        slot = _slot(keys[place], size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = place
    return slots


@compiled
def place_of_each(values: Integers, keys: Integers, slots: Any) -> Integers:
    """The place of each value among the keys that were laid out; -1 where it is none of them."""
    found = np.empty(len(values), dtype=np.int64)
    last = len(slots) - 1
    for position in range(len(values)):
        slot = _slot(values[position], last)
        while slots[slot] >= 0 and keys[slots[slot]] != values[position]:
            slot = (slot + 1) & last
        found[position] = slots[slot]
    return found


@compiled
def keep_lowest(  # noqa: PLR0917 - compiled code takes arrays by position
    owner: Integers, numbers: Integers, start: Integers, most: Integers, held: Integers, filled: Integers
) -> None:
    """Keep the lowest numbers of each owner, as many as it may hold, in its part of ``held``: a heap, highest first."""
    for position in range(len(owner)):
        who, number = owner[position], numbers[position]
        first, count = start[who], filled[who]
        if count < most[who]:
            at = count
            filled[who] = count + 1
            while at > 0 and held[first + (at - 1) // 2] < number:
                held[first + at] = held[first + (at - 1) // 2]
                at = (at - 1) // 2
            held[first + at] = number
        elif number < held[first]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= count:
                    break
                if child + 1 < count and held[first + child + 1] > held[first + child]:
                    child += 1
                if held[first + child] <= number:
                    break
                held[first + at] = held[first + child]
                at = child
            held[first + at] = number
