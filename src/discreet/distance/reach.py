"""How far must one reach from a record to touch another in every column at once?

The smallest tolerance at which a record matches some candidate, found once, answers for every tolerance: a record is
matched at all tolerances from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.distance.boxes import _blocks

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


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
    limit: float = np.inf,
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
    limit
        Tolerances above it are of no interest and may come back as inf.

    Examples
    --------
    >>> found = reach_to_nearest(np.array([[10.0], [0.0]]), np.array([[10.0], [0.0]]), np.array([[9.0], [12.0]]))
    >>> found.tolerance.tolist(), found.nearest.tolist()
    ([0.1, inf], [0, -1])
    """
    from discreet.distance.reach_kernels import smallest_tolerances

    block, other_block = _blocks(len(numbers), len(others), equal)
    columns = np.argsort([-_distinct(column) for column in others.T], kind="stable").astype(np.int64)
    numbers, units, others = numbers[:, columns], units[:, columns], others[:, columns]
    order = (
        np.lexsort((others[:, 0], other_block)) if others.shape[1] else np.argsort(other_block, kind="stable")
    )
    sorted_block = other_block[order]
    windows = np.column_stack([np.searchsorted(sorted_block, block, side=side) for side in ("left", "right")])
    found, nearest = np.empty(len(numbers)), np.empty(len(numbers), dtype=np.int64)
    smallest_tolerances(
        np.ascontiguousarray(numbers),
        np.ascontiguousarray(units),
        windows.astype(np.int64),
        np.ascontiguousarray(others[order]),
        float(limit),
        found,
        nearest,
    )
    touched = np.where(nearest >= 0, order[nearest] if len(order) else nearest, -1)
    return Reach(found, touched.astype(np.int64))


def _distinct(column: Floats) -> int:
    """Count distinct values; the column with most of them narrows the search best."""
    return len(np.unique(column))
