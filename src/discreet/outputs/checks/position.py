"""Statbarn b: may these quantiles go out?

Between published quantiles (and beyond the first and last) at least the threshold of people must lie; a quantile that
is exactly one person's value is shown to a human unless it is rounded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


def check_quantiles(
    values: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    published: npt.ArrayLike | None = None,
    rounded: bool = False,
    owner: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check the quantiles of one group.

    Parameters
    ----------
    values
        One value a person; missing ones are left out.
    probabilities
        The published ones, between 0 and 1; 0 and 1 are minimum and maximum and belong to another statbarn.
    published
        The published values; interpolated linearly from the values unless given.
    rounded
        Whether the published values are rounded, so that they are nobody's own.
    owner
        Who each value belongs to, where a person has several: people are counted, not values.

    Examples
    --------
    >>> check_quantiles(range(35), [0.25, 0.5, 0.75]).status
    'fail'
    >>> check_quantiles(range(40), [0.25, 0.5, 0.75]).status
    'pass'
    """
    policy = policy or OutputPolicy()
    shares = np.sort(np.asarray(probabilities, dtype=np.float64).ravel())
    if not len(shares) or shares[0] <= 0 or shares[-1] >= 1:
        raise ParameterError(
            "probabilities lie between 0 and 1, both excluded: 0 and 1 are the minimum and maximum."
        )
    numbers = np.asarray(values, dtype=np.float64).ravel()
    known = ~np.isnan(numbers)
    order = np.argsort(numbers[known], kind="stable")
    numbers = numbers[known][order]
    who = None if owner is None else np.unique(np.asarray(owner), return_inverse=True)[1][known][order]
    people = len(numbers) if who is None else len(np.unique(who))
    if people == 0:
        return CheckResult(
            [Finding("empty group", "b", "review", "The group has no values: nothing was checked.")]
        )
    findings = [_enough(people, policy)]
    marks = (
        np.quantile(numbers, shares)
        if published is None
        else np.sort(np.asarray(published, dtype=np.float64))
    )
    if policy.zeros_are_disclosive and numbers[0] == numbers[-1]:
        reason = "Everybody in the group has the same value, which the quantiles show."
        findings.append(Finding("one value", "b", "fail", reason))
    inside, where = interval_counts(numbers, marks, who)
    low = inside < policy.threshold
    findings.append(
        Finding(
            "between quantiles",
            "b",
            "fail" if low.any() else "pass",
            f"{counted(int(low.sum()), 'interval')} between published quantiles with fewer than {policy.threshold} "
            f"people (the smallest has {int(inside.min())})."
            if low.any()
            else f"At least {policy.threshold} people lie between published quantiles.",
            tuple((int(i),) for i in np.unique(where[low])),
            {"fewest": int(inside.min())},
        )
    )
    ties = _people_between(
        np.searchsorted(numbers, marks, side="left"), np.searchsorted(numbers, marks, side="right"), who
    )
    alone = (ties == 1) & (not rounded)
    if alone.any():
        reason = (
            f"{counted(int(alone.sum()), 'published quantile')} exactly one person's value. Round it, or let a "
            "human judge."
        )
        findings.append(
            Finding("own value", "b", "review", reason, tuple((int(i),) for i in np.flatnonzero(alone)))
        )
    return CheckResult(findings)


def interval_counts(
    numbers: Floats,
    marks: Floats,
    who: Integers | None = None,
) -> tuple[Integers, Integers]:
    """Count the people in each interval between quantiles, and say by which quantile each is bounded.

    Where two quantiles are the same value there is no interval: those who share the value are counted.
    """
    distinct = np.unique(marks)
    before = np.searchsorted(numbers, distinct, side="left")
    through = np.searchsorted(numbers, distinct, side="right")
    # Those who share a quantile lie on both of its sides; somebody who has it alone is counted once, below it.
    begins = np.concatenate([[0], np.where(through - before > 1, before, through)])
    inside = _people_between(begins, np.concatenate([through, [len(numbers)]]), who)
    bounds = np.minimum(np.arange(len(distinct) + 1), len(distinct) - 1)
    where = np.searchsorted(np.sort(marks), distinct[bounds])
    return inside, where


def _people_between(begins: Integers, ends: Integers, who: Integers | None) -> Integers:
    """Count values, or the distinct people they belong to, in slices of the sorted values (one a quantile)."""
    if who is None:
        return ends - begins
    slices = zip(begins.tolist(), ends.tolist(), strict=True)
    return np.array([len(np.unique(who[first:last])) for first, last in slices], dtype=np.int64)


def _enough(people: int, policy: OutputPolicy) -> Finding:
    fails = people < policy.threshold
    return Finding(
        "low count",
        "b",
        "fail" if fails else "pass",
        f"The group has fewer than {policy.threshold} people."
        if fails
        else f"The group has {policy.threshold} people or more.",
    )
