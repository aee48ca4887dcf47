"""One column of two files as two distributions: values in order with their weights, and what can be said of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.wording import percent
from discreet.engine.grouping import brought_to, compared_as, physical
from discreet.microdata import Microdata
from discreet.utility.fine_numbers import INTERVALS, interval_tallies


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
    kind, dtype, notes = compared_as(column, ours["s"], theirs["s"], category=category)
    if fine:
        notes = (*notes, _IN_INTERVALS.format(column=column, count=INTERVALS, off=percent(1 / INTERVALS)))
    temporal = dtype not in (pl.Float64, pl.String)
    parts = [table.with_columns(s=brought_to(table["s"], dtype)) for table in (ours, theirs)]
    if kind == "number":
        known, other = (_sample(physical(table["s"]), table) for table in parts)
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
    if isinstance(data.wrapped, nw.DataFrame) and not _is_text(data.schema[column]):
        table = engine.collect(rows)
        mass = pl.col("w").cast(pl.Float64) if weight else pl.lit(1.0)
        return table.with_columns(records=pl.lit(1.0), mass=mass, squares=mass * mass)
    weighed = nw.col("w").cast(nw.Float64) if weight else nw.lit(1.0)
    sums = [nw.len().cast(nw.Float64).alias("records")]
    if weight:
        sums += [weighed.sum().alias("mass"), (weighed * weighed).sum().alias("squares")]
    table = engine.collect(rows.group_by("s").agg(*sums))
    if not weight:
        table = table.with_columns(mass=pl.col("records"), squares=pl.col("records"))
    return table


def _is_text(dtype: Any) -> bool:
    return isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Boolean | nw.Object)


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
_IN_INTERVALS = (
    "'{column}' has too many different numbers to list, so that all records were counted in about {count:,} intervals "
    "of it: its distances are off by up to about {off}."
)
