"""Statbarn i: may a standard deviation, variance, skewness or kurtosis go out?

Only a tiny group, or one in which everybody has the same value, gives something away.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.outputs.checks.frequencies import as_flags, counted, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


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
            Finding(
                "degrees of freedom",
                "i",
                "fail" if low.any() else "pass",
                f"{counted(int(low.sum()), 'group')} with fewer than {policy.dof_threshold} degrees of freedom."
                if low.any()
                else f"Every group has {policy.dof_threshold} degrees of freedom or more.",
                positions(low),
            ),
            Finding(
                "no spread",
                "i",
                "fail" if same.any() else "pass",
                f"{counted(int(same.sum()), 'group')} in which everybody has the same value."
                if same.any()
                else "Values differ in every group.",
                positions(same),
            ),
        ]
    )
