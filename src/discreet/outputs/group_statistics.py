"""Tables of a variable by group: totals, means, spread, extremes, medians, modes; each by the rules of its statbarn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import check_counts
from discreet.outputs.checks.statistic_checks import check_modes, check_quantiles, check_shape, check_ties
from discreet.outputs.checks.total_checks import check_dominance, check_few_values
from discreet.outputs.count_tables import Declared, along_axes, collapsed, missing_finding
from discreet.outputs.mitigations import primary_cells, require_mitigation
from discreet.outputs.output import Draft, Margins, flags_of, wide
from discreet.outputs.output_cells import (
    Cells,
    count_cells,
    records_of,
    registered,
    shared_extreme,
    sum_cells,
)
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question
from discreet.outputs.register import Registered

STATISTICS = {
    "count": "a", "total": "d", "mean": "d", "sd": "i", "variance": "i", "skewness": "i", "kurtosis": "i",
    "minimum": "c", "maximum": "c", "median": "b", "mode": "j",
}  # fmt: skip
_SYNONYMS = {
    "n": "count", "sum": "total", "average": "mean", "std": "sd", "var": "variance", "min": "minimum",
    "max": "maximum", "skew": "skewness",
}  # fmt: skip
KIND = "summary"
OFFERED = ("suppress", "collapse", "round", "top-code", "drop-outliers", "percentile")
_CAP = 0.99
_LOW, _HIGH = 0.05, 0.95


def summarize(
    data: Microdata,
    question: Question,
    policy: OutputPolicy,
    statistics: Sequence[str],
    *,
    across: int = 0,
    margins: bool = False,
    structural_ends: Sequence[float] = (),
    structural: Declared = (),
    mitigate: str | None = None,
) -> Draft:
    """Compute statistics of a variable by cell, check each by its statbarn, and mend if asked."""
    names = [_named(name) for name in statistics]
    used = list(dict.fromkeys(STATISTICS[name] for name in names))
    require_mitigation(mitigate, used, OFFERED)
    notes: list[str] = []
    if mitigate == "collapse":
        with_value = replace(question, value=None)
        question = replace(
            collapsed(data, with_value, count_cells(data, with_value), policy)[0], value=question.value
        )
        notes.append("Levels were merged until the counts are large enough.")
    if mitigate in ("top-code", "drop-outliers"):
        question, note = _capped(data, question, drops=mitigate == "drop-outliers")
        notes.append(note)
    if mitigate == "percentile":
        names = [{"minimum": "p5", "maximum": "p95"}.get(name, name) for name in names]
        notes.append("Minimum and maximum are replaced by the 5th and 95th percentile.")
    largest = max(policy.nk_n, 2)
    cells = sum_cells(data, question, largest=largest, public_weights=policy.weights_public)
    figures, more = _figures(data, question, cells, names)
    checked = _checked(
        data, question, cells, names, policy, ends=structural_ends, structural=structural, more=more
    )
    flags = flags_of(cells.shape, checked)
    hidden = np.zeros(cells.shape, dtype=bool)
    if mitigate == "suppress":
        hidden = primary_cells(checked, cells.shape)
        flags = flags_of(cells.shape, checked, primary=hidden)
        flags[~hidden] = "F"
        checked = _checked(
            data, question, cells, names, policy,
            ends=structural_ends, structural=structural, more=more, hidden=hidden,
        )  # fmt: skip
    lines = None
    if margins and question.by:

        def line(part: Question) -> Line:
            found = sum_cells(data, part, largest=largest, public_weights=policy.weights_public)
            made, known = _figures(data, part, found, names)
            said = _checked(data, part, found, names, policy, ends=structural_ends, structural=(), more=known)
            return Line(made, found.people, said)

        lines = WholeLines.of(question, cells, across, line).without(hidden)
        if hidden.any():
            notes.append("Lines that hold a hidden group are hidden too, which they would give away.")
        checked = checked.with_more(lines.findings())
    if mitigate == "round":
        figures = {name: _to_base(table, policy.round_base) for name, table in figures.items()}
        lines = lines.rounded(lambda x: float(_to_base(np.asarray(x), policy.round_base))) if lines else None
        notes.append(f"Numbers are rounded to the base {policy.round_base}.")
    if structural_ends:
        notes.append("The researcher declares some values to be the ends of the scale; a human confirms it.")
    missing = int(cells.records.sum() - np.nansum(cells.values["known"]))
    if missing:
        notes.append(
            f"{missing:,} of {int(cells.records.sum()):,} records have no value of '{question.value}'."
        )
    checked = checked.with_more(
        missing_finding(missing, int(cells.records.sum()), str(question.value), policy, used[0])
    )
    shown = {name: _hide(table, hidden) for name, table in figures.items()}
    entry = registered(
        KIND,
        data,
        question,
        cells.levels,
        np.where(hidden, np.nan, cells.people.astype(np.float64)),
        adds_up=question.subject is None,
        # Counts, totals and means can be taken from one another; the others only if they are the very same.
        additive=bool({"a", "d"} & set(used)),
        statistic=" and ".join(sorted(set(names))),
    )
    tables, flagged = _tables(question, cells, shown, flags, across=across, lines=lines)
    beside = lines.entries(entry) if lines is not None else ()
    return Draft(
        kind=KIND,
        tables=tables,
        checked=checked,
        flags=flagged,
        entries=(entry, *beside),
        variables=question.columns(),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=OFFERED,
    )


def _named(name: str) -> str:
    plain = _SYNONYMS.get(name.lower(), name.lower())
    if plain not in STATISTICS:
        raise ParameterError(unknown_name(name, [*STATISTICS, *_SYNONYMS], what="statistic"))
    return plain


def _figures(
    data: Microdata, question: Question, cells: Cells, names: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Compute what was asked for; what needs the values in order is done in memory, group by group."""
    values = cells.values
    weighted = question.weight is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        means = values["weighted"] / values["weight"] if weighted else values["mean"]
    ready = {
        "count": cells.people,
        "total": values["weighted"] if weighted else values["total"],
        "mean": means,
        "sd": values["deviation"],
        "variance": values["deviation"] ** 2,
        "minimum": values["minimum"],
        "maximum": values["maximum"],
    }
    in_order = [name for name in names if name not in ready]
    more = _in_order(data, question, cells, in_order) if in_order else {}
    return {name: ready[name] if name in ready else more[name] for name in names}, more


def _in_order(data: Microdata, question: Question, cells: Cells, names: Sequence[str]) -> dict[str, Any]:
    rows = records_of(data, question).drop_nulls("x")
    keys = [f"d{i}" for i in range(len(question.by))] or ["d"]
    x = pl.col("x")
    owned = question.subject is not None
    # The unknown are taken for one person: that can only make a count smaller.
    who = pl.col("p").rank("dense").fill_null(0).cast(pl.Int64) if owned else pl.lit(None)
    groups = (
        rows.with_columns(who=who)
        .group_by(keys)
        .agg(
            x.alias("values"),
            pl.col("who"),
            x.median().alias("median"),
            x.quantile(_LOW, "linear").alias("p5"),
            x.quantile(_HIGH, "linear").alias("p95"),
            x.skew().alias("skewness"),
            x.kurtosis().alias("kurtosis"),
            x.mode().sort().alias("mode"),
            x.n_unique().alias("distinct"),
        )
    )
    texts = [{level: i for i, level in enumerate(known)} for known in cells.levels]
    found: dict[str, Any] = {name: np.full(cells.shape, np.nan) for name in names if name != "mode"}
    found |= {"mode": np.full(cells.shape, None, dtype=object)} if "mode" in names else {}
    found["values"] = np.empty(cells.shape, dtype=object)
    found["owners"] = np.empty(cells.shape, dtype=object)
    found["distinct"], found["modes"] = np.zeros(cells.shape, np.int64), np.zeros(cells.shape, np.int64)
    found["shared"] = np.zeros(cells.shape, np.int64)
    for row in groups.iter_rows(named=True):
        at = tuple(known[row[key]] for known, key in zip(texts, keys, strict=True)) if question.by else (0,)
        found["values"][at] = np.asarray(row["values"])
        found["owners"][at] = np.asarray(row["who"]) if owned else None
        found["distinct"][at], found["modes"][at] = row["distinct"], len(row["mode"])
        if "mode" in names:
            found["shared"][at] = _sharing(np.asarray(row["values"]), found["owners"][at], row["mode"])
        for name in names:
            number = row[name]
            found[name][at] = "; ".join(f"{m:g}" for m in number) if name == "mode" else number
    return found


def _sharing(values: Floats, owners: Array | None, modes: Sequence[float]) -> int:
    """Count the people who have the mode, or the fewest where there are several."""
    if owners is None:
        return int((values == modes[0]).sum())
    return min(len(np.unique(owners[values == mode])) for mode in modes)


def _checked(
    data: Microdata,
    question: Question,
    cells: Cells,
    names: Sequence[str],
    policy: OutputPolicy,
    *,
    ends: Sequence[float],
    structural: Declared,
    more: dict[str, Any],
    hidden: Flags | None = None,
) -> CheckResult:
    findings: list[Finding] = []
    unseen = np.zeros(cells.shape, dtype=bool) if hidden is None else hidden
    barns = {STATISTICS.get(name, "b") for name in names}
    if "a" in barns:
        impossible = cells.mask(structural)
        findings += check_counts(cells.people, policy, structural=impossible, hidden=unseen).findings
    if "d" in barns:
        only_low = policy.but(zeros_are_disclosive=False)
        counts = check_counts(cells.people, only_low, hidden=unseen, barn="d").findings
        findings += [finding for finding in counts if finding.check != "empty cell"]
        if cells.sums is not None:
            findings += check_dominance(cells.sums, policy, hidden=unseen).findings
    few = cells.few_values
    # The spread of two values is a function of how many have each; that of more values is not.
    if few is not None and ("d" in barns or ("i" in barns and few.distinct <= 2)):
        barn = "d" if "d" in barns else "i"
        findings += check_few_values(
            cells.people, few.above, few.below, policy, hidden=unseen, barn=barn
        ).findings
    if "i" in barns:
        spread = np.where(cells.people > 1, cells.values["deviation"], np.nan)
        findings += check_shape(cells.people, spread, policy, hidden=unseen).findings
    for name in ("minimum", "maximum"):
        if name in names:
            ties = shared_extreme(data, question, name, cells)
            known = np.isin(cells.values[name], list(ends))
            findings += check_ties(name, ties, policy, structural=known, hidden=unseen).findings
    levels = {"median": 0.5, "p5": _LOW, "p95": _HIGH}
    asked = sorted(levels[name] for name in names if name in levels)
    if asked:
        findings += _quantile_findings(more, asked, policy, unseen)
    if "mode" in names:
        distinct = np.where(unseen, 0, more["distinct"])
        findings += check_modes(
            distinct,
            policy,
            modes=np.where(unseen, 0, more["modes"]),
            shared=np.where(unseen, 0, more["shared"]),
        ).findings
    return CheckResult(findings)


def _quantile_findings(
    more: dict[str, Any], asked: Sequence[float], policy: OutputPolicy, hidden: Flags
) -> list[Finding]:
    """Check the quantiles of every cell and say per check which cells are concerned."""
    values, owners = more["values"], more["owners"]
    wrong: dict[tuple[str, Any], list[tuple[int, ...]]] = {}
    for place in np.ndindex(values.shape):
        if values[place] is None or hidden[place]:
            continue
        for finding in check_quantiles(values[place], list(asked), policy, owner=owners[place]).findings:
            if finding.status != "pass":
                wrong.setdefault((finding.check, finding.status), []).append(place)
    reasons = {
        "low count": f"with fewer than {policy.threshold} people",
        "between quantiles": f"with fewer than {policy.threshold} people between published quantiles",
        "own value": "whose quantile is exactly one person's value",
        "one value": "in which everybody has the same value",
    }
    found = [
        Finding(check, "b", status, f"{len(at):,} group{'s' * (len(at) > 1)} {reasons[check]}.", tuple(at))
        for (check, status), at in wrong.items()
    ]
    return found or [
        Finding(
            "between quantiles", "b", "pass", f"At least {policy.threshold} people lie between quantiles."
        )
    ]


def _capped(data: Microdata, question: Question, *, drops: bool) -> tuple[Question, str]:
    rows = records_of(data, replace(question, by=(), recode={}, levels={}))
    limit = rows["x"].drop_nulls().quantile(_CAP, "linear")
    if limit is None:
        raise ParameterError(f"Column '{question.value}' has no values to cap.")
    # The quantile itself may be one person's value; two figures of it are nobody's.
    cap = float(f"{limit:.2g}")
    done = "left out" if drops else f"counted as {cap:g}"
    return replace(question, cap=cap, drops_above=drops), f"Values above {cap:g} are {done}."


def _to_base(table: Array, base: int) -> Array:
    if table.dtype == object:
        return table
    return np.floor(table.astype(np.float64) / base + 0.5) * base


def _hide(table: Array, hidden: Flags) -> Array:
    shown = table.astype(object)
    shown[hidden] = None
    return shown


def _tables(
    question: Question,
    cells: Cells,
    shown: dict[str, Array],
    flags: Array,
    *,
    across: int,
    lines: WholeLines | None = None,
) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """Lay the statistics out side by side, or one table each where a dimension goes across."""
    tables = {
        name: wide(
            question.by,
            cells.levels,
            table,
            columns=across,
            margins=lines.margins(name) if lines is not None else None,
            heading=name,
        )
        for name, table in shown.items()
    }
    if across:
        marks = wide(question.by, cells.levels, flags, columns=across)
        return tables, dict.fromkeys(tables, marks)
    down = len(question.by)
    first, *others = tables.values()
    side = pl.concat([first, *(frame[:, down:] for frame in others)], how="horizontal")
    mark = wide(question.by, cells.levels, flags, heading="flag")
    marks = mark.select(*mark.columns[:down], *(pl.col("flag").alias(name) for name in side.columns[down:]))
    return {KIND: side}, {KIND: marks}


# The margins of a table of statistics: the same statistics over whole lines of groups, and over everybody.


Axes = tuple[int, ...]
Figures = Mapping[str, Array]


@dataclass(frozen=True)
class Line:
    """The statistics over some dimensions: the figures by name, how many people, and what the rules say."""

    figures: Figures
    people: Integers
    checked: CheckResult


@dataclass(frozen=True)
class WholeLines:
    """Statistics by the rows alone, by the columns alone and over everybody, by the axes that are kept."""

    lines: Mapping[Axes, Line]
    down: Axes
    across: Axes

    @staticmethod
    def of(question: Question, cells: Cells, across: int, compute: Callable[[Question], Line]) -> WholeLines:
        """Compute the statistics of every line, each from its own records."""
        number = len(question.by)
        down, over = tuple(range(number - across)), tuple(range(number - across, number))
        wanted = dict.fromkeys(axes for axes in (down, over, ()) if len(axes) < number)
        return WholeLines({axes: compute(along_axes(question, cells, axes)) for axes in wanted}, down, over)

    def findings(self) -> list[Finding]:
        """What is wrong with the lines, without places: they are no cells of the table."""
        return [
            Finding(finding.check, finding.barn, finding.status, f"In the margins: {finding.reason}")
            for line in self.lines.values()
            for finding in line.checked.findings
            if finding.status != "pass"
        ]

    def without(self, hidden: Flags) -> WholeLines:
        """Hide every line that holds a hidden cell, which it would give away."""

        def change(axes: Axes, table: Array) -> Array:
            gone = np.asarray(hidden.any(axis=tuple(a for a in range(hidden.ndim) if a not in axes)))
            made = table.astype(object)
            made[gone.reshape(table.shape)] = None
            return made

        return self._changed(change)

    def rounded(self, to_base: Callable[[Any], Any]) -> WholeLines:
        """Round every number that is shown."""

        def change(axes: Axes, table: Array) -> Array:
            del axes
            made = np.empty(table.shape, dtype=object)
            for place in np.ndindex(table.shape):
                number: Any = table[place]
                made[place] = number if number is None or isinstance(number, str) else to_base(number)
            return made

        return self._changed(change)

    def margins(self, name: str) -> Margins:
        """The lines of one statistic, as a table shows them."""
        everybody = self.lines[()].figures[name].reshape(-1)
        rows = self.lines[self.down].figures[name] if self.down in self.lines else everybody
        columns = self.lines[self.across].figures[name] if self.across in self.lines else everybody
        return Margins(rows, columns, everybody[0])

    def entries(self, entry: Registered) -> tuple[Registered, ...]:
        """Enter the lines that are shown beside the cells, for differencing with later outputs."""
        found = []
        for axes, line in self.lines.items():
            gone = np.array([number is None for number in next(iter(line.figures.values())).ravel()])
            counts = np.where(gone, np.nan, line.people.ravel().astype(np.float64))
            found.append(entry.along(axes, counts.reshape(tuple(len(entry.levels[a]) for a in axes))))
        return tuple(found)

    def _changed(self, change: Callable[[Axes, Array], Array]) -> WholeLines:
        made = {
            axes: replace(
                line, figures={name: change(axes, np.asarray(table)) for name, table in line.figures.items()}
            )
            for axes, line in self.lines.items()
        }
        return replace(self, lines=made)
