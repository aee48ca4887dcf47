"""One column of two files as two distributions: values in order with their weights, and what can be said of them.

Numbers that a query engine cannot list are tallied in intervals; tables and pictures of margins are made from either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Words
from discreet.core.randomness import KeyedDraws
from discreet.core.wording import percent
from discreet.microdata import Microdata


@dataclass(frozen=True)
class Sample:
    """The known values of a column in order, how many records have each and what these weigh."""

    values: Floats
    records: Floats
    weights: Floats
    missing: float
    """The (weighted) share of records without a value."""
    squares: float
    """The sum of squared weights of the known values, over the square of their sum: one over their effective number."""

    @property
    def size(self) -> float:
        """How many known records it is worth."""
        return 1 / self.squares if self.squares > 0 else 0.0

    @cached_property
    def shares(self) -> Floats:
        """The share of each value."""
        shares: Floats = self.weights / self.weights.sum()
        return shares

    @cached_property
    def below(self) -> Floats:
        """The share of each value and all smaller ones."""
        below: Floats = np.cumsum(self.weights) / self.weights.sum()
        return below

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return float((self.shares * self.values).sum())

    @cached_property
    def central(self) -> tuple[float, float]:
        """The variance (by n - 1) and the fourth central moment."""
        away = self.values - self.mean
        variance, n = float((self.shares * away**2).sum()), float(self.records.sum())
        return (variance * n / (n - 1) if n > 1 else float("nan")), float((self.shares * away**4).sum())

    def quantile(self, level: float | Floats) -> Any:
        """Give the smallest value that at least this share does not exceed."""
        place = np.searchsorted(self.below, np.clip(level, 0, 1) - 1e-12, "left")
        return self.values[np.minimum(place, len(self.values) - 1)]

    @cached_property
    def gini(self) -> float | None:
        """The Gini index of inequality; None where values are negative or all zero."""
        if self.values[0] < 0 or self.mean <= 0:
            return None
        # Twice the area between the Lorenz curve and the diagonal, by trapezoids.
        lorenz = np.append(0.0, np.cumsum(self.shares * self.values) / self.mean)
        return float(1 - (self.shares * (lorenz[1:] + lorenz[:-1])).sum())

    def intervals(self, level: float, at: Floats) -> dict[str, tuple[Any, Any]]:
        """Give confidence intervals of mean, variance and quantiles, free of assumptions on the distribution."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        variance, fourth = self.central
        n = max(self.size, 1.0)
        mean = z * np.sqrt(variance / n)
        spread = z * np.sqrt(max(0.0, fourth - variance**2) / n)
        reach = z * np.sqrt(at * (1 - at) / n)
        return {
            "mean": (self.mean - mean, self.mean + mean),
            "variance": (variance - spread, variance + spread),
            "quantiles": (self.quantile(at - reach), self.quantile(at + reach)),
        }


@dataclass(frozen=True)
class SamplePair:
    """One column of both files; of a category the values are places among its levels."""

    column: str
    kind: str
    ours: Sample
    theirs: Sample
    levels: tuple[str, ...] = ()
    temporal: bool = False
    notes: tuple[str, ...] = ()

    @cached_property
    def gaps(self) -> tuple[Floats, Floats, Floats]:
        """The pooled values, and the share below each in both files."""
        x, y = self.ours, self.theirs
        # A stable sort of two sorted runs merges them, which is many times quicker than sorting.
        order = np.argsort(np.concatenate([x.values, y.values]), kind="stable")
        at = np.concatenate([x.values, y.values])[order]
        last = np.append(at[1:] > at[:-1], True)
        # Counts are summed before they are divided: they are whole numbers, whose sums are exact.
        f = np.cumsum(np.concatenate([x.weights, np.zeros(len(y.values))])[order])[last] / x.weights.sum()
        g = np.cumsum(np.concatenate([np.zeros(len(x.values)), y.weights])[order])[last] / y.weights.sum()
        return at[last], f, g

    def distances(self) -> dict[str, float]:
        """Kolmogorov-Smirnov, Wasserstein and energy distance of the known numbers, from one pass over the gaps."""
        at, f, g = self.gaps
        away, width = np.abs(f - g), np.diff(at)
        return {
            "ks": float(away.max()),
            "wasserstein": float((away[:-1] * width).sum()),
            "energy": float(np.sqrt(2 * (away[:-1] ** 2 * width).sum())),
        }


def sample_pair(
    original: Microdata,
    released: Microdata,
    column: str,
    weights: tuple[str | None, str | None] = (None, None),
    *,
    category: bool = False,
) -> SamplePair:
    """Count the values of one column in both files, in the engine that holds them."""
    files = (original, released)
    many = not category and all(engine.is_lazy(data) and data.schema[column].is_numeric() for data in files)
    fine = interval_tallies(files, column, weights) if many else None
    ours, theirs = fine or (
        _tallied(data, column, weight) for data, weight in zip(files, weights, strict=True)
    )
    kind, dtype, notes = engine.compared_as(column, ours["s"], theirs["s"], category=category)
    if fine:
        notes = (*notes, _IN_INTERVALS.format(column=column, count=INTERVALS, off=percent(1 / INTERVALS)))
    temporal = dtype not in (pl.Float64, pl.String)
    parts = [table.with_columns(s=engine.brought_to(table["s"], dtype)) for table in (ours, theirs)]
    if kind == "number":
        known, other = (_sample(engine.physical(table["s"]), table) for table in parts)
        return SamplePair(column, kind, known, other, temporal=temporal, notes=notes)
    levels = sorted({level for table in parts for level in table["s"].to_list() if level is not None})
    place = dict(zip(levels, range(len(levels)), strict=True))
    known, other = (
        _sample(table["s"].replace_strict(place, default=None, return_dtype=pl.Float64).to_numpy(), table)
        for table in parts
    )
    return SamplePair(column, kind, known, other, levels=tuple(levels), notes=notes)


def _tallied(data: Microdata, column: str, weight: str | None) -> pl.DataFrame:
    """Give the values ``s`` of a column with ``records``, ``mass`` and ``squares`` of the weights.

    A query engine, and any column of words, hands over distinct values; numbers in memory are cheaper taken one by one.
    """
    rows = engine.scan(data, {"s": column, **({"w": weight} if weight else {})})
    if isinstance(data.wrapped, nw.DataFrame) and not isinstance(data.schema[column], _TEXTS):
        table = engine.collect(rows)
        mass = pl.col("w").cast(pl.Float64) if weight else pl.lit(1.0)
        return table.with_columns(records=pl.lit(1.0), mass=mass, squares=mass * mass)
    if weight:
        w = nw.col("w").cast(nw.Float64)
        rows = rows.with_columns(w, squares=w * w)
        sums = {"mass": ("w", "sum"), "squares": ("squares", "sum")}
        table = engine.added_by(rows, ["s"], data, records=("", "len"), **sums)
    else:
        table = engine.added_by(rows, ["s"], data, records=("", "len"))
        table = table.with_columns(
            mass=pl.col("records").cast(pl.Float64), squares=pl.col("records").cast(pl.Float64)
        )
    return table.with_columns(pl.col("records").cast(pl.Float64))


def _sample(values: Any, table: pl.DataFrame) -> Sample:
    held = table.select(
        pl.Series("v", np.asarray(values, dtype=np.float64)), *(pl.col(x).cast(pl.Float64) for x in _SUMS)
    )
    known = held.filter(pl.col("v").is_not_nan()).sort("v")
    records, mass, squares = (known[name].to_numpy() for name in _SUMS)
    # From the missing ones themselves: the rest of a sum of known ones would be off by rounding.
    gone = float(held.filter(pl.col("v").is_nan())["mass"].sum())
    total = float(mass.sum())
    return Sample(
        known["v"].to_numpy(),
        records,
        mass,
        gone / (gone + total),
        float(squares.sum()) / total**2 if total > 0 else 0.0,
    )


_SUMS = ("records", "mass", "squares")
_TEXTS = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object)
_IN_INTERVALS = (
    "'{column}' has too many different numbers to list, so that all records were counted in about {count:,} intervals "
    "of it: its distances are off by up to about {off}."
)


# How are numbers tallied of which queries have too many different ones to be listed? In thousands of intervals.
#
# The cuts are quantiles of a random sample of both files; all records of both are then counted between them where the
# data is. What falls into one interval counts as its mean, so that no share below a cut is off at all, and none between
# two cuts by more than what lies between them. The smallest and the largest number of a file are intervals of their
# own.


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
    tallies = [
        _tallied_in_intervals(data, column, weight, cuts) for data, weight in zip(files, weights, strict=True)
    ]
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


def _tallied_in_intervals(data: Microdata, column: str, weight: str | None, cuts: Floats) -> pl.DataFrame:
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


# What the margins of two files look like side by side: quantiles, levels, distribution functions and histograms.


_BARS = 30
_LARGEST_WHOLE = 2.0**40
_POINTS = 101


def shares_of(pair: SamplePair) -> tuple[Floats, Floats]:
    """Give the share of each level in both files, that of missing values last."""
    both: list[Floats] = []
    for sample in (pair.ours, pair.theirs):
        places = sample.values.astype(np.int64)
        shares = np.bincount(places, weights=sample.weights, minlength=len(pair.levels) + 1).astype(
            np.float64
        )
        if shares.sum() > 0:
            shares *= (1 - sample.missing) / shares.sum()
        shares[-1] = sample.missing
        both.append(shares)
    return both[0], both[1]


def _numbers(pairs: Sequence[SamplePair]) -> list[SamplePair]:
    return [p for p in pairs if p.kind == "number" and len(p.ours.values) and len(p.theirs.values)]


def quantiles_table(pairs: Sequence[SamplePair], level: float, at: Floats) -> pl.DataFrame:
    """Set quantiles side by side, with the interval of the original's."""
    parts = []
    for pair in _numbers(pairs):
        low, high = pair.ours.intervals(level, at)["quantiles"]
        before, after = pair.ours.quantile(at), pair.theirs.quantile(at)
        held = {"level": at, "original": before, "released": after, "low": low, "high": high}
        inside = (after >= low) & (after <= high)
        parts.append(pl.DataFrame({"column": [pair.column] * len(at), **held, "inside": inside}))
    return stacked(parts, "level", "original", "released", "low", "high", inside=pl.Boolean)


def levels_table(pairs: Sequence[SamplePair]) -> pl.DataFrame:
    """Set the shares of levels side by side, missing as the last."""
    parts = []
    for pair in pairs:
        if pair.kind == "category":
            p, q = shares_of(pair)
            names = [*pair.levels, None]
            table = pl.DataFrame(
                {"level": pl.Series(names, dtype=pl.String), "share_before": p, "share_after": q}
            )
            parts.append(
                table.filter((pl.col("share_before") > 0) | (pl.col("share_after") > 0)).select(
                    pl.lit(pair.column).alias("column"),
                    pl.all(),
                    lost=(pl.col("share_before") > 0) & (pl.col("share_after") == 0),
                    invented=(pl.col("share_before") == 0) & (pl.col("share_after") > 0),
                )
            )
    shares = {"share_before": pl.Float64, "share_after": pl.Float64}
    flags = {"lost": pl.Boolean, "invented": pl.Boolean}
    return (
        pl.concat(parts)
        if parts
        else pl.DataFrame(schema={"column": pl.String, "level": pl.String, **shares, **flags})
    )


def ecdf_table(pairs: Sequence[SamplePair]) -> pl.DataFrame:
    """Give both distribution functions at places that the values are spread over."""
    parts = []
    for pair in _numbers(pairs):
        at, f, g = pair.gaps
        if len(at) > _POINTS:
            chosen = np.unique(np.searchsorted((f + g) / 2, np.linspace(0, 1, _POINTS)).clip(0, len(at) - 1))
            at, f, g = at[chosen], f[chosen], g[chosen]
        parts.append(
            pl.DataFrame({"column": [pair.column] * len(at), "value": at, "original": f, "released": g})
        )
    return stacked(parts, "value", "original", "released")


def qq_table(pairs: Sequence[SamplePair]) -> pl.DataFrame:
    """Give the same quantiles of both files, from the smallest value to the largest."""
    levels = np.linspace(0, 1, _POINTS)
    parts = []
    for pair in _numbers(pairs):
        held = {
            "level": levels,
            "original": pair.ours.quantile(levels),
            "released": pair.theirs.quantile(levels),
        }
        parts.append(pl.DataFrame({"column": [pair.column] * _POINTS, **held}))
    return stacked(parts, "level", "original", "released")


def histograms_table(pairs: Sequence[SamplePair]) -> pl.DataFrame:
    """Count both files in the same bins of equal width."""
    parts = []
    for pair in _numbers(pairs):
        at = pair.gaps[0]
        edges = bin_edges(at)
        counts = [np.histogram(s.values, bins=edges, weights=s.weights)[0] for s in (pair.ours, pair.theirs)]
        held = {"from": edges[:-1], "to": edges[1:], "original": counts[0], "released": counts[1]}
        parts.append(pl.DataFrame({"column": [pair.column] * (len(edges) - 1), **held}))
    return stacked(parts, "from", "to", "original", "released")


def bin_edges(values: Floats) -> Floats:
    """Cut the range of both files into bins of equal width; whole numbers get bins that hold equally many of them.

    Bins of any width would hold now one whole number and now none, which draws a comb where there is none.

    Examples
    --------
    >>> bin_edges(np.array([1.0, 2, 3, 12])).tolist()[:3], len(bin_edges(np.array([0.0, 0.5, 7])))
    ([0.5, 1.5, 2.5], 31)
    """
    low, high = float(values.min()), float(values.max())
    if high - low < _LARGEST_WHOLE and bool((values == np.floor(values)).all()):
        width = max(1, int(np.ceil((high - low + 1) / _BARS)))
        count = max(1, int(np.ceil((high - low + 1) / width)))
        return low - 0.5 + width * np.arange(count + 1, dtype=np.float64)
    return np.linspace(low, high if high > low else low + 1, _BARS + 1)


def stacked(parts: Sequence[pl.DataFrame], *numbers: str, **others: Any) -> pl.DataFrame:
    """Stack the tables of several columns; none of them is an empty table."""
    schema = {"column": pl.String, **dict.fromkeys(numbers, pl.Float64), **others}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)
