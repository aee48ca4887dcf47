"""Statbarn k: may a Herfindahl or entropy index go out?

Squares of shares mix all units. What follows from a Herfindahl index H is only a bound on the largest share:
H <= largest <= sqrt(H). It is reported, and fails only where the policy says so.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.core.errors import ParameterError
from discreet.outputs.checks.frequencies import counted, low_count, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


def herfindahl(values: npt.ArrayLike) -> float:
    """Compute the Herfindahl-Hirschman index: the sum of squared shares, between 1/n and 1.

    Examples
    --------
    >>> herfindahl([50, 30, 20])
    0.38
    """
    numbers = np.asarray(values, dtype=np.float64)
    if (numbers < 0).any():
        raise ParameterError("A Herfindahl index needs contributions that are not negative.")
    total = numbers.sum()
    return float(np.square(numbers / total).sum()) if total > 0 else math.nan


def check_concentration(
    people: npt.ArrayLike, index: npt.ArrayLike | None = None, policy: OutputPolicy | None = None
) -> CheckResult:
    """Check concentration indexes of one group or many.

    Parameters
    ----------
    people
        Units in each group.
    index
        The Herfindahl index of each, where that is the one; gives the bound on the largest share.

    Examples
    --------
    >>> found = check_concentration(40, 0.25)
    >>> found.status, found.findings[1].figures
    ('pass', {'largest_at_least': 0.25, 'largest_at_most': 0.5})
    """
    policy = policy or OutputPolicy()
    number = np.atleast_1d(np.asarray(people, dtype=np.float64))
    findings = [low_count(number, policy, barn="k", where="group", whom="units")]
    if index is None:
        return CheckResult(findings)
    indexes = np.atleast_1d(np.asarray(index, dtype=np.float64))
    unknown = ~np.isfinite(indexes) & (np.broadcast_to(number, indexes.shape) > 0)
    if unknown.any():
        findings.append(
            Finding(
                "largest share",
                "k",
                "review",
                f"{counted(int(unknown.sum()), 'group')} with units but without an index: their largest share is not "
                "judged.",
                positions(unknown),
            )
        )
    if not np.isfinite(indexes).any():
        return CheckResult(findings)
    highest = float(indexes[np.isfinite(indexes)].max())
    limit = policy.largest_share_limit
    over = np.zeros(indexes.shape, dtype=bool) if limit is None else np.isfinite(indexes) & (indexes > limit)
    findings.append(
        Finding(
            "largest share",
            "k",
            "fail" if over.any() else "pass",
            f"The largest unit has between {100 * highest:.0f} and {100 * math.sqrt(highest):.0f} % in the most "
            "concentrated group, as the index itself says.",
            positions(over),
            {"largest_at_least": highest, "largest_at_most": math.sqrt(highest)},
        )
    )
    return CheckResult(findings)
