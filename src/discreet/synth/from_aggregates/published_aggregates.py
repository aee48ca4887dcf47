"""Read published aggregates: which number is known, for which unit and variable, and from where.

Every number that enters the synthesis keeps its provenance: published, derived from published numbers, taken from the
real microdata, an external guess, assumed, or random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers, Objects
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.synth.column_forms import decimals_of

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
    for name in unit:
        if name not in table.columns:
            raise ColumnError(f"{unknown_name(name, table.columns)} It was named under 'unit'.")
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
