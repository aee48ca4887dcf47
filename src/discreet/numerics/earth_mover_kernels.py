"""One pass over the counts of every class, compiled: the earth mover's distance, and groups of near values."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled


@compiled
def mean_cumulative_gap(starts: Any, codes: Any, counts: Any, file_share: Any) -> Floats:
    """Compute for each class the mean distance of its cumulative shares from those of the file.

    Between two values that occur in a class its cumulative share is constant and the file's only rises, so the
    summed gap over that stretch follows from prefix sums and the point where the two cross.
    """
    last = len(file_share)
    prefix = np.zeros(last + 1)
    for value in range(last):
        prefix[value + 1] = prefix[value] + file_share[value]
    distances = np.empty(len(starts) - 1)
    for owner in range(len(starts) - 1):
        begin, end = starts[owner], starts[owner + 1]
        size = 0
        for entry in range(begin, end):
            size += counts[entry]
        ran, total = 0, prefix[codes[begin]]
        for entry in range(begin, end):
            ran += counts[entry]
            share = ran / size
            start = min(codes[entry], last)
            stop = min(codes[entry + 1], last) if entry + 1 < end else last
            low, high = start, stop
            while low < high:
                middle = (low + high) // 2
                if file_share[middle] < share:
                    low = middle + 1
                else:
                    high = middle
            total += share * (low - start) - (prefix[low] - prefix[start])
            total += (prefix[stop] - prefix[low]) - share * (stop - low)
        distances[owner] = max(total / last, 0.0)
    return distances


@compiled
def greedy_groups(values: Floats, starts: Integers, tolerance: float) -> Integers:
    """Number the groups of sorted values per class; a group ends where a value is ``tolerance`` from its first.

    A missing value (NaN, sorted last) is a group of its own.
    """
    groups = np.zeros(len(values), dtype=np.int64)
    for j in range(len(starts) - 1):
        group, first = 0, values[starts[j]]
        for i in range(starts[j], starts[j + 1]):
            if i > starts[j] and not values[i] - first < tolerance:
                group += 1
                first = values[i]
            groups[i] = group
    return groups
