"""What the elimination holds between two candidates, and the numbers by which its parts speak to each other.

Compiled code takes both.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.core.arrays import Array

# Positions in ``counters``.
PIVOTS, PIVOT_USED, PRIMARY_USED, NODES_USED, NEXT, WORK = 0, 1, 2, 3, 4, 5
WANTED_PIVOT, WANTED_PRIMARY, WANTED_NODES, REVEALED_ROWS = 6, 7, 8, 9
COUNTERS = 10

SAFE = 2.0**62


class State(NamedTuple):
    """The elimination between two candidates. Arrays that grow are replaced by the caller."""

    kind: Array
    label: Array
    order: Array
    key: Array
    static: Array
    used: Array
    pivot_of: Array
    pivot_start: Array
    pivot_length: Array
    pivot_row: Array
    pivot_largest: Array
    pivot_rows: Array
    pivot_values: Array
    start: Array
    length: Array
    room: Array
    largest: Array
    ordinary: Array
    mark: Array
    alive: Array
    owner: Array
    guarded: Array
    rows: Array
    values: Array
    head: Array
    follows: Array
    column_of: Array
    touching: Array
    dense: Array
    touched: Array
    seen: Array
    heap: Array
    queued: Array
    spare_rows: Array
    spare_values: Array
    counters: Array


# What a row is.
ORDINARY, SPECIAL, LABELED = 0, 1, 2

# What a candidate may meet.
PUBLISHED, DEPENDENT = 0, 1
PRIMARY, ZERO_SUM, ZERO_REUSED, CONTRIBUTOR, FEW_CONTRIBUTORS, ZERO_SPACE = 2, 3, 4, 5, 6, 7

# Why the sweep came back.
DONE, PAUSED, NEEDS_ROOM, OVERFLOW, REVEALED = 0, 1, 2, 3, 4

# Zero methods that change the sweep itself.
PLAIN, SUBSPACE, SUBSPACE_STRICT, ANY_SUM = 0, 1, 2, 3
