"""From demands on a file to the cells that are suppressed: several demands, households, and what can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.protect.hiding.agreement import CountedRows, Demand, summed
from discreet.protect.hiding.suppression_merging import merge_until_met, restore_whole_classes
from discreet.protect.hiding.suppression_search import give_back_unneeded, suppress_until_met

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A file in codes, and what is asked of it.

    Attributes
    ----------
    codes
        One row a record, one column a key, the stratum last; 0 is a gap.
    weights, costs
        Survey weight of each record; what a suppressed cell of each key costs.
    demands
        What must hold in the end.
    wildcard
        Whether a gap matches anything; otherwise it is a value.
    tied, household
        Keys that are suppressed for a whole household, and the household of each record.
    risk_threshold
        The individual risk from which the demanded weights were computed.
    """

    codes: Codes
    weights: Floats
    costs: Floats
    demands: Sequence[Demand]
    wildcard: bool
    tied: Sequence[int] = ()
    household: Ints | None = None
    risk_threshold: float | None = None

    def check(self) -> None:
        """Refuse what cannot be reached even with every key blank."""
        stratum = self.codes[:, -1].astype(np.int64)
        size = np.bincount(stratum)
        weight = summed(stratum, self.weights, len(size))
        there = size > 0
        short = sum(bool((~demand.met(size[there], weight[there])).any()) for demand in self.demands)
        if short:
            where = "a stratum" if there.sum() > 1 else "the file"
            raise ParameterError(
                f"The aim cannot be reached: {where} has only {int(size[there].min()):,} records, too few even with "
                "every key blank. Lower k (or raise risk_threshold), or merge small strata."
            )


def solve(problem: Problem) -> Codes:
    """Return the codes with the suppressed cells set to 0.

    Gaps are only ever added until all demands hold at once, so this ends; a file of gaps meets every demand.
    """
    codes = problem.codes
    while True:
        for demand in problem.demands:
            reach = suppress_until_met if problem.wildcard else merge_until_met
            codes = reach(codes, problem.weights, problem.costs, demand)
        codes = _same_in_household(problem, codes)
        if all_met(problem, codes):
            break
    if problem.wildcard:
        return give_back_unneeded(
            problem.codes,
            codes,
            weights=problem.weights,
            costs=problem.costs,
            demands=problem.demands,
            tied=problem.tied,
        )
    if len(problem.demands) == 1 and problem.household is None:
        return restore_whole_classes(problem.codes, codes, problem.weights, problem.costs, problem.demands[0])
    return codes


def all_met(problem: Problem, codes: Codes) -> bool:
    """Say whether every demand holds for these codes."""
    for demand in problem.demands:
        rows = CountedRows(
            np.ascontiguousarray(codes[:, demand.columns]), problem.weights, wildcard=problem.wildcard
        )
        if rows.lacking(demand).any():
            return False
    return True


def _same_in_household(problem: Problem, codes: Codes) -> Codes:
    """Suppress the tied keys for everybody in a household in which one member lost them."""
    if problem.household is None:
        return codes
    codes = codes.copy()
    for key in problem.tied:
        lost = (problem.codes[:, key] > 0) & (codes[:, key] == 0)
        touched = np.zeros(int(problem.household.max()) + 1, dtype=np.bool_)
        touched[problem.household[lost]] = True
        codes[touched[problem.household], key] = 0
    return codes
