"""How do numbers of a query vary together, and by category? Squares and products, added up where the data is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine.frames import Lazy, collect, scan
from discreet.microdata import Microdata

_AT_ONCE = 40  # pairs of columns in one pass


def added_correlations(
    data: Microdata, columns: Sequence[str], weight: str | None = None
) -> tuple[Floats, Floats]:
    """Correlate columns of numbers over the records that know both, and count these.

    A correlation is the covariance of the records that know both, over the spreads of each column by itself, as in
    `discreet.utility.associations`.

    Examples
    --------
    >>> import polars as pl
    >>> data = Microdata(pl.LazyFrame({"a": [1, 2, 3, 4], "b": [2, 4, 6, None]}))
    >>> matrix, known = added_correlations(data, ["a", "b"])
    >>> round(float(matrix[0, 1]), 3), known.tolist()
    (0.775, [[4.0, 3.0], [3.0, 3.0]])
    """
    many = len(columns)
    rows = _scaled(data, columns, weight)
    covariance, known = np.full((many, many), np.nan), np.zeros((many, many))
    pairs = [*((i, i) for i in range(many)), *combinations(range(many), 2)]
    for start in range(0, len(pairs), _AT_ONCE):
        batch = pairs[start : start + _AT_ONCE]
        sums = [part for place, pair in enumerate(batch) for part in _sums(place, *pair)]
        found = collect(rows.select(*sums)).row(0, named=True)
        for place, (i, j) in enumerate(batch):
            n, mass, first, second, cross = (float(found[f"{name}{place}"] or 0.0) for name in "nmabp")
            known[i, j] = known[j, i] = n
            if n > 1 and mass > 0:
                value = (cross - first * second / mass) / mass * n / (n - 1)
                covariance[i, j] = covariance[j, i] = value
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = covariance / np.outer(spread, spread)
    return np.where(np.isfinite(matrix), matrix, np.nan), known


def added_ratios(
    data: Microdata, category: str, columns: Sequence[str], weight: str | None = None, *, gaps: bool = True
) -> list[float]:
    """Give the correlation ratio of a category with each column of numbers; NaN where a number does not vary.

    Parameters
    ----------
    data, category, columns, weight
        The query and its columns.
    gaps
        Whether a missing category is a level of its own, or its records are left out.

    Examples
    --------
    >>> import polars as pl
    >>> data = Microdata(pl.LazyFrame({"sex": ["f", "f", "m", "m"], "pay": [1.0, 2.0, 3.0, 4.0]}))
    >>> round(added_ratios(data, "sex", ["pay"])[0], 4)
    0.8944
    """
    rows = _scaled(data, columns, weight, {"c": category})
    if not gaps:
        rows = rows.filter(~nw.col("c").is_null())
    sums = []
    for place in range(len(columns)):
        there = ~nw.col(f"x{place}").is_null()
        x = nw.when(there).then(nw.col(f"x{place}")).otherwise(0.0)
        w = nw.when(there).then(nw.col("w")).otherwise(0.0)
        sums += [
            w.sum().alias(f"m{place}"),
            (w * x).sum().alias(f"a{place}"),
            (w * x * x).sum().alias(f"s{place}"),
        ]
    table = collect(rows.group_by("c").agg(*sums))
    found = []
    for place in range(len(columns)):
        mass, first, squares = (table[f"{name}{place}"].to_numpy().astype(np.float64) for name in "mas")
        total = mass.sum()
        if total <= 0:
            found.append(math.nan)
            continue
        center = first.sum() / total
        whole = squares.sum() - first.sum() * center
        filled = mass > 0
        between = ((first - mass * center)[filled] ** 2 / mass[filled]).sum()
        varies = whole > 1e-12 * max(squares.sum(), 1e-300)
        found.append(float(np.sqrt(min(1.0, between / whole))) if varies else math.nan)
    return found


def _scaled(
    data: Microdata, columns: Sequence[str], weight: str | None, more: dict[str, str] | None = None
) -> Lazy:
    """Open a query on numbers as distances from about their middle, in about their spread: sums then stay exact."""
    names = {f"x{place}": column for place, column in enumerate(columns)}
    rows = scan(data, {**names, **(more or {}), **({"w": weight} if weight else {})})
    known = {name: nw.col(name).cast(nw.Float64) for name in names}
    ends = collect(
        rows.select(
            *(x.min().alias(f"{name}l") for name, x in known.items()),
            *(x.max().alias(f"{name}h") for name, x in known.items()),
            *(x.mean().alias(f"{name}m") for name, x in known.items()),
        )
    ).row(0, named=True)
    shifted = []
    for name, x in known.items():
        low, high, mean = (ends[f"{name}{end}"] for end in "lhm")
        reach = high - low if low is not None and high > low else 1.0
        shifted.append(((x - (mean if mean is not None else 0.0)) / reach).alias(name))
    w = nw.col("w").cast(nw.Float64) if weight else nw.lit(1.0)
    return rows.with_columns(*shifted, w.alias("w"))


def _sums(place: int, i: int, j: int) -> list[nw.Expr]:
    a, b, w = nw.col(f"x{i}"), nw.col(f"x{j}"), nw.col("w")
    both = ~a.is_null() & ~b.is_null()
    parts = {"n": nw.lit(1.0), "m": w, "a": w * a, "b": w * b, "p": w * a * b}
    return [
        nw.when(both).then(part).otherwise(0.0).sum().alias(f"{name}{place}") for name, part in parts.items()
    ]


# Which number stands at a given place when a column is put in order? Found where the data is, without sorting it.
#
# The range is cut into bins and the engine counts them; the bins in which a wanted place lies are cut again, until
# one holds few enough numbers to be fetched with their counts. The answer is exact: cutting is monotone, so that a
# bin holds all numbers between its least and its largest.


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
