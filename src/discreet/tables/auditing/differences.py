"""What do two releases give away together?

Tables of the same people that overlap (regions and postal areas, this year's and last year's boundaries), or the
same table before and after some people joined or left: one published cell minus another can leave a small group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.tables.table import Table


def nested_differences(
    x: Any, counts: npt.NDArray[Any], published: npt.NDArray[np.bool_], threshold: int
) -> pl.DataFrame:
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
    published: npt.NDArray[np.bool_],
    published_before: npt.NDArray[np.bool_],
    threshold: int,
) -> pl.DataFrame:
    """Cells published in two successive releases whose counts differ by few units.

    Whoever has both learns what the few who joined or left have in common. Returns ``cell``, ``before``, ``now``.
    """
    keys = _shared_dimensions(now, before)
    old = before.cells.with_columns(open_before=pl.Series(published_before)).select(
        *keys, "count", "open_before"
    )
    both = (
        now.cells.with_row_index("cell")
        .with_columns(open_now=pl.Series(published))
        .join(old, on=keys, how="inner", suffix="_before")
        .filter(pl.col("open_now") & pl.col("open_before"))
    )
    change = (pl.col("count") - pl.col("count_before")).abs()
    return both.filter(change.is_between(1, threshold - 1)).select(
        pl.col("cell").cast(pl.Int64), pl.col("count_before").alias("before"), pl.col("count").alias("now")
    )


def stacked(now: Table, before: Table) -> tuple[Any, npt.NDArray[np.int64]]:
    """The columns of an earlier table over the inner cells of this one, and which of its cells they are.

    The inner cells must be those of the same people: same dimensions, same counts in every inner cell.
    """
    keys = _shared_dimensions(now, before)
    rows = now.inner.with_row_index("row").join(
        before.inner.with_row_index("old"), on=keys, how="full", suffix="_before", coalesce=True
    )
    same = rows.select(pl.col("count").eq_missing(pl.col("count_before")).all()).item()
    if not same:
        raise ParameterError(
            "The earlier table counts other people than this one: its inner cells differ. Such releases are compared "
            "cell by cell (successive=), not combined."
        )
    place = np.zeros(before.inner.height, dtype=np.int64)
    place[rows["old"].to_numpy()] = rows["row"].to_numpy()
    x = before.x.tocoo()
    columns = sparse.csc_matrix(
        (x.data, (place[x.row], x.col)), shape=(now.inner.height, before.cells.height)
    )
    return columns, np.arange(before.cells.height)


def same_people(now: Table, before: Table) -> bool:
    """Do two tables have the same dimensions and the same count in every inner cell?"""
    if set(now.dimensions) != set(before.dimensions) or now.inner.height != before.inner.height:
        return False
    keys = list(now.dimensions)
    both = now.inner.join(before.inner.select(*keys, "count"), on=keys, how="inner", suffix="_before")
    return both.height == now.inner.height and bool((both["count"] == both["count_before"]).all())


def _shared_dimensions(now: Table, before: Table) -> list[str]:
    if set(now.dimensions) != set(before.dimensions):
        raise ParameterError(
            f"The earlier table has the dimensions {', '.join(before.dimensions)}, this one "
            f"{', '.join(now.dimensions)}. Build both with one formula over all of them, as linked tables, and protect "
            "them together."
        )
    return list(now.dimensions)
