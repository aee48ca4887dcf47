"""Two files whose records belong together, side by side where they are: added up a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.engine.by_record import check_record_key
from discreet.engine.frames import Lazy, collected_batches, has_row_order, scan
from discreet.microdata import Microdata

_ROWS = 250_000
_ID, _OTHER, THERE = "id", "other id", "there"


def linked_rows(
    original: Microdata,
    released: Microdata,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    ids: str | None,
) -> Lazy | None:
    """Put the records of two queries side by side, as a query: one row an original record, and whether it was found.

    Parameters
    ----------
    original, released
        The queries, of the same engine. Without ``ids`` they have the same number of records, in the same order.
    ours, theirs
        The columns of each under the names they have in the answer.
    ids
        The column that links them; their place unless named, which only Polars keeps.

    Returns
    -------
    Lazy or None
        The columns, and ``there``: 1 for a record that the release still has, and null for others. None where the
        engine cannot link them.
    """
    kind = original.wrapped.implementation
    if kind != released.wrapped.implementation:
        return None
    if ids is None:
        if not (has_row_order(original) and has_row_order(released) and kind.is_polars()):
            return None
        sides = [
            scan(data, dict(names)).to_native() for data, names in ((original, ours), (released, theirs))
        ]
        together = pl.concat(sides, how="horizontal")
        linked: Lazy = nw.from_native(together.with_columns(pl.lit(1, dtype=pl.Int64).alias(THERE)))
        return linked
    if original.schema[ids] != released.schema[ids] or not _within_reach(original, released):
        return None
    for data in (original, released):
        check_record_key(data, [ids], purpose="linking two files")
    left = scan(original, {**ours, _ID: ids})
    right = scan(released, {**theirs, _OTHER: ids}).with_columns(nw.lit(1, nw.Int64).alias(THERE))
    return left.join(right, left_on=_ID, right_on=_OTHER, how="left").select(*ours, *theirs, THERE)


def _within_reach(original: Microdata, released: Microdata) -> bool:
    """Whether one query can read both: DuckDB joins what belongs to one connection."""
    if not original.wrapped.implementation.is_duckdb():
        return True
    ours, theirs = (getattr(data.frame, "_con", None) for data in (original, released))
    return ours is not None and ours is theirs


def added_up(rows: Lazy, work: Callable[[pl.DataFrame], Floats], size: int) -> Floats:
    """Add up what a function finds in every batch of a query, on the executors where that is Spark's."""
    if rows.implementation.is_pyspark():
        parts = rows.to_native().mapInArrow(_OnExecutors(work, size), "sums array<double>").collect()
        return np.sum([np.asarray(part[0]) for part in parts], axis=0) if parts else np.zeros(size)
    total = np.zeros(size)
    for part in collected_batches(rows, _ROWS):
        if part.height:
            total += work(part)
    return total


@dataclass(frozen=True)
class _OnExecutors:
    """The sums of a partition, as Spark asks for them."""

    work: Callable[[pl.DataFrame], Floats]
    size: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        total = np.zeros(self.size)
        for batch in batches:
            if batch.num_rows:
                total += self.work(pl.DataFrame(pl.from_arrow(batch)))
        yield pa.RecordBatch.from_pydict({"sums": [total.tolist()]})
