"""Samples that a study draws itself from a population that is known, by a design, anew in every repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.synth import SurveyDesign, rake

_OF_DESIGN = ("households", "allocation", "weight")
KNOWN = (*_OF_DESIGN, "rake")


def checked_design(design: Mapping[str, Any], where: str) -> None:
    """Refuse a design that cannot be drawn by."""
    for name in design:
        if name not in KNOWN:
            raise ParameterError(f"{where}: {unknown_name(name, KNOWN, what='entry of design')}")
    if "households" not in design:
        raise ParameterError(f"{where}: design needs households = …, the number of households of a sample.")
    _design(design)


def _design(design: Mapping[str, Any]) -> SurveyDesign:
    return SurveyDesign(**{name: value for name, value in design.items() if name in _OF_DESIGN})


def drawn_sample(
    population: Microdata, design: Mapping[str, Any], seed: int, where: str
) -> tuple[Microdata, Microdata]:
    """Draw a sample by the design, and another of the households that are not in it."""
    home = population.roles.household
    if home is None:
        raise ParameterError(f"{where}: a design draws households; name the role household.")
    plan = _design(design)
    sample = plan.draw(population, seed=seed)
    whole = engine.whole_frame(population)
    seen = engine.whole_frame(sample)[home].unique()
    rest = whole.filter(~pl.col(home).is_in(seen.implode()))
    if not rest.height:
        raise InputError(f"{where}: the sample takes every household, so that nobody is left for a hold-out.")
    others = plan.draw(population.with_frame(rest), seed=seed)
    # Both stand for the whole population, also the second, which is drawn from what the first has left.
    return tuple(_raked(own, population, design, where) for own in (sample, others))  # type: ignore[return-value]


def _raked(sample: Microdata, population: Microdata, design: Mapping[str, Any], where: str) -> Microdata:
    """Rake the weights of a sample to the population's totals of some columns crossed."""
    names = design.get("rake") or ()
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        return sample
    for name in names:
        if name not in population.columns:
            raise ColumnError(f"{where}: {unknown_name(name, population.columns)} It was named under rake.")
    frame, weight = engine.whole_frame(sample), str(sample.roles.weight)
    real = engine.whole_frame(population)
    cells = frame.select(pl.col(name).cast(pl.String) for name in names).unique()
    totals = real.group_by([pl.col(name).cast(pl.String) for name in names]).agg(pl.len().alias("·many"))
    totals = totals.join(cells, on=names, how="semi", nulls_equal=True)
    margins = {tuple(str(part) for part in row[:-1]): float(row[-1]) for row in totals.iter_rows()}
    weights = rake(sample, [(names, margins)])
    return sample.with_frame(frame.with_columns(pl.Series(weight, weights)))
