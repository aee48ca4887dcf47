"""Which columns are put into one tree: how much two columns have to do with each other, and how they are grouped.

A tree of many columns holds few people in each range. Columns are therefore grouped into clusters of a few that depend
on each other; a cluster after the first brings along columns that were placed before (its stitch), by which its records
are joined to those that are there. Dependence and room are worked out from shown counts, so nobody's record decides
anything; only which columns predict a target, if one is named, is learned from records (`ranked_features`). Tables of
two clusters are joined record by record so that the shared columns agree (`stitched`).
"""

# ruff: noqa: PLR0917
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.synth.syndiffix.hashing import next_share, salted, set_seed
from discreet.synth.syndiffix.range_forest import Forest, Tree

_LEAST_COUNT = 15
_HOTTEST, _COLDEST = 5.0, 0.0035
_DERIVED, _RESERVED = 0.7, 0.5
ALWAYS_ONE = 4


@dataclass(frozen=True)
class Cluster:
    """Columns that share a tree: those it is joined by, and those it brings.

    A patch only brings: how many records there are, and what stands in the columns that it is joined by, is left as it
    was before.
    """

    stitch: tuple[int, ...]
    own: tuple[int, ...]
    patch: bool = False

    @property
    def columns(self) -> tuple[int, ...]:
        """All of its columns."""
        return (*self.stitch, *self.own)


def entropy_of(forest: Forest, column: int) -> float:
    """How spread out is a column, in bits of its shown counts?"""
    count = forest.buckets([column]).count
    share = count / count.sum() if len(count) else np.ones(1)
    return float(-(share * np.log2(share)).sum()) + 0.0


def weight_of(forest: Forest, column: int) -> float:
    """How much room does a column take in a cluster?"""
    return 1.0 + math.sqrt(max(1.0, entropy_of(forest, column)))


def dependence(forest: Forest, one: int, other: int) -> float:
    """How far are the shown counts of two columns from those of columns that know nothing of each other?

    At every pair of nodes that are large enough, the count that independence expects is held against the count that is
    there, as a share of the larger of the two; the mean goes by what is expected.
    """
    first, second = forest.combination((one, other))
    joint, x, y = forest.tree((first, second)), forest.tree([first]), forest.tree([second])
    if not joint.total:
        return 0.0
    total = float(joint.total)
    beside = [_nearest_subs(joint, 0), _nearest_subs(joint, 1)]
    here = np.arange(1, len(joint.whole))
    n_x, n_y = x.shown[beside[0][here]], y.shown[beside[1][here]]
    large = (n_x >= _LEAST_COUNT) & (n_y >= _LEAST_COUNT)
    expected = n_x[large] * n_y[large] / total
    actual = joint.shown[here[large]]
    score = float((np.abs(expected - actual) / np.maximum(expected, actual) * expected).sum())
    weight = float(expected.sum())
    # Pairs of ranges that nobody is in have no node: all that is expected there is missing.
    branches = np.flatnonzero(joint.whole[:, 5] == 0)
    both = _pairs_below(x, beside[0][branches]) * _pairs_below(y, beside[1][branches]) / total
    parents = joint.whole[here[large], 0]
    there = np.bincount(parents, expected, minlength=len(joint.whole))[branches]
    missing = float(np.maximum(both - there, 0.0).sum())
    return (score + missing) / (weight + missing) if weight + missing > 0 else 0.0


def _nearest_subs(joint: Tree, place: int) -> Integers:
    """Find for every node the node of one column that it lies in: its own, or that of the nearest node above."""
    # The trees of one column stand behind one another, as the two-column tree was grown on them.
    found = joint.subs[:, place].copy()
    depths = joint.whole[:, 2]
    for depth in range(1, int(depths.max()) + 1):
        here = np.flatnonzero((depths == depth) & (found < 0))
        found[here] = found[joint.whole[here, 0]]
    return np.asarray(found - joint.subs[0, place])


def _pairs_below(tree: Tree, nodes: Array) -> Floats:
    """Add up the children of nodes that are large enough to be looked at; a leaf stands for itself."""
    children = np.flatnonzero(tree.whole[:, 0] >= 0)
    large = np.where(tree.shown >= _LEAST_COUNT, tree.shown, 0)
    sums = np.bincount(tree.whole[children, 0], large[children], minlength=len(tree.whole))
    return np.where(tree.whole[:, 5] == 1, large, sums)[nodes].astype(np.float64)


def clusters_for(
    forest: Forest,
    columns: Sequence[int],
    *,
    max_weight: float,
    merge_threshold: float,
    alpha: float,
    sample_size: int,
) -> list[Cluster]:
    """Group columns into clusters, the first of which stands by itself."""
    if len(columns) <= ALWAYS_ONE:
        return [Cluster((), tuple(columns))]
    depends, weights = _measured(forest, columns, sample_size)
    state = np.array([salted(forest.salt, set_seed(["order of columns"]))], dtype=np.uint64)
    alone = np.zeros(len(columns), dtype=np.bool_)
    order = _annealed(depends, weights, max_weight, merge_threshold, alpha, state, alone)
    return _clusters(
        columns, alone, *_grouped(order, depends, weights, max_weight, merge_threshold, -1, alone)
    )


def clusters_of_target(
    forest: Forest,
    target: int,
    features: Sequence[int],
    others: Sequence[int],
    *,
    max_weight: float,
    merge_threshold: float,
    sample_size: int,
) -> list[Cluster]:
    """Put the target into every cluster, and what predicts it in the order of what it says about it.

    A cluster after the first is joined by the target and, while there is room, by the columns before it that have most
    to do with its own. A column that does not help to predict comes alone, as a patch: it takes no room from those that
    help, and leaves them as they are.
    """
    columns = [target, *features, *others]
    depends, weights = _measured(forest, columns, sample_size)
    alone = np.array([column in others for column in columns])
    order = np.arange(len(columns))
    return _clusters(
        columns, alone, *_grouped(order, depends, weights, max_weight, merge_threshold, 0, alone)
    )


def _measured(forest: Forest, columns: Sequence[int], sample_size: int) -> tuple[Floats, Floats]:
    """Measure how much every two columns depend on each other, on a sample, and the room that each takes."""
    depends = np.zeros((len(columns), len(columns)))
    some = forest.sampled(sample_size)
    for a in range(len(columns)):
        for b in range(a):
            depends[a, b] = depends[b, a] = dependence(some, columns[a], columns[b])
    return depends, np.array([weight_of(forest, column) for column in columns])


def _clusters(columns: Sequence[int], alone: Array, member: Array, own: Array) -> list[Cluster]:
    """Name the columns of the clusters that bring some."""
    made = []
    for inside, mine in zip(member, own, strict=True):
        stitch = tuple(columns[c] for c in np.flatnonzero(inside & ~mine).tolist())
        if mine.any():
            made.append(
                Cluster(
                    stitch,
                    tuple(columns[c] for c in np.flatnonzero(mine).tolist()),
                    patch=bool(stitch) and bool(alone[mine].any()),
                )
            )
    return made


@compiled
def _grouped(
    order: Any, depends: Any, weights: Any, most: float, threshold: float, main: int, alone: Any
) -> Any:
    """Fill clusters in an order of columns: which columns are in each, and which of them it brings.

    A column goes to the cluster that has room for it and depends on it most, on average; one that hardly depends on
    any cluster with room, or is to be ``alone``, opens a cluster of its own, where it does not thin out the people of
    others. The column ``main`` joins every cluster; -1 for none.
    """
    number = len(order)
    member = np.zeros((number, number), dtype=np.bool_)
    own = np.zeros((number, number), dtype=np.bool_)
    closed = np.zeros(number, dtype=np.bool_)
    filled, sizes = np.zeros(number), np.zeros(number, dtype=np.int64)
    later = _DERIVED * most - (weights[main] if main >= 0 else 0.0)
    clusters = 0
    for column in order:
        best, best_mean = clusters, -1.0
        for cluster in range(clusters):
            room = most if cluster == 0 else later
            full = sizes[cluster] > 1 and filled[cluster] + weights[column] > room
            if full or closed[cluster] or alone[column]:
                continue
            mean = _mean_and_most(column, own[cluster], depends)[0]
            if mean >= threshold and mean > best_mean:
                best, best_mean = cluster, mean
        own[best, column] = True
        closed[best] = alone[column]
        filled[best] += weights[column]
        sizes[best] += 1
        clusters = max(clusters, best + 1)
    placed = own[0].copy()
    for cluster in range(clusters):
        for c in range(number):
            member[cluster, c] = own[cluster, c]
        if cluster > 0:
            reserved = max(filled[cluster], _RESERVED * most)
            _stitched(
                member[cluster], own[cluster], placed, depends, weights, most, threshold, reserved, main
            )
            for c in range(number):
                placed[c] = placed[c] or own[cluster, c]
    # A first cluster of one column that the next is joined by is no cluster of its own.
    if clusters > 1 and sizes[0] == 1:
        only = order[0]
        joined = 0
        for c in range(number):
            joined += member[1, c] and not own[1, c]
        if joined == 1 and member[1, only]:
            own[1, only] = True
            own[0, only] = member[0, only] = False
    return member, own


@inner
def _mean_and_most(column: int, inside: Any, depends: Any) -> Any:
    """How much does a column depend on those of a cluster, on average and at most?"""
    total, top, many = 0.0, 0.0, 0
    for c in range(len(inside)):
        if inside[c]:
            total += depends[column, c]
            top = max(top, depends[column, c])
            many += 1
    return total / many, top


@inner
def _stitched(
    member: Any, own: Any, placed: Any, depends: Any, weights: Any, most: float, threshold: float, filled: float,
    main: int,
) -> None:  # fmt: skip
    """Give a cluster the columns that it is joined by: the nearest one, and others that matter while there is room."""
    number = len(weights)
    used = np.zeros(number, dtype=np.bool_)
    chosen = 0
    if main >= 0:
        used[main] = member[main] = True
        filled += weights[main]
        chosen = 1
    while True:
        best, best_mean, best_most = -1, -1.0, 0.0
        for c in range(number):
            if not placed[c] or used[c]:
                continue
            mean, top = _mean_and_most(c, own, depends)
            if mean > best_mean:
                best, best_mean, best_most = c, mean, top
        if best < 0:
            return
        used[best] = True
        if chosen == 0 or (best_most >= threshold and filled + weights[best] <= most):
            member[best] = True
            filled += weights[best]
            chosen += 1


@inner
def _unsatisfied(order: Any, depends: Any, weights: Any, most: float, threshold: float, alone: Any) -> float:
    member, _ = _grouped(order, depends, weights, most, threshold, -1, alone)
    number = len(order)
    lost = 0.0
    for a in range(number):
        for b in range(a):
            together = False
            for c in range(number):
                together = together or (member[c, a] and member[c, b])
            if not together:
                lost += 2.0 * depends[a, b]
    return lost / (2.0 * number)


@compiled
def _annealed(
    depends: Any, weights: Any, most: float, threshold: float, alpha: float, state: Any, alone: Any
) -> Any:
    """Look for the order of columns that leaves the least dependence between columns that never meet."""
    number = len(weights)
    order = np.arange(number)
    now = _unsatisfied(order, depends, weights, most, threshold, alone)
    best, least = order.copy(), now
    heat = _HOTTEST
    while heat > _COLDEST and least > 0.0:
        a = int(next_share(state) * number)
        b = int(next_share(state) * number)
        order[a], order[b] = order[b], order[a]
        lost = _unsatisfied(order, depends, weights, most, threshold, alone)
        if lost <= now or next_share(state) < math.exp((now - lost) / heat * number):
            now = lost
            if now < least:
                best, least = order.copy(), now
        else:
            order[a], order[b] = order[b], order[a]
        heat = heat / (1.0 + alpha * heat)
    return best


# Two tables that share some columns, joined record by record so that the shared columns agree.
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
