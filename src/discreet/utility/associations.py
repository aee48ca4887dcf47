"""How strongly do two columns hang together, and do means, variances and relations between numbers survive?

Correlation, Cramér's V, correlation ratio and Theil's U of many pairs, and moments before and after.

Files that are too large to hold are counted where the data is: Pearson's correlation and the correlation ratio are
sums, which an engine adds up over all records. Ranks need all values of a column beside each other: Spearman's
correlations, and all relations of dates, come from a random sample, and that is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.randomness import KeyedDraws
from discreet.microdata import Microdata
from discreet.numerics.mutual_information import count_entropy


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
    rows, columns = count_entropy(p.sum(axis=1)), count_entropy(p.sum(axis=0))
    shared = rows + columns - count_entropy(p.ravel())
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


SAMPLED = 200_000
"""Records of the sample, about."""


def counted_relations(
    file: engine.CodedFile,
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
        {name: engine.physical(engine.brought_to(sample[name], file.groups[name].dtype)) for name in numbers}
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


def sampled_in_words(shared: engine.SharedTables, kept: Sequence[str]) -> list[str]:
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


def _sample(file: engine.CodedFile, columns: Sequence[str]) -> pl.DataFrame:
    wanted = list(dict.fromkeys([*columns, *([file.weight] if file.weight else [])]))
    rows = engine.overview(file.data, ()).rows
    data = Microdata(file.data.wrapped.select(wanted).to_native())
    share = min(1.0, SAMPLED / max(rows, 1))
    # Spark keeps no places: there the values themselves decide, equal records sharing their luck.
    key = () if engine.has_places(data) else wanted
    draws = KeyedDraws.of(0, "relations of a large file")
    return engine.record_sample(data, share, draws, key=key, purpose="the sample for rank correlations")


# Do means, variances and relations between numbers survive? Moments before and after, and paired errors.


_SINGULAR = 1e-8  # of the largest eigenvalue; below it a relative difference is rounding noise


@dataclass(frozen=True)
class Moments:
    """Means, variances and covariances of numeric columns, from the records that know both columns of a pair."""

    names: tuple[str, ...]
    counts: Floats
    means: Floats
    errors: Floats
    covariance: Floats

    @property
    def variances(self) -> Floats:
        """The variance of each column; NaN with fewer than two values."""
        return np.diagonal(self.covariance)

    @property
    def correlation(self) -> Floats:
        """The correlation of each pair; NaN where a column is constant."""
        spread = np.sqrt(self.variances)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = self.covariance / np.outer(spread, spread)
        return np.where(np.isfinite(found), found, np.nan)

    def beside(self, after: Moments, level: float) -> dict[str, dict[str, Any]]:
        """Put the mean (with its interval) and the spread of each column beside those of the release."""
        low, high = self.interval(level)
        rows: dict[str, dict[str, Any]] = {}
        for i, name in enumerate(self.names):
            rows[name] = {
                "mean_before": self.means[i],
                "mean_after": after.means[i],
                "mean_low": low[i],
                "mean_high": high[i],
                "sd_before": np.sqrt(self.variances[i]),
                "sd_after": np.sqrt(after.variances[i]),
            }
            if np.isfinite(low[i]) and np.isfinite(after.means[i]):
                rows[name]["mean_inside"] = bool(low[i] <= after.means[i] <= high[i])
        return rows

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Give the confidence interval of each mean, by the normal approximation."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        return self.means - z * self.errors, self.means + z * self.errors


def moments(
    table: pl.DataFrame, names: Sequence[str], weight: pl.Series | None = None, *, divisor: str = "n-1"
) -> Moments:
    """Compute the moments of some columns, with survey weights where given.

    Weights are scaled to a mean of 1, so that they leave the number of records, and the divisor, as it is.
    """
    x = (
        np.column_stack([table[name].cast(pl.Float64).to_numpy() for name in names])
        if names
        else np.empty((0 if weight is None else len(weight), 0))
    )
    known = ~np.isnan(x)
    w = np.ones(len(x)) if weight is None else weight.cast(pl.Float64).fill_null(0.0).to_numpy()
    w = w * (len(w) / w.sum()) if len(w) and w.sum() > 0 else w
    counts = known.sum(axis=0).astype(np.float64)
    weighted = known * w[:, None]
    total = weighted.sum(axis=0)
    # Distances from the first known value are exactly zero where a column does not vary: its variance is zero and not
    # a rounding error, by which every change would be divided.
    first = (
        np.array([x[at, j] if counts[j] else 0.0 for j, at in enumerate(known.argmax(axis=0))])
        if len(x)
        else 0.0
    )
    away = np.where(known, x - first, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = (weighted * away).sum(axis=0) / total
        means = np.where(total > 0, first + beyond, np.nan)
        centered = np.where(known & (total > 0), away - beyond, 0.0)
        pairs = known.astype(np.float64).T @ known.astype(np.float64)
        mass = weighted.T @ known.astype(np.float64)
        sums = (weighted * centered).T @ known.astype(np.float64)
        cross = (centered * w[:, None]).T @ centered - sums * sums.T / mass
        covariance = cross / mass * (pairs / (pairs - 1) if divisor == "n-1" else 1.0)
        covariance = np.where(pairs > 1, covariance, np.nan)
        effective = total**2 / (known * w[:, None] ** 2).sum(axis=0)
        errors = np.sqrt(np.diagonal(covariance) / effective)
    return Moments(tuple(names), counts, means, errors, covariance)


def changes(before: Moments, after: Moments, level: float) -> tuple[dict[str, float | None], list[str]]:
    """Sum up how the moments moved, in units of the original's standard deviations; with caveats."""
    low, high = before.interval(level)
    spread = np.sqrt(before.variances)
    off = ~np.eye(len(before.names), dtype=np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.abs(after.means - before.means) / spread
        variance = np.abs(after.variances / before.variances - 1)
        covariance = np.abs(after.covariance - before.covariance) / np.outer(spread, spread)
    correlation = np.abs(after.correlation - before.correlation)
    checked = np.isfinite(low) & np.isfinite(after.means)
    inside = (after.means >= low) & (after.means <= high)
    figures = {
        "mean_change": _mean(mean),
        "variance_change": _mean(variance),
        "covariance_change": _mean(covariance[off]),
        "correlation_change": _mean(correlation[off]),
        "largest_correlation_change": _most(correlation[off]),
        "share_means_in_interval": float(inside[checked].mean()) if checked.any() else None,
    }
    structure, caveats = _structure(before, after)
    still = int((np.nan_to_num(before.variances, nan=1.0) == 0).sum())
    if still:
        caveats = [
            *caveats,
            f"{still:,} numeric columns do not vary in the original and have no scale: changes of their mean, variance "
            "and correlations are not in these figures.",
        ]
    return {**figures, **structure}, caveats


def _structure(before: Moments, after: Moments) -> tuple[dict[str, float | None], list[str]]:
    """Compare eigenvalues and regression coefficients of the columns in units of the original's spread."""
    nothing = dict.fromkeys(("eigenvalue_change", "eigenvalue_loss", "lm_loss"))
    usable = np.isfinite(before.variances) & (before.variances > 0) & np.isfinite(after.variances)
    if usable.sum() < 2:
        return nothing, []
    spread = np.sqrt(before.variances[usable])
    scale = np.outer(spread, spread)
    old, new = (m.covariance[np.ix_(usable, usable)] / scale for m in (before, after))
    if not (np.isfinite(old).all() and np.isfinite(new).all()):
        return nothing, ["Some pairs of columns have no records in common, so eigenvalues are undefined."]
    values, fresh = np.linalg.eigvalsh(old)[::-1], np.linalg.eigvalsh(new)[::-1]
    found: dict[str, float | None] = {**nothing, "eigenvalue_change": float(np.abs(values - fresh).mean())}
    if values[-1] < _SINGULAR * values[0]:
        return found, [
            "The numeric columns are (nearly) a combination of each other: relative eigenvalue loss and lm loss would "
            "be rounding noise and are left undefined. Leave out totals, or read eigenvalue_change."
        ]
    found["eigenvalue_loss"] = float((np.abs(values - fresh) / values).mean())
    if fresh[-1] < _SINGULAR * fresh[0]:
        return found, [
            "The released numeric columns are (nearly) a combination of each other, so the regressions of one on the "
            "others have no single answer and lm loss is undefined."
        ]
    found["lm_loss"] = float(np.abs(_slopes(new) - _slopes(old))[~np.eye(len(old), dtype=np.bool_)].mean())
    return found, []


def _slopes(covariance: Floats) -> Floats:
    """Give the coefficients of the regression of each column on all others, one row a column."""
    precision = np.linalg.inv(covariance)
    slopes: Floats = -precision / np.diagonal(precision)[:, None]
    return slopes


def paired_errors(before: pl.Series, after: pl.Series, spread: float) -> dict[str, float | None]:
    """Compare a numeric column record by record: MSE, R², IL1 and IL1s, over the records that know both.

    ``il1`` sums |x - x'| / |x| and leaves out the records with x = 0, where it is undefined; ``il1s`` sums
    |x - x'| / (√2 s) with the original's standard deviation s.
    """
    both = before.is_not_null() & after.is_not_null()
    x = before.filter(both).cast(pl.Float64).to_numpy()
    y = after.filter(both).cast(pl.Float64).to_numpy()
    if not len(x):
        return dict.fromkeys(("mse", "r2", "il1", "il1_left_out", "il1s", "il1s_per_cell"))
    away = np.abs(x - y)
    squared, total = float((away**2).sum()), float(((x - x.mean()) ** 2).sum())
    scaled = float(away.sum() / (np.sqrt(2) * spread)) if spread > 0 else None
    return {
        "mse": squared / len(x),
        "r2": 1 - squared / total if total > 0 else None,
        "il1": float((away[x != 0] / np.abs(x[x != 0])).sum()),
        "il1_left_out": float((x == 0).sum()),
        "il1s": scaled,
        "il1s_per_cell": None if scaled is None else scaled / len(x),
    }


def pairs_table(before: Moments, after: Moments) -> pl.DataFrame:
    """Set covariances and correlations of every pair side by side."""
    rows: list[dict[str, Any]] = [
        {
            "column": a,
            "other": b,
            "covariance_before": before.covariance[i, j],
            "covariance_after": after.covariance[i, j],
            "correlation_before": before.correlation[i, j],
            "correlation_after": after.correlation[i, j],
        }
        for i, a in enumerate(before.names)
        for j, b in enumerate(before.names)
        if i < j
    ]
    numbers = ("covariance_before", "covariance_after", "correlation_before", "correlation_after")
    schema = {"column": pl.String, "other": pl.String, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema).fill_nan(None)


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _most(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
