"""Which number stands at a given place when a column is put in order? Found where the data is, without sorting it.

The range is cut into bins and the engine counts them; the bins in which a wanted place lies are cut again, until one
holds few enough numbers to be fetched with their counts. The answer is exact: cutting is monotone, so that a bin holds
all numbers between its least and its largest.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine.frames import Lazy, collect, scan
from discreet.microdata import Microdata

_BINS = 1024
_FETCHED = 2_000  # distinct numbers that are fetched at once


def known_numbers(files: Sequence[Microdata], column: str, *, without: Sequence[float] = ()) -> int:
    """Count the records of some files that have a number in the column, some codes left aside."""
    counts = [
        collect(rows.select(nw.len().cast(nw.Int64))).item() for rows in _numbers(files, column, without)
    ]
    return sum(int(count or 0) for count in counts)


def number_range(
    files: Sequence[Microdata], column: str, *, without: Sequence[float] = ()
) -> tuple[float, float, int]:
    """The least and the largest number of a column of some files, and how many different ones there are at most."""
    least, most, many = _looked_at(_numbers(files, column, without))
    return least, most, many


def values_at(
    files: Sequence[Microdata], column: str, ranks: Sequence[int], *, without: Sequence[float] = ()
) -> Floats:
    """Give the numbers at some places of a column in order, over all files together, the first place being 1.

    Parameters
    ----------
    files, column
        The files and their column of numbers; missing ones are passed over.
    ranks
        The places, each between 1 and the number of known values.
    without
        Codes that are no numbers and are passed over.

    Examples
    --------
    >>> import polars as pl
    >>> one, other = (Microdata(pl.LazyFrame({"x": x})) for x in ([5.0, 1.0, None], [3.0, 3.0]))
    >>> values_at([one, other], "x", [1, 2, 4]).tolist()
    [1.0, 3.0, 5.0]
    """
    wanted = np.asarray(sorted(set(ranks)), dtype=np.int64)
    rows = _numbers(files, column, without)
    found = dict(zip(wanted.tolist(), _within(rows, wanted, 0).tolist(), strict=True))
    return np.array([found[int(rank)] for rank in ranks], dtype=np.float64)


def _numbers(files: Sequence[Microdata], column: str, without: Sequence[float]) -> list[Lazy]:
    found = []
    for data in files:
        rows = scan(data, {"x": column}).select(nw.col("x").cast(nw.Float64))
        rows = rows.filter(~nw.col("x").is_null())
        for code in without:
            rows = rows.filter(nw.col("x") != code)
        found.append(rows)
    return found


def _looked_at(files: Sequence[Lazy]) -> tuple[float, float, int]:
    parts = [
        collect(
            rows.select(
                least=nw.col("x").min(), most=nw.col("x").max(), many=nw.col("x").n_unique().cast(nw.Int64)
            )
        ).row(0)
        for rows in files
    ]
    known = [part for part in parts if part[0] is not None]
    if not known:
        return np.inf, -np.inf, 0
    return min(p[0] for p in known), max(p[1] for p in known), sum(int(p[2]) for p in known)


def _within(files: Sequence[Lazy], ranks: Integers, below: int) -> Floats:
    """Find places among numbers of which ``below`` smaller ones were left aside."""
    if not len(ranks):
        return np.zeros(0)
    least, most, many = _looked_at(files)
    width = (most - least) / _BINS
    if many <= _FETCHED or not 0 < width < np.inf:
        counted = _added([rows.group_by("x").agg(nw.len().cast(nw.Int64).alias("n")) for rows in files])
        ends = below + np.cumsum(counted["n"].to_numpy())
        return np.asarray(counted["x"].to_numpy()[np.searchsorted(ends, ranks)], dtype=np.float64)
    place = ((nw.col("x") - least) / width).floor().alias("x")
    ends_of_bin = (nw.col("y").min().alias("low"), nw.col("y").max().alias("high"))
    bins = _added(
        [
            rows.select(place, nw.col("x").alias("y"))
            .group_by("x")
            .agg(nw.len().cast(nw.Int64).alias("n"), *ends_of_bin)
            for rows in files
        ]
    )
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
        here = [rows.filter((nw.col("x") >= low) & (nw.col("x") <= high)) for rows in files]
        parts.append(_within(here, inside, int(starts[own])))
    return np.concatenate(parts)


def _added(queries: Sequence[Lazy]) -> pl.DataFrame:
    """Bring counts of several files together, in the order of the numbers ``x``."""
    table = pl.concat([collect(query) for query in queries], how="vertical_relaxed")
    others = {"low": pl.col("low").min(), "high": pl.col("high").max()} if "low" in table.columns else {}
    return table.group_by("x").agg(pl.col("n").sum(), **others).sort("x")
