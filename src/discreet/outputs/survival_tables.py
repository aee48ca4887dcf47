"""Survival curves by group, as whole tables or at the times that may be published."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ColumnError, unknown_name
from discreet.core.wording import type_name
from discreet.engine import collect
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.survival_curves import (
    SurvivalCurve,
    check_survival,
    grouped,
    kaplan_meier,
    publishable,
)
from discreet.outputs.mitigations import require_mitigation
from discreet.outputs.output import Draft, text
from discreet.outputs.output_cells import entered
from discreet.outputs.output_differencing import bin_labels
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question, Where
from discreet.outputs.register import Registered

_OFFERED = ("group-times", "drop-tail")


def survival_table(
    data: Microdata,
    policy: OutputPolicy,
    *,
    time: str,
    event: str,
    by: str | None = None,
    where: Where | None = None,
    subject: str | None = None,
    show_counts: bool = True,
    mitigate: str | None = None,
) -> Draft:
    """Estimate survival by group, check every curve, and publish only safe times if asked.

    With ``subject`` the people are judged, not the spells: somebody who fell ill twice is one of those who did.
    """
    if mitigate is not None:
        require_mitigation(mitigate, ["f"], _OFFERED)
    columns = [name for name in (time, event, by, subject) if name is not None]
    for name in (*columns, *(where or {})):
        if name not in data.schema:
            raise ColumnError(unknown_name(name, data.columns))
    for name, what in ((time, "time, a number"), (event, "event, true or false (or 1 and 0)")):
        if not (data.schema[name].is_numeric() or data.schema[name] == nw.Boolean):
            raise ColumnError(
                f"Column '{name}' is {type_name(data.schema[name])}; a survival curve needs there the {what}."
            )
    rows = collect(data, list(dict.fromkeys([*columns, *(where or {})])))
    for name, wanted in (where or {}).items():
        many = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
        rows = rows.filter(pl.col(name).is_in(many))
    known = rows.drop_nulls([time, event])
    notes = []
    if known.height < rows.height:
        notes.append(f"{rows.height - known.height:,} of {rows.height:,} records have no time or event.")
    level_of = {} if by is None else {text(v): v for v in _values(known, by)}
    parts = (
        {"": known}
        if by is None
        else {label: known.filter(pl.col(by).eq_missing(v)) for label, v in level_of.items()}
    )
    frames: list[pl.DataFrame] = []
    findings: list[Finding] = []
    entries: list[Registered] = []
    raw = {label: _estimated(part, time, event) for label, part in parts.items()}
    if mitigate == "group-times" and show_counts:
        enough = [publishable(curve, policy, counts=True).any() for curve in raw.values()]
        if not all(enough):
            show_counts = False
            notes.append(
                "No steps are long enough to print how many had the event and how many were censored in them: the "
                "curve is shown without counts."
            )
    for label, part in parts.items():
        curve = raw[label]
        shown = _shown(curve, policy, mitigate, show_counts)
        judged = curve if shown is None else grouped(curve, shown)
        curve = judged
        if subject is not None:
            judged = _in_people(part, time, event, subject, raw[label], shown)
        found = check_survival(judged, policy, counts=show_counts)
        for finding in found.findings:
            where_at = f" ({by} {len(frames) + 1})" if by is not None and finding.status != "pass" else ""
            reason = finding.reason[:-1] + where_at + "."
            findings.append(Finding(finding.check, "f", finding.status, reason, finding.cells))
        frames.append(_frame(curve, label, by, show_counts))
        inside = {**(where or {}), **({by: [level_of[label]]} if by is not None else {})}
        asked = Question((), value=time, where=inside, subject=subject, known=(event,))
        entries.append(entered("survival curve", data, asked, additive=show_counts))
        if show_counts and len(curve.times):
            entries.append(_steps(entries[-1], curve))
    if mitigate == "group-times":
        notes.append("Times are grouped so that enough people left between them; the tail is cut.")
    table = pl.concat(frames) if frames else pl.DataFrame()
    return Draft(
        "survival curve",
        {"survival curve": table},
        CheckResult(findings),
        entries=tuple(entries),
        variables=tuple(columns),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=_OFFERED,
    )


def _steps(whole: Registered, curve: SurvivalCurve) -> Registered:
    """Enter those who leave between the times shown, as the numbers at risk tell them: bins of the time."""
    edges = [*curve.times.tolist(), float("inf")]
    name = str(whole.question.value) if whole.question is not None else ""
    below = np.concatenate([[0.0], np.cumsum(curve.exits.astype(np.float64))])
    return replace(
        whole,
        by=(f"{name} in bins",),
        levels=(bin_labels(edges),),
        counts=curve.exits.astype(np.float64),
        edges={name: (edges, below.tolist())},
    )


def _estimated(part: pl.DataFrame, time: str, event: str) -> SurvivalCurve:
    return kaplan_meier(part[time].cast(pl.Float64).to_numpy(), part[event].cast(pl.Boolean).to_numpy())


def _shown(curve: SurvivalCurve, policy: OutputPolicy, mitigate: str | None, counts: bool) -> Flags | None:
    """Choose the times that a mended curve shows; None where it shows all."""
    if mitigate == "group-times":
        return publishable(curve, policy, counts=counts)
    if mitigate == "drop-tail":
        return np.asarray(curve.at_risk >= policy.survival_threshold)
    return None


def _in_people(  # noqa: PLR0917
    part: pl.DataFrame,
    time: str,
    event: str,
    subject: str,
    curve: SurvivalCurve,
    shown: Flags | None,
) -> SurvivalCurve:
    """Count distinct people at risk, with the event and leaving, in the steps of a curve."""
    last = np.arange(len(curve.times)) if shown is None else np.flatnonzero(shown)
    ends = part[time].cast(pl.Float64).to_numpy()
    step = np.searchsorted(curve.times, ends, side="right") - 1
    place = np.searchsorted(last, step)
    who = part[subject].rank("dense").to_numpy()
    # The unknown are taken for one person: that can only make a count smaller.
    people = np.nan_to_num(np.asarray(who, dtype=np.float64), nan=-1.0)
    died = part[event].cast(pl.Boolean).to_numpy()

    def distinct(where: Flags) -> Integers:
        pairs = np.unique(np.column_stack([place[where], people[where]]), axis=0)
        return np.bincount(pairs[:, 0].astype(np.int64), minlength=len(last) + 1)[: len(last)]

    inside = step >= 0
    left = np.array([len(np.unique(people[inside & (place >= i)])) for i in range(len(last))], dtype=np.int64)
    exits = distinct(inside)
    return SurvivalCurve(
        curve.times[last], left, np.minimum(distinct(inside & died), exits), exits, curve.survival[last]
    )


def _frame(curve: SurvivalCurve, label: str, by: str | None, show_counts: bool) -> pl.DataFrame:
    frame = {by: [label] * len(curve.times)} if by is not None else {}
    counts = {"at risk": curve.at_risk, "events": curve.events, "exits": curve.exits} if show_counts else {}
    schema = {by: pl.String} if by is not None else {}
    return pl.DataFrame(
        {**frame, "time": curve.times, **counts, "survival": curve.survival}, schema_overrides=schema
    )


def _values(rows: pl.DataFrame, by: str) -> list[object]:
    return rows[by].unique().sort(nulls_last=True).to_list()
