"""Statbarns b, c, i, j and l: may these quantiles, extremes, modes, moments or measures of inequality go out?

Between published quantiles (and beyond the first and last) at least the threshold of people must lie; a quantile that
is exactly one person's value is shown to a human unless it is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import as_flags, flagged, low_count
from discreet.outputs.output_policy import OutputPolicy


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
        return _no_values("b")
    findings = [
        flagged(
            "low count",
            "b",
            np.asarray(people < policy.threshold),
            f"The group has fewer than {policy.threshold} people.",
            f"The group has {policy.threshold} people or more.",
        )
    ]
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
    between = flagged(
        "between quantiles",
        "b",
        low,
        f"{{}} between published quantiles with fewer than {policy.threshold} people (the smallest has "
        f"{int(inside.min())}).",
        f"At least {policy.threshold} people lie between published quantiles.",
        of="interval",
        figures={"fewest": int(inside.min())},
    )
    findings.append(replace(between, cells=tuple((int(i),) for i in np.unique(where[low]))))
    ties = _people_between(
        np.searchsorted(numbers, marks, side="left"), np.searchsorted(numbers, marks, side="right"), who
    )
    alone = (ties == 1) & (not rounded)
    if alone.any():
        wrong = "{} exactly one person's value. Round it, or let a human judge."
        findings.append(flagged("own value", "b", alone, wrong, "", of="published quantile", status="review"))
    return CheckResult(findings)


def _no_values(barn: str) -> CheckResult:
    return CheckResult(
        [Finding("empty group", barn, "review", "The group has no values: nothing was checked.")]
    )


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


# Statbarn c: may a maximum or minimum go out?
#
# An extreme is usually one person's value. It passes when enough people share it, or when it is structural: the end of
# a scale, a legal limit.


def check_extremes(
    values: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    which: Collection[str] = ("minimum", "maximum"),
    structural: Collection[float] = (),
) -> CheckResult:
    """Check the extremes of one group.

    Parameters
    ----------
    values
        One value a person.
    which
        ``"minimum"``, ``"maximum"`` or both. A range, axis ends and whiskers show both.
    structural
        Values that everybody knows to be the end of the scale.

    Examples
    --------
    >>> check_extremes([0] * 12 + [5, 9], structural=[9]).status
    'pass'
    >>> check_extremes([0] * 12 + [5, 9]).reasons
    ('The maximum is shared by fewer than 10 people.',)
    """
    policy = policy or OutputPolicy()
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return _no_values("c")
    findings = []
    for name in which:
        if name not in ("minimum", "maximum"):
            raise ParameterError("which names 'minimum', 'maximum' or both.")
        extreme = numbers.min() if name == "minimum" else numbers.max()
        known = any(extreme == end for end in structural)
        shared = int((numbers == extreme).sum()) >= policy.threshold
        reason = (
            f"The {name} is structural."
            if known
            else f"The {name} is shared by {policy.threshold} people or more."
            if shared
            else f"The {name} is shared by fewer than {policy.threshold} people."
        )
        findings.append(Finding(name, "c", "pass" if known or shared else "fail", reason))
    return CheckResult(findings)


def check_ties(
    name: str,
    ties: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    structural: npt.ArrayLike | None = None,
    hidden: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check the extremes of many cells, from how many people share each.

    Examples
    --------
    >>> check_ties("maximum", [1, 40, 0]).cells()
    ((0,),)
    """
    policy = policy or OutputPolicy()
    shared = np.asarray(ties, dtype=np.int64)
    known, unseen = as_flags(structural, shared), as_flags(hidden, shared)
    alone = (shared > 0) & (shared < policy.threshold) & ~known & ~unseen
    wrong = f"The {name} of {{}} is shared by fewer than {policy.threshold} people."
    fine = f"Every {name} is structural or shared by {policy.threshold} people or more."
    return CheckResult([flagged(name, "c", alone, wrong, fine)])


# Statbarn j: may the most common value go out?
#
# It may, unless everybody in the group has it, or so few have it that it is their own value: where nobody shares a
# value with anybody, every value is a mode. Several modes are all reported. How often the mode occurs is a count.


def check_modes(
    distinct: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    modes: npt.ArrayLike | None = None,
    shared: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check the modes of one group or many, from the number of distinct values in each.

    Parameters
    ----------
    distinct
        Distinct values in each group.
    modes
        How many values are the most common one in each group; more than one is a tie.
    shared
        How many people have the most common value; the fewest where several are.

    Examples
    --------
    >>> check_modes([3, 1]).cells()
    ((1,),)
    >>> check_modes([3, 400], shared=[40, 1]).cells("mode")
    ((1,),)
    """
    limit = (policy or OutputPolicy()).threshold
    number = np.atleast_1d(np.asarray(distinct, dtype=np.int64))
    same = number == 1
    wrong = "{} in which everybody has the same value."
    findings = [flagged("one value", "j", same, wrong, "Every group has more than one value.", of="group")]
    tied = np.atleast_1d(np.asarray(modes if modes is not None else 1, dtype=np.int64)) > 1
    if tied.any():
        wrong = "{} with several modes; all are reported."
        findings.append(flagged("tie", "j", tied, wrong, "", of="group", status="pass"))
    if shared is not None:
        people = np.atleast_1d(np.asarray(shared, dtype=np.int64))
        few = (people > 0) & (people < limit)
        wrong = f"The mode of {{}} is shared by fewer than {limit} people."
        fine = f"Every mode is shared by {limit} people or more."
        findings.append(flagged("mode", "j", few, wrong, fine, of="group"))
    return CheckResult(findings)


# Statbarn i: may a standard deviation, variance, skewness or kurtosis go out?
#
# Only a tiny group, or one in which everybody has the same value, gives something away.


def check_shape(
    people: npt.ArrayLike,
    deviation: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    hidden: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check the spread of one group or many.

    Parameters
    ----------
    people
        How many there are in each group.
    deviation
        The standard deviation of each; missing where it is undefined.

    Examples
    --------
    >>> check_shape(11, 2.5).status, check_shape(10, 2.5).status, check_shape(500, 0).status
    ('pass', 'fail', 'fail')
    """
    policy = policy or OutputPolicy()
    number = np.atleast_1d(np.asarray(people, dtype=np.float64))
    spread = np.broadcast_to(np.asarray(deviation, dtype=np.float64), number.shape)
    unseen = as_flags(hidden, number)
    low = (number > 0) & (number - 1 < policy.dof_threshold) & ~unseen
    same = (number > 1) & (spread == 0) & ~unseen
    return CheckResult(
        [
            flagged(
                "degrees of freedom",
                "i",
                low,
                f"{{}} with fewer than {policy.dof_threshold} degrees of freedom.",
                f"Every group has {policy.dof_threshold} degrees of freedom or more.",
                of="group",
            ),
            flagged(
                "no spread",
                "i",
                same,
                "{} in which everybody has the same value.",
                "Values differ in every group.",
                of="group",
            ),
        ]
    )


# Statbarn l: may a Gini coefficient or a Lorenz curve go out?
#
# The coefficient mixes all units. The curve does only if its points are few: with one point a unit it is the data.


def gini_of(values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Compute the Gini coefficient, as twice the area between the Lorenz curve and the diagonal.

    Examples
    --------
    >>> gini_of([1, 1, 1, 1]), gini_of([0, 0, 0, 4])
    (0.0, 0.75)
    """
    shares, sums = _curve(values, weights)
    if not np.isfinite(sums).all():
        return math.nan
    area = np.sum(np.diff(shares) * (sums[1:] + sums[:-1])) / 2.0
    return float(max(1.0 - 2.0 * area, 0.0))


def lorenz_points(
    values: npt.ArrayLike, points: int = 10, weights: npt.ArrayLike | None = None
) -> tuple[Floats, Floats, Integers]:
    """Compute a Lorenz curve at equal steps, with the number of units in each step.

    Examples
    --------
    >>> share, of_total, units = lorenz_points([1, 1, 2, 4], points=2)
    >>> share.tolist(), of_total.tolist(), units.tolist()
    ([0.5, 1.0], [0.25, 1.0], [2, 2])
    """
    if points < 1:
        raise ParameterError("points must be 1 or more.")
    shares, sums = _curve(values, weights)
    steps = np.arange(1, points + 1) / points
    inside = np.diff(np.concatenate([[0], np.searchsorted(shares[1:], steps + 1e-12, side="right")]))
    return steps, np.interp(steps, shares, sums), inside.astype(np.int64)


def check_inequality(
    people: npt.ArrayLike, policy: OutputPolicy | None = None, *, steps: npt.ArrayLike | None = None
) -> CheckResult:
    """Check Gini coefficients of one group or many, or a Lorenz curve by the units in each of its steps.

    Examples
    --------
    >>> check_inequality(100).status, check_inequality(100, steps=[5] * 20).status
    ('pass', 'fail')
    """
    policy = policy or OutputPolicy()
    number = np.atleast_1d(np.asarray(people, dtype=np.float64))
    findings = [low_count(number, policy, barn="l", where="group", whom="units")]
    if steps is not None:
        thin = np.asarray(steps, dtype=np.int64) < policy.threshold
        wrong = f"{{}} of the curve with fewer than {policy.threshold} units."
        fine = f"Every step of the curve has {policy.threshold} units or more."
        findings.append(flagged("points of the curve", "l", thin, wrong, fine, of="step"))
    return CheckResult(findings)


def _curve(values: npt.ArrayLike, weights: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    numbers = np.asarray(values, dtype=np.float64).ravel()
    if not len(numbers):
        raise ParameterError("There are no values to draw a curve of.")
    if (numbers < 0).any():
        raise ParameterError("A Lorenz curve needs values that are not negative.")
    heavy = np.ones(len(numbers)) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    order = np.argsort(numbers, kind="stable")
    weight, amount = np.cumsum(heavy[order]), np.cumsum((numbers * heavy)[order])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.append(0.0, weight / weight[-1]), np.append(0.0, amount / amount[-1])
