"""Statbarn f: which points of a survival curve may go out?

Every step of the curve is a count of people who left. Walk through the times and add up the exits (events and
censorings) since the last published time. A time is published when these reach the threshold and as many are still
at risk after it, or nobody is left. The curve ends where the number at risk falls below the threshold. What is
published is the true estimate at the published times.

Where the numbers at risk and the events are printed beside the curve, every step is a small table of its own: those
with the event and those censored since the time before. Both are frequencies and held against the threshold of counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.output_policy import OutputPolicy


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
            Finding(
                "exits",
                "f",
                "fail" if close.any() else "pass",
                f"{counted(int(close.sum()), 'time')} with fewer than {limit} exits since the time before it, or fewer "
                "than that left at risk."
                if close.any()
                else f"At least {limit} people left between the times shown.",
                tuple((int(i),) for i in np.flatnonzero(close)),
            ),
            Finding(
                "tail",
                "f",
                "fail" if tail.any() else "pass",
                f"{counted(int(tail.sum()), 'time')} with fewer than {limit} people still at risk."
                if tail.any()
                else f"At least {limit} people are at risk at every time shown.",
                tuple((int(i),) for i in np.flatnonzero(tail)),
            ),
        ]
    )


def _few_in_steps(check: str, counts: Integers, who: str, policy: OutputPolicy) -> Finding:
    few = (counts > 0) & (counts < policy.threshold)
    return Finding(
        check,
        "f",
        "fail" if few.any() else "pass",
        f"{counted(int(few.sum()), 'step')} with fewer than {policy.threshold} people {who}, as the counts beside the "
        "curve say."
        if few.any()
        else f"The people {who} are {policy.threshold} or more in every step that has any.",
        tuple((int(i),) for i in np.flatnonzero(few)),
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
