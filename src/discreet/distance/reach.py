"""How far must one reach from a record to touch another in every column at once?

The smallest tolerance at which a record matches some candidate, found once, answers for every tolerance: a record is
matched at all tolerances from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.arrays import Floats, Integers
from discreet.distance.boxes import _blocks


@dataclass(frozen=True)
class Reach:
    """The smallest tolerance of each record (inf where none is enough), and the candidate it touches (-1 for none)."""

    tolerance: Floats
    nearest: Integers


def reach_to_nearest(
    numbers: Floats,
    units: Floats,
    others: Floats,
    *,
    equal: Sequence[tuple[pl.Series, pl.Series]] = (),
) -> Reach:
    """Find, for each record, the smallest t at which some candidate differs by at most t units in every number.

    Parameters
    ----------
    numbers, others
        Numbers of the records and of the candidates, a column each; no missing values.
    units
        What a difference is measured in, for each record and column; where it is 0 only equal numbers touch.
    equal
        Columns that must be equal, as (records, candidates).

    Examples
    --------
    >>> found = reach_to_nearest(np.array([[10.0], [0.0]]), np.array([[10.0], [0.0]]), np.array([[9.0], [12.0]]))
    >>> found.tolerance.tolist(), found.nearest.tolist()
    ([0.1, inf], [0, -1])
    """
    from discreet.distance.reach_kernels import grow_boxes, smallest_tolerances

    block, other_block = _blocks(len(numbers), len(others), equal)
    order = np.argsort(other_block, kind="stable")
    present, starts = np.unique(other_block[order], return_index=True)
    stops = np.append(starts[1:], len(order)).astype(np.int64)
    scales = others.std(axis=0) if len(others) else np.ones(others.shape[1])
    boxes, low, high = grow_boxes(
        np.ascontiguousarray(others), order, starts.astype(np.int64), stops, np.where(scales > 0, scales, 1.0)
    )
    root = np.searchsorted(present, block)
    there = root < len(present)
    there[there] = present[root[there]] == block[there]
    found, nearest = np.empty(len(numbers)), np.empty(len(numbers), dtype=np.int64)
    smallest_tolerances(
        np.ascontiguousarray(numbers),
        np.ascontiguousarray(units),
        np.where(there, root, -1).astype(np.int64),
        np.ascontiguousarray(others),
        order,
        boxes,
        low,
        high,
        found,
        nearest,
    )
    return Reach(found, nearest)
