"""Compiled loops of grouping: MDAV and V-MDAV over a tree of the records that are left."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from discreet.arrays import Codes, Floats, Integers
from discreet.mdav.record_tree import LEAF, Tree, farthest, measure, nearest, planted, take_out


class Rim(NamedTuple):
    """The records left that were farthest from an earlier center, farthest first, and how far all others were.

    The center moves little from one pair of groups to the next, and a distance changes by no more than the center
    has moved: few of the rim need measuring to know who is farthest now.
    """

    numbers: Floats
    codes: Codes
    labels: Integers
    distances: Floats
    cut: float


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pair(  # noqa: PLR0917
    x: Floats, a: Codes, y: Floats, b: Codes, costs: Floats, squared: bool
) -> float:
    total = 0.0
    for j in range(len(x)):
        gap = abs(x[j] - y[j])
        total += gap * gap if squared else gap
    for j in range(len(a)):
        total += costs[j] if a[j] != b[j] else 0.0
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _outer(tree: Tree, x: Floats, a: Codes) -> Rim:
    """Collect the tenth of the records left that is farthest from a center."""
    many, apart = tree.sizes[1], np.empty(LEAF)
    distances, labels, done = np.empty(many), np.empty(many, np.int64), 0
    for t in range(len(tree.starts) // 2, len(tree.starts)):
        measure(tree, t, x, a, apart)
        for i in range(tree.sizes[t]):
            distances[done] = np.sqrt(apart[i]) if tree.squared else apart[i]
            labels[done] = tree.labels[tree.starts[t] + i]
            done += 1
    limit = np.partition(distances, many - 1 - many // 10)[many - 1 - many // 10]
    outside = np.flatnonzero(distances >= limit)
    outside = outside[np.argsort(-distances[outside])]
    cut = -1.0
    for d in distances:
        if d < limit:
            cut = max(cut, d)
    return Rim(x.copy(), a.copy(), labels[outside], distances[outside], cut)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _on_rim(  # noqa: PLR0917
    rim: Rim,
    numbers: Floats,
    codes: Codes,
    groups: Integers,
    x: Floats,
    a: Codes,
    costs: Floats,
    squared: bool,
) -> tuple[int, int]:
    """Find the record left that is farthest from a center, or -1 if it may be off the rim; count those read."""
    moved = _pair(x, a, rim.numbers, rim.codes, costs, squared)
    moved = np.sqrt(moved) if squared else moved
    best, winner, reach = -1.0, -1, -1.0
    for i in range(len(rim.labels)):
        # The margin covers the rounding of roots and sums; nobody is left out for it.
        if (rim.distances[i] + moved) * (1 + 1e-12) < reach:
            return winner, i
        label = rim.labels[i]
        if groups[label] >= 0:
            continue
        d = _pair(x, a, numbers[label], codes[label], costs, squared)
        if d > best or (d == best and label < winner):
            best, winner = d, label
            reach = np.sqrt(d) if squared else d
    if (rim.cut + moved) * (1 + 1e-12) < reach:
        return winner, len(rim.labels)
    return -1, len(rim.labels)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mdav(  # noqa: PLR0917
    numbers: Floats, codes: Codes, costs: Floats, squared: bool, levels: int, k: int
) -> Integers:
    """Number the MDAV group of each record."""
    n, p, q = len(numbers), numbers.shape[1], codes.shape[1]
    tree = planted(numbers, codes, np.arange(n), costs, squared)
    groups = np.full(n, -1, np.int64)
    stack, bounds = np.empty(128, np.int64), np.empty(128)
    sums, rests = np.zeros(p), np.zeros(p)
    counts = np.zeros((q, levels), np.int64)
    for i in range(n):
        _add(sums, rests, numbers[i], 1.0)
        for j in range(q):
            counts[j, codes[i, j]] += 1
    center, common = np.zeros(p), np.zeros(q, np.int32)
    near, distances = np.empty(k - 1, np.int64), np.empty(k - 1)
    rim, effort = Rim(center, common, np.empty(0, np.int64), np.empty(0), np.inf), 0
    left, formed, start = n, 0, -1
    while left >= 2 * k:
        opposite = start < 0 and left >= 3 * k
        if start < 0:
            if 2 * left < len(tree.labels):
                tree = planted(numbers, codes, np.flatnonzero(groups < 0), costs, squared)
            for j in range(p):
                center[j] = (sums[j] + rests[j]) / left
            for j in range(q):
                common[j] = np.argmax(counts[j])
            if effort <= left:
                start, read = _on_rim(rim, numbers, codes, groups, center, common, costs, squared)
                effort += read
            if start < 0:
                rim, effort = _outer(tree, center, common), 0
                start, _ = _on_rim(rim, numbers, codes, groups, center, common, costs, squared)
            if start < 0:
                start = farthest(tree, center, common, stack, bounds)
        x, a = numbers[start], codes[start]
        take_out(tree, start)
        if k > 1:
            nearest(tree, x, a, near, distances, stack, bounds)
        groups[start] = formed
        _add(sums, rests, x, -1.0)
        for j in range(q):
            counts[j, a[j]] -= 1
        for label in near:
            groups[label] = formed
            take_out(tree, label)
            _add(sums, rests, numbers[label], -1.0)
            for j in range(q):
                counts[j, codes[label, j]] -= 1
        left -= k
        formed += 1
        start = farthest(tree, x, a, stack, bounds) if opposite else -1
    groups[groups < 0] = formed
    return groups


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def variable_mdav(  # noqa: PLR0917
    numbers: Floats,
    codes: Codes,
    costs: Floats,
    squared: bool,
    farthest_first: Integers,
    k: int,
    gamma: float,
) -> Integers:
    """Number the V-MDAV group of each record, given in the order of their distance from the center."""
    n = len(numbers)
    tree = planted(numbers, codes, np.arange(n), costs, squared)
    groups = np.full(n, -1, np.int64)
    stack, bounds = np.empty(128, np.int64), np.empty(128)
    near, distances = np.empty(k - 1, np.int64), np.empty(k - 1)
    two, gaps = np.empty(2, np.int64), np.empty(2)
    widest = 2 * k - 1
    members, partners, reaches = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest)
    left, formed, turn = n, 0, 0
    while left >= k:
        while groups[farthest_first[turn]] >= 0:
            turn += 1
        if 2 * left < len(tree.labels):
            tree = planted(numbers, codes, np.flatnonzero(groups < 0), costs, squared)
        first = farthest_first[turn]
        take_out(tree, first)
        if k > 1:
            nearest(tree, numbers[first], codes[first], near, distances, stack, bounds)
        members[0], groups[first] = first, formed
        for i in range(k - 1):
            members[i + 1], groups[near[i]] = near[i], formed
            take_out(tree, near[i])
        size, known = k, 0
        left -= k
        while size < widest and left > 0:
            for i in range(size):
                if i >= known or groups[partners[i]] >= 0:
                    member = members[i]
                    nearest(tree, numbers[member], codes[member], two[:1], gaps[:1], stack, bounds)
                    partners[i], reaches[i] = two[0], gaps[0]
            known, best = size, 0
            for i in range(1, size):
                if reaches[i] < reaches[best] or (
                    reaches[i] == reaches[best] and partners[i] < partners[best]
                ):
                    best = i
            joining, inward = partners[best], reaches[best]
            nearest(tree, numbers[joining], codes[joining], two, gaps, stack, bounds)
            outward = gaps[1] if two[0] == joining else gaps[0]
            if squared:
                inward, outward = np.sqrt(inward), np.sqrt(outward)
            if not inward < gamma * outward:
                break
            members[size], groups[joining] = joining, formed
            take_out(tree, joining)
            size += 1
            left -= 1
        formed += 1
    if left and formed:
        grown = planted(numbers, codes, np.flatnonzero(groups >= 0), costs, squared)
        for late in np.flatnonzero(groups < 0):
            nearest(grown, numbers[late], codes[late], two[:1], gaps[:1], stack, bounds)
            groups[late] = groups[two[0]]
    return groups


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(sums: Floats, rests: Floats, x: Floats, sign: float) -> None:
    """Add to running sums and keep what rounding cut off, so that the center does not drift."""
    for j in range(len(x)):
        term = sign * x[j]
        total = sums[j] + term
        part = total - sums[j]
        rests[j] += (sums[j] - (total - part)) + (term - part)
        sums[j] = total
