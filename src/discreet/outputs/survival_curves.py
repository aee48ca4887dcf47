"""Statbarn f, survival curves: which points may go out, and curves by group that keep to them.

Every step of the curve is a count of people who left. Walk through the times and add up the exits (events and
censorings) since the last published time. A time is published when these reach the threshold and as many are still
at risk after it, or nobody is left. The curve ends where the number at risk falls below the threshold. What is
published is the true estimate at the published times.

Where the numbers at risk and the events are printed beside the curve, every step is a small table of its own: those
with the event and those censored since the time before. Both are frequencies and held against the threshold of counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.wording import type_name
from discreet.engine import collect
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import flagged
from discreet.outputs.mitigations import require_mitigation
from discreet.outputs.output import Draft, text
from discreet.outputs.output_cells import entered
from discreet.outputs.output_differencing import bin_labels
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question, Where, fitting
from discreet.outputs.register import Registered


@dataclass(frozen=True)
class SurvivalCurve:
    """A Kaplan-Meier estimate: one entry a time at which something happened."""

    times: Floats
    at_risk: Integers
    events: Integers
    exits: Integers
    survival: Floats


def kaplan_meier(time: npt.ArrayLike, event: npt.ArrayLike) -> SurvivalCurve:
    """Estimate the survival function at the times of events.

    Parameters
    ----------
    time
        How long each person was followed.
    event
        Whether the event happened then (else the person was censored).

    Examples
    --------
    >>> curve = kaplan_meier([1, 2, 2, 3, 4], [1, 1, 0, 1, 0])
    >>> curve.times.tolist(), curve.at_risk.tolist(), curve.survival.round(3).tolist()
    ([1.0, 2.0, 3.0], [5, 4, 2], [0.8, 0.6, 0.3])
    """
    ends = np.asarray(time, dtype=np.float64).ravel()
    happened = np.asarray(event).astype(bool).ravel()
    if ends.shape != happened.shape:
        raise ParameterError(f"time has {ends.size:,} entries, event has {happened.size:,}.")
    if not np.isfinite(ends).all() or (ends < 0).any():
        raise ParameterError(
            "time must be finite and not negative. Leave out people who were never followed."
        )
    times = np.unique(ends[happened])
    ordered = np.sort(ends)
    at_risk = len(ends) - np.searchsorted(ordered, times, side="left")
    dying = np.sort(ends[happened])
    events = np.searchsorted(dying, times, side="right") - np.searchsorted(dying, times, side="left")
    return of_table(times, at_risk, events)


def of_table(time: npt.ArrayLike, at_risk: npt.ArrayLike, events: npt.ArrayLike) -> SurvivalCurve:
    """Make a curve from a life table: who is at risk at each time, and the events then.

    Whoever is at risk at one time and not at the next has left in between, by an event or a censoring.

    Examples
    --------
    >>> of_table([1, 2], [10, 6], [3, 2]).exits.tolist()
    [4, 6]
    """
    times = np.asarray(time, dtype=np.float64)
    risk, died = np.asarray(at_risk, dtype=np.int64), np.asarray(events, dtype=np.int64)
    if not times.shape == risk.shape == died.shape:
        raise ParameterError("time, at_risk and events must have the same number of entries.")
    if (np.diff(times) <= 0).any() or (np.diff(risk) > 0).any() or (died < 0).any() or (died > risk).any():
        raise ParameterError(
            "A life table has rising times, a number at risk that never rises, and no more events than people at risk."
        )
    exits = risk - np.append(risk[1:], 0)
    survival = np.cumprod(1.0 - died / np.maximum(risk, 1), dtype=np.float64)
    return SurvivalCurve(times, risk, died, exits.astype(np.int64), survival)


def publishable(curve: SurvivalCurve, policy: OutputPolicy | None = None, *, counts: bool = False) -> Flags:
    """Flag the times that may be published; with ``counts`` the events and censorings beside them, too.

    Examples
    --------
    >>> risk = [100, 97, 94, 88, 80, 66, 60, 52, 41, 30, 18, 9]
    >>> events = [3, 2, 4, 5, 9, 4, 5, 8, 7, 9, 6, 4]
    >>> curve = of_table(range(1, 13), risk, events)
    >>> curve.times[publishable(curve)].astype(int).tolist()
    [3, 5, 7, 8, 9, 10]
    >>> curve.times[publishable(curve, counts=True)].astype(int).tolist()
    [5, 9]
    """
    rules = policy or OutputPolicy()
    limit = rules.survival_threshold
    shown = np.zeros(len(curve.times), dtype=bool)
    since = died = 0
    # One step a distinct time, not a record: the sum starts again at every published time.
    steps = zip(curve.at_risk.tolist(), curve.exits.tolist(), curve.events.tolist(), strict=True)
    for place, (risk, left, events) in enumerate(steps):
        if risk < limit:
            break
        since += left
        died += events
        after = risk - left
        fine = not counts or not (_is_few(died, rules) or _is_few(since - died, rules))
        if fine and since >= limit and (after >= limit or after == 0):
            shown[place] = True
            since = died = 0
    return shown


def _is_few(count: float, policy: OutputPolicy) -> bool:
    return 0 < count < policy.threshold


def check_survival(
    curve: SurvivalCurve, policy: OutputPolicy | None = None, *, counts: bool = False
) -> CheckResult:
    """Check a curve that shows every time it has.

    Parameters
    ----------
    counts
        Whether the numbers at risk and the events are printed beside it: then the events and the censorings of every
        step are counts of people.

    Examples
    --------
    >>> check_survival(of_table([1, 2], [100, 60], [40, 30])).status
    'pass'
    >>> check_survival(of_table([1, 2], [100, 98], [2, 50])).cells("exits")
    ((0,),)
    >>> few = of_table([1, 2], [100, 60], [5, 30])
    >>> check_survival(few).status, check_survival(few, counts=True).cells("events")
    ('pass', ((0,),))
    """
    policy = policy or OutputPolicy()
    limit = policy.survival_threshold
    if not len(curve.times):
        return CheckResult(
            [Finding("empty curve", "f", "review", "There is no event, so no curve to check.")]
        )
    shown = publishable(curve, policy)
    tail = curve.at_risk < limit
    close = ~shown & ~tail
    printed: list[Finding] = []
    if counts:
        censored = curve.exits - curve.events
        printed = [
            _few_in_steps("events", curve.events, "with the event", policy),
            _few_in_steps("censored", censored, "censored", policy),
        ]
    return CheckResult(
        [
            *printed,
            flagged(
                "exits",
                "f",
                close,
                f"{{}} with fewer than {limit} exits since the time before it, or fewer than that left at risk.",
                f"At least {limit} people left between the times shown.",
                of="time",
            ),
            flagged(
                "tail",
                "f",
                tail,
                f"{{}} with fewer than {limit} people still at risk.",
                f"At least {limit} people are at risk at every time shown.",
                of="time",
            ),
        ]
    )


def _few_in_steps(check: str, counts: Integers, who: str, policy: OutputPolicy) -> Finding:
    return flagged(
        check,
        "f",
        (counts > 0) & (counts < policy.threshold),
        f"{{}} with fewer than {policy.threshold} people {who}, as the counts beside the curve say.",
        f"The people {who} are {policy.threshold} or more in every step that has any.",
        of="step",
    )


def grouped(curve: SurvivalCurve, shown: Flags) -> SurvivalCurve:
    """Return the curve at the shown times only: exits and events added up since the time before, true estimates.

    ``at_risk`` is the number at the start of each group, right after the time before it.

    Examples
    --------
    >>> curve = of_table([1, 2, 3], [100, 97, 60], [3, 30, 10])
    >>> short = grouped(curve, np.array([False, True, False]))
    >>> short.times.tolist(), short.at_risk.tolist(), short.exits.tolist()
    ([2.0], [100], [40])
    """
    last = np.flatnonzero(shown)
    through = np.cumsum(curve.exits)[last]
    died = np.cumsum(curve.events)[last]
    start = int(curve.at_risk[0]) if len(curve.at_risk) else 0
    exits = np.diff(through, prepend=0)
    return SurvivalCurve(
        curve.times[last],
        (start - through + exits).astype(np.int64),
        np.diff(died, prepend=0).astype(np.int64),
        exits.astype(np.int64),
        curve.survival[last],
    )


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
    require_mitigation(mitigate, ["f"], _OFFERED)
    columns = [name for name in (time, event, by, subject) if name is not None]
    need_known((*columns, *(where or {})), data.columns)
    for name, what in ((time, "time, a number"), (event, "event, true or false (or 1 and 0)")):
        if not (data.schema[name].is_numeric() or data.schema[name] == nw.Boolean):
            raise ColumnError(
                f"Column '{name}' is {type_name(data.schema[name])}; a survival curve needs there the {what}."
            )
    rows = fitting(collect(data, list(dict.fromkeys([*columns, *(where or {})]))), where)
    known = rows.drop_nulls([time, event])
    notes = []
    if known.height < rows.height:
        notes.append(f"{rows.height - known.height:,} of {rows.height:,} records have no time or event.")
    levels = [] if by is None else known[by].unique().sort(nulls_last=True).to_list()
    level_of = {text(level): level for level in levels}
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
        judged = curve = curve if shown is None else grouped(curve, shown)
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
