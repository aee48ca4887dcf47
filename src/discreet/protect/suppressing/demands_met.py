"""From demands on a file to the cells that are suppressed: several demands, households, and what can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.protect.suppressing.agreement import CountedRows, Demand
from discreet.protect.suppressing.alike_records import Alike
from discreet.protect.suppressing.suppression_merging import merge_until_met, restore_whole_classes
from discreet.protect.suppressing.suppression_search import give_back_unneeded, suppress_until_met


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
    units
        Whose each record is, where company is counted in people.
    many
        How many records a row of the codes stands for, where that is not one.
    """

    codes: Codes
    weights: Floats
    costs: Floats
    demands: Sequence[Demand]
    wildcard: bool
    tied: Sequence[int] = ()
    household: Integers | None = None
    risk_threshold: float | None = None
    units: Integers | None = None
    many: Integers | None = None

    def check(self) -> None:
        """Refuse what cannot be reached even with every key blank."""
        blank = CountedRows(
            np.ascontiguousarray(self.codes[:, -1:]),
            self.weights,
            wildcard=False,
            units=self.units,
            many=self.many,
        )
        if not all(demand.met(blank.records, blank.weights).all() for demand in self.demands):
            where = "a stratum" if len(blank.records) > 1 else "the file"
            heads = "records" if self.units is None else "people"
            raise ParameterError(
                f"The aim cannot be reached: {where} has only {int(blank.records.min()):,} {heads}, too few even with "
                "every key blank. Lower k (or raise risk_threshold), or merge small strata."
            )


def solve(problem: Problem) -> Alike:
    """Return the records with the suppressed cells set to 0.

    Gaps are only ever added until all demands hold at once, so this ends; a file of gaps meets every demand.
    """
    alike = Alike(problem.codes, problem.weights, problem.many)
    while True:
        for demand in problem.demands:
            if problem.wildcard:
                codes = suppress_until_met(alike.codes, problem.weights, problem.costs, demand)
                alike = replace(alike, codes=codes)
            else:
                alike = merge_until_met(alike, problem.costs, demand, problem.units)
        alike = replace(alike, codes=_same_in_household(problem, alike.codes))
        if all_met(problem, alike):
            break
    if problem.wildcard:
        back = give_back_unneeded(
            problem.codes,
            alike.codes,
            weights=problem.weights,
            costs=problem.costs,
            demands=problem.demands,
            tied=problem.tied,
        )
        return replace(alike, codes=back)
    if len(problem.demands) == 1 and problem.household is None and problem.units is None:
        return restore_whole_classes(problem.codes, alike, problem.costs, problem.demands[0])
    return alike


def all_met(problem: Problem, alike: Alike) -> bool:
    """Say whether every demand holds for these records."""
    for demand in problem.demands:
        rows = CountedRows(
            np.ascontiguousarray(alike.codes[:, demand.columns]),
            alike.weights,
            wildcard=problem.wildcard,
            units=problem.units,
            many=alike.many,
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
