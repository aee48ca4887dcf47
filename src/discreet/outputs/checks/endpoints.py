"""Statbarn c: may a maximum or minimum go out?

An extreme is usually one person's value. It passes when enough people share it, or when it is structural: the end of
a scale, a legal limit.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from discreet.core.errors import ParameterError
from discreet.outputs.checks.frequencies import as_flags, counted, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


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
        return CheckResult(
            [Finding("empty group", "c", "review", "The group has no values: nothing was checked.")]
        )
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
    reason = (
        f"The {name} of {counted(int(alone.sum()), 'cell')} is shared by fewer than {policy.threshold} people."
        if alone.any()
        else f"Every {name} is structural or shared by {policy.threshold} people or more."
    )
    return CheckResult([Finding(name, "c", "fail" if alone.any() else "pass", reason, positions(alone))])
