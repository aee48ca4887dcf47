"""How strongly do two columns hang together? Correlation, Cramér's V, correlation ratio and Theil's U of many pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet.arrays import Array, Floats, Integers
from discreet.utility.moments import moments


def correlations(
    table: pl.DataFrame, names: Sequence[str], weight: pl.Series | None, *, ranked: bool = False
) -> Floats:
    """Correlate numeric columns over the records that know both; with ``ranked`` their ranks (Spearman).

    Ranks are given once a column, over all of its known values.
    """
    if ranked:
        table = table.with_columns(pl.col(names).rank("average"))
    return moments(table, names, weight).correlation


def correlation_ratios(codes: Array, size: int, numbers: Floats, weights: Floats | None) -> list[float]:
    """Give the correlation ratio of a category with each of several numeric columns (one row a column).

    It is the root of the share of the number's variance that lies between the levels; NaN where it does not vary.
    """
    found = []
    for values in numbers:
        known = ~np.isnan(values)
        at, x = codes[known], values[known]
        w = np.ones(len(x)) if weights is None else weights[known]
        total = w.sum()
        if not len(x) or total <= 0:
            found.append(float("nan"))
            continue
        center = float((w * x).sum() / total)
        away = x - center
        whole = float((w * away**2).sum())
        mass = np.bincount(at, weights=w, minlength=size)
        sums = np.bincount(at, weights=w * away, minlength=size)
        between = float((sums[mass > 0] ** 2 / mass[mass > 0]).sum())
        found.append(float(np.sqrt(min(1.0, between / whole))) if whole > 0 else float("nan"))
    return found


def theils_u(table: Floats) -> tuple[float, float]:
    """Give Theil's U of the rows given the columns, and of the columns given the rows; 0 where one is constant.

    Examples
    --------
    >>> tuple(round(u, 6) for u in theils_u(np.array([[20.0, 5.0], [5.0, 20.0], [10.0, 10.0]])))
    (0.125917, 0.198623)
    """
    p = table / table.sum()
    rows, columns = _entropy(p.sum(axis=1)), _entropy(p.sum(axis=0))
    shared = rows + columns - _entropy(p.ravel())
    u = [max(0.0, shared / own) if own > 1e-12 else 0.0 for own in (rows, columns)]
    return u[0], u[1]


def cramers_v(cells: Integers, counts: Floats, shape: tuple[int, ...]) -> float | None:
    """Give Cramér's V of a two-way table from its filled cells; None where a variable is constant."""
    total = counts.sum()
    rows = np.bincount(cells // shape[1], weights=counts, minlength=shape[0])
    columns = np.bincount(cells % shape[1], weights=counts, minlength=shape[1])
    smaller = min((rows > 0).sum(), (columns > 0).sum()) - 1
    if smaller < 1:
        return None
    there = counts > 0
    product = rows[cells[there] // shape[1]] * columns[cells[there] % shape[1]]
    phi = float((counts[there] ** 2 / product).sum()) - 1
    return math.sqrt(max(0.0, phi) / smaller) if total > 0 else None


def _entropy(p: Floats) -> float:
    there = p[p > 0]
    return float(-(there * np.log(there)).sum())
