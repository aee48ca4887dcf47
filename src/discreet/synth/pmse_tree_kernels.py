"""Compiled searches for the tree that tells two files of codes apart best; GI sums ab / (a + b) over leaves."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled, inner


@compiled
def codes_above(values: Floats, cuts: Floats) -> Integers:  # pragma: no cover
    """How many thresholds a value is not below, in every column."""
    n, columns = values.shape
    width = cuts.shape[1]
    made = np.empty((n, columns), dtype=np.int64)
    for j in range(columns):
        for i in range(n):
            low, high = 0, width
            while low < high:
                middle = (low + high) // 2
                if cuts[j, middle] <= values[i, j]:
                    low = middle + 1
                else:
                    high = middle
            made[i, j] = low
    return made


@inner
def _mixed(a: float, b: float) -> float:  # pragma: no cover
    """What a leaf adds to GI."""
    return a * b / (a + b) if a + b > 0 else 0.0


@compiled
def best_one(original: Integers, synthetic: Integers, bins: int) -> float:  # pragma: no cover
    """The smallest GI of one split."""
    n, columns = original.shape
    best = _mixed(float(n), float(n))
    counts = np.empty((bins, 2))
    for j in range(columns):
        counts[:] = 0.0
        for i in range(n):
            counts[original[i, j], 0] += 1
            counts[synthetic[i, j], 1] += 1
        b = a = 0.0
        for t in range(bins - 1):
            b += counts[t, 0]
            a += counts[t, 1]
            best = min(best, _mixed(a, b) + _mixed(n - a, n - b))
    return float(best)


@compiled
def crossed_counts(original: Integers, synthetic: Integers, bins: int) -> Floats:  # pragma: no cover
    """Counts of all pairs of columns: ``[first, second, code, code, file]``."""
    n, columns = original.shape
    made = np.zeros((columns, columns, bins, bins, 2))
    for i in range(n):
        for j in range(columns):
            for k in range(columns):
                made[j, k, original[i, j], original[i, k], 0] += 1
                made[j, k, synthetic[i, j], synthetic[i, k], 1] += 1
    return made


@compiled
def best_two(crossed: Floats) -> float:  # pragma: no cover
    """The smallest GI of a tree of depth 2, from the counts of pairs."""
    columns, bins = crossed.shape[0], crossed.shape[2]
    total = np.zeros(2)
    for t in range(bins):
        for s in range(bins):
            total[0] += crossed[0, 0, t, s, 0]
            total[1] += crossed[0, 0, t, s, 1]
    best = _mixed(total[1], total[0])
    low = np.empty((columns, bins, 2))
    high = np.empty((columns, bins, 2))
    for j in range(columns):
        low[:] = 0.0
        high[:] = 0.0
        for k in range(columns):
            for t in range(bins):
                for s in range(bins):
                    high[k, s, 0] += crossed[j, k, t, s, 0]
                    high[k, s, 1] += crossed[j, k, t, s, 1]
        for t in range(bins - 1):
            below, above = np.inf, np.inf
            for k in range(columns):
                for s in range(bins):
                    for f in range(2):
                        low[k, s, f] += crossed[j, k, t, s, f]
                        high[k, s, f] -= crossed[j, k, t, s, f]
                below = min(below, _best_cut(low[k]))
                above = min(above, _best_cut(high[k]))
            best = min(best, below + above)
    return float(best)


@inner
def _best_cut(counts: Floats) -> float:  # pragma: no cover
    """The smallest GI of one split of one column."""
    bins = counts.shape[0]
    b, a = 0.0, 0.0
    for s in range(bins):
        b += counts[s, 0]
        a += counts[s, 1]
    best = _mixed(a, b)
    left_b, left_a = 0.0, 0.0
    for s in range(bins - 1):
        left_b += counts[s, 0]
        left_a += counts[s, 1]
        best = min(best, _mixed(left_a, left_b) + _mixed(a - left_a, b - left_b))
    return float(best)


@compiled
def best_three(original: Integers, synthetic: Integers, bins: int) -> float:  # pragma: no cover
    """Every first split with the best trees of depth 2 on both sides; records cross it code by code."""
    n, columns = original.shape
    whole = crossed_counts(original, synthetic, bins)
    best = best_two(whole)
    for j in range(columns):
        low = np.zeros_like(whole)
        high = whole.copy()
        for t in range(bins - 1):
            for i in range(n):
                for f in range(2):
                    row = original[i] if f == 0 else synthetic[i]
                    if row[j] == t:
                        for k in range(columns):
                            for m in range(columns):
                                low[k, m, row[k], row[m], f] += 1
                                high[k, m, row[k], row[m], f] -= 1
            best = min(best, best_two(low) + best_two(high))
    return float(best)


@compiled
def greedy(original: Integers, synthetic: Integers, bins: int, depth: int) -> float:  # pragma: no cover
    """The GI of a tree grown split by split, each the best for itself alone."""
    n, columns = original.shape
    leaf = np.zeros((n, 2), dtype=np.int64)
    leaves = 1
    for _ in range(depth):
        for number in range(leaves):
            best, at, cut = np.inf, -1, -1
            for j in range(columns):
                counts = np.zeros((bins, 2))
                for i in range(n):
                    if leaf[i, 0] == number:
                        counts[original[i, j], 0] += 1
                    if leaf[i, 1] == number:
                        counts[synthetic[i, j], 1] += 1
                b, a = counts[:, 0].sum(), counts[:, 1].sum()
                left_b, left_a = 0.0, 0.0
                for s in range(bins - 1):
                    left_b += counts[s, 0]
                    left_a += counts[s, 1]
                    found = _mixed(left_a, left_b) + _mixed(a - left_a, b - left_b)
                    if found < best - 1e-12:
                        best, at, cut = found, j, s
            for i in range(n):
                if leaf[i, 0] == number and original[i, at] > cut:
                    leaf[i, 0] = number + leaves
                if leaf[i, 1] == number and synthetic[i, at] > cut:
                    leaf[i, 1] = number + leaves
        leaves *= 2
    counts = np.zeros((leaves, 2))
    for i in range(n):
        counts[leaf[i, 0], 0] += 1
        counts[leaf[i, 1], 1] += 1
    total = 0.0
    for number in range(leaves):
        total += _mixed(counts[number, 1], counts[number, 0])
    return total
