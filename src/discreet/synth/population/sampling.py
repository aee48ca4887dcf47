"""Samples of households drawn from a population by a design, and weights that are raked to known totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins
from discreet.synth.population.survey_households import SurveyHouseholds


@dataclass(frozen=True)
class SurveyDesign:
    """How is a sample of households drawn from a population?

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

    households: int
    allocation: Literal["proportional", "equal"] = "proportional"
    weight: str = "design_weight"

    def __post_init__(self) -> None:
        if self.households < 1:
            raise ParameterError("households must be at least 1.")
        if self.allocation not in ("proportional", "equal"):
            raise ParameterError("allocation must be 'proportional' or 'equal'.")

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
