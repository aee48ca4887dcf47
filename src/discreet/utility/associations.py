"""How strongly do two columns hang together? Correlation, Cramér's V, correlation ratio and Theil's U of many pairs.

Files that are too large to hold are counted where the data is: Pearson's correlation and the correlation ratio are
sums, which an engine adds up over all records. Ranks need all values of a column beside each other: Spearman's
correlations, and all relations of dates, come from a random sample, and that is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.randomness import KeyedDraws
from discreet.engine.grouping import brought_to, physical
from discreet.engine.shared_tables import CodedFile, SharedTables
from discreet.microdata import Microdata
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


SAMPLED = 200_000
"""Records of the sample, about."""


def counted_relations(
    file: CodedFile,
    numbers: Sequence[str],
    words: Sequence[str],
    *,
    correlation: str,
    gaps: frozenset[str],
) -> dict[tuple[str, str], dict[str, Any]]:
    """Relate numbers to numbers and to categories: what to call the relation and its value, by pair.

    Parameters
    ----------
    file
        One of the two files.
    numbers, words
        Its columns of numbers and dates, and of categories.
    correlation
        Which correlation counts.
    gaps
        Categories that are related by their known values only.
    """
    data, weight = file.data, file.weight
    plain = [name for name in numbers if data.schema[name].is_numeric()]
    dates = [name for name in numbers if name not in plain]
    sample = _sample(file, [*numbers, *(words if dates else [])])
    table = pl.DataFrame(
        {name: physical(brought_to(sample[name], file.groups[name].dtype)) for name in numbers}
    ).fill_nan(None)
    mass = None if weight is None else sample[weight].cast(pl.Float64)
    ranked = correlations(table, numbers, mass, ranked=True)
    straight = correlations(table, numbers, mass)
    added, known = engine.added_correlations(data, plain, weight)
    at = {name: place for place, name in enumerate(plain)}
    whole = engine.overview(data, ()).rows / max(sample.height, 1)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (i, a), (j, b) in itertools.combinations(enumerate(numbers), 2):
        exact = a in at and b in at
        both = sample.select((pl.col(a).is_not_null() & pl.col(b).is_not_null()).sum()).item()
        pearson = float(added[at[a], at[b]]) if exact else float(straight[i, j])
        values = {"pearson": pearson, "spearman": float(ranked[i, j])}
        found[a, b] = {
            **values,
            "known": float(known[at[a], at[b]]) if exact else round(both * whole),
            "measure": correlation,
            "value": values[correlation],
        }
    for word in words:
        ratios = dict(
            zip(plain, engine.added_ratios(data, word, plain, weight, gaps=word not in gaps), strict=True)
        )
        if dates:
            groups = file.groups[word]
            codes = groups.codes(sample[word])
            there = codes < groups.size - 1 if word in gaps else codes >= 0
            days = table.select(dates).to_numpy().T[:, there]
            weights = None if mass is None else mass.to_numpy()[there]
            more = correlation_ratios(codes[there], groups.size, days, weights)
            ratios |= dict(zip(dates, more, strict=True))
        for name, ratio in ratios.items():
            found[name, word] = {"measure": "correlation_ratio", "value": ratio}
    return found


def sampled_in_words(shared: SharedTables, kept: Sequence[str]) -> list[str]:
    """Say which relations come from a sample, how large it is and by how much they are off."""
    numbers = [name for name in kept if shared.groups[name].kind == "number"]
    said = []
    for what, file in (("original", shared.original), ("release", shared.released)):
        rows = engine.overview(file.data, ()).rows
        if not numbers or file.frame is not None or file.by_rows or rows <= SAMPLED:
            continue
        # The largest standard error of a rank correlation is that of unrelated columns.
        off = 1.96 * 1.03 / math.sqrt(SAMPLED - 1)
        dates = any(not file.data.schema[name].is_numeric() for name in numbers)
        more = " and the relations of dates" if dates else ""
        said.append(
            f"Spearman's correlations{more} of the {what} are those of a random sample of about {SAMPLED:,} of its "
            f"{rows:,} records: off by up to {off:.3f} for that reason (95 in 100 times). Pearson's correlations and "
            "correlation ratios of numbers are of all records."
        )
    return said


def _sample(file: CodedFile, columns: Sequence[str]) -> pl.DataFrame:
    wanted = list(dict.fromkeys([*columns, *([file.weight] if file.weight else [])]))
    rows = engine.overview(file.data, ()).rows
    data = Microdata(file.data.wrapped.select(wanted).to_native())
    share = min(1.0, SAMPLED / max(rows, 1))
    # Spark keeps no places: there the values themselves decide, equal records sharing their luck.
    key = () if engine.has_places(data) else wanted
    draws = KeyedDraws.of(0, "relations of a large file")
    return engine.record_sample(data, share, draws, key=key, purpose="the sample for rank correlations")
