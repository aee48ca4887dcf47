"""The loops of category perturbation: draw from many small laws, and find swap partners."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def alias_tables(laws):  # type: ignore[no-untyped-def]
    """Prepare rows of probabilities for drawing in constant time (Walker 1977, Vose 1991).

    Returns
    -------
    cut, other
        In cell j of a row stay with j below ``cut``, else take ``other``.
    """
    rows, width = laws.shape
    cut = np.ones((rows, width))
    other = np.empty((rows, width), np.int32)
    small = np.empty(width, np.int64)
    large = np.empty(width, np.int64)
    scaled = np.empty(width)
    for row in range(rows):
        few, many, best = 0, 0, 0
        for j in range(width):
            other[row, j] = j
            scaled[j] = laws[row, j] * width
            if laws[row, j] > laws[row, best]:
                best = j
            if scaled[j] < 1.0:
                small[few] = j
                few += 1
            else:
                large[many] = j
                many += 1
        while few > 0 and many > 0:
            few -= 1
            low = small[few]
            high = large[many - 1]
            cut[row, low] = scaled[low]
            other[row, low] = high
            scaled[high] -= 1.0 - scaled[low]
            if scaled[high] < 1.0:
                many -= 1
                small[few] = high
                few += 1
        for left in range(few):
            # Only rounding leaves a cell here; one that must never be drawn hands over to the likeliest.
            if laws[row, small[left]] == 0.0:
                cut[row, small[left]] = 0.0
                other[row, small[left]] = best
    return cut, other


@njit(cache=True, nogil=True)
def draw(codes, uniforms, cut, other):  # type: ignore[no-untyped-def]
    """Draw a new code for each record from the law of its old one; negative codes stay."""
    width = cut.shape[1]
    drawn = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        row = codes[i]
        if row < 0:
            drawn[i] = row
            continue
        place = uniforms[i] * width
        j = min(int(place), width - 1)
        drawn[i] = j if place - j < cut[row, j] else other[row, j]
    return drawn


@njit(cache=True, nogil=True)
def full_tree(size):  # type: ignore[no-untyped-def]
    """Make a Fenwick tree in which every place counts one."""
    tree = np.empty(size + 1, np.int64)
    tree[0] = 0
    for i in range(1, size + 1):
        tree[i] = i & -i
    return tree


@njit(cache=True, nogil=True)
def take_out(tree, place):  # type: ignore[no-untyped-def]
    """Let a place count no more."""
    i = place + 1
    while i < len(tree):
        tree[i] -= 1
        i += i & -i


@njit(cache=True, nogil=True)
def count_before(tree, place):  # type: ignore[no-untyped-def]
    """Count the places before this one that still count."""
    total = 0
    i = place
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(cache=True, nogil=True)
def nth(tree, number):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def rank_partners(starts, windows, uniforms):  # type: ignore[no-untyped-def]
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
