"""Statbarn j: may the most common value go out?

It may, unless everybody in the group has it, or so few have it that it is their own value: where nobody shares a value
with anybody, every value is a mode. Several modes are all reported. How often the mode occurs is a count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.outputs.checks.frequencies import counted, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


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
    findings = [
        Finding(
            "one value",
            "j",
            "fail" if same.any() else "pass",
            f"{counted(int(same.sum()), 'group')} in which everybody has the same value."
            if same.any()
            else "Every group has more than one value.",
            positions(same),
        )
    ]
    tied = np.atleast_1d(np.asarray(modes if modes is not None else 1, dtype=np.int64)) > 1
    if tied.any():
        reason = f"{counted(int(tied.sum()), 'group')} with several modes; all are reported."
        findings.append(Finding("tie", "j", "pass", reason, positions(tied)))
    if shared is not None:
        people = np.atleast_1d(np.asarray(shared, dtype=np.int64))
        few = (people > 0) & (people < limit)
        reason = (
            f"The mode of {counted(int(few.sum()), 'group')} is shared by fewer than {limit} people."
            if few.any()
            else f"Every mode is shared by {limit} people or more."
        )
        findings.append(Finding("mode", "j", "fail" if few.any() else "pass", reason, positions(few)))
    return CheckResult(findings)
