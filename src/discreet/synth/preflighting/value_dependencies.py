"""Which values follow from others: skipped questions, zeros, dates in an order, and columns told by another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.randomness import generator
from discreet.core.value_gate import without_literals
from discreet.synth.column_forms import plain_text
from discreet.synth.preflighting.column_kinds import is_usual_code
from discreet.synth.preflighting.computed_columns import quoted
from discreet.synth.preflighting.preflight_findings import Finding, Look

_MOST_LEVELS = 60
_MOST_SOURCES = 2
_LEAST_PAIRS = 100
_NON_TRIVIAL = 0.95
_SURE = 0.8
_RARE = 0.5
_NEW = 0.02


@dataclass(frozen=True)
class _State:
    """A value that a column takes where it has nothing to say: missing, a code, zero."""

    column: str
    value: Any
    holds: Flags


@dataclass(frozen=True)
class _Source:
    column: str
    levels: tuple[int, ...]
    covered: Flags


def given_values(look: Look, derived: frozenset[str]) -> list[Finding]:
    """Find columns that are missing, zero or one code whenever another column has certain values.

    A pattern counts where chance alone would hardly bring it about: the share of the state to the power of the
    records that all have it.
    """
    rows = look.sample
    names = [n for n in look.frame.columns if n not in derived]
    sources = [n for n in names if 2 <= look.distinct[n] <= _MOST_LEVELS]
    found: list[Finding] = []
    follows: dict[str, set[str]] = {}
    for state in [state for name in names for state in _states(look, name, rows)]:
        share = float(state.holds.mean())
        candidates = []
        for source in sources:
            if source == state.column or state.column in _behind(source, follows):
                continue
            levels = _levels_that_fix(look, source, state.holds, share, tests=len(sources))
            if len(levels):
                codes, _ = look.levels(source, rows)
                candidates.append(_Source(source, tuple(levels.tolist()), np.isin(codes, levels)))
        for best in _best(candidates, state.holds):
            finding = _given_value(look, state, best)
            if finding is not None:
                found.append(finding)
                follows.setdefault(state.column, set()).add(best.column)
    return found


def inequalities(look: Look, derived: frozenset[str]) -> list[Finding]:
    """Find pairs of columns of which one is never above the other, where chance would often put it there."""
    names = [name for name in look.numeric if name not in derived and look.distinct[name] > _MOST_SOURCES]
    times = [n for n, kind in look.frame.schema.items() if kind.is_temporal() and n not in derived]
    rng = generator(0, "preflight", "inequalities")
    found = []
    for group in (names, times):
        for at, one in enumerate(group):
            for other in group[at + 1 :]:
                if (
                    look.frame.schema[one].is_temporal()
                    and look.frame.schema[one] != look.frame.schema[other]
                ):
                    continue
                found += _inequality(look, one, other, rng)
    return found


def _states(look: Look, name: str, rows: Integers) -> list[_State]:
    series = look.frame[name]
    if series.null_count() == look.rows:
        return []
    states = []
    gone = series.is_null().to_numpy()[rows]
    if series.dtype.is_numeric():
        values = look.numbers(name)[rows]
        states += [_State(name, code, values == code) for code in look.codes.get(name, ())]
        if look.distinct[name] > look.limits.few_values:
            states.append(_State(name, 0.0, values == 0))
        gone = np.isnan(values)
    states.insert(0, _State(name, None, gone))
    return [state for state in states if state.holds.any() and not state.holds.all()]


def _levels_that_fix(look: Look, source: str, holds: Flags, share: float, *, tests: int) -> Integers:
    codes, size = look.levels(source, look.sample)
    count = np.bincount(codes, minlength=size)
    with_state = np.bincount(codes, weights=holds, minlength=size)
    by_chance = count * np.log(share) + np.log(tests * size)
    fixed = (count > 0) & (count - with_state <= look.limits.fd_tol * count)
    return np.flatnonzero(fixed & (by_chance < np.log(look.limits.chance)))


def _best(candidates: list[_Source], holds: Flags) -> list[_Source]:
    """Take the source that explains most of the state, and another only where it adds to it."""
    chosen: list[_Source] = []
    open_rows = holds.copy()
    for _ in range(_MOST_SOURCES):
        gains = [(int((c.covered & open_rows).sum()), -len(c.levels), -i) for i, c in enumerate(candidates)]
        if not gains or max(gains)[0] < max(_NEW * holds.sum(), 1):
            break
        best = candidates[gains.index(max(gains))]
        chosen.append(best)
        open_rows &= ~best.covered
    return chosen


def _behind(column: str, follows: dict[str, set[str]]) -> set[str]:
    """All columns that a column follows from, so that rules never run in a circle."""
    seen: set[str] = set()
    waiting = [column]
    while waiting:
        for source in follows.get(waiting.pop(), ()):
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return seen


def _given_value(look: Look, state: _State, source: _Source) -> Finding | None:
    codes, _ = look.levels(source.column, look.sample)
    first = {int(code): int(np.argmax(codes == code)) for code in source.levels}
    values = [look.frame[source.column][int(look.sample[at])] for at in first.values()]
    when = condition(source.column, values, look.frame.schema[source.column])
    if when is None:
        return None
    covered = _covers(look.frame[source.column], values)
    has = _has_value(look.frame[state.column], state.value)
    broken = int((covered & ~has).sum())
    elsewhere = float(has[~covered].mean()) if (~covered).any() else 0.0
    if broken > look.limits.fd_tol * covered.sum():
        return None
    value = None if state.value is None else _native(state.value, look.frame.schema[state.column])
    return Finding(
        "given-value",
        (state.column, source.column),
        {
            "value": _told(look, value),
            "when": when if look.show_values else without_literals(when),
            "records": int(covered.sum()),
            "broken": broken,
            "share_elsewhere": elsewhere,
        },
        "high" if broken == 0 and elsewhere <= _RARE else "medium",
        f"a rule: '{state.column}' is {_told(look, value)} where "
        f"{when if look.show_values else without_literals(when)}",
        parameters={"when": when, **({} if value is None else {"value": value})},
    )


def _told(look: Look, value: float | None) -> Any:
    if value is None:
        return "missing"
    return value if look.show_values or is_usual_code(value) else "always the same"


def condition(column: str, values: list[Any], dtype: pl.DataType) -> str | None:
    """Write that a column has one of these values; None where an expression cannot say it."""
    parts = [f"{quoted(column)} is missing"] if None in values else []
    there = sorted(value for value in values if value is not None)
    if there and (dtype.is_temporal() or any(isinstance(v, str) and ("\\" in v or "'" in v) for v in there)):
        return None
    if there and dtype == pl.Boolean:
        parts += [quoted(column) if value else f"not {quoted(column)}" for value in there]
    elif len(there) == 1:
        parts.append(f"{quoted(column)} == {_literal(there[0])}")
    elif there:
        parts.append(f"{quoted(column)} in [{', '.join(map(_literal, there))}]")
    return " or ".join(parts)


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _covers(series: pl.Series, values: list[Any]) -> Flags:
    there = [value for value in values if value is not None]
    plain = plain_text(series)
    hit = plain.is_in(pl.Series(there, dtype=plain.dtype).implode()).fill_null(False)
    return np.asarray((hit | series.is_null()).to_numpy() if None in values else hit.to_numpy())


def _has_value(series: pl.Series, value: Any) -> Flags:
    gone = series.is_null()
    if series.dtype.is_float():
        gone = gone | series.is_nan().fill_null(False)
    return np.asarray((gone if value is None else (series == value).fill_null(False)).to_numpy())


def _native(value: float, dtype: pl.DataType) -> int | float:
    return int(value) if dtype.is_integer() else value


def _inequality(look: Look, one: str, other: str, rng: np.random.Generator) -> list[Finding]:
    def values(name: str, rows: Integers | None) -> Floats:
        if look.frame.schema[name].is_temporal():
            column = look.frame[name].to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
        else:
            column = look.clean(name)
        return column if rows is None else column[rows]

    limit = look.limits.fd_tol
    for rows in (look.first_look, None):
        a, b = values(one, rows), values(other, rows)
        both = ~np.isnan(a) & ~np.isnan(b)
        a, b = a[both], b[both]
        if len(a) < _LEAST_PAIRS:
            return []
        above, below = int((a > b).sum()), int((a < b).sum())
        if min(above, below) > limit * len(a) or not above + below:
            return []
    low, high, broken = (one, other, above) if above <= below else (other, one, below)
    shuffled = rng.permutation(b)
    by_chance = float(((a <= shuffled) if low == one else (a >= shuffled)).mean())
    if by_chance > _NON_TRIVIAL:
        return []
    return [
        Finding(
            "inequality",
            (low, high),
            {"records": len(a), "broken": broken, "share_by_chance": by_chance},
            "high" if broken == 0 and by_chance < _SURE else "medium",
            f"a constraint: '{low}' is never above '{high}'",
            parameters={"constraint": f"{quoted(low)} <= {quoted(high)}"},
        )
    ]


# Which column is told by another: age bands by age, a region's name by its number?
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
