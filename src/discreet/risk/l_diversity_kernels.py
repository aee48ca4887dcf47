"""Compiled loops over sparse class counts, for what has no array form."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled


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
