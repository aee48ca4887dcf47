"""How far apart are two tables of the same cells? Distances between counts before and after protection.

The values depend on how the data is grouped (one group: always 0; very fine groups: always bad). Use them to compare
two protections of one file, with the same groups, not as absolute scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, need_pairs, numbers_of
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import shown

Closed = Literal["left", "right"]


@checked
def table_distances(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    *,
    ordered: bool = True,
    log_base: Annotated[float, Above(1)] = 2.0,
    smoothing: Annotated[float, AtLeast(0)] = 0.0,
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
        ours, theirs = engine.as_text(engine.plain_text(ours)), engine.as_text(engine.plain_text(theirs))
    tables = []
    for name, values, weight in zip(("original", "released"), (ours, theirs), weights, strict=True):
        mass = pl.Series(np.ones(len(values))) if weight is None else weight.cast(pl.Float64)
        rows = pl.DataFrame({"cell": values, "w": mass}).lazy()
        tables.append(engine.added_by(rows, ["cell"], None, **{name: ("w", "sum")}))
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


# How far apart are two tables of counts? Every measure of the table literature, from two vectors of the same cells.
#
# Original counts are o, synthetic ones s; their totals n and m; c = m / (n + m). A correct synthesis draws s given o,
# so that s - o c/(1-c) has variance of about c (s + o): that is what the standardized forms (``S_…``) are held against,
# and why they are about 1 for a correct synthesis, whatever the sizes.


SpecksOrder = Literal["score", "group"]

GOOD, ACCEPTABLE = 3.0, 10.0
"""A standardized pMSE below the first is good, below the second acceptable (Raab, Nowok and Dibben 2021)."""


@checked
def cells(
    observed: npt.ArrayLike,
    synthetic: npt.ArrayLike,
    *,
    ordered: bool = True,
    k_syn: bool | float = False,
    specks_order: SpecksOrder = "score",
) -> Measure:
    """How far is one released table from the original one?

    The measures of `tabular` for two vectors of counts.

    Parameters
    ----------
    observed, synthetic
        Counts (or sums of weights, scaled to effective numbers) of the same cells, in the same order. Cells that are
        empty in both are left out.
    ordered
        Whether the order of the cells means something; ``KS`` is None otherwise.
    k_syn
        False where the size of the synthetic file was fixed. True where it came about by chance (each count drawn
        by itself) with the size of the original as its expectation, or that expectation; the degrees of freedom are
        then the number of cells, not one less.
    specks_order
        ``"score"`` cumulates cells by their share of synthetic records, which makes SPECKS half of MabsDD;
        ``"group"`` in the order they stand, for tables of one ordered variable.

    Returns
    -------
    Measure
        ``value`` is ``S_pMSE``. ``figures``: ``cells``, ``df``, ``VW``, ``FT``, ``JSD`` (bits), ``MabsDD``,
        ``WMabsDD``, ``dBhatt``, ``G`` and ``df_G``, ``pMSE``, ``SPECKS``, ``PO50``, ``U``, ``AUC``, ``KS``,
        ``Hellinger``, ``Bhattacharyya``, ``pearson_syn``, ``KL`` (bits), ``ROC`` (mean ratio of the smaller to the
        larger share), deviations of shares (``mean_abs``, ``max_abs``, ``mean_rel``, ``max_rel``), and ``S_pMSE``,
        ``S_FT``, ``S_JSD``, ``S_WMabsDD``. ``detail``: ``cells``, with z for each cell.

    How to read it
    --------------
    ``S_pMSE`` is about 1 where the synthetic counts are a correct draw from the original table, below 3 is good and
    below 10 acceptable. Near 0 means that the table was copied, not drawn. ``detail["cells"]`` says where the
    difference lies: a z beyond 3 in either direction is more than chance.

    When not to trust it
    --------------------
    With many cells and few records the standardized forms drift from 1. The unstandardized ones grow with the number
    of cells, so compare them only between tables of the same cells. ``pearson_syn`` and ``KL`` are infinite as soon as
    one cell is empty in the synthetic file only. No p-value is given: for anything but a correct synthesis drawn from
    a model of this table it would be wrong.

    Examples
    --------
    >>> found = cells([6, 4], [5, 5])
    >>> [round(found.figures[name], 6) for name in ("VW", "pMSE", "JSD", "FT", "SPECKS", "MabsDD", "dBhatt")]
    [0.40404, 0.002525, 0.007299, 0.405108, 0.1, 0.2, 0.071161]
    """
    o, s = same_cells(observed, synthetic, ("observed", "synthetic"))
    expected = expected_size(k_syn, float(o.sum()), float(s.sum()))
    figures = cell_figures(o, s, ordered=ordered, expected=expected, specks_order=specks_order)
    caveats = ["No p-value: original and release are dependent, and the measures are distances."]
    if figures["cells"] > o.sum() / 2:
        caveats.append(SPARSE)
    return Measure(
        name="cells",
        value=figures["S_pMSE"],
        figures={**figures, "records": float(o.sum()), "released_records": float(s.sum())},
        meaning=(
            f"Over {figures['cells']:,} cells the standardized difference is {shown(figures['S_pMSE'])} (about 1 for a "
            f"correct synthesis); {shown(figures['SPECKS'] * 100)} % of the records would have to change cells."
        ),
        caveats=caveats,
        parameters={
            "ordered": ordered,
            "k_syn": k_syn,
            "specks_order": specks_order,
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=Detail(
            cells=lambda: pl.DataFrame(
                {
                    "cell": np.arange(len(o)),
                    "original": o,
                    "released": s,
                    "share_before": o / o.sum(),
                    "share_after": s / s.sum(),
                    "z": z_scores(o, s, expected),
                }
            ).fill_nan(None)
        ),
    )


SPARSE = (
    "There are more cells than half the number of original records: in such sparse tables the standardized measures "
    "drift away from 1 also for a correct synthesis. Use fewer groups or fewer variables."
)


def expected_size(k_syn: bool | float, n: float, m: float) -> float | None:
    """Give the synthetic size that was to be expected, where it was not fixed by design; else None."""
    if k_syn is False:
        return None
    if k_syn is True:
        return n
    if not (math.isfinite(k_syn) and k_syn > 0):
        raise ParameterError(
            "k_syn must be False (the synthetic size was fixed), True, or the size that was expected."
        )
    return float(k_syn)


def z_scores(o: Floats, s: Floats, expected: float | None = None) -> Floats:
    """Give the standardized difference of each cell; NaN where both are empty."""
    ratio, c = _ratio(o, s, expected)
    with np.errstate(invalid="ignore", divide="ignore"):
        z: Floats = (s - o * ratio) / np.sqrt(c * (s + o))
    return z


def cell_figures(
    o: Floats,
    s: Floats,
    *,
    ordered: bool = False,
    expected: float | None = None,
    specks_order: SpecksOrder = "score",
) -> dict[str, Any]:
    """Compute every measure of two count vectors, over the cells that are not empty in both."""
    there = (o + s) > 0
    o, s = o[there], s[there]
    n, m = float(o.sum()), float(s.sum())
    ratio, c = _ratio(o, s, expected)
    size, free = len(o), len(o) - (expected is None)
    p, q = o / n, s / m
    away = s - o * ratio
    vw = float((away**2 / (c * (s + o))).sum())
    ft = 4 * float(((np.sqrt(s) - np.sqrt(o * ratio)) ** 2).sum())
    weighted = float((np.abs(away) / np.sqrt(2 * c * (s + o) / np.pi)).sum())
    # The same number as the root of 1 - sum of root(pq), without its cancellation for tables that are nearly equal.
    hellinger = math.sqrt(float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum()) / 2)
    apart = np.abs(p - q)
    gaps = np.cumsum(p - q)
    halves = float(apart.sum()) / 2
    plain = table_distances(o, s)
    jsd = float(plain["jsd"] or 0.0)
    g, both = _likelihood_ratio(o, s)
    u, correct = _ranked(o, s, c)
    far = apart[p > 0] / p[p > 0]

    def per(value: float, df: float) -> float | None:
        return value / df if df > 0 else None

    return {
        "cells": size,
        "df": free,
        "VW": vw,
        "FT": ft,
        "JSD": jsd,
        "MabsDD": 2 * halves,
        "WMabsDD": weighted,
        "dBhatt": hellinger,
        "G": g,
        "df_G": both - 1,
        "pMSE": vw * c * (1 - c) ** 2 / (n + m),
        "S_pMSE": per(vw, free),
        "S_FT": per(ft, free),
        "S_JSD": per(8 * m * math.log(2) * jsd, size - 1),
        "S_WMabsDD": per(weighted, free),
        "SPECKS": halves if specks_order == "score" else float(np.abs(gaps).max()),
        "PO50": 100 * correct - 50,
        "U": u,
        "AUC": u / (n * m),
        "KS": float(np.abs(gaps).max()) if ordered else None,
        "Hellinger": hellinger,
        "Bhattacharyya": -math.log1p(-(hellinger**2)) if hellinger < 1 else math.inf,
        "pearson_syn": plain["pearson_protected"],
        "KL": plain["kl"],
        "ROC": float((np.minimum(p, q) / np.maximum(p, q)).mean()),
        "mean_abs": float(apart.mean()),
        "max_abs": float(apart.max()),
        "mean_rel": float(far.mean()),
        "max_rel": float(far.max()),
    }


def _ratio(o: Floats, s: Floats, expected: float | None) -> tuple[float, float]:
    """Give c/(1-c), by which original counts become expected synthetic ones, and c."""
    ratio = (float(s.sum()) if expected is None else expected) / float(o.sum())
    return ratio, ratio / (1 + ratio)


def _likelihood_ratio(o: Floats, s: Floats) -> tuple[float, int]:
    """Give G over the cells that both files fill, each by its total over those cells, and how many there are."""
    both = (o > 0) & (s > 0)
    if not both.any():
        return 0.0, 0
    a, b = o[both], s[both]
    g = 2 * float((b * np.log((b / b.sum()) / (a / a.sum()))).sum())
    return max(0.0, g), int(both.sum())


def _ranked(o: Floats, s: Floats, c: float) -> tuple[float, float]:
    """Give Mann-Whitney's U of the synthetic scores, and the share classified correctly at threshold c.

    The score of a cell is its share of synthetic records. Ties count half, so that equal files give 1/2 of either.
    """
    score = s / (s + o)
    _, tied = np.unique(np.round(score, 12), return_inverse=True)
    syn, org = np.bincount(tied, weights=s), np.bincount(tied, weights=o)
    below = np.cumsum(org) - org
    u = float((syn * (below + org / 2)).sum())
    above, level = score > c + 1e-12, np.abs(score - c) <= 1e-12
    right = s[above].sum() + o[~above & ~level].sum() + (s + o)[level].sum() / 2
    return u, float(right / (s + o).sum())
