"""What the margins of two files look like side by side: quantiles, levels, distribution functions and histograms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.utility.sample_pairs import SamplePair

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
    names = dict.fromkeys(("level", "original", "released", "low", "high"), pl.Float64)
    return (
        pl.concat(parts)
        if parts
        else pl.DataFrame(schema={"column": pl.String, **names, "inside": pl.Boolean})
    )


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
    return _stacked(parts, "value", "original", "released")


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
    return _stacked(parts, "level", "original", "released")


def histograms_table(pairs: Sequence[SamplePair]) -> pl.DataFrame:
    """Count both files in the same bins of equal width."""
    parts = []
    for pair in _numbers(pairs):
        at = pair.gaps[0]
        edges = bin_edges(at)
        counts = [np.histogram(s.values, bins=edges, weights=s.weights)[0] for s in (pair.ours, pair.theirs)]
        held = {"from": edges[:-1], "to": edges[1:], "original": counts[0], "released": counts[1]}
        parts.append(pl.DataFrame({"column": [pair.column] * (len(edges) - 1), **held}))
    return _stacked(parts, "from", "to", "original", "released")


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


def _stacked(parts: Sequence[pl.DataFrame], *numbers: str) -> pl.DataFrame:
    schema = {"column": pl.String, **dict.fromkeys(numbers, pl.Float64)}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)
