"""How are numbers tallied of which queries have too many different ones to be listed? In thousands of intervals.

The cuts are quantiles of a random sample of both files; all records of both are then counted between them where the
data is. What falls into one interval counts as its mean, so that no share below a cut is off at all, and none between
two cuts by more than what lies between them. The smallest and the largest number of a file are intervals of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Words
from discreet.core.randomness import KeyedDraws
from discreet.microdata import Microdata

MOST_LISTED = 100_000
"""Different numbers of two queries that are rather listed."""
INTERVALS = 4096
_SAMPLED = 200_000
_INTERVAL = "interval"


def interval_tallies(
    files: Sequence[Microdata], column: str, weights: Sequence[str | None]
) -> list[pl.DataFrame] | None:
    """Tally a column of two queries in intervals: values ``s``, ``records``, ``mass`` and ``squares`` by file.

    None where its different numbers can be listed one by one.

    Examples
    --------
    >>> few = Microdata(pl.LazyFrame({"pay": [1.0, 2.0]}))
    >>> interval_tallies([few, few], "pay", [None, None]) is None
    True
    """
    least, most, many = engine.number_range(files, column)
    if many <= MOST_LISTED or not math.isfinite(most - least):
        return None
    cuts = _cuts(files, column)
    tallies = [_tallied(data, column, weight, cuts) for data, weight in zip(files, weights, strict=True)]
    known = pl.concat(tallies).drop_nulls(_INTERVAL)
    pooled = known.group_by(_INTERVAL).agg(s=pl.col("total").sum() / pl.col("records").sum())
    return [
        table.join(pooled, on=_INTERVAL, how="left").select("s", "records", "mass", "squares")
        for table in tallies
    ]


def _cuts(files: Sequence[Microdata], column: str) -> Floats:
    """Cut the pooled numbers of a sample into intervals of about as many each; the ends of a file are by themselves."""
    known: list[Floats] = []
    ends: list[float] = []
    for data in files:
        alone = Microdata(data.wrapped.select(column).to_native())
        share = min(1.0, _SAMPLED / max(engine.overview(data, ()).rows, 1))
        # Spark keeps no places: there the values themselves decide, equal ones sharing their luck.
        key = () if engine.has_places(alone) else (column,)
        draws = KeyedDraws.of(0, "intervals of a large file", column)
        found = engine.record_sample(alone, share, draws, key=key, purpose="the intervals of a margin")
        ends += engine.extremes(data, column)
        known.append(found[column].cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy())
    levels = np.arange(1, INTERVALS) / INTERVALS
    cuts = np.quantile(np.concatenate(known), levels, method="inverted_cdf")
    return np.unique([*cuts, *ends, *np.nextafter(ends, -np.inf)])


@dataclass(frozen=True)
class _Intervals:
    """Says which interval the numbers of a batch lie in."""

    column: str
    cuts: tuple[float, ...]

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        values = rows[self.column].cast(pl.Float64)
        place = pl.Series(np.searchsorted(self.cuts, values.fill_null(0.0).to_numpy(), side="left"))
        return {_INTERVAL: place.cast(pl.Int32).set(values.is_null(), None)}


def _tallied(data: Microdata, column: str, weight: str | None, cuts: Floats) -> pl.DataFrame:
    new = {"x": nw.col(column).cast(nw.Float64), **({"w": nw.col(weight).cast(nw.Float64)} if weight else {})}
    rows = data.wrapped.select(**new)
    work = engine.ByRecord(
        ("x",), {_INTERVAL: pl.Int32()}, _Intervals("x", tuple(cuts.tolist())), draws=False
    )
    marked = engine.made_lazily(Microdata(rows.to_native()), work, purpose="the intervals of a margin")
    mass = nw.col("w") if weight else nw.lit(1.0)
    counted = (
        nw.from_native(marked)
        .with_columns(mass.alias("m"))
        .group_by(_INTERVAL)
        .agg(
            nw.len().cast(nw.Float64).alias("records"),
            nw.col("x").sum().alias("total"),
            nw.col("m").sum().alias("mass"),
            (nw.col("m") * nw.col("m")).sum().alias("squares"),
        )
    )
    return engine.collect(counted)
