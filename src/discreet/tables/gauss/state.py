"""What the elimination holds between two candidates, as arrays that compiled code can take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

# Positions in ``counters``.
PIVOTS, PIVOT_USED, PRIMARY_USED, NODES_USED, NEXT, WORK = 0, 1, 2, 3, 4, 5
WANTED_PIVOT, WANTED_PRIMARY, WANTED_NODES, REVEALED_ROWS = 6, 7, 8, 9
COUNTERS = 10

SAFE = 2.0**62


Integers = npt.NDArray[Any]


class State(NamedTuple):
    """The elimination between two candidates. Arrays that grow are replaced by the caller."""

    kind: Integers
    label: Integers
    order: Integers
    key: Integers
    static: Integers
    used: Integers
    pivot_of: Integers
    pivot_start: Integers
    pivot_length: Integers
    pivot_row: Integers
    pivot_largest: Integers
    pivot_rows: Integers
    pivot_values: Integers
    start: Integers
    length: Integers
    room: Integers
    largest: Integers
    ordinary: Integers
    mark: Integers
    alive: Integers
    owner: Integers
    guarded: Integers
    rows: Integers
    values: Integers
    head: Integers
    follows: Integers
    column_of: Integers
    touching: Integers
    dense: Integers
    touched: Integers
    seen: Integers
    heap: Integers
    queued: Integers
    spare_rows: Integers
    spare_values: Integers
    counters: Integers
