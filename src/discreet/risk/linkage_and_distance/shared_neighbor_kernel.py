"""Compiled loop over pairs of neighbor lists."""

from __future__ import annotations

import numba
import numpy as np

from discreet.arrays import Integers


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def shared_counts(lists: Integers) -> Integers:
    """Count, for each record and each of its neighbors, the neighbors they share; one more if it is mutual."""
    n, k = lists.shape
    shared = np.zeros(n * k, dtype=np.int64)
    for i in range(n):
        for a in range(k):
            other, count = lists[i, a], 0
            for b in range(k):
                count += lists[other, b] == i
                for c in range(k):
                    count += lists[i, c] == lists[other, b]
            shared[i * k + a] = count
    return shared
