"""Read published aggregates (which number is known, for which unit and variable), and fill their gaps.

Every number that enters the synthesis keeps its provenance: published, derived from published numbers, taken from the
real microdata, an external guess, assumed, or random.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers, Objects
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.core.wording import type_name
from discreet.synth.column_forms import check_named, decimals_of
from discreet.synth.from_aggregates.latent_correlation import NATURES, UnitMargin

if TYPE_CHECKING:
    from discreet.synth.from_aggregates.macro_to_micro import MacroToMicro


Given = float | Mapping[Any, float]

PUBLISHED, DERIVED, REAL = "published", "derived from published", "real microdata"
EXTERNAL, ASSUMED, RANDOM, BETWEEN = "external guess", "assumed", "random", "estimated between units"
STATISTICS = ("total", "mean", "sd", "zeros")


@dataclass(frozen=True, eq=False)
class Figures:
    """Numbers of units and variables, with where each came from; NaN where there is none."""

    values: Floats
    sources: Objects

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Figures:
        """Return a table of unknown numbers."""
        return cls(np.full(shape, np.nan), np.full(shape, "", dtype=object))

    def filled(self, values: Floats, source: str | Objects, *, over: bool = False) -> Figures:
        """Return the table with these numbers where it has none; ``over`` puts them before those it has."""
        take = ~np.isnan(values) & (over | np.isnan(self.values))
        return Figures(np.where(take, values, self.values), np.where(take, source, self.sources))


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published aggregates as they were read.

    Attributes
    ----------
    units
        The labels of the units, a row each; without columns where the whole file is one unit.
    keys
        The same, as a user writes them in a mapping: a value, or a tuple where several columns name a unit.
    variables
        The variables, in the order of the table.
    statistics
        Totals, means, sds and shares of zeros by name.
    records
        Published number of records of each unit; NaN where there is none.
    computed
        Variables that rules compute: numbers given for them are not needed.
    """

    units: pl.DataFrame
    keys: tuple[Any, ...]
    variables: tuple[str, ...]
    statistics: Mapping[str, Figures]
    records: Floats
    computed: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of units and of variables."""
        return len(self.keys), len(self.variables)

    def spread_out(self, given: Mapping[str, Given], what: str) -> Floats:
        """Write numbers given by variable (and unit) as a table; NaN where none was given."""
        table = np.full(self.shape, np.nan)
        for name, number in given.items():
            if name in self.computed:
                continue
            if name not in self.variables:
                raise ColumnError(f"{unknown_name(name, self.variables)} It was named under '{what}'.")
            column = self.variables.index(name)
            if not isinstance(number, Mapping):
                table[:, column] = _number(number, what, name)
                continue
            for key, value in number.items():
                if key not in self.keys:
                    raise ParameterError(f"'{what}' names a unit of '{name}' that is not in the aggregates.")
                table[self.keys.index(key), column] = _number(value, what, name)
        return table

    def place(self, row: int, column: int) -> str:
        """Name a cell for a message."""
        return f"'{self.variables[column]}' in unit {row + 1}"


def read_aggregates(
    table: pl.DataFrame,
    *,
    unit: Sequence[str],
    variables: Sequence[str] | None,
    cells: str,
    records: str | None,
) -> Aggregates:
    """Read a table with a row a unit.

    A column is a variable; ``revenue_total``, ``revenue_mean``, ``revenue_sd`` and ``revenue_zeros`` say what they
    hold, and a plain ``revenue`` holds what ``cells`` says.
    """
    if not table.height:
        raise InputError("The aggregates have no row. Give one for each unit.")
    check_named({"'unit'": unit}, table.columns)
    units = table.select(unit)
    keys = (
        tuple(units.iter_rows()) if len(unit) > 1 else tuple(units.to_series().to_list()) if unit else (None,)
    )
    if not unit and table.height > 1:
        raise ParameterError(
            f"The aggregates have {table.height} rows. Name the column of the units with unit=."
        )
    if len(set(keys)) < len(keys):
        raise ParameterError("A unit stands in two rows of the aggregates. Give one row for each.")
    numeric = [name for name in table.columns if name not in unit and name != records]
    meanings = {name: _meaning(name, variables, cells) for name in numeric}
    found: dict[str, dict[str, str]] = {}
    for name, (stem, statistic) in meanings.items():
        if variables is None or stem in variables:
            if not table.schema[name].is_numeric() and table.schema[name] != pl.Null:
                raise ColumnError(
                    f"Column '{name}' of the aggregates is not numeric. Leave it out or name it as unit."
                )
            found.setdefault(stem, {})[statistic] = name
    names = tuple(found) if variables is None else tuple(variables)
    for name in names:
        if name not in found:
            stems = dict.fromkeys(stem for stem, _ in meanings.values())
            raise ColumnError(f"{unknown_name(name, stems)} It was named under 'variables'.")
    if not names:
        raise ParameterError("The aggregates have no variable. Give a column of totals or means for each.")
    statistics = {
        statistic: Figures.empty((table.height, len(names))).filled(
            np.column_stack([_floats(table, found[name].get(statistic)) for name in names]), PUBLISHED
        )
        for statistic in STATISTICS
    }
    counted = _floats(table, records if records in table.columns else None)
    return Aggregates(units, keys, names, statistics, counted)


def consistent(aggregates: Aggregates, records: Integers) -> None:
    """Refuse totals that are not means times counts, but for rounding, and list where."""
    totals, means = aggregates.statistics["total"].values, aggregates.statistics["mean"].values
    half_total, half_mean = _half_units(totals), _half_units(means)
    gap = np.abs(totals - means * records[:, None])
    allowed = half_total + half_mean * records[:, None] + 1e-9 * np.abs(totals)
    off = np.argwhere(gap > allowed)
    if len(off):
        places = ", ".join(aggregates.place(int(row), int(column)) for row, column in off[:5])
        more = f" and {len(off) - 5} more" if len(off) > 5 else ""
        raise ParameterError(
            f"The total is not the mean times the number of records for {places}{more}. Correct one of them."
        )


def derived_records(aggregates: Aggregates) -> Floats:
    """Find the number of records of a unit from a total and a mean, where both were published."""
    totals, means = aggregates.statistics["total"].values, aggregates.statistics["mean"].values
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(means != 0, totals / means, np.nan)
    known = ~np.isnan(quotients)
    found = np.full(len(quotients), np.nan)
    some = known.any(axis=1)
    found[some] = np.round(np.nanmedian(quotients[some], axis=1))
    return found


def _meaning(name: str, variables: Sequence[str] | None, cells: str) -> tuple[str, str]:
    if variables is not None and name in variables:
        return name, cells
    stem, _, ending = name.rpartition("_")
    return (stem, ending) if stem and ending in STATISTICS else (name, cells)


def _number(value: Any, what: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ParameterError(f"'{what}' of '{name}' must be a number, or a number for each unit.")
    return float(value)


def _floats(table: pl.DataFrame, name: str | None) -> Floats:
    if name is None:
        return np.full(table.height, np.nan)
    return table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)


def _half_units(values: Floats) -> Floats:
    """Half of the last printed digit, by column."""
    halves = []
    for column in values.T:
        known = column[~np.isnan(column)]
        places = decimals_of(known) if len(known) else None
        halves.append(0.0 if places is None else 0.5 * 10.0**-places)
    return np.array(halves)[None, :]


# Fill the gaps of the aggregates from what the scenario allows, and remember where each number came from.
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
        names = ("unit", "variable", "family", "parameter", "value", "provenance")
        rows: list[tuple[Any, ...]] = [
            (label, None, None, "records", float(n), source)
            for label, n, source in zip(labels, self.records, self.record_sources, strict=True)
        ]
        for parameter in ("total", "mean", "sd", "zeros"):
            figures: Figures = getattr(self, parameter if parameter == "zeros" else f"{parameter}s")
            for (u, d), value in np.ndenumerate(figures.values):
                if not np.isnan(value):
                    family, source = self.margins[u][d].family, figures.sources[u, d]
                    rows.append((labels[u], aggregates.variables[d], family, parameter, float(value), source))
        rows += [
            (None, name, family, "family", None, source)
            for name, family, source in zip(
                aggregates.variables, self.families, self.family_sources, strict=True
            )
        ]
        return [dict(zip(names, row, strict=True)) for row in rows]


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
                mean, sd, origin, unit = (
                    float(own) for own in (means[u, d], sds[u, d], origins[d], spans[d])
                )
                row.append(UnitMargin.of(family, mean, sd, zero=zero, origin=origin, unit=unit))
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
