"""Buckets: the ranges of a tree that records are drawn from, with their counts, and their refinement by smaller trees.

Buckets are laid down in the order of a walk that meets children before their parent, so those below a node stand
together: ``bucket_first[v]`` to ``bucket_last[v]``. The total below a node that may be shown is always its own shown
count. Where the children say less than half of it, the node speaks for itself: alone (one column), or for the rest
that is missing (several columns).
"""

# ruff: noqa: PLR0917
from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Array, Integers
from discreet.core.compiling import ZERO, compiled, inner
from discreet.synth.syndiffix.hashing import next_share
from discreet.synth.syndiffix.range_tree_kernels import all_pass, count_persons

RESCALED, REPLACED, ADDED = 0, 1, 2


@inner
def _own_range(
    node: int,
    base: int,
    whole: Any,
    lows: Any,
    width: Any,
    seen_low: Any,
    seen_high: Any,
    low: Any,
    high: Any,
) -> None:
    for d in range(len(width)):
        if seen_low[node, d] == seen_high[node, d]:
            low[d] = seen_low[node, d]
            high[d] = seen_low[node, d]
        else:
            low[d] = lows[node, d]
            high[d] = lows[node, d] + width[d] / 2.0 ** (whole[node, 2] - base)


@inner
def _picked(upto: Any, first: int, last: int, state: Any) -> int:
    """Pick a place between two ends by its weight; ``upto`` are the sums of the weights."""
    before = upto[first - 1] if first > 0 else 0.0
    goal = before + next_share(state) * (upto[last - 1] - before)
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if upto[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def _alike_without(node: int, gone: int, seen_low: Any, seen_high: Any) -> Any:
    """Whether the records of a node all have the same values in every dimension but one."""
    alike = True
    for d in range(seen_low.shape[1]):
        alike = alike and (d == gone or seen_low[node, d] == seen_high[node, d])
    return alike


@inner
def _without_outliers(
    node: int, base: int, whole: Any, lows: Any, width: Any, values: Any, order: Any, persons: Any, hashes: Any,
    seen: Any, mark: int, part: Any, counts: Any, seeds: Any, limits: Any, salt: Any, step: Any, low: Any, high: Any,
) -> int:  # fmt: skip
    """Halve the range of a stub where one half holds too few to be shown; returns the next free mark."""
    first, last = whole[node, 3], whole[node, 4]
    for d in range(len(width)):
        size = width[d] / 2.0 ** (whole[node, 2] - base)
        low[d], high[d] = lows[node, d], lows[node, d] + size
        middle = low[d] + size / 2.0
        fine = np.empty(2, dtype=np.bool_)
        for side in range(2):
            number = ZERO
            for at in range(first, last):
                if (values[d, order[at]] >= middle) == (side == 1):
                    part[number] = order[at]
                    number += 1
            count_persons(part, ZERO, number, persons, hashes, seen, mark, counts, seeds)
            mark += 1
            fine[side] = all_pass(counts, seeds, limits[0], limits[1], limits[2], salt, step)
        if fine[0] and not fine[1]:
            high[d] = middle
        elif fine[1] and not fine[0]:
            low[d] = middle
    return mark


def most_buckets(whole: Array, shown: Integers, dims: int) -> int:
    """How many buckets can a tree have at most? One a node if it has one column, else one a record that is shown."""
    if dims == 1:
        return len(whole)
    below = np.bincount(whole[1:, 0], shown[1:], minlength=len(whole)).astype(np.int64)
    alone = (whole[:, 5] == 1) | (2 * below < shown)
    return int((shown - np.where(whole[:, 5] == 1, 0, below))[alone & (shown > 0)].sum())


@compiled
def harvest(
    values: Any,
    order: Any,
    persons: Any,
    hashes: Any,
    whole: Any,
    stop: Any,
    lows: Any,
    width: Any,
    seen_low: Any,
    seen_high: Any,
    subs: Any,
    shown: Any,
    sub_first: Any,
    sub_last: Any,
    sub_depth: Any,
    sub_low: Any,
    sub_high: Any,
    sub_weight: Any,
    sub_hidden: Any,
    limits: Any,
    salt: Any,
    step: Any,
    start: np.uint64,
    seen: Any,
    room: int,
) -> Any:
    """Collect the buckets of a tree.

    ``sub_first`` and ``sub_last`` say where the buckets of the nodes of the smaller trees stand, ``sub_low`` and
    ``sub_high`` hold their ranges by dimension of this tree, ``sub_weight`` how much each counts, and ``sub_hidden``
    how deep the deepest node lies that speaks in its place. ``seen`` has -1 for every person, and there
    is ``room`` for so many buckets (`most_buckets`). Returns how many there are, tables that have a row for each and
    empty rows, and three arrays with an entry for each node.
    """
    nodes, dims = lows.shape
    base = whole[0, 2]
    state = np.empty(1, dtype=np.uint64)
    state[0] = start
    low, high = np.empty((room, dims)), np.empty((room, dims))
    about = np.empty((room, 2), dtype=np.int64)  # count, node
    number = 0
    bucket_first = np.zeros(nodes, dtype=np.int64)
    bucket_last = np.zeros(nodes, dtype=np.int64)
    mode = np.zeros(nodes, dtype=np.int64)
    many = len(hashes)
    part = np.empty(len(order), dtype=order.dtype)
    counts, seeds = np.empty(many, dtype=np.int64), np.empty(many, dtype=np.uint64)
    mark = ZERO  # not a plain 0, for which the functions called would be compiled once more
    walk = np.empty(nodes, dtype=np.int64)  # a node waits once
    walk[0] = 0
    walked = 1
    entered = np.zeros(nodes, dtype=np.bool_)
    one_low, one_high = np.empty(dims), np.empty(dims)
    fit_low, fit_high = np.empty(dims), np.empty(dims)
    least, most = np.empty((dims, dims)), np.empty((dims, dims))
    kept = np.empty(len(sub_low) + dims, dtype=np.int64)  # -1 stands for the values that the node itself has
    upto = np.empty(len(sub_low) + dims)
    ends = np.empty(dims + 1, dtype=np.int64)
    while walked > 0:
        node = walk[walked - 1]
        if not entered[node]:
            entered[node] = True
            bucket_first[node] = number
            children = 0
            at = node + 1
            while at < stop[node]:
                children += 1
                at = stop[at]
            place = walked + children
            at = node + 1
            while at < stop[node]:
                place -= 1
                walk[place] = at
                at = stop[at]
            walked += children
            continue
        walked -= 1
        single = True
        for d in range(dims):
            single = single and seen_low[node, d] == seen_high[node, d]
        wanted = 0
        refined = False
        if shown[node] > 0:
            if whole[node, 5] == 1:
                wanted = shown[node]
                refined = dims > 1 and not single
            else:
                below = 0
                at = node + 1
                while at < stop[node]:
                    below += shown[at]
                    at = stop[at]
                if 2 * below < shown[node]:
                    mode[node] = REPLACED if dims == 1 else ADDED
                    wanted = shown[node] if dims == 1 else shown[node] - below
                    refined = dims > 1
        if wanted > 0:
            if refined:
                filled, usable = ZERO, True
                for j in range(dims):
                    for d in range(dims):
                        least[j, d], most[j, d] = np.inf, -np.inf
                    ends[j] = filled
                    if _alike_without(node, dims - 1 - j, seen_low, seen_high):
                        kept[filled] = -1
                        filled += 1
                        for d in range(dims):
                            if d != dims - 1 - j:
                                least[j, d] = most[j, d] = seen_low[node, d]
                        continue
                    up = node
                    while subs[up, j] < 0:
                        up = whole[up, 0]
                    sub = subs[up, j]
                    for b in range(sub_first[sub], sub_last[sub]):
                        if sub_weight[b] > 0 and sub_hidden[b] < sub_depth[sub]:
                            kept[filled] = b
                            filled += 1
                            for d in range(dims):
                                if d != dims - 1 - j:
                                    least[j, d] = min(least[j, d], sub_low[b, d])
                                    most[j, d] = max(most[j, d], sub_high[b, d])
                    usable = usable and filled > ends[j]
                ends[dims] = filled
                if usable:
                    if whole[node, 5] == 1 and whole[node, 6] == 1:
                        mark = _without_outliers(
                            node, base, whole, lows, width, values, order, persons, hashes, seen, mark, part,
                            counts, seeds, limits, salt, step, fit_low, fit_high,
                        )  # fmt: skip
                    else:
                        for d in range(dims):
                            fit_low[d] = lows[node, d]
                            fit_high[d] = lows[node, d] + width[d] / 2.0 ** (whole[node, 2] - base)
                    for d in range(dims):
                        chosen = -1
                        for j in range(dims):
                            if d != dims - 1 - j and (
                                chosen < 0 or most[j, d] - least[j, d] < most[chosen, d] - least[chosen, d]
                            ):
                                chosen = j
                        a, b_end = max(fit_low[d], least[chosen, d]), min(fit_high[d], most[chosen, d])
                        if a > b_end:
                            a, b_end = min(fit_low[d], least[chosen, d]), max(fit_high[d], most[chosen, d])
                        fit_low[d], fit_high[d] = a, b_end
                    # Buckets that lie inside are kept, in place, with the sums of their weights.
                    filled = ZERO
                    before = 0.0
                    for j in range(dims):
                        begin, end = ends[j], ends[j + 1]
                        ends[j] = filled
                        for at in range(begin, end):
                            b = kept[at]
                            inside = True
                            for d in range(dims):
                                if d != dims - 1 - j:
                                    low_end = sub_low[b, d] if b >= 0 else seen_low[node, d]
                                    high_end = sub_high[b, d] if b >= 0 else seen_low[node, d]
                                    inside = inside and low_end >= fit_low[d] and high_end <= fit_high[d]
                            if inside:
                                before += sub_weight[b] if b >= 0 else float(shown[node])
                                kept[filled] = b
                                upto[filled] = before
                                filled += 1
                        usable = usable and filled > ends[j]
                    ends[dims] = filled
                if usable:
                    for t in range(wanted):
                        j = t % dims
                        gone = dims - 1 - j
                        b = kept[_picked(upto, ends[j], ends[j + 1], state)]
                        for d in range(dims):
                            low[number, d] = sub_low[b, d] if b >= 0 else seen_low[node, d]
                            high[number, d] = sub_high[b, d] if b >= 0 else seen_low[node, d]
                        # The missing range: from any of the smaller trees that have the column.
                        weight_own = upto[ends[j + 1] - 1] - (upto[ends[j] - 1] if ends[j] > 0 else 0.0)
                        if dims == 2:
                            other = 1 - j
                            b = kept[_picked(upto, ends[other], ends[other + 1], state)]
                        else:
                            goal = next_share(state) * (upto[filled - 1] - weight_own)
                            from_lower = upto[ends[j] - 1] if ends[j] > 0 else 0.0
                            if goal < from_lower:
                                b = kept[_picked(upto, ZERO, ends[j], state)]
                            else:
                                b = kept[_picked(upto, ends[j + 1], filled, state)]
                        low[number, gone] = sub_low[b, gone] if b >= 0 else seen_low[node, gone]
                        high[number, gone] = sub_high[b, gone] if b >= 0 else seen_low[node, gone]
                        about[number, 0] = 1
                        about[number, 1] = node
                        number += 1
                    wanted = 0
            if wanted > 0:
                _own_range(node, base, whole, lows, width, seen_low, seen_high, one_low, one_high)
                for d in range(dims):
                    low[number, d] = one_low[d]
                    high[number, d] = one_high[d]
                about[number, 0] = wanted
                about[number, 1] = node
                number += 1
        bucket_last[node] = number
    return number, low, high, about, bucket_first, bucket_last, mode


@compiled
def weigh(whole: Any, stop: Any, shown: Any, mode: Any, about: Any, first: Any, last: Any) -> Any:
    """How much each bucket counts beside its neighbors, and how deep the deepest node lies that speaks in its place."""
    nodes = len(whole)
    weight = about[:, 0].astype(np.float64)
    hidden = np.full(len(about), -1, dtype=np.int64)
    for node in range(nodes - 1, -1, -1):
        if whole[node, 5] == 1 or shown[node] == 0:
            continue
        if mode[node] == REPLACED:
            for b in range(first[node], last[node]):
                if about[b, 1] != node:
                    hidden[b] = max(hidden[b], whole[node, 2])
        elif mode[node] == RESCALED:
            total = 0.0
            at = node + 1
            while at < stop[node]:
                total += shown[at]
                at = stop[at]
            for b in range(first[node], last[node]):
                weight[b] *= shown[node] / total
    return weight, hidden


@compiled
def final_counts(whole: Any, stop: Any, shown: Any, mode: Any, about: Any, first: Any, last: Any) -> Any:
    """Bring the counts of the buckets into line with every node above them, down to the last record."""
    count = about[:, 0].copy()
    for node in range(len(whole) - 1, -1, -1):
        if whole[node, 5] == 1 or shown[node] == 0:
            continue
        if mode[node] == REPLACED:
            for b in range(first[node], last[node]):
                if about[b, 1] != node:
                    count[b] = 0
        elif mode[node] == RESCALED:
            total = 0
            for b in range(first[node], last[node]):
                total += count[b]
            carried = 0.0
            factor = shown[node] / total if total > 0 else 0.0
            for b in range(first[node], last[node]):
                wanted = count[b] * factor + carried
                count[b] = max(0, int(np.rint(wanted)))
                carried = wanted - count[b]
    return count
