"""Fill the gaps of the aggregates from what the scenario allows, and remember where each number came from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.wording import type_name
from discreet.synth.from_aggregates.latent_correlation import NATURES, UnitMargin
from discreet.synth.from_aggregates.published_aggregates import (
    ASSUMED,
    BETWEEN,
    DERIVED,
    EXTERNAL,
    PUBLISHED,
    RANDOM,
    REAL,
    Aggregates,
    Figures,
    consistent,
    derived_records,
)

if TYPE_CHECKING:
    from discreet.synth.from_aggregates.macro_to_micro import MacroToMicro


_PLAIN_NAMES: Mapping[str, str] = {
    "normal": "norm",
    "lognormal": "lognorm",
    "exponential": "expon",
    "truncated normal": "truncnorm",
    "negative binomial": "nbinom",
}
_CANDIDATES = ("lognorm", "gamma", "norm")


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Everything the synthesis knows of every unit and variable, with its provenance."""

    records: Integers
    record_sources: tuple[str, ...]
    totals: Figures
    means: Figures
    sds: Figures
    zeros: Figures
    families: tuple[str, ...]
    family_sources: tuple[str, ...]
    margins: tuple[tuple[UnitMargin, ...], ...]
    notes: tuple[str, ...]

    def rows(self, aggregates: Aggregates) -> list[dict[str, Any]]:
        """List the parameters, a row a number."""
        labels = unit_labels(aggregates)
        rows: list[dict[str, Any]] = [
            {
                "unit": label,
                "variable": None,
                "family": None,
                "parameter": "records",
                "value": float(n),
                "provenance": source,
            }
            for label, n, source in zip(labels, self.records, self.record_sources, strict=True)
        ]
        for parameter in ("totals", "means", "sds", "zeros"):
            figures: Figures = getattr(self, parameter)
            for u, label in enumerate(labels):
                for d, name in enumerate(aggregates.variables):
                    if not np.isnan(figures.values[u, d]):
                        rows.append(
                            {
                                "unit": label,
                                "variable": name,
                                "family": self.margins[u][d].family,
                                "parameter": parameter.removesuffix("s")
                                if parameter != "zeros"
                                else parameter,
                                "value": float(figures.values[u, d]),
                                "provenance": figures.sources[u, d],
                            }
                        )
        for d, name in enumerate(aggregates.variables):
            rows.append(
                {
                    "unit": None,
                    "variable": name,
                    "family": self.families[d],
                    "parameter": "family",
                    "value": None,
                    "provenance": self.family_sources[d],
                }
            )
        return rows


def unit_labels(aggregates: Aggregates) -> list[str]:
    """Write the units as texts."""
    return [" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in aggregates.keys]


def gathered(
    options: MacroToMicro,
    aggregates: Aggregates,
    real: pl.DataFrame | None,
    sds_of_covariance: Floats | None,
    rng: np.random.Generator,
) -> Knowledge:
    """Bring together what is published, given, real, assumed and random."""
    given_source = EXTERNAL if options.scenario == "external" else PUBLISHED
    notes: list[str] = []
    known_real = _real_figures(aggregates, real) if options.scenario == "internal" else None
    records, record_sources = _records(options, aggregates, known_real, rng)
    # What is derived by means of a guessed or real number of records is no longer derived from published ones.
    derived = np.array(
        [DERIVED if source in (PUBLISHED, DERIVED) else source for source in record_sources], dtype=object
    )[:, None]
    statistics = aggregates.statistics
    if options.scenario is None:
        consistent(aggregates, records)
    means = statistics["mean"].filled(aggregates.spread_out(options.means, "means"), given_source)
    means = means.filled(statistics["total"].values / records[:, None], derived)
    gone = np.argwhere(np.isnan(means.values))
    if len(gone):
        raise ParameterError(
            f"There is neither total nor mean for {aggregates.place(int(gone[0][0]), int(gone[0][1]))}. Give it in the "
            "aggregates or with means=."
        )
    totals = statistics["total"].filled(means.values * records[:, None], derived)
    sds = statistics["sd"].filled(aggregates.spread_out(options.sds, "sds"), given_source)
    if sds_of_covariance is not None:
        sds = sds.filled(np.broadcast_to(sds_of_covariance, aggregates.shape).astype(float), given_source)
    if known_real is not None:
        sds = sds.filled(known_real["sds"], REAL, over=True)
    sds = sds.filled(np.where(means.values == 0, 0.0, np.nan), DERIVED)
    negative = np.argwhere(sds.values < 0)
    if len(negative):
        place = aggregates.place(int(negative[0][0]), int(negative[0][1]))
        raise ParameterError(f"The standard deviation of {place} is negative. Correct it.")
    families, sources = _families(options, aggregates, means.values)
    sds = _with_assumed(options, aggregates, means=means.values, sds=sds, families=families, notes=notes)
    zeros = statistics["zeros"].filled(aggregates.spread_out(options.zeros, "zeros"), given_source)
    margins = _margins(
        options,
        aggregates,
        means=means.values,
        sds=sds.values,
        zeros=zeros.values,
        families=families,
    )
    return Knowledge(
        records, record_sources, totals, means, sds, zeros, families, sources, margins, tuple(notes)
    )


def _records(
    options: MacroToMicro, aggregates: Aggregates, real: Mapping[str, Floats] | None, rng: np.random.Generator
) -> tuple[Integers, tuple[str, ...]]:
    asked = options.records
    units = len(aggregates.keys)
    if options.scenario == "none":
        wrong = "In scenario 'none' records must be a range, e.g. records=(20, 200)."
        ends = tuple(asked) if isinstance(asked, tuple | list) else ()
        if len(ends) != 2 or not all(isinstance(end, int | np.integer) for end in ends):
            raise ParameterError(wrong)
        low, high = int(ends[0]), int(ends[1])
        if not 1 <= low <= high:
            raise ParameterError(wrong)
        return rng.integers(low, high, size=units, endpoint=True), (RANDOM,) * units
    if real is not None:
        return real["records"].astype(np.int64), (REAL,) * units
    sources = (EXTERNAL if options.scenario == "external" else PUBLISHED,) * units
    if isinstance(asked, Mapping):
        if any(key not in aggregates.keys for key in asked):
            raise ParameterError("'records' names a unit that is not in the aggregates.")
        found = np.array([asked.get(key, np.nan) for key in aggregates.keys], dtype=float)
    elif isinstance(asked, str):
        gone = np.isnan(aggregates.records)
        found = np.where(gone, derived_records(aggregates), aggregates.records)
        sources = tuple(DERIVED if unknown else PUBLISHED for unknown in gone)
    elif isinstance(asked, int) and not isinstance(asked, bool):
        found = np.full(units, float(asked))
    else:
        raise ParameterError(
            "records must be a column of the aggregates, a number, or a number for each unit."
        )
    if np.isnan(found).any():
        raise ParameterError(
            f"The number of records of {int(np.isnan(found).sum())} units is not known and does not follow from totals "
            "and means. Give it with records=."
        )
    if (found < 1).any() or (found != np.round(found)).any():
        raise ParameterError("The number of records of a unit must be a whole number of at least 1.")
    return found.astype(np.int64), sources


def _real_figures(aggregates: Aggregates, real: pl.DataFrame | None) -> dict[str, Floats]:
    if real is None:
        raise ParameterError(
            "Scenario 'internal' takes numbers from the real file: give it with fit(…, microdata=…)."
        )
    units = aggregates.units.columns
    for name in (*units, *aggregates.variables):
        if name not in real.columns:
            raise ColumnError(
                f"{unknown_name(name, real.columns)} The microdata of scenario 'internal' must have it."
            )
        if name in aggregates.variables and not real.schema[name].is_numeric():
            raise ColumnError(f"Column '{name}' of the microdata is not numeric.")
        if name in units and real.schema[name] != aggregates.units.schema[name]:
            raise ColumnError(
                f"Column '{name}' is {type_name(aggregates.units.schema[name])} in the aggregates and "
                f"{type_name(real.schema[name])} in the "
                "microdata. Make them the same."
            )
    totals = [pl.len().alias("records"), *(pl.col(name).std().alias(name) for name in aggregates.variables)]
    counted = real.group_by(units, maintain_order=True).agg(totals) if units else real.select(totals)
    if units:
        counted = aggregates.units.join(
            counted, on=units, how="left", nulls_equal=True, maintain_order="left"
        )
    if counted["records"].null_count():
        raise ParameterError("A unit of the aggregates has no record in the microdata.")
    sds = counted.select(
        pl.col(name).cast(pl.Float64).fill_null(float("nan")) for name in aggregates.variables
    )
    return {"records": counted["records"].to_numpy().astype(float), "sds": sds.to_numpy()}


def _families(
    options: MacroToMicro, aggregates: Aggregates, means: Floats
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    for name in options.marginals:
        if name not in (*aggregates.variables, *aggregates.computed):
            raise ColumnError(f"{unknown_name(name, aggregates.variables)} It was named under 'marginals'.")
    chosen, sources = [], []
    for d, name in enumerate(aggregates.variables):
        asked = options.marginals.get(name)
        if asked is None:
            positive = bool((means[:, d] >= 0).all()) and options.scale in ("none", "log")
            chosen.append("lognorm" if positive else "norm")
            sources.append(ASSUMED)
            continue
        candidates = _CANDIDATES if asked == "auto" else (asked,) if isinstance(asked, str) else tuple(asked)
        candidates = tuple(_PLAIN_NAMES.get(candidate, candidate) for candidate in candidates)
        for candidate in candidates:
            if candidate not in NATURES:
                raise ParameterError(
                    f"{unknown_name(candidate, NATURES, what='family')} It was named for '{name}'."
                )
        chosen.append(candidates[0] if len(candidates) == 1 else _by_aic(candidates, means[:, d], name))
        sources.append("given" if len(candidates) == 1 else BETWEEN)
    return tuple(chosen), tuple(sources)


def _by_aic(candidates: Sequence[str], means: Floats, name: str) -> str:
    from discreet.synth.distributions.families import fit_family

    if len(means) < 3:
        raise ParameterError(
            f"A family for '{name}' cannot be chosen from {len(means)} units. Name one family."
        )
    return fit_family(means, candidates).family


def _with_assumed(
    options: MacroToMicro,
    aggregates: Aggregates,
    *,
    means: Floats,
    sds: Figures,
    families: Sequence[str],
    notes: list[str],
) -> Figures:
    # The mean of a flag, of a Poisson count or of an exponential amount says its sd.
    implied = np.full(aggregates.shape, np.nan)
    for d, family in enumerate(families):
        if family == "bernoulli":
            implied[:, d] = np.sqrt(np.maximum(means[:, d] * (1 - means[:, d]), 0.0))
        elif family in ("poisson", "expon"):
            implied[:, d] = np.sqrt(np.abs(means[:, d])) if family == "poisson" else np.abs(means[:, d])
    sds = sds.filled(implied, "implied by the family", over=True)
    gone = np.isnan(sds.values)
    some_gone = np.asarray(gone.any(axis=0))
    if not gone.any():
        return sds
    names = ", ".join(repr(name) for name, some in zip(aggregates.variables, some_gone, strict=True) if some)
    if options.cv is None:
        raise ParameterError(
            f"No standard deviation is known for {names}. Give it in the aggregates or with sds=, or assume one "
            "with cv= (sd over mean)."
        )
    message = (
        f"The spread of {names} was assumed: sd = {options.cv:g} × mean. The result says nothing about it."
    )
    notes.append(message)
    warnings.warn(message, DiscreetWarning, stacklevel=4)
    return sds.filled(options.cv * np.abs(means), ASSUMED)


def _margins(
    options: MacroToMicro,
    aggregates: Aggregates,
    *,
    means: Floats,
    sds: Floats,
    zeros: Floats,
    families: Sequence[str],
) -> tuple[tuple[UnitMargin, ...], ...]:
    origins, spans = _scaling(options.scale, means)
    margins = []
    for u in range(len(aggregates.keys)):
        row = []
        for d, family in enumerate(families):
            zero = 0.0 if np.isnan(zeros[u, d]) else float(zeros[u, d])
            try:
                row.append(
                    UnitMargin.of(
                        family,
                        float(means[u, d]),
                        float(sds[u, d]),
                        zero=zero,
                        origin=float(origins[d]),
                        unit=float(spans[d]),
                    )
                )
            except ParameterError as error:
                raise ParameterError(f"For {aggregates.place(u, d)}: {error}") from error
        margins.append(tuple(row))
    return tuple(margins)


def _scaling(scale: str, means: Floats) -> tuple[Floats, Floats]:
    """Give the origin and unit of each variable; the margin is fitted to scaled numbers and scaled back."""
    none = np.zeros(means.shape[1]), np.ones(means.shape[1])
    if scale in ("none", "log"):
        return none
    origin = means.min(axis=0) if scale == "minmax" else means.mean(axis=0)
    span = np.ptp(means, axis=0) if scale == "minmax" else means.std(axis=0)
    return origin, np.where(span > 0, span, 1.0)
