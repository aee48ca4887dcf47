"""Which households a population has: how many of each size in each stratum, and whose members they are copied from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.population.survey_households import SurveyHouseholds


@dataclass(frozen=True, eq=False)
class Cell:
    """Households of one size in one stratum.

    Attributes
    ----------
    size, stratum
        Of the households.
    number
        How many the population has.
    donors, chances
        Households of the survey that they are copied from, and how likely each is.
    merged
        Whether too few donors were there, so that those of neighbors help out.
    """

    size: int
    stratum: int
    number: int
    donors: Integers
    chances: Floats
    merged: bool

    def state(self) -> dict[str, Any]:
        """Return the cell for a model file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def cells_of(survey: SurveyHouseholds, *, min_donors: int, method: str, rng: Any) -> list[Cell]:
    """Divide the households by size and stratum; sizes are expanded by the weights (Horvitz and Thompson).

    A cell with fewer than ``min_donors`` households would copy a family of the survey again and again. It borrows
    donors of the same size from other strata, then of the nearest sizes.
    """
    size, stratum, weight = survey.size, survey.stratum, survey.weight
    if method == "multinom":
        pairs, numbers = _modelled_numbers(survey, rng)
        return [
            _cell(survey, int(g), int(s), int(number), min_donors)
            for (g, s), number in zip(pairs, numbers, strict=True)
            if number
        ]
    pairs = np.unique(np.column_stack([stratum, size]), axis=0)
    totals = [float(weight[(stratum == g) & (size == s)].sum()) for g, s in pairs]
    numbers = np.round(totals).astype(np.int64)
    if method == "distribution":
        numbers = np.empty(len(pairs), dtype=np.int64)
        for g in np.unique(stratum):
            own = np.flatnonzero(pairs[:, 0] == g)
            shares = np.array(totals)[own] / np.array(totals)[own].sum()
            numbers[own] = rng.multinomial(round(float(np.array(totals)[own].sum())), shares)
    return [
        _cell(survey, int(g), int(s), int(number), min_donors)
        for (g, s), number in zip(pairs, numbers, strict=True)
    ]


def _cell(survey: SurveyHouseholds, stratum: int, size: int, number: int, min_donors: int) -> Cell:
    """Find the donors of a cell: its own families, or those of the same size elsewhere, or of the nearest sizes."""
    donors = np.flatnonzero((survey.stratum == stratum) & (survey.size == size))
    merged = len(donors) < min_donors
    if merged:
        donors = np.flatnonzero(survey.size == size)
    reach = 0
    while len(donors) < min_donors and reach < int(survey.size.max()):
        reach += 1
        donors = np.flatnonzero(np.abs(survey.size - size) <= reach)
    chances = survey.weight[donors] / survey.weight[donors].sum()
    return Cell(size, stratum, number, donors, chances, merged)


def _modelled_numbers(survey: SurveyHouseholds, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Draw numbers of households from a multinomial regression of the size on the stratum.

    The regression is shrunk a little, so that a size that the sample happens to lack in a stratum can occur there.
    """
    from sklearn.linear_model import LogisticRegression

    strata, sizes = np.unique(survey.stratum), np.unique(survey.size)
    if len(strata) < 2 or len(sizes) < 2:
        raise ParameterError(
            "structure_method='multinom' explains the size of a household by its stratum, and there is only one "
            f"{'stratum' if len(strata) < 2 else 'size'}. Use 'direct'."
        )
    own = (survey.stratum[:, None] == strata).astype(np.float64)
    weights = survey.weight / survey.weight.mean()
    model = LogisticRegression(C=10.0, max_iter=1_000).fit(own, survey.size, sample_weight=weights)
    chances = model.predict_proba(np.eye(len(strata)))
    totals = [round(float(survey.weight[survey.stratum == g].sum())) for g in strata]
    numbers = np.concatenate([rng.multinomial(n, p) for n, p in zip(totals, chances, strict=True)])
    pairs = np.column_stack([np.repeat(strata, len(sizes)), np.tile(model.classes_, len(strata))])
    return pairs, numbers


def drawn_households(
    cells: Sequence[Cell], scale: float, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Draw donors for all households of the population; returns the donor and the cell of each."""
    donors, places = [], []
    for place, cell in enumerate(cells):
        wanted = cell.number * scale
        number = int(np.floor(wanted + (rng.random() if scale != 1.0 else 0.5)))
        upto = np.cumsum(cell.chances)
        at = np.searchsorted(upto, rng.random(number) * upto[-1], side="right")
        donors.append(cell.donors[np.minimum(at, len(cell.donors) - 1)])
        places.append(np.full(number, place))
    return np.concatenate(donors), np.concatenate(places)


def donor_report(cells: Sequence[Cell], donors: Integers) -> dict[str, int]:
    """Say how often the most copied family was copied, and how many cells had too few families of their own."""
    often = np.bincount(donors) if len(donors) else np.zeros(1, dtype=np.int64)
    return {
        "households": len(donors),
        "most_copies": int(often.max()),
        "merged_cells": sum(cell.merged for cell in cells),
    }


def cells_from(states: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Make the cells again from a model file."""
    return [Cell(**state) for state in states]
