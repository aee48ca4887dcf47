"""Records drawn from buckets, cluster by cluster, and joined to one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.randomness import generator
from discreet.synth.syndiffix.coding import Coding
from discreet.synth.syndiffix.stitching import stitched
from discreet.synth.synthesizer import Stream

_MOST_RECORDS = 2**31


@dataclass(frozen=True, eq=False)
class ClusterBuckets:
    """The buckets of one cluster.

    Attributes
    ----------
    columns
        Places of the columns, in the order of the dimensions.
    stitch
        Those of them that are there already when the cluster is joined, the least spread out first.
    low, high, count
        Ranges and number of records of each bucket.
    patch
        Whether the columns that are there already stay as they are.
    """

    columns: tuple[int, ...]
    stitch: tuple[int, ...]
    low: Floats
    high: Floats
    count: Integers
    patch: bool = False

    def drawn(self, codings: Sequence[Coding], rng: np.random.Generator) -> Array:
        """Draw the records: for each and every column its value and the ends of its range."""
        low, high = np.repeat(self.low, self.count, axis=0), np.repeat(self.high, self.count, axis=0)
        made = np.empty((*low.shape, 3))
        made[:, :, 1], made[:, :, 2] = low, high
        for place, column in enumerate(self.columns):
            coding = codings[column]
            step = 1.0 if coding.kind in ("text", "truth") else None
            if coding.kind in ("number", "time") and coding.decimals is not None:
                step = 10.0**-coding.decimals
            made[:, place, 0] = _within(low[:, place], high[:, place], step, rng.random(len(low)))
        return made

    def state(self) -> dict[str, Any]:
        """Return the buckets for a model file."""
        return {
            "columns": list(self.columns),
            "stitch": list(self.stitch),
            "low": self.low,
            "high": self.high,
            "count": self.count,
            "patch": self.patch,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> ClusterBuckets:
        """Make the buckets again from a model file; what cannot be buckets is refused before it is drawn from."""
        own = cls(
            tuple(state["columns"]), tuple(state["stitch"]), state["low"], state["high"], state["count"],
            bool(state.get("patch", False)),
        )  # fmt: skip
        shape = (len(own.count), len(own.columns))
        whole = own.count.dtype == np.int64 and own.count.ndim == 1 and bool((own.count >= 0).all())
        ends = own.low.dtype == own.high.dtype == np.float64 and own.low.shape == own.high.shape == shape
        if not (whole and ends and np.isfinite(own.low).all() and bool((own.low <= own.high).all())):
            raise ValueError("ranges or counts that no bucket can have")
        if int(own.count.sum()) > _MOST_RECORDS or not set(own.stitch) <= set(own.columns):
            raise ValueError("more records, or other columns, than a table can have")
        return own


def drawn_table(
    clusters: Sequence[ClusterBuckets],
    codings: Sequence[Coding],
    ranges: Sequence[tuple[float, float]],
    stream: Stream,
) -> tuple[list[int], Array]:
    """Draw every cluster and join it to those before it; returns which columns the table has, and the table."""
    here: list[int] = list(clusters[0].columns)
    table = clusters[0].drawn(codings, stream("cluster 0"))
    for place, cluster in enumerate(clusters[1:], start=1):
        right = cluster.drawn(codings, stream(f"cluster {place}"))
        own = [column for column in cluster.columns if column not in here]
        shared = [(here.index(column), cluster.columns.index(column)) for column in cluster.stitch]
        table = stitched(
            table,
            right,
            shared,
            [ranges[column] for column in cluster.stitch],
            [cluster.columns.index(column) for column in own],
            np.uint64(stream(f"stitch {place}").integers(2**63)),
            patch=cluster.patch,
        )
        here += own
    return here, table


def decoded_table(here: Sequence[int], table: Array, codings: Sequence[Coding]) -> pl.DataFrame:
    """Turn a table of numbers into columns, in the order of the file."""
    order = sorted(range(len(here)), key=lambda place: here[place])
    return pl.DataFrame(
        [
            codings[here[place]].decoded(table[:, place, 0], table[:, place, 1], table[:, place, 2])
            for place in order
        ]
    )


def sized(table: Array, n: int, rng: np.random.Generator) -> Array:
    """Shuffle a table, and cut or repeat it so that it has ``n`` records."""
    if not len(table):
        return table
    order = generator(rng).permutation(len(table))
    if n > len(table):
        order = np.concatenate([order, rng.integers(len(table), size=n - len(table))])
    return table[order[:n]]


def _within(low: Floats, high: Floats, step: float | None, share: Floats) -> Floats:
    """Draw evenly between two ends, the lower included; on the grid of the column where it has one."""
    even = low + (high - low) * share
    if step is None:
        return even
    first, last = np.ceil(np.round(low / step, 6)), np.ceil(np.round(high / step, 6)) - 1.0
    on_grid = (first + np.floor((last - first + 1.0) * share)) * step
    return np.where(high == low, low, np.where(last >= first, on_grid, np.round(even / step) * step))
