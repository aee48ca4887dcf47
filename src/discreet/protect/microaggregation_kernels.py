"""The compiled loop of the cheapest cut of ordered records into groups."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled


@compiled
def cheapest_cuts(rows: Floats, k: int) -> Integers:
    """Number the groups of k to 2k-1 neighbors in a row with the least sum of squares around their means.

    A group is an arc from one cut to the next that costs its sum of squares; the best groups are the shortest way
    from the first record to the last (Hansen and Mukherjee 2003). A group of 2k or more is never better than two.
    """
    n, p = rows.shape
    groups = np.zeros(n, np.int64)
    if n < 2 * k:
        return groups
    costs, sizes = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    costs[0] = 0.0
    mean = np.empty(p)
    for stop in range(k, n + 1):
        mean[:], within = 0.0, 0.0
        for size in range(1, min(2 * k - 1, stop) + 1):
            # Means and sums are updated record by record: prefix sums would lose the digits of large values.
            for j in range(p):
                gap = rows[stop - size, j] - mean[j]
                mean[j] += gap / size
                within += gap * (rows[stop - size, j] - mean[j])
            if size >= k and costs[stop - size] + within < costs[stop]:
                costs[stop], sizes[stop] = costs[stop - size] + within, size
    stop, formed = n, 0
    while stop > 0:
        groups[stop - sizes[stop] : stop] = formed
        stop -= sizes[stop]
        formed += 1
    return formed - 1 - groups
