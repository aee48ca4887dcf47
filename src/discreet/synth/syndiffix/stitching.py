"""Two tables that share some columns, joined record by record so that the shared columns agree."""

# ruff: noqa: PLR0917
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.synth.syndiffix.hashing import next_share

_LEAST_RATIO = 0.7


def stitched(
    left: Floats,
    right: Floats,
    shared: Sequence[tuple[int, int]],
    ranges: Sequence[tuple[float, float]],
    own: Sequence[int],
    seed: np.uint64,
    *,
    patch: bool = False,
) -> Floats:
    """Join two tables of drawn records.

    Both are halved again and again at the middle of the range of a shared column, while the halves have about as many
    records on both sides; within what is left records are paired in the order of the shared columns.

    Parameters
    ----------
    left, right
        Tables, one row a record and for every column its value and the ends of the range it was drawn from.
    shared
        For every shared column its place left and right, the least spread out first.
    ranges
        The ranges of the shared columns.
    own
        Places of the columns that the right table brings.
    seed
        Of the draws.
    patch
        Keep the records of the left table as they are, and only add to them; else both tables have the same say in
        how many records there are and what stands in the shared columns.
    """
    state = np.array([seed], dtype=np.uint64)
    one, other = np.arange(len(left)), np.arange(len(right))
    if not len(left) or not len(right):
        one, other = one[:0], other[:0]
    elif not shared:
        _shuffle(one, state)
        _shuffle(other, state)
        size = len(left) if patch else (len(left) + len(right) + 1) // 2
        one, other = np.resize(one, size), np.resize(other, size)
    else:
        mine = np.ascontiguousarray(left[:, [place for place, _ in shared], 0])
        theirs = np.ascontiguousarray(right[:, [place for _, place in shared], 0])
        part, one, other = _paired(mine, theirs, np.array(ranges, dtype=np.float64), one, other, state, patch)
        one, other = one[_sorted_within(part, mine[one])], other[_sorted_within(part, theirs[other])]
    joined = left[one]
    turns = (np.arange(len(joined)) % 2 == 1) & (not patch)
    for place, there in shared:
        joined[turns, place] = right[other[turns], there]
    return np.concatenate([joined, right[other][:, list(own)]], axis=1)


def _sorted_within(part: Integers, table: Floats) -> Integers:
    """Order records inside their part by the columns of a table, first column first; equal ones keep their places."""
    return np.lexsort([*table.T[::-1], part])


@compiled
def _shuffle(numbers: Any, state: Any) -> None:
    for i in range(len(numbers) - 1, 0, -1):
        j = int(next_share(state) * (i + 1))
        numbers[i], numbers[j] = numbers[j], numbers[i]


@inner
def _parted(table: Any, rows: Any, first: int, last: int, column: int, middle: float, other: Any) -> int:
    """Bring the rows below the middle to the front, in order; returns where the others begin."""
    low, high = first, 0
    for at in range(first, last):
        row = rows[at]
        if table[row, column] < middle:
            rows[low] = row
            low += 1
        else:
            other[high] = row
            high += 1
    for i in range(high):
        rows[low + i] = other[i]
    return low


@compiled
def _paired(left: Any, right: Any, ranges: Any, one: Any, other: Any, state: Any, patch: bool) -> Any:
    """Halve both tables while the halves match; returns, record by record, the part and who is in it on either side."""
    columns = left.shape[1]
    _shuffle(one, state)
    _shuffle(other, state)
    spare = np.empty(max(len(one), len(other)), dtype=np.int64)
    room = len(one) + len(other) + 8
    part = np.empty(room, dtype=np.int64)
    out_one, out_other = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    made, parts = 0, 0
    # Both halves hold records of either side, and no range of floats can be halved more often than that.
    deepest = min(len(one), len(other), 2_200 * columns) + 2
    wait = np.empty((deepest, 5), dtype=np.int64)
    wait_ranges = np.empty((deepest, 2 * columns))
    wait[0, 0], wait[0, 1], wait[0, 2], wait[0, 3], wait[0, 4] = 0, len(one), 0, len(other), 0
    for c in range(columns):
        wait_ranges[0, 2 * c], wait_ranges[0, 2 * c + 1] = ranges[c, 0], ranges[c, 1]
    now = np.empty(2 * columns)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        a, b, c, d = wait[waiting, 0], wait[waiting, 1], wait[waiting, 2], wait[waiting, 3]
        turn = wait[waiting, 4]
        for end in range(2 * columns):
            now[end] = wait_ranges[waiting, end]
        done = False
        for tried in range(columns):
            column = (turn + tried) % columns
            least, most = np.inf, -np.inf
            for at in range(a, b):
                least, most = min(least, left[one[at], column]), max(most, left[one[at], column])
            for at in range(c, d):
                least, most = min(least, right[other[at], column]), max(most, right[other[at], column])
            if least == most:
                continue
            low, high = now[2 * column], now[2 * column + 1]
            middle = (low + high) / 2.0
            while (most < middle or least >= middle) and low < middle < high:
                if most < middle:
                    high = middle
                else:
                    low = middle
                middle = (low + high) / 2.0
            if not low < middle < high:
                continue
            below_one, below_other = 0, 0
            for at in range(a, b):
                below_one += left[one[at], column] < middle
            for at in range(c, d):
                below_other += right[other[at], column] < middle
            above_one, above_other = b - a - below_one, d - c - below_other
            if min(below_one, below_other) < _LEAST_RATIO * max(below_one, below_other):
                continue
            if min(above_one, above_other) < _LEAST_RATIO * max(above_one, above_other):
                continue
            if min(below_one, below_other) == 0 or min(above_one, above_other) == 0:
                continue
            cut_one = _parted(left, one, a, b, column, middle, spare)
            cut_other = _parted(right, other, c, d, column, middle, spare)
            for end in range(2 * columns):
                wait_ranges[waiting, end] = wait_ranges[waiting + 1, end] = now[end]
            nexts = (column + 1) % columns
            wait[waiting, 0], wait[waiting, 1] = cut_one, b
            wait[waiting, 2], wait[waiting, 3], wait[waiting, 4] = cut_other, d, nexts
            wait_ranges[waiting, 2 * column], wait_ranges[waiting, 2 * column + 1] = middle, high
            wait[waiting + 1, 0], wait[waiting + 1, 1] = a, cut_one
            wait[waiting + 1, 2], wait[waiting + 1, 3], wait[waiting + 1, 4] = c, cut_other, nexts
            wait_ranges[waiting + 1, 2 * column], wait_ranges[waiting + 1, 2 * column + 1] = low, middle
            waiting += 2
            done = True
            break
        if done:
            continue
        size = b - a if patch else (b - a + d - c + int(next_share(state) < 0.5)) // 2
        for i in range(size):
            part[made] = parts
            out_one[made], out_other[made] = one[a + i % (b - a)], other[c + i % (d - c)]
            made += 1
        parts += 1
    return part[:made], out_one[:made], out_other[:made]
