"""The compiled walk of records down a tree, and the draw of a donor where they end.

A record that goes down alone meets a branch at each node that the processor cannot foresee, and waits for it. So all of
them go down together: a node divides its records between its children without a branch, as when the tree was grown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.core.compiling import compiled, inner

_UNSEEN = -1


def walk(  # noqa: PLR0917
    codes: npt.NDArray[np.int16],
    nodes: Codes,
    left_shares: Floats,
    members: Codes,
    by_level: Flags,
    leaf_numbers: Codes,
    seed: int,
) -> Codes:
    """Number the leaf of each row; a level that the node never saw goes to a child at random, by its share."""
    columns = np.ascontiguousarray(codes.T)
    if not columns.flags.writeable:
        columns = columns.copy()  # the compiled walk knows one kind of array; another kind costs seconds
    reached = np.empty(len(codes), np.int32)
    rows = np.arange(len(codes), dtype=np.uint32)
    sides = np.full((int(members.max(initial=-2)) >> 1) + 1, _UNSEEN, np.int8)
    waiting = np.empty((len(nodes) + 1, 3), np.int64)
    _go_down(
        columns, nodes, left_shares, members, by_level, leaf_numbers, seed, rows, sides, waiting, reached
    )
    return reached


@compiled
def _go_down(  # noqa: PLR0917
    columns: npt.NDArray[np.int16],
    nodes: Codes,
    left_shares: Floats,
    members: Codes,
    by_level: Flags,
    leaf_numbers: Codes,
    seed: int,
    rows: npt.NDArray[np.uint32],
    sides: npt.NDArray[np.int8],
    waiting: Integers,
    reached: Codes,
) -> None:
    # Nodes still to be divided, each with its run of rows; a way down leaves one behind at each level.
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, 0, len(rows)
    many = 1
    while many > 0:
        many -= 1
        node, start, stop = waiting[many, 0], waiting[many, 1], waiting[many, 2]
        if nodes[node, 0] < 0:
            for at in range(start, stop):
                reached[rows[at]] = leaf_numbers[node]
            continue
        column, share = columns[nodes[node, 0]], left_shares[node]
        if by_level[node]:
            for at in range(nodes[node, 1], nodes[node, 2]):
                sides[members[at] >> 1] = members[at] & 1
            middle = _by_level(rows, start, stop, column, sides, seed, node, share)
            for at in range(nodes[node, 1], nodes[node, 2]):
                sides[members[at] >> 1] = _UNSEEN
        else:
            middle = _by_cut(rows, start, stop, column, nodes[node, 1], seed, node, share)
        if start < middle:
            waiting[many, 0], waiting[many, 1], waiting[many, 2] = nodes[node, 3], start, middle
            many += 1
        if middle < stop:
            waiting[many, 0], waiting[many, 1], waiting[many, 2] = nodes[node, 4], middle, stop
            many += 1


@compiled
def places_in(leaves: npt.NDArray[np.integer[Any]], uniforms: Floats, starts: Integers) -> Integers:
    """Draw a place of the run of each leaf, all as likely."""
    places = np.empty(len(leaves), np.int64)
    for i in range(len(leaves)):
        first, after = starts[leaves[i]], starts[leaves[i] + 1]
        # Rounding may carry a draw past the end of its leaf.
        places[i] = min(first + np.int64(uniforms[i] * (after - first)), after - 1)
    return places


@inner
def _by_cut(  # noqa: PLR0917
    rows: npt.NDArray[np.uint32],
    start: int,
    stop: int,
    column: npt.NDArray[np.int16],
    cut: int,
    seed: int,
    node: int,
    left_share: float,
) -> int:
    """Bring the rows of a run up to a cut to its front, and say where the others begin."""
    # Unsigned numbers, because a negative place would be counted from the end: a question at every step.
    left = np.uint64(start)
    for at in range(np.uint64(start), np.uint64(stop)):
        row = rows[at]
        goes_left = column[row] <= cut
        if column[row] < 0:
            goes_left = _left_at_random(seed, row, node, left_share)
        rows[at] = rows[left]
        rows[left] = row
        left += np.uint64(goes_left)
    return int(left)


@inner
def _by_level(  # noqa: PLR0917
    rows: npt.NDArray[np.uint32],
    start: int,
    stop: int,
    column: npt.NDArray[np.int16],
    sides: npt.NDArray[np.int8],
    seed: int,
    node: int,
    left_share: float,
) -> int:
    """Bring the rows of a run whose level goes left to its front, and say where the others begin."""
    left = np.uint64(start)
    for at in range(np.uint64(start), np.uint64(stop)):
        row = rows[at]
        code = np.uint64(column[row])  # one below 0 is beyond all levels
        side = sides[code] if code < np.uint64(len(sides)) else np.int8(_UNSEEN)
        goes_left = side == 0
        if side < 0:
            goes_left = _left_at_random(seed, row, node, left_share)
        rows[at] = rows[left]
        rows[left] = row
        left += np.uint64(goes_left)
    return int(left)


@inner
def _left_at_random(seed: int, row: int, node: int, left_share: float) -> bool:
    """Choose a side by a hash of seed, row and node: the same whatever the order or number of the rows before."""
    z = np.uint64(seed) + np.uint64(row) * np.uint64(0x9E3779B97F4A7C15)
    z = z + np.uint64(node) * np.uint64(0xD1342543DE82EF95)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0 < left_share


# The compiled loops of pruning over nodes.


@compiled
def misclassified(starts: Codes, stops: Codes, classes: Codes, weights: Floats, n_classes: int) -> Floats:
    """Weigh the records of each run of rows that are not of its commonest class."""
    weighted = len(weights) > 0
    totals, errors = np.zeros(n_classes), np.zeros(len(starts))
    for t in range(len(starts)):
        weight, most = 0.0, 0.0
        for i in range(starts[t], stops[t]):
            more = weights[i] if weighted else 1.0
            totals[classes[i]] += more
            weight += more
            most = max(most, totals[classes[i]])
        errors[t] = weight - most
        for i in range(starts[t], stops[t]):
            totals[classes[i]] = 0.0
    return errors


@compiled
def surviving(lefts: Codes, rights: Codes, errors: Floats, alpha: float) -> npt.NDArray[np.int8]:
    """Mark the nodes of the smallest best subtree: 0 gone, 1 a leaf, 2 still split.

    A branch is worth keeping when its errors and ``alpha`` for each of its leaves are clearly less than the errors
    of its root and ``alpha``. Children come after their parent.
    """
    tolerance = 1e-9 * max(errors[0], alpha)
    costs, worth = np.empty(len(lefts)), np.zeros(len(lefts), np.bool_)
    for t in range(len(lefts) - 1, -1, -1):
        costs[t] = errors[t] + alpha
        if lefts[t] > 0:
            below = costs[lefts[t]] + costs[rights[t]]
            if below < costs[t] - tolerance:
                costs[t], worth[t] = below, True
    fate = np.zeros(len(lefts), np.int8)
    fate[0] = 1
    for t in range(len(lefts)):
        if fate[t] == 1 and worth[t]:
            fate[t], fate[lefts[t]], fate[rights[t]] = 2, 1, 1
    return fate


# The compiled search for the interval that a number falls in.


_BLOCK = 256


@compiled
def intervals(cuts: Floats, values: Floats) -> npt.NDArray[np.uint32]:
    """Count the cuts at or below each value, as ``np.searchsorted(cuts, values, side="right")`` does; 0 for NaN.

    Every search takes the same steps, so that a block of values takes them together: there is no branch to foresee, and
    several values are looked up at a time.
    """
    found = np.zeros(len(values), np.uint32)
    for start in range(0, len(values), _BLOCK):
        low, value = found[start : start + _BLOCK], values[start : start + _BLOCK]
        many = len(cuts)
        while many > 0:
            half = (many + 1) >> 1
            step, last = np.uint32(half), np.uint32(half - 1)
            for i in range(np.uint32(len(low))):
                low[i] += step * np.uint32(cuts[low[i] + last] <= value[i])
            many -= half
    return found
