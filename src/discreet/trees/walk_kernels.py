"""The compiled walk of records down a tree, and the draw of a donor where they end.

A record that goes down alone meets a branch at each node that the processor cannot foresee, and waits for it. So all of
them go down together: a node divides its records between its children without a branch, as when the tree was grown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Codes, Flags, Floats, Integers
from discreet.compiling import compiled, inner

_UNSEEN = -1


@compiled
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
    reached = np.empty(len(codes), np.int32)
    rows = np.arange(len(codes)).astype(np.uint32)
    sides = np.full(_levels(nodes, by_level, members), _UNSEEN, np.int8)
    # Nodes still to be divided, each with its run of rows; a way down leaves one behind at each level.
    waiting = np.empty((len(nodes) + 1, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, 0, len(rows)
    many = 1
    while many > 0:
        many -= 1
        node, start, stop = waiting[many, 0], waiting[many, 1], waiting[many, 2]
        if nodes[node, 0] < 0:
            for row in rows[start:stop]:
                reached[row] = leaf_numbers[node]
            continue
        column, run = codes[:, nodes[node, 0]], rows[start:stop]
        if by_level[node]:
            own = members[nodes[node, 1] : nodes[node, 2]]
            for member in own:
                sides[member >> 1] = member & 1
            middle = start + _by_level(run, column, sides, seed, node, left_shares[node])
            for member in own:
                sides[member >> 1] = _UNSEEN
        else:
            middle = start + _by_cut(run, column, nodes[node, 1], seed, node, left_shares[node])
        for child, first, last in ((nodes[node, 3], start, middle), (nodes[node, 4], middle, stop)):
            if first < last:
                waiting[many, 0], waiting[many, 1], waiting[many, 2] = child, first, last
                many += 1
    return reached


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
def _levels(nodes: Codes, by_level: Flags, members: Codes) -> int:
    """Count the levels that splits may speak of."""
    most = 0
    for node in range(len(nodes)):
        if nodes[node, 0] >= 0 and by_level[node]:
            for member in members[nodes[node, 1] : nodes[node, 2]]:
                most = max(most, (member >> 1) + 1)
    return most


@inner
def _by_cut(  # noqa: PLR0917
    rows: npt.NDArray[np.uint32],
    column: npt.NDArray[np.int16],
    cut: int,
    seed: int,
    node: int,
    left_share: float,
) -> int:
    """Bring the rows up to a cut to the front, and say how many they are."""
    # Unsigned numbers, because a negative place would be counted from the end: a question at every step.
    left = np.uint64(0)
    for at in range(np.uint64(len(rows))):
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
    column: npt.NDArray[np.int16],
    sides: npt.NDArray[np.int8],
    seed: int,
    node: int,
    left_share: float,
) -> int:
    """Bring the rows whose level goes left to the front, and say how many they are."""
    left = np.uint64(0)
    for at in range(np.uint64(len(rows))):
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
