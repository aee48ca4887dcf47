"""Statbarn l: may a Gini coefficient or a Lorenz curve go out?

The coefficient mixes all units. The curve does only if its points are few: with one point a unit it is the data.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.outputs.checks.frequencies import counted, low_count, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


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
        findings.append(
            Finding(
                "points of the curve",
                "l",
                "fail" if thin.any() else "pass",
                f"{counted(int(thin.sum()), 'step')} of the curve with fewer than {policy.threshold} units."
                if thin.any()
                else f"Every step of the curve has {policy.threshold} units or more.",
                positions(thin),
            )
        )
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
