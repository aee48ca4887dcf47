"""How far apart are two tables of the same cells? Distances between counts before and after protection.

The values depend on how the data is grouped (one group: always 0; very fine groups: always bad). Use them to compare
two protections of one file, with the same groups, not as absolute scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import InputError, ParameterError
from discreet.core.number_arrays import need_pairs, numbers_of
from discreet.core.parameters import checked
from discreet.engine.comparable import as_text, plain_text

Closed = Literal["left", "right"]


@checked
def table_distances(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    *,
    ordered: bool = True,
    log_base: float = 2.0,
    smoothing: float = 0.0,
) -> dict[str, float | int | None]:
    """How far is a released table from the original one?

    Parameters
    ----------
    original, released
        Counts (or sums of weights) of the same cells, in the same order.
    ordered
        Whether the order of the cells means something; KS is None otherwise.
    log_base
        Base of the logarithms; with 2 the Jensen-Shannon divergence is in bits and at most 1.
    smoothing
        Added to every cell before Kullback-Leibler, e.g. 0.5 where cells are empty.

    Returns
    -------
    dict
        ``pearson_protected``, the sum of (td - ta)² / ta, infinite where a cell is empty in the release only;
        ``jsd``; ``ks`` over cumulative shares, each by its own total; ``kl`` of the original from the release,
        infinite where a cell is empty in the release only; ``zero_cells``, the number of such cells.

    Examples
    --------
    >>> found = table_distances([4, 10, 4], [8, 10, 2])
    >>> found["pearson_protected"], round(found["ks"], 6), round(found["jsd"], 7)
    (4.0, 0.177778, 0.0367797)
    """
    td, ta = same_cells(original, released, ("original", "released"))
    if log_base <= 1 or smoothing < 0:
        raise ParameterError("log_base must be above 1 and smoothing 0 or more.")
    zero = (ta == 0) & (td > 0)
    filled = ta > 0
    pearson = float("inf") if zero.any() else float(((td - ta)[filled] ** 2 / ta[filled]).sum())
    p, q = td / td.sum(), ta / ta.sum()
    middle = (p + q) / 2
    jsd = (_plogp(p, middle) + _plogp(q, middle)) / 2 / float(np.log(log_base))
    smooth_p = (td + smoothing) / (td + smoothing).sum()
    smooth_q = (ta + smoothing) / (ta + smoothing).sum()
    kl = float("inf") if ((smooth_q == 0) & (smooth_p > 0)).any() else _plogp(smooth_p, smooth_q)
    return {
        "pearson_protected": pearson,
        "jsd": max(0.0, jsd),
        "ks": float(np.abs(np.cumsum(p) - np.cumsum(q)).max()) if ordered else None,
        "kl": max(0.0, kl / float(np.log(log_base))),
        "zero_cells": int(zero.sum()),
    }


def group_breaks(values: pl.Series, groups: int) -> tuple[float, ...]:
    """Place the inner breaks of so many groups of (nearly) equal size."""
    known = np.sort(values.drop_nulls().cast(pl.Float64).to_numpy())
    if not len(known):
        return ()
    at = known[np.maximum(np.ceil(np.arange(1, groups) * len(known) / groups).astype(np.int64) - 1, 0)]
    return tuple(float(x) for x in np.unique(at) if x < known[-1])


def grouped(values: pl.Series, breaks: Sequence[float], closed: Closed) -> pl.Series:
    """Number the groups of numbers; a number on a break belongs below it (``right``) or above (``left``)."""
    side: Literal["left", "right"] = "left" if closed == "right" else "right"
    numbers = values.cast(pl.Float64)
    codes = np.searchsorted(np.asarray(breaks, dtype=np.float64), numbers.fill_null(0.0).to_numpy(), side)
    return pl.select(pl.when(numbers.is_not_null()).then(pl.Series(codes.astype(np.int64)))).to_series()


def side_by_side(
    ours: pl.Series,
    theirs: pl.Series,
    weights: tuple[pl.Series | None, pl.Series | None] = (None, None),
) -> pl.DataFrame:
    """Count the cells of one column in both files: columns ``cell``, ``original``, ``released``; missing last."""
    levels = ours.dtype.categories.to_list() if isinstance(ours.dtype, pl.Enum) else None
    if ours.dtype != theirs.dtype or ours.dtype in (pl.Categorical, pl.Enum):
        ours, theirs = as_text(plain_text(ours)), as_text(plain_text(theirs))
    tables = []
    for name, values, weight in zip(("original", "released"), (ours, theirs), weights, strict=True):
        mass = pl.Series(np.ones(len(values))) if weight is None else weight.cast(pl.Float64)
        counted = (
            pl.DataFrame({"cell": values, "w": mass}).group_by("cell").agg(pl.col("w").sum().alias(name))
        )
        tables.append(counted)
    both = tables[0].join(tables[1], on="cell", how="full", nulls_equal=True, coalesce=True)
    both = both.with_columns(pl.col("original", "released").fill_null(0.0))
    if levels is None:
        return both.sort("cell", nulls_last=True)
    place = pl.col("cell").replace_strict(levels, list(range(len(levels))), default=len(levels))
    return both.sort(place, "cell", nulls_last=True)


def _plogp(p: Floats, q: Floats) -> float:
    there = p > 0
    return float((p[there] * np.log(p[there] / q[there])).sum())


def same_cells(first: npt.ArrayLike, second: npt.ArrayLike, names: tuple[str, str]) -> tuple[Floats, Floats]:
    """Read the counts of two tables, cell by cell; both must count somebody."""
    one, other = (
        numbers_of(counts, name, least=0.0).ravel()
        for counts, name in zip((first, second), names, strict=True)
    )
    need_pairs(one, other, names, what="cells")
    with np.errstate(over="ignore"):
        if not np.isfinite(one.sum() + other.sum()):
            raise ParameterError(f"The counts of {names[0]} and {names[1]} are too large to be added up.")
    if one.sum() <= 0 or other.sum() <= 0:
        raise InputError("A table without any counts cannot be compared.")
    return one, other
