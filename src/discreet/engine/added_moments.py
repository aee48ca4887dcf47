"""How do numbers of a query vary together, and by category? Squares and products, added up where the data is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import narwhals as nw
import numpy as np

from discreet.core.arrays import Floats
from discreet.engine.frames import Lazy, collect, scan
from discreet.microdata import Microdata

_AT_ONCE = 40  # pairs of columns in one pass


def added_correlations(
    data: Microdata, columns: Sequence[str], weight: str | None = None
) -> tuple[Floats, Floats]:
    """Correlate columns of numbers over the records that know both, and count these.

    A correlation is the covariance of the records that know both, over the spreads of each column by itself, as in
    `discreet.utility.moments`.

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
