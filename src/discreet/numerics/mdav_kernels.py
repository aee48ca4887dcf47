"""Compiled loops of grouping: MDAV and V-MDAV over a tree of the records that are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers
from discreet.core.compiling import Patience, compiled, inner, interpreted
from discreet.numerics.record_tree_kernels import Tree, bound_all, farthest, nearest, planted, take_out

DONE, TREE, RIM = 0, 1, 2  # what the compiled loop asks for
LEFT, FORMED, EFFORT, FRESH, TURN = 0, 1, 2, 3, 2  # where it keeps how far it came
PATIENCE = Patience(1_000)  # records that are grouped in plain Python, a fifth of a second


class Center(NamedTuple):
    """The middle of the records that are left."""

    numbers: Floats
    codes: Codes


class Totals(NamedTuple):
    """Running sums of the records that are left, with what rounding cut off, and how many have each code."""

    sums: Floats
    rests: Floats
    counts: Integers


class Room(NamedTuple):
    """Where a search writes: the records found, how far they are, and the nodes that it still has to look into."""

    near: Integers
    distances: Floats
    stack: Integers
    bounds: Floats


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


@inner
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


def _rim(tree: Tree, numbers: Floats, codes: Codes, groups: Integers, now: Center) -> Rim:
    """Collect the tenth of the records left that is farthest from the center."""
    left = np.flatnonzero(groups < 0)
    gaps = np.abs(numbers[left] - now.numbers)
    apart = (gaps**2 if tree.squared else gaps).sum(axis=1) + (codes[left] != now.codes) @ tree.costs
    distances = np.sqrt(apart) if tree.squared else apart
    limit = np.partition(distances, len(left) - 1 - len(left) // 10)[len(left) - 1 - len(left) // 10]
    outside = np.flatnonzero(distances >= limit)
    outside = outside[np.argsort(-distances[outside], kind="stable")]
    cut = distances[distances < limit].max(initial=-1.0)
    return Rim(now.numbers.copy(), now.codes.copy(), left[outside], distances[outside], float(cut))


@inner
def _on_rim(  # noqa: PLR0917
    rim: Rim, tree: Tree, numbers: Floats, codes: Codes, groups: Integers, now: Center
) -> tuple[int, int]:
    """Find the record left that is farthest from a center, or -1 if it may be off the rim; count those read."""
    x, a, costs, squared = now.numbers, now.codes, tree.costs, tree.squared
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


def mdav(  # noqa: PLR0917
    numbers: Floats, codes: Codes, costs: Floats, squared: bool, levels: int, k: int
) -> Integers:
    """Number the MDAV group of each record."""
    n, p, q = len(numbers), numbers.shape[1], codes.shape[1]
    form, count, bound = (_form_groups, _count, bound_all)
    if PATIENCE.covers(n):
        form, count, bound = interpreted(form), interpreted(count), interpreted(bound)
    groups, now = np.full(n, -1), Center(np.zeros(p), np.zeros(q, np.int32))
    totals = Totals(np.zeros(p), np.zeros(p), np.zeros((q, levels), np.int64))
    count(totals, numbers, codes)
    tree = planted(numbers, codes, np.arange(n), costs, squared, bound)
    rim = Rim(now.numbers, now.codes, np.empty(0, np.int64), np.empty(0), np.inf)
    progress = np.array([n, 0, 0, 0])
    room = _room(k - 1)
    while asked := form(tree, rim, now, totals, numbers, codes, groups, progress, room, k):
        if asked == TREE:
            tree = planted(numbers, codes, np.flatnonzero(groups < 0), costs, squared, bound)
        else:
            rim = _rim(tree, numbers, codes, groups, now)
    groups[groups < 0] = progress[FORMED]
    return groups


@compiled
def _form_groups(  # noqa: PLR0917
    tree: Tree,
    rim: Rim,
    now: Center,
    totals: Totals,
    numbers: Floats,
    codes: Codes,
    groups: Integers,
    progress: Integers,
    room: Room,
    k: int,
) -> int:
    """Form groups until none is left to form, or a smaller tree or a nearer rim is asked for."""
    start = -1
    while progress[LEFT] >= 2 * k:
        opposite = start < 0 and progress[LEFT] >= 3 * k
        if start < 0:
            if 2 * progress[LEFT] < len(tree.labels):
                return TREE
            _center(totals, progress[LEFT], now)
            if progress[EFFORT] <= progress[LEFT]:
                start, read = _on_rim(rim, tree, numbers, codes, groups, now)
                progress[EFFORT] += read
            if start < 0 and not progress[FRESH]:
                progress[EFFORT], progress[FRESH] = 0, 1
                return RIM
            if start < 0:
                start = farthest(tree, now.numbers, now.codes, room.stack, room.bounds)
            progress[FRESH] = 0
        take_out(tree, start)
        if k > 1:
            nearest(tree, numbers[start], codes[start], room.near, room.distances, room.stack, room.bounds)
        groups[start] = progress[FORMED]
        _leave(totals, numbers[start], codes[start])
        for label in room.near:
            groups[label] = progress[FORMED]
            take_out(tree, label)
            _leave(totals, numbers[label], codes[label])
        progress[LEFT] -= k
        progress[FORMED] += 1
        start = farthest(tree, numbers[start], codes[start], room.stack, room.bounds) if opposite else -1
    return DONE


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
    form, find, bound = (_form_variable_groups, nearest, bound_all)
    if PATIENCE.covers(n):
        form, find, bound = interpreted(form), interpreted(find), interpreted(bound)
    groups, progress = np.full(n, -1), np.array([n, 0, 0, 0])
    room, pair = _room(k - 1), _room(2)
    while progress[LEFT] >= k:
        left = np.flatnonzero(groups < 0)
        tree = planted(numbers, codes, left, costs, squared, bound)
        form(tree, numbers, codes, groups, farthest_first, progress, room, pair, k, gamma)
    late = np.flatnonzero(groups < 0)
    if late.size and progress[FORMED]:
        grown = planted(numbers, codes, np.flatnonzero(groups >= 0), costs, squared, bound)
        for record in late:
            found = pair.near[:1]
            find(grown, numbers[record], codes[record], found, pair.distances[:1], pair.stack, pair.bounds)
            groups[record] = groups[found[0]]
    return groups


@compiled
def _form_variable_groups(  # noqa: PLR0917
    tree: Tree,
    numbers: Floats,
    codes: Codes,
    groups: Integers,
    farthest_first: Integers,
    progress: Integers,
    room: Room,
    pair: Room,
    k: int,
    gamma: float,
) -> None:
    """Form groups until none is left to form or the tree is half empty."""
    near, two, gaps, stack, bounds = room.near, pair.near, pair.distances, room.stack, room.bounds
    widest = 2 * k - 1
    members, partners, reaches = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest)
    left, formed, turn = progress[LEFT], progress[FORMED], progress[TURN]
    while left >= k and 2 * left >= len(tree.labels):
        while groups[farthest_first[turn]] >= 0:
            turn += 1
        first = farthest_first[turn]
        take_out(tree, first)
        if k > 1:
            nearest(tree, numbers[first], codes[first], near, room.distances, stack, bounds)
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
            if tree.squared:
                inward, outward = np.sqrt(inward), np.sqrt(outward)
            if not inward < gamma * outward:
                break
            members[size], groups[joining] = joining, formed
            take_out(tree, joining)
            size += 1
            left -= 1
        formed += 1
    progress[LEFT], progress[FORMED], progress[TURN] = left, formed, turn


def _room(many: int) -> Room:
    """Make room for a search of so many nearest records."""
    return Room(np.empty(many, np.int64), np.empty(many), np.empty(128, np.int64), np.empty(128))


@compiled
def _count(totals: Totals, numbers: Floats, codes: Codes) -> None:
    for i in range(len(numbers)):
        _add(totals.sums, totals.rests, numbers[i], 1.0)
        for j in range(codes.shape[1]):
            totals.counts[j, codes[i, j]] += 1


@inner
def _leave(totals: Totals, x: Floats, a: Codes) -> None:
    _add(totals.sums, totals.rests, x, -1.0)
    for j in range(len(a)):
        totals.counts[j, a[j]] -= 1


@inner
def _center(totals: Totals, left: int, now: Center) -> None:
    """Give the mean of the records left, and of codes the most common, the first of several."""
    for j in range(len(totals.sums)):
        now.numbers[j] = (totals.sums[j] + totals.rests[j]) / left
    for j in range(len(totals.counts)):
        most = 0
        for code in range(totals.counts.shape[1]):
            if totals.counts[j, code] > totals.counts[j, most]:
                most = code
        now.codes[j] = most


@inner
def _add(sums: Floats, rests: Floats, x: Floats, sign: float) -> None:
    """Add to running sums and keep what rounding cut off, so that the center does not drift."""
    for j in range(len(x)):
        term = sign * x[j]
        total = sums[j] + term
        part = total - sums[j]
        rests[j] += (sums[j] - (total - part)) + (term - part)
        sums[j] = total


# The compiled loop of the cheapest cut of ordered records into groups.


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
