"""Which column is told by another: age bands by age, a region's name by its number?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.looking import Look

_TRIVIAL = 0.05
_DENSE = 4_000_000
_FEW_PER_VALUE = 5
_LONGEST_TABLE = 10_000


@dataclass(frozen=True)
class Dependency:
    """``target`` follows from ``source`` in all but a share ``g3`` of the records."""

    source: str
    target: str
    g3: float
    broken: int


def functional_dependencies(look: Look) -> list[Dependency]:
    """Find all pairs of columns of which one tells the other (error g3 of Kivinen and Mannila 1995)."""
    limits, distinct = look.limits, look.distinct
    telling = [
        n for n in look.frame.columns if 2 <= distinct[n] <= limits.fd_max_determinant_ratio * look.rows
    ]
    told = [name for name in look.frame.columns if distinct[name] >= 2 and _is_open(look, name)]
    found = []
    for target in told:
        for source in telling:
            # A column has no more values than the one that tells it, but for the records that break it.
            if source == target or distinct[target] > distinct[source] + limits.fd_tol * look.rows:
                continue
            if _passes(look, source, target) and _tells_more_than_by_its_gaps(look, source, target):
                broken = violations(*look.levels(source), *look.levels(target))
                if broken <= limits.fd_tol * look.rows:
                    found.append(Dependency(source, target, broken / look.rows, broken))
    return found


def violations(x: Integers, x_levels: int, y: Integers, y_levels: int) -> int:
    """Count the records that must go for ``y`` to be a function of ``x``.

    Examples
    --------
    >>> violations(np.array([0, 0, 0, 1]), 2, np.array([0, 0, 1, 1]), 2)
    1
    """
    if x_levels * y_levels <= _DENSE:
        table = np.bincount(x * y_levels + y, minlength=x_levels * y_levels).reshape(x_levels, y_levels)
        return len(x) - int(table.max(axis=1).sum())
    cells, counts = np.unique(x * y_levels + y, return_counts=True)
    starts = np.flatnonzero(np.r_[True, np.diff(cells // y_levels) > 0])
    return len(x) - int(np.maximum.reduceat(counts, starts).sum())


def look_up_finding(look: Look, dependency: Dependency, also: list[str]) -> Finding:
    """Write a dependency as a finding with the table, or the cut points, that compute the column again."""
    pair = look.frame.select(pl.col(dependency.source).alias("x"), pl.col(dependency.target).alias("y"))
    pairs = (
        pair.group_by("x", "y")
        .len()
        .sort("len", "y", descending=[True, False])
        .unique("x", keep="first", maintain_order=True)
        .sort("x")
    )
    missing = int(pair["y"].is_null().sum())
    evidence: dict[str, Any] = {
        "g3": dependency.g3,
        "exceptions": dependency.broken,
        "missing": missing,
        "values_of_source": look.distinct[dependency.source],
    }
    cuts = _cut_points(pairs) if look.frame.schema[dependency.source].is_numeric() else None
    parameters: dict[str, Any] = {"of": dependency.source}
    if cuts is not None:
        parameters["cuts"] = cuts
        evidence["groups"] = len(cuts)
    elif pairs.height <= _LONGEST_TABLE:
        there = pairs.drop_nulls("x")
        parameters["keys"] = [_plain(value) for value in there["x"].to_list()]
        # TOML knows no missing value; an empty list stands for it.
        parameters["values"] = [[] if v is None else _plain(v) for v in there["y"].to_list()]
    if also:
        evidence["also_told_by"] = also
    sure = look.rows / look.distinct[dependency.source] >= _FEW_PER_VALUE and len(parameters) > 1
    return Finding(
        "look-up",
        (dependency.target, dependency.source),
        evidence,
        "high" if sure else "medium",
        f"leave out and look up from '{dependency.source}' afterwards"
        + (f"; the {dependency.broken:,} exceptions are not kept" if dependency.broken else ""),
        reversible=dependency.broken == 0,
        parameters=parameters,
    )


def _is_open(look: Look, name: str) -> bool:
    """Whether always guessing the commonest value would fail often enough to speak of a dependency."""
    codes, levels = look.levels(name, look.sample)
    return bool(1 - np.bincount(codes, minlength=levels).max() / len(codes) > _TRIVIAL)


def _passes(look: Look, source: str, target: str) -> bool:
    for rows in (look.first_look, look.sample):
        broken = violations(*look.levels(source, rows), *look.levels(target, rows))
        limit = look.limits.fd_tol
        if broken / len(rows) > limit + 3 * np.sqrt(limit / len(rows)):
            return False
    return True


def _tells_more_than_by_its_gaps(look: Look, source: str, target: str) -> bool:
    """A column that tells another only by being missing, or a code, was skipped because of it: that is a rule."""
    rows = look.sample
    if look.frame.schema[source].is_numeric():
        there = ~np.isnan(look.clean(source)[rows])
    else:
        there = look.frame[source].is_not_null().to_numpy()[rows]
    codes, levels = look.levels(target, rows)
    known = codes[there]
    return bool(len(known) and 1 - np.bincount(known, minlength=levels).max() / len(known) > _TRIVIAL)


def _cut_points(pairs: pl.DataFrame) -> list[dict[str, Any]] | None:
    """Return the runs of a numeric source with the same target, where every target has one run only."""
    there = pairs.drop_nulls(["x", "y"])
    if there.height < 2 or there["y"].n_unique() == there.height:
        return None
    runs = there.with_columns(run=pl.col("y").rle_id()).group_by("run", maintain_order=True)
    table = runs.agg(pl.col("x").min().alias("low"), pl.col("x").max().alias("high"), pl.col("y").first())
    if table["y"].n_unique() < table.height:
        return None
    return [
        {"low": _plain(low), "high": _plain(high), "value": _plain(value)}
        for low, high, value in table.select("low", "high", "y").iter_rows()
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)
