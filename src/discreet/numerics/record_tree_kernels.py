"""Who is nearest, who is farthest, among those that are left? A tree from which records can be taken out.

The tree halves the records again and again along their widest column; each node knows the box of the records that
are left under it and the lowest of their positions. A box bounds the distance to its records from both sides. The
bounds are sums of the same terms in the same order as the distances, and rounding keeps order, so they hold to the
last bit: what the tree leaves out can neither win nor tie with a lower position, and the answer is that of a scan
of all records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers
from discreet.core.compiling import compiled, inner

LEAF = 32  # records in a leaf: enough for vector instructions, few enough to leave most of them out
NOBODY = np.iinfo(np.int64).max


class Tree(NamedTuple):
    """Records in the order of the tree and, by node (children of t: 2t and 2t + 1), what is left under it.

    Numbers and codes are stored by column, so that a leaf is measured many records to an instruction. ``places``
    gives the row of a record, ``labels`` the record of a row, ``homes`` the leaf of a row. The records left in a
    leaf are its first ``sizes`` rows from ``starts``; the lowest of those under a node is in ``firsts``.
    """

    numbers: Floats
    codes: Codes
    labels: Integers
    places: Integers
    homes: Integers
    starts: Integers
    sizes: Integers
    firsts: Integers
    lows: Floats
    highs: Floats
    low_codes: Codes
    high_codes: Codes
    costs: Floats
    squared: bool


def planted(  # noqa: PLR0917
    numbers: Floats,
    codes: Codes,
    left: Integers,
    costs: Floats,
    squared: bool,
    bound_all: Callable[[Tree], None],
) -> Tree:
    """Put the records that are left into a tree, level by level; ``bound_all`` fits the boxes, compiled or not."""
    n, p, q = len(left), numbers.shape[1], codes.shape[1]
    leaves = 1
    while (n + leaves - 1) // leaves > LEAF:
        leaves *= 2
    order, edges = left, np.array([0, n])
    starts, stops = np.zeros(2 * leaves, np.int64), np.zeros(2 * leaves, np.int64)
    starts[1], stops[1] = edges
    while len(edges) <= leaves:
        order = _ordered(numbers, codes, order, edges, costs, squared)
        middles = (edges[:-1] + edges[1:]) // 2
        edges = np.insert(edges, np.arange(1, len(edges)), middles)
        level = slice(len(edges) - 1, 2 * (len(edges) - 1))
        starts[level], stops[level] = edges[:-1], edges[1:]
    places = np.full(len(numbers), -1)
    places[order] = np.arange(n)
    tree = Tree(
        np.ascontiguousarray(numbers[order].T),
        np.ascontiguousarray(codes[order].T),
        order.copy(),
        places,
        np.repeat(np.arange(leaves, 2 * leaves), np.diff(edges)),
        starts,
        stops - starts,
        np.empty(2 * leaves, np.int64),
        np.empty((2 * leaves, p)),
        np.empty((2 * leaves, p)),
        np.empty((2 * leaves, q), np.int32),
        np.empty((2 * leaves, q), np.int32),
        costs,
        squared,
    )
    bound_all(tree)
    return tree


def _ordered(  # noqa: PLR0917
    numbers: Floats, codes: Codes, order: Integers, edges: Integers, costs: Floats, squared: bool
) -> Integers:
    """Order the records of each node of a level by its widest column.

    The sort is stable: records that coincide stay in the order of their positions, so that ties are settled by node.
    """
    nodes, p = len(edges) - 1, numbers.shape[1]
    widest, extent = np.full(nodes, -1), np.zeros(nodes)
    for j in range(p + codes.shape[1]):
        column = numbers[order, j] if j < p else codes[order, j - p]
        apart = np.maximum.reduceat(column, edges[:-1]) - np.minimum.reduceat(column, edges[:-1])
        if j >= p:
            apart = np.where(apart > 0, costs[j - p], 0.0)
        elif squared:
            apart = apart * apart
        wider = apart > extent
        widest[wider], extent[wider] = j, apart[wider]
    node = np.repeat(np.arange(nodes), np.diff(edges))
    by, values = widest[node], np.zeros(len(order))
    for j in np.unique(widest[widest >= 0]):
        at = by == j
        values[at] = numbers[order[at], j] if j < p else codes[order[at], j - p]
    return order[np.lexsort((values, node))]


@compiled
def bound_all(tree: Tree) -> None:
    """Draw the boxes of all nodes, the children before their parents."""
    for t in range(len(tree.starts) - 1, 0, -1):
        _bound(tree, t)


@inner
def _bound(tree: Tree, t: int) -> None:
    """Draw the box of a node anew, from its records or from its children."""
    low, high = tree.lows[t], tree.highs[t]
    low_code, high_code = tree.low_codes[t], tree.high_codes[t]
    low[:], high[:] = np.inf, -np.inf
    low_code[:], high_code[:] = np.iinfo(np.int32).max, -1
    first = NOBODY
    if 2 * t >= len(tree.starts):
        for row in range(tree.starts[t], tree.starts[t] + tree.sizes[t]):
            first = min(first, tree.labels[row])
            for j in range(len(low)):
                low[j] = min(low[j], tree.numbers[j, row])
                high[j] = max(high[j], tree.numbers[j, row])
            for j in range(len(low_code)):
                low_code[j] = min(low_code[j], tree.codes[j, row])
                high_code[j] = max(high_code[j], tree.codes[j, row])
    else:
        for child in range(2 * t, 2 * t + 2):
            first = min(first, tree.firsts[child])
            for j in range(len(low)):
                low[j] = min(low[j], tree.lows[child, j])
                high[j] = max(high[j], tree.highs[child, j])
            for j in range(len(low_code)):
                low_code[j] = min(low_code[j], tree.low_codes[child, j])
                high_code[j] = max(high_code[j], tree.high_codes[child, j])
    tree.firsts[t] = first


@inner
def take_out(tree: Tree, label: int) -> None:
    """Take a record out of the tree."""
    row = tree.places[label]
    t = tree.homes[row]
    last = tree.starts[t] + tree.sizes[t] - 1
    moved = tree.labels[last]
    for j in range(len(tree.numbers)):
        tree.numbers[j, row], tree.numbers[j, last] = tree.numbers[j, last], tree.numbers[j, row]
    for j in range(len(tree.codes)):
        tree.codes[j, row], tree.codes[j, last] = tree.codes[j, last], tree.codes[j, row]
    tree.labels[row], tree.labels[last] = moved, label
    tree.places[moved], tree.places[label] = row, last
    while t > 0:
        tree.sizes[t] -= 1
        _bound(tree, t)
        t //= 2


@inner
def measure(tree: Tree, t: int, x: Floats, a: Codes, apart: Floats) -> None:
    """Give the distance of a point to each record left in a leaf."""
    start, size = tree.starts[t], tree.sizes[t]
    for i in range(size):
        apart[i] = 0.0
    for j in range(len(x)):
        value, column = x[j], tree.numbers[j, start : start + size]
        if tree.squared:
            for i in range(size):
                apart[i] += (value - column[i]) * (value - column[i])
        else:
            for i in range(size):
                apart[i] += abs(value - column[i])
    for j in range(len(a)):
        code, cost, line = a[j], tree.costs[j], tree.codes[j, start : start + size]
        for i in range(size):
            apart[i] += cost if line[i] != code else 0.0


@inner
def _at_least(tree: Tree, t: int, x: Floats, a: Codes) -> float:
    total = 0.0
    for j in range(len(x)):
        gap = max(tree.lows[t, j] - x[j], x[j] - tree.highs[t, j], 0.0)
        total += gap * gap if tree.squared else gap
    for j in range(len(a)):
        if not tree.low_codes[t, j] <= a[j] <= tree.high_codes[t, j]:
            total += tree.costs[j]
    return total


@inner
def _at_most(tree: Tree, t: int, x: Floats, a: Codes) -> float:
    total = 0.0
    for j in range(len(x)):
        gap = max(tree.highs[t, j] - x[j], x[j] - tree.lows[t, j])
        total += gap * gap if tree.squared else gap
    for j in range(len(a)):
        if not tree.low_codes[t, j] == a[j] == tree.high_codes[t, j]:
            total += tree.costs[j]
    return total


@inner
def _put(  # noqa: PLR0917
    stack: Integers, bounds: Floats, top: int, t: int, left: float, right: float, left_first: bool
) -> int:
    """Put the two halves of a box on the stack, the one to be looked at first on top; return the new height."""
    lower = 1 if left_first else 0
    stack[top], bounds[top] = 2 * t + lower, right if left_first else left
    stack[top + 1], bounds[top + 1] = 2 * t + 1 - lower, left if left_first else right
    return top + 2


@inner
def farthest(tree: Tree, x: Floats, a: Codes, stack: Integers, bounds: Floats) -> int:
    """Return the record left that is farthest from a point; of several, the first."""
    best, winner, apart = -1.0, NOBODY, np.empty(LEAF)
    top = 1
    stack[0], bounds[0] = 1, np.inf
    while top:
        top -= 1
        t = stack[top]
        if bounds[top] < best or (bounds[top] == best and tree.firsts[t] > winner):
            continue
        if 2 * t >= len(tree.starts):
            measure(tree, t, x, a, apart)
            for i in range(tree.sizes[t]):
                if apart[i] >= best:
                    label = tree.labels[tree.starts[t] + i]
                    if apart[i] > best or label < winner:
                        best, winner = apart[i], label
            continue
        left = _at_most(tree, 2 * t, x, a) if tree.sizes[2 * t] else -2.0
        right = _at_most(tree, 2 * t + 1, x, a) if tree.sizes[2 * t + 1] else -2.0
        top = _put(stack, bounds, top, t, left, right, left > right)
    return winner


@compiled
def nearest(  # noqa: PLR0917
    tree: Tree, x: Floats, a: Codes, winners: Integers, distances: Floats, stack: Integers, bounds: Floats
) -> None:
    """Fill in the nearest of the records left, nearest first; of several, those that come first."""
    last, apart = len(winners) - 1, np.empty(LEAF)
    winners[:], distances[:] = NOBODY, np.inf
    top = 1
    stack[0], bounds[0] = 1, 0.0
    while top:
        top -= 1
        t = stack[top]
        if bounds[top] > distances[last] or (
            bounds[top] == distances[last] and tree.firsts[t] > winners[last]
        ):
            continue
        if 2 * t >= len(tree.starts):
            measure(tree, t, x, a, apart)
            for i in range(tree.sizes[t]):
                d, label = apart[i], tree.labels[tree.starts[t] + i]
                if d > distances[last] or (d == distances[last] and label > winners[last]):
                    continue
                slot = last
                while slot > 0 and (
                    distances[slot - 1] > d or (distances[slot - 1] == d and winners[slot - 1] > label)
                ):
                    distances[slot], winners[slot] = distances[slot - 1], winners[slot - 1]
                    slot -= 1
                distances[slot], winners[slot] = d, label
            continue
        left = _at_least(tree, 2 * t, x, a) if tree.sizes[2 * t] else np.inf
        right = _at_least(tree, 2 * t + 1, x, a) if tree.sizes[2 * t + 1] else np.inf
        top = _put(stack, bounds, top, t, left, right, left < right)
