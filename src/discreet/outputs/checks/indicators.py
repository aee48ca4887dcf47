"""Statbarns d and i, for a variable with few values: does its total, mean or spread print a count of people?

The total of an indicator (0 and 1) is a frequency, and its mean a ratio of two frequencies; so are those of any two
values, after scaling. Of the few values of a small count they say almost as much: where nearly everybody has the lowest
(or highest) value, what is left over is the few who have not. So the rules of frequencies hold: how many are above the
lowest value, how many below the highest, and whether everybody is at one end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, Integers
from discreet.outputs.checks.frequencies import as_flags, counted, positions
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy

MOST_VALUES = 20
_SHARED_BY = 2


def has_few_values(distinct: int, records: int) -> bool:
    """Whether a variable is an indicator, or takes few values that people share.

    Examples
    --------
    >>> has_few_values(2, 5), has_few_values(6, 300), has_few_values(12, 12), has_few_values(90, 5000)
    (True, True, False, False)
    """
    return 0 < distinct <= 2 or (distinct <= MOST_VALUES and records >= _SHARED_BY * distinct)


def check_few_values(
    people: npt.ArrayLike,
    above: npt.ArrayLike,
    below: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    hidden: npt.ArrayLike | None = None,
    barn: str = "d",
) -> CheckResult:
    """Check totals or means of a variable with few values as the frequencies they are.

    Parameters
    ----------
    people
        Distinct people with a value, by cell.
    above, below
        How many of them are above the lowest value of the variable, and how many below the highest.

    Examples
    --------
    >>> check_few_values([180, 180, 180], [3, 60, 177], [177, 120, 3]).cells()
    ((0,), (2,))
    >>> check_few_values([180], [0], [180]).cells("one value")
    ((0,),)
    """
    policy = policy or OutputPolicy()
    number = np.atleast_1d(np.asarray(people, dtype=np.float64))
    unseen = as_flags(hidden, number)
    some = (number > 0) & ~unseen

    def few(count: npt.ArrayLike) -> Flags:
        table = np.atleast_1d(np.asarray(count, dtype=np.float64))
        return some & (table > 0) & (table < policy.threshold)

    over, under = np.atleast_1d(np.asarray(above)), np.atleast_1d(np.asarray(below))
    findings = [
        _of_people("numerator", few(over), "above the lowest value", policy, barn),
        _of_people("complement", few(under), "below the highest value", policy, barn),
    ]
    if policy.zeros_are_disclosive:
        alike = some & ((over == 0) | (under == 0))
        reason = (
            f"{counted(int(alike.sum()), 'cell')} in which everybody is at one end of a variable with few values."
            if alike.any()
            else "In no cell is everybody at one end of the few values."
        )
        findings.append(
            Finding("one value", barn, "fail" if alike.any() else "pass", reason, positions(alike))
        )
    return CheckResult(findings)


def check_contributors(
    people: npt.ArrayLike,
    givers: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    hidden: npt.ArrayLike | None = None,
    barn: str = "d",
) -> CheckResult:
    """Check that what is added up comes from enough people: who has zero contributes nothing to a total.

    A total of nothing is not disclosive by this rule.

    Examples
    --------
    >>> check_contributors([180, 180, 180], [4, 0, 90]).cells()
    ((0,),)
    """
    policy = policy or OutputPolicy()
    number = np.atleast_1d(np.asarray(people, dtype=np.float64))
    giving = np.atleast_1d(np.asarray(givers, dtype=np.float64))
    unseen = as_flags(hidden, number)
    # A cell with few people altogether is a low count already.
    few = (giving > 0) & (giving < policy.threshold) & (number >= policy.threshold) & ~unseen
    reason = (
        f"{counted(int(few.sum()), 'cell')} to which fewer than {policy.threshold} people contribute; the others have "
        "zero."
        if few.any()
        else f"{policy.threshold} people or more contribute to every cell, or nobody does."
    )
    return CheckResult(
        [Finding("contributors", barn, "fail" if few.any() else "pass", reason, positions(few))]
    )


def check_values(
    cell: Integers,
    value: Floats,
    cells: int,
    policy: OutputPolicy | None = None,
    *,
    barn: str,
) -> CheckResult:
    """Check statistics of groups from one value a person: few contributors, and few values.

    Examples
    --------
    >>> check_values(np.zeros(60, dtype=np.int64), np.repeat([0.0, 1.0], [55, 5]), 1, barn="k").status
    'fail'
    """
    policy = policy or OutputPolicy()
    people = np.bincount(cell, minlength=cells)
    found = check_contributors(people, np.bincount(cell[value != 0], minlength=cells), policy, barn=barn)
    distinct = np.unique(value)
    if not has_few_values(len(distinct), len(value)):
        return found
    above = np.bincount(cell[value > distinct[0]], minlength=cells)
    below = np.bincount(cell[value < distinct[-1]], minlength=cells)
    return found.with_more(check_few_values(people, above, below, policy, barn=barn).findings)


def _of_people(check: str, flags: Flags, where: str, policy: OutputPolicy, barn: str) -> Finding:
    number = int(flags.sum())
    reason = (
        f"{counted(number, 'cell')} with fewer than {policy.threshold} people {where} of a variable with few values: "
        "its total or mean is a count."
        if number
        else f"Nowhere are fewer than {policy.threshold} people {where} of the few values."
    )
    return Finding(check, barn, "fail" if number else "pass", reason, positions(flags))
