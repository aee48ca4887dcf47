"""Surveys of households: what they say of a population, and samples drawn from one by a design.

Members, size, stratum and weight are checked before anything is drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata, require_microdata
from discreet.numerics.alias_tables import drawn_places
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins
from discreet.synth.column_forms import positive_weights
from discreet.synth.saved_models import stored


@dataclass(frozen=True, eq=False)
class SurveyHouseholds:
    """A survey, one household after the other.

    Attributes
    ----------
    frame
        The records, members of a household together and in the order of the file.
    first
        Where each household begins, and at the end the number of records.
    stratum, strata
        The stratum of each household, and the values of all strata.
    weight
        Of each household.
    """

    frame: pl.DataFrame
    first: Integers
    stratum: Integers
    strata: pl.DataFrame
    weight: Floats

    @property
    def size(self) -> Integers:
        """Number of members of each household."""
        return np.diff(self.first)

    @classmethod
    def of(
        cls, data: Microdata, *, different_weights: Literal["refuse", "mean"] = "refuse"
    ) -> SurveyHouseholds:
        """Read the households off the roles of the data."""
        require_microdata(data)
        unit, weight, strata = data.roles.household, data.roles.weight, list(data.roles.strata)
        if unit is None:
            raise ParameterError("Say which records belong together: the role household is not set.")
        whole = engine.collect(data)
        if not whole.height:
            raise ParameterError("There are no records to learn from.")
        if whole[unit].null_count():
            raise ColumnError(
                f"The household '{unit}' is missing in {whole[unit].null_count():,} records. Fill it in or remove them."
            )
        number = whole[unit].rename("u").rank("dense").cast(pl.Int64).to_numpy()
        order = np.argsort(number, kind="stable")
        frame, number = whole[order], number[order]
        starts = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
        first = np.concatenate([starts, [len(number)]])
        weights = np.ones(frame.height)
        if weight is not None:
            weights = positive_weights(frame[weight], "Correct or remove them.")
        of_household = np.add.reduceat(weights, starts) / np.diff(first)
        differ = int(
            (np.abs(np.maximum.reduceat(weights, starts) - of_household) > 1e-6 * of_household).sum()
        )
        if differ and different_weights == "refuse":
            raise ColumnError(
                f"The weight '{weight}' differs between members of {differ:,} households. Correct it, or take the mean "
                "of each with different_weights='mean'."
            )
        codes = np.zeros(len(starts), dtype=np.int64)
        values = pl.DataFrame()
        if strata:
            table = frame.select(strata)
            ranks = table.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
            low, high = np.minimum.reduceat(ranks, starts), np.maximum.reduceat(ranks, starts)
            if (low != high).any():
                raise ColumnError(
                    f"{int((low != high).sum()):,} households are in more than one stratum ({', '.join(strata)}). "
                    "Every household needs one stratum: correct them, or name other strata."
                )
            codes = low
            values = table[starts][np.unique(codes, return_index=True)[1]]
        return cls(frame, first, codes, values, of_household)

    def members(self, households: Integers) -> Integers:
        """Return the places of all members of some households, household after household."""
        sizes = self.size[households]
        begin = np.repeat(self.first[households], sizes)
        upto = np.cumsum(sizes)
        return np.asarray(begin + np.arange(len(begin)) - np.repeat(upto - sizes, sizes))


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Return the smallest values up to which at least these shares of the weight lie.

    Examples
    --------
    >>> weighted_quantiles(np.array([5.0, 1.0, 3.0]), np.array([2.0, 1.0, 1.0]), np.array([0.25, 0.5, 0.75])).tolist()
    [1.0, 3.0, 5.0]
    """
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    at = np.searchsorted(upto / upto[-1], shares - 1e-12, side="left")
    return np.asarray(values[order][np.minimum(at, len(values) - 1)])


# Which households a population has: how many of each size in each stratum, and whose members they are copied from.


@stored("household-cell")
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
        donors.append(cell.donors[drawn_places(np.cumsum(cell.chances), number, rng)])
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


# Samples of households drawn from a population by a design, and weights that are raked to known totals.


@dataclass(frozen=True)
@typed_parameters
class SurveyDesign:
    """How is a sample of households drawn from a population?

    Also known as: pseudo-likelihood synthesis; survey weights; weighted synthesis.

    Parameters
    ----------
    households
        Number of households of the sample.
    allocation
        ``"proportional"`` to the households of each stratum, or ``"equal"`` numbers in all strata.
    weight
        What the column of design weights is called.

    Examples
    --------
    >>> people = pl.DataFrame({"home": [1, 1, 2, 3, 3, 4], "area": ["a", "a", "a", "b", "b", "b"]})
    >>> sample = SurveyDesign(2, "equal").draw(Microdata(people, household="home", strata="area"), seed=1)
    >>> sample.frame["design_weight"].unique().to_list()
    [2.0]
    """

    households: Annotated[int, AtLeast(1)]
    allocation: Literal["proportional", "equal"] = "proportional"
    weight: str = "design_weight"

    def draw(self, population: Microdata, *, seed: Seed = None) -> Microdata:
        """Draw households without replacement within strata; all members come along, with the design weight."""
        survey = SurveyHouseholds.of(population.with_roles(weight=None))
        rng = generator(seed, "design")
        sizes = np.bincount(survey.stratum)
        shares = (
            sizes / sizes.sum() if self.allocation == "proportional" else np.full(len(sizes), 1 / len(sizes))
        )
        wanted = np.minimum(np.maximum(np.round(self.households * shares).astype(np.int64), 1), sizes)
        chosen, weights = [], []
        for g, number in enumerate(wanted):
            pool = np.flatnonzero(survey.stratum == g)
            own = np.sort(rng.permutation(pool)[:number])
            chosen.append(own)
            weights.append(np.full(len(own), len(pool) / max(len(own), 1)))
        homes = np.concatenate(chosen)
        weight = np.repeat(np.concatenate(weights), survey.size[homes])
        frame = survey.frame[survey.members(homes)].with_columns(pl.Series(self.weight, weight))
        return population.with_frame(engine.in_kind(population, frame)).with_roles(weight=self.weight)


def rake(
    data: Microdata,
    margins: Mapping[str, Mapping[Any, float]] | Sequence[tuple[Sequence[str], Mapping[Any, float]]],
    *,
    tolerance: float = 1e-6,
    rounds: int = 1_000,
) -> Floats:
    """Which weights add up to known totals and stay nearest to those of the survey?

    Also known as: raking; iterative proportional fitting; IPF.

    Parameters
    ----------
    data
        The survey, with the role ``weight`` (or else all weights are 1).
    margins
        ``{column: {level: total}}``; or pairs of several columns and ``{(level, level): total}``.
    tolerance, rounds
        How far a total may be off, as a share of all, and when to give up.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "f", "m"]}))
    >>> rake(people, {"sex": {"f": 10, "m": 20}}).tolist()
    [5.0, 5.0, 20.0]
    """
    frame = engine.collect(data)
    start = np.ones(frame.height)
    if data.roles.weight is not None:
        start = frame[data.roles.weight].cast(pl.Float64).to_numpy()
        if not (start > 0).all():
            raise ColumnError(f"The weight '{data.roles.weight}' must be above zero in every record.")
    listed = (
        [((name,), own) for name, own in margins.items()] if isinstance(margins, Mapping) else list(margins)
    )
    made: list[GroupMargin] = []
    total = 0.0
    for names, levels in listed:
        for name in names:
            if name not in frame.columns:
                raise ColumnError(unknown_name(name, frame.columns))
        keys = [key if isinstance(key, tuple) else (key,) for key in levels]
        rows = frame.select(names).rows()
        place = {tuple(str(part) for part in key): at for at, key in enumerate(keys)}
        groups = pl.Series([place.get(tuple(str(part) for part in row), -1) for row in rows], dtype=pl.Int64)
        if (groups == -1).any():
            raise ParameterError(
                f"{int((groups == -1).sum()):,} records have a level of {', '.join(names)} without a total."
            )
        empty = len(keys) - groups.n_unique()
        if empty:
            raise ParameterError(f"{empty} levels of {', '.join(names)} have a total and no record.")
        wanted = np.array([float(value) for value in levels.values()])
        total = max(total, float(wanted.sum()))
        made.append(GroupMargin(groups.to_numpy(), wanted))
    found = fit_margins(start, made, tolerance=tolerance * total, rounds=rounds)
    if not found.settled:
        raise ParameterError("The totals contradict each other: no weights add up to all of them.")
    return found.cells
