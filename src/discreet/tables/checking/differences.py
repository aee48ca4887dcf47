"""What do two releases give away together?

Tables of the same people that overlap (regions and postal areas, this year's and last year's boundaries), or the
same table before and after some people joined or left: one published cell minus another can leave a small group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Array, Flags
from discreet.tables.exact_disclosure import shared_cells

if TYPE_CHECKING:
    from discreet.tables.table import Table


def nested_differences(x: Any, counts: Array, published: Flags, threshold: int) -> pl.DataFrame:
    """Pairs of published cells, one inside the other, that differ by few units.

    Returns ``larger``, ``smaller`` (positions) and ``difference``: between 1 and below the threshold.
    """
    x = sparse.csc_matrix(x).astype(np.int64)
    cells = np.flatnonzero(published)
    inside = x[:, cells]
    inside.data[:] = 1
    totals = np.asarray(counts @ x).ravel()[cells]
    sizes = np.diff(inside.indptr)
    found = []
    for start in range(0, len(cells), 2_000):
        shared = (inside.T @ inside[:, start : start + 2_000]).tocoo()
        small, large = shared.row, shared.col + start
        gap = totals[large] - totals[small]
        hit = (shared.data == sizes[small]) & (sizes[small] < sizes[large]) & (gap >= 1) & (gap < threshold)
        found.append(np.stack([cells[large[hit]], cells[small[hit]], gap[hit].astype(np.int64)]))
    larger, smaller, difference = np.concatenate(found, axis=1) if found else np.zeros((3, 0), dtype=np.int64)
    return pl.DataFrame({"larger": larger, "smaller": smaller, "difference": difference})


def successive_differences(
    now: Table,
    before: Table,
    published: Flags,
    published_before: Flags,
    threshold: int,
) -> pl.DataFrame:
    """Cells published in two successive releases whose counts differ by few units.

    Whoever has both learns what the few who joined or left have in common. Cells are compared where both releases have
    the same codes; a dimension that one of them lacks is at its total there. Returns ``cell``, ``before``, ``now``.
    """
    pairs = shared_cells(now, before)
    cell, old = pairs["now"].to_numpy(), pairs["before"].to_numpy()
    counts, counts_before = now.cells["count"].to_numpy()[cell], before.cells["count"].to_numpy()[old]
    change = np.abs(counts - counts_before)
    hit = published[cell] & published_before[old] & (change >= 1) & (change < threshold)
    return pl.DataFrame(
        {
            "cell": pl.Series(cell[hit], dtype=pl.Int64),
            "before": pl.Series(counts_before[hit]),
            "now": pl.Series(counts[hit]),
        }
    )
