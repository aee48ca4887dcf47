"""Statbarn d: does one contributor, or two, make up most of a total or mean?

A mean is checked on the same contributions as its total, and a ratio on those of its numerator and denominator. The
counts behind them obey the rules of frequencies. The rules themselves live in `discreet.numerics.dominance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.numerics.dominance import Contributions, contributions, dominated, p_percent
from discreet.outputs.checks.frequencies import as_flags, counted, low_count, positions
from discreet.outputs.checks.indicators import check_contributors
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


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
        _named(
            "dominance",
            by_nk,
            f"dominated: the {largest} more than {100 * policy.nk_k:g} % of the total",
            f"the {largest} at most {100 * policy.nk_k:g} % of every total",
            barn=barn,
            figures={"n": policy.nk_n, "k": policy.nk_k},
        ),
        _named(
            "p%",
            by_p,
            f"too exact: without the two largest, less than {100 * policy.p_ratio:g} % of the largest is left",
            f"without the two largest, at least {100 * policy.p_ratio:g} % of the largest is left everywhere",
            barn=barn,
            figures={"p": policy.p_ratio},
        ),
    ]
    unclear = undefined.reshape(shape) if hidden is None else undefined.reshape(shape) & ~hidden
    if unclear.any():
        reason = (
            f"{counted(int(unclear.sum()), 'cell')} with negative contributions: shares of a total have no meaning "
            "there, so a human judges (or the policy says negative = 'absolute')."
        )
        found.append(Finding("negative contributions", barn, "review", reason, positions(unclear)))
    return found


def _named(
    check: str, flags: Flags, wrong: str, fine: str, *, barn: str, figures: Mapping[str, float]
) -> Finding:
    number = int(flags.sum())
    if not number:
        return Finding(check, barn, "pass", f"{fine[:1].upper()}{fine[1:]}.", (), figures)
    verb = "is" if number == 1 else "are"
    return Finding(
        check, barn, "fail", f"{counted(number, 'cell')} {verb} {wrong}.", positions(flags), figures
    )
