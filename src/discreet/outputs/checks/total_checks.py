"""Statbarns d and k: does one contributor, or two, make up most of a total, a mean or an index of concentration?

A mean is checked on the same contributions as its total, and a ratio on those of its numerator and denominator. The
counts behind them obey the rules of frequencies. The rules themselves live in `discreet.numerics.dominance`. Where a
variable has few values only, its total is a frequency, and is checked as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.numerics.dominance import Contributions, contributions, dominated, p_percent
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import as_flags, flagged, low_count
from discreet.outputs.output_policy import OutputPolicy


@dataclass(frozen=True)
class CellSums:
    """What dominance needs to know of every cell, in the shape of the table.

    Attributes
    ----------
    people
        Distinct contributors.
    total
        The published total of the absolute (weighted) contributions.
    top
        The largest contributions, largest first, on a last axis; zero where there are fewer.
    negative
        How many contributions are below zero.
    givers
        How many contribute something; who has zero does not. All contributors unless given.
    """

    people: Integers
    total: Floats
    top: Floats
    negative: Integers
    givers: Integers | None = None

    def contributions(self) -> Contributions:
        """Sort them as the rules want it: the largest few, then everything else in one piece."""
        many, kept = int(self.people.size), self.top.shape[-1]
        tops = self.top.reshape(many, kept)
        rest = np.maximum(self.total.reshape(many) - tops.sum(axis=1), 0.0)
        values = np.column_stack([tops, rest]).ravel()
        starts = np.arange(many + 1, dtype=np.int64) * (kept + 1)
        return Contributions(np.arange(many), starts, values, np.ones(len(values)))


def check_totals(
    cell: npt.ArrayLike,
    value: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    contributor: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    barn: str = "d",
) -> CheckResult:
    """Check totals or means from the contributions themselves: one entry a record.

    Parameters
    ----------
    cell
        The cell of each record.
    value
        Its contribution.
    contributor
        Who it belongs to; without it every record is a contributor of its own.
    weight
        Sampling weight. The contribution is weight times value, or the own value where weights are public.

    Examples
    --------
    >>> check_totals(["a"] * 12, [500, 420] + [8] * 10).reasons
    ('1 cell is dominated: the 2 largest contributions are more than 90 % of the total.',)
    """
    policy = policy or OutputPolicy()
    names, codes = np.unique(np.asarray(cell), return_inverse=True)
    values = np.asarray(value, dtype=np.float64)
    below = np.bincount(codes[values < 0], minlength=len(names))
    own = weight is not None and policy.weights_public and contributor is None
    found = contributions(
        codes,
        values,
        contributor=contributor,
        weight=weight,
        weighting="own" if own else "multiply",
        negative="absolute",
    )
    first = low_count(found.size, policy, barn=barn, where="cell", whom="contributors")
    giving = np.diff(np.append(0, np.cumsum(found.values != 0))[found.starts])
    given = check_contributors(found.size, giving, policy, barn=barn).findings
    return CheckResult([first, *given, *_dominance(found, below, found.size.shape, policy, barn=barn)])


def check_dominance(
    sums: CellSums,
    policy: OutputPolicy | None = None,
    *,
    hidden: npt.ArrayLike | None = None,
    barn: str = "d",
) -> CheckResult:
    """Check cells whose largest contributions were found in one pass over the data.

    Examples
    --------
    >>> sums = CellSums(np.array([12]), np.array([1000.0]), np.array([[500.0, 420.0, 8.0]]), np.array([0]))
    >>> check_dominance(sums).status
    'fail'
    """
    policy = policy or OutputPolicy()
    if sums.top.shape[-1] < max(policy.nk_n, 2):
        raise ParameterError(f"The {max(policy.nk_n, 2)} largest contributions are needed for each cell.")
    unseen = as_flags(hidden, sums.people)
    found = _dominance(
        sums.contributions(), sums.negative.ravel(), sums.people.shape, policy, barn=barn, hidden=unseen
    )
    if sums.givers is None:
        return CheckResult(found)
    given = check_contributors(sums.people, sums.givers, policy, hidden=unseen, barn=barn)
    return CheckResult([*given.findings, *found])


def _dominance(
    cells: Contributions,
    negative: Integers,
    shape: tuple[int, ...],
    policy: OutputPolicy,
    *,
    barn: str,
    hidden: Flags | None = None,
) -> list[Finding]:
    undefined = (negative > 0) & (policy.negative == "review")
    judged = ~undefined if hidden is None else ~undefined & ~hidden.ravel()
    by_nk = (dominated(cells, policy.nk_n, policy.nk_k) & judged).reshape(shape)
    by_p = (p_percent(cells, policy.p_ratio) & judged).reshape(shape)
    largest = "largest contribution is" if policy.nk_n == 1 else f"{policy.nk_n} largest contributions are"
    found = [
        flagged(
            "dominance",
            barn,
            by_nk,
            f"{{}} dominated: the {largest} more than {100 * policy.nk_k:g} % of the total.",
            f"The {largest} at most {100 * policy.nk_k:g} % of every total.",
            of=("cell is", "cells are"),
            figures={"n": policy.nk_n, "k": policy.nk_k},
        ),
        flagged(
            "p%",
            barn,
            by_p,
            f"{{}} too exact: without the two largest, less than {100 * policy.p_ratio:g} % of the largest is left.",
            f"Without the two largest, at least {100 * policy.p_ratio:g} % of the largest is left everywhere.",
            of=("cell is", "cells are"),
            figures={"p": policy.p_ratio},
        ),
    ]
    unclear = undefined.reshape(shape) if hidden is None else undefined.reshape(shape) & ~hidden
    if unclear.any():
        wrong = (
            "{} with negative contributions: shares of a total have no meaning there, so a human judges (or the policy "
            "says negative = 'absolute')."
        )
        found.append(flagged("negative contributions", barn, unclear, wrong, "", status="review"))
    return found


# Statbarn k: may a Herfindahl or entropy index go out?
#
# Squares of shares mix all units. What follows from a Herfindahl index H is only a bound on the largest share:
# H <= largest <= sqrt(H). It is reported, and fails only where the policy says so.


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
        wrong = "{} with units but without an index: their largest share is not judged."
        findings.append(flagged("largest share", "k", unknown, wrong, "", of="group", status="review"))
    if not np.isfinite(indexes).any():
        return CheckResult(findings)
    highest = float(indexes[np.isfinite(indexes)].max())
    limit = policy.largest_share_limit
    over = np.zeros(indexes.shape, dtype=bool) if limit is None else np.isfinite(indexes) & (indexes > limit)
    reason = (
        f"The largest unit has between {100 * highest:.0f} and {100 * math.sqrt(highest):.0f} % in the most "
        "concentrated group, as the index itself says."
    )
    figures = {"largest_at_least": highest, "largest_at_most": math.sqrt(highest)}
    findings.append(flagged("largest share", "k", over, reason, reason, figures=figures))
    return CheckResult(findings)


# Statbarns d and i, for a variable with few values: does its total, mean or spread print a count of people?
#
# The total of an indicator (0 and 1) is a frequency, and its mean a ratio of two frequencies; so are those of any two
# values, after scaling. Of the few values of a small count they say almost as much: where nearly everybody has the
# lowest (or highest) value, what is left over is the few who have not. So the rules of frequencies hold: how many are
# above the lowest value, how many below the highest, and whether everybody is at one end.


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

    over, under = (np.atleast_1d(np.asarray(count, dtype=np.float64)) for count in (above, below))
    findings = [
        flagged(
            check,
            barn,
            some & (count > 0) & (count < policy.threshold),
            f"{{}} with fewer than {policy.threshold} people {where} of a variable with few values: its total or mean "
            "is a count.",
            f"Nowhere are fewer than {policy.threshold} people {where} of the few values.",
        )
        for check, count, where in (
            ("numerator", over, "above the lowest value"),
            ("complement", under, "below the highest value"),
        )
    ]
    if policy.zeros_are_disclosive:
        alike = some & ((over == 0) | (under == 0))
        wrong = "{} in which everybody is at one end of a variable with few values."
        fine = "In no cell is everybody at one end of the few values."
        findings.append(flagged("one value", barn, alike, wrong, fine))
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
    wrong = f"{{}} to which fewer than {policy.threshold} people contribute; the others have zero."
    fine = f"{policy.threshold} people or more contribute to every cell, or nobody does."
    return CheckResult([flagged("contributors", barn, few, wrong, fine)])


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
