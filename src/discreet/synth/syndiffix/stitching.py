"""Two tables that share some columns, joined record by record so that the shared columns agree."""

# ruff: noqa: PLR0917
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Floats
from discreet.synth.syndiffix.hashing import next_share

_LEAST_RATIO = 0.7


def stitched(
    left: Floats,
    right: Floats,
    shared: Sequence[tuple[int, int]],
    ranges: Sequence[tuple[float, float]],
    own: Sequence[int],
    seed: np.uint64,
) -> Floats:
    """Join two tables of drawn records.

    Both are halved again and again at the middle of the range of a shared column, while the halves have about as many
    records on both sides; within what is left records are paired in the order of the shared columns.

    Parameters
    ----------
    left, right
        Tables, one row a record and for every column its value and the ends of the range it was drawn from.
    shared
        For every shared column its place left and right, most telling column first.
    ranges
        The ranges of the shared columns.
    own
        Places of the columns that the right table brings.
    seed
        Of the draws.
    """
    state = np.array([seed], dtype=np.uint64)
    if not len(left) or not len(right) or not shared:
        one, other = _pasted(len(left), len(right), state)
    else:
        one, other = _paired(
            np.ascontiguousarray(left[:, [place for place, _ in shared], 0]),
            np.ascontiguousarray(right[:, [place for _, place in shared], 0]),
            np.array(ranges, dtype=np.float64),
            state,
        )
    joined = left[one]
    turns = np.arange(len(joined)) % 2 == 1
    for place, there in shared:
        joined[turns, place] = right[other[turns], there]
    return np.concatenate([joined, right[other][:, list(own)]], axis=1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _shuffled(numbers: Any, state: Any) -> None:
    for i in range(len(numbers) - 1, 0, -1):
        j = int(next_share(state) * (i + 1))
        numbers[i], numbers[j] = numbers[j], numbers[i]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _aligned(numbers: Any, size: int) -> Any:
    """Repeat or cut a shuffled list so that it has the size."""
    made = np.empty(size, dtype=np.int64)
    for i in range(size):
        made[i] = numbers[i % len(numbers)]
    return made


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pasted(left: int, right: int, state: Any) -> Any:
    if left == 0 or right == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    one, other = np.arange(left), np.arange(right)
    _shuffled(one, state)
    _shuffled(other, state)
    size = (left + right + 1) // 2
    return _aligned(one, size), _aligned(other, size)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sorted_by(table: Any, rows: Any) -> Any:
    """Sort rows by the columns of a table, the first column first; equal ones stay as they are."""
    made = rows
    for column in range(table.shape[1] - 1, -1, -1):
        keys = np.empty(len(made))
        for i in range(len(made)):
            keys[i] = table[made[i], column]
        made = made[np.argsort(keys, kind="mergesort")]
    return made


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _paired(left: Any, right: Any, ranges: Any, state: Any) -> Any:
    columns = left.shape[1]
    one, other = np.arange(len(left)), np.arange(len(right))
    _shuffled(one, state)
    _shuffled(other, state)
    spare = np.empty(max(len(one), len(other)), dtype=np.int64)
    room = len(one) + len(other) + 8
    out_one, out_other = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    made = 0
    wait = np.empty((256, 5), dtype=np.int64)
    wait_ranges = np.empty((256, columns, 2))
    wait[0] = np.array([0, len(one), 0, len(other), 0])
    wait_ranges[0] = ranges
    waiting = 1
    while waiting > 0:
        waiting -= 1
        a, b, c, d, turn = wait[waiting]
        now = wait_ranges[waiting].copy()
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
            low, high = now[column, 0], now[column, 1]
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
            if waiting + 2 > len(wait):
                wider = np.empty((2 * len(wait), 5), dtype=np.int64)
                wider[: len(wait)] = wait
                wider_ranges = np.empty((2 * len(wait), columns, 2))
                wider_ranges[: len(wait)] = wait_ranges
                wait, wait_ranges = wider, wider_ranges
            nexts = (column + 1) % columns
            wait[waiting, 0], wait[waiting, 1] = cut_one, b
            wait[waiting, 2], wait[waiting, 3], wait[waiting, 4] = cut_other, d, nexts
            wait_ranges[waiting] = now
            wait_ranges[waiting, column, 0], wait_ranges[waiting, column, 1] = middle, high
            wait[waiting + 1, 0], wait[waiting + 1, 1] = a, cut_one
            wait[waiting + 1, 2], wait[waiting + 1, 3], wait[waiting + 1, 4] = c, cut_other, nexts
            wait_ranges[waiting + 1] = now
            wait_ranges[waiting + 1, column, 0], wait_ranges[waiting + 1, column, 1] = low, middle
            waiting += 2
            done = True
            break
        if done:
            continue
        size = (b - a + d - c + int(next_share(state) < 0.5)) // 2
        mine = _sorted_by(left, _aligned(one[a:b], size))
        theirs = _sorted_by(right, _aligned(other[c:d], size))
        for i in range(size):
            out_one[made] = mine[i]
            out_other[made] = theirs[i]
            made += 1
    return out_one[:made], out_other[:made]
