"""Which number stands at a given place when a column is put in order? Found where the data is, without sorting it.

The range is cut into bins and the engine counts them; the bins in which a wanted place lies are cut again, until one
holds few enough numbers to be fetched with their counts. The answer is exact: cutting is monotone, so that a bin holds
all numbers between its least and its largest.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np

from discreet.arrays import Floats, Integers
from discreet.engine.frames import Lazy, collect, scan
from discreet.microdata import Microdata

_BINS = 1024
_FETCHED = 2_000  # distinct numbers that are fetched at once


def known_numbers(data: Microdata, column: str, *, without: float | None = None) -> int:
    """Count the records that have a number in the column, one code left aside."""
    return int(collect(_numbers(data, column, without).select(nw.len().cast(nw.Int64))).item() or 0)


def values_at(data: Microdata, column: str, ranks: Sequence[int], *, without: float | None = None) -> Floats:
    """Give the numbers at some places of the column in order, the first place being 1.

    Parameters
    ----------
    data, column
        The file and the column of numbers; missing ones are passed over.
    ranks
        The places, each between 1 and the number of known values.
    without
        A code that is no number and is passed over.

    Examples
    --------
    >>> import polars as pl
    >>> values_at(Microdata(pl.LazyFrame({"x": [5.0, 1.0, 3.0, None, 3.0]})), "x", [1, 2, 4]).tolist()
    [1.0, 3.0, 5.0]
    """
    wanted = np.asarray(sorted(set(ranks)), dtype=np.int64)
    rows = _numbers(data, column, without)
    found = dict(zip(wanted.tolist(), _within(rows, wanted, 0).tolist(), strict=True))
    return np.array([found[int(rank)] for rank in ranks], dtype=np.float64)


def _numbers(data: Microdata, column: str, without: float | None) -> Lazy:
    rows = scan(data, {"x": column}).select(nw.col("x").cast(nw.Float64))
    rows = rows.filter(~nw.col("x").is_null())
    return rows if without is None else rows.filter(nw.col("x") != without)


def _within(rows: Lazy, ranks: Integers, below: int) -> Floats:
    """Find places among rows of which ``below`` smaller ones were left aside."""
    if not len(ranks):
        return np.zeros(0)
    least, most, many = collect(
        rows.select(
            least=nw.col("x").min(), most=nw.col("x").max(), many=nw.col("x").n_unique().cast(nw.Int64)
        )
    ).row(0)
    width = (most - least) / _BINS
    if many <= _FETCHED or not 0 < width < np.inf:
        counted = collect(rows.group_by("x").agg(nw.len().cast(nw.Int64).alias("n"))).sort("x")
        ends = below + np.cumsum(counted["n"].to_numpy())
        return np.asarray(counted["x"].to_numpy()[np.searchsorted(ends, ranks)], dtype=np.float64)
    place = ((nw.col("x") - least) / width).floor()
    bins = collect(
        rows.with_columns(place.alias("bin"))
        .group_by("bin")
        .agg(
            nw.len().cast(nw.Int64).alias("n"),
            nw.col("x").min().alias("low"),
            nw.col("x").max().alias("high"),
        )
    ).sort("low")
    ends = below + np.cumsum(bins["n"].to_numpy())
    starts = np.append(below, ends[:-1])
    at = np.searchsorted(ends, ranks)
    parts = []
    for own in np.unique(at):
        inside = ranks[at == own]
        low, high = float(bins["low"][int(own)]), float(bins["high"][int(own)])
        if low == high:
            parts.append(np.full(len(inside), low))
            continue
        here = rows.filter((nw.col("x") >= low) & (nw.col("x") <= high))
        parts.append(_within(here, inside, int(starts[own])))
    return np.concatenate(parts)
