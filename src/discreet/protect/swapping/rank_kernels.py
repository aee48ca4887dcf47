"""The loops of rank swapping: find each record a partner that is still free and near in rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner


@inner
def full_tree(size: Any) -> Any:
    """Make a Fenwick tree in which every place counts one."""
    tree = np.empty(size + 1, np.int64)
    tree[0] = 0
    for i in range(1, size + 1):
        tree[i] = i & -i
    return tree


@inner
def take_out(tree: Any, place: Any) -> Any:
    """Let a place count no more."""
    i = place + 1
    while i < len(tree):
        tree[i] -= 1
        i += i & -i


@inner
def count_before(tree: Any, place: Any) -> Any:
    """Count the places before this one that still count."""
    total = 0
    i = place
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@inner
def nth(tree: Any, number: Any) -> Any:
    """Find the place that has exactly ``number`` counting places before it and counts itself."""
    step = 1
    while 2 * step < len(tree):
        step *= 2
    at = 0
    while step > 0:
        if at + step < len(tree) and tree[at + step] <= number:
            at += step
            number -= tree[at]
        step //= 2
    return at


@compiled
def rank_partners(starts: Any, windows: Any, uniforms: Any) -> Any:
    """Pair ranks at random, never further apart than the window of their group allows.

    From the lowest rank up, each one that has no partner yet takes one evenly from the free ranks above it within
    the window. All below are settled by then, so the free ones up to the end of the window are the candidates.

    Parameters
    ----------
    starts
        Where each group of ranks begins, and the end of the last.
    windows
        The largest difference of ranks, by group.
    uniforms
        A random number for each rank.
    """
    size = starts[-1]
    partner = np.full(size, -1, np.int64)
    tree = full_tree(size)
    for group in range(len(windows)):
        for i in range(starts[group], starts[group + 1]):
            if partner[i] >= 0:
                continue
            take_out(tree, i)
            free = count_before(tree, min(i + windows[group] + 1, starts[group + 1]))
            if free == 0:
                partner[i] = i
                continue
            j = nth(tree, min(int(uniforms[i] * free), free - 1))
            take_out(tree, j)
            partner[i] = j
            partner[j] = i
    return partner
