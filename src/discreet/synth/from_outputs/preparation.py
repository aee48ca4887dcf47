"""From codebook and targets to what both engines need: bound targets, checked for consistency."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.synth.from_outputs.bound import Bound, BoundTable
from discreet.synth.from_outputs.codebook import Codebook
from discreet.synth.from_outputs.counting import (
    Component,
    Condition,
    check_consistency,
    components_of,
    conditions_of,
    floors_of,
)
from discreet.synth.from_outputs.floors import Floors
from discreet.synth.from_outputs.layout import Layout
from discreet.synth.from_outputs.starting_file import Counts, counts_of, started
from discreet.synth.from_outputs.swap_search import SwapSearch, Ties

if TYPE_CHECKING:
    from discreet.synth.from_outputs.synthesis import FromOutputs


@dataclass(frozen=True, eq=False)
class Preparation:
    """Targets made ready, with what had to be said about them."""

    codebook: Codebook
    n: int
    bounds: tuple[Bound, ...]
    conditions: tuple[Condition, ...]
    floors: tuple[Condition, ...]
    components: tuple[Component, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, plan: FromOutputs) -> Preparation:
        """Bind the targets and refuse those that contradict one another."""
        bounds = tuple(target.bind(plan.codebook, plan.n) for target in plan.targets)
        titles = [bound.title for bound in bounds]
        twice = sorted({title for title in titles if titles.count(title) > 1})
        if twice:
            raise ParameterError(f"Two targets are called '{twice[0]}'. Give them names: name=….")
        if bounds and not any(bound.weight > 0 for bound in bounds):
            raise ParameterError("All targets have weight 0. Give one of them a weight.")
        conditions = conditions_of(plan.codebook, bounds, plan.n)
        floors = floors_of(plan.codebook, bounds, plan.min_cell) if plan.min_cell else []
        components = components_of(plan.codebook, conditions, floors)
        check_consistency(components, plan.n)
        notes = [note for bound in bounds if isinstance(bound, BoundTable) for note in bound.notes]
        notes += _margin_notes(plan.codebook)
        if plan.weights is not None:
            notes += plan.weights.check(plan.codebook)
        for note in notes:
            warnings.warn(note, DiscreetWarning, stacklevel=4)
        return cls(
            plan.codebook, plan.n, bounds, tuple(conditions), tuple(floors), tuple(components), tuple(notes)
        )


@dataclass(frozen=True, eq=False)
class SwapStart:
    """Whole counts of every table, and the search for the rest."""

    preparation: Preparation
    counts: tuple[Counts, ...]
    search: SwapSearch
    notes: tuple[str, ...]

    @classmethod
    def of(cls, preparation: Preparation) -> SwapStart:
        """Find the counts; targets that could not be built in are left to the search."""
        counts = tuple(counts_of(component, preparation.n) for component in preparation.components)
        soft = frozenset(target for part in counts for target in part.soft)
        ties = Ties.of(preparation.codebook, preparation.conditions, soft)
        left = [
            bound
            for bound in preparation.bounds
            if bound.weight > 0
            and not (isinstance(bound, BoundTable) and bound.exact and bound.title not in soft)
        ]
        notes = [note for part in counts for note in part.notes]
        notes += [
            f"The tables are too entangled to be built in together: '{name}' is searched for."
            for name in sorted(soft)
        ]
        search = SwapSearch(preparation.codebook, Layout.of(left), ties)
        return cls(preparation, counts, search, tuple(notes))

    def file(self, random: np.random.Generator) -> tuple[Floats, list[str]]:
        """Put a starting file together, and name the terms that have too few records in it."""
        preparation = self.preparation
        file = started(preparation.codebook, self.counts, preparation.bounds, preparation.n, random=random)
        floors = Floors(preparation.codebook, preparation.floors, self.search.ties)
        return file, floors.lift(file, random)


def _margin_notes(codebook: Codebook) -> list[str]:
    notes = []
    for variable in codebook:
        if not variable.is_categorical or not variable.shares:
            continue
        shares, published = variable.level_shares()
        missing = int((~published).sum())
        if missing:
            rest = float(shares[~published].sum())
            notes.append(
                f"The codebook gives no share for {missing} of the levels of '{variable.name}'; "
                f"what is missing to one ({rest:.4f}) was assigned there."
            )
    return notes
