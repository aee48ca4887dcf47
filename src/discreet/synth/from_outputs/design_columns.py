"""Columns of a design: products of simple functions of one variable each.

Everything a published figure is computed from is a column: the constant, AGE in years, the dummy of a level, a cell
of a table, the base of a filter. A file is a matrix with one row a record, holding the number or the position of
the level. The same columns are evaluated on whole files here and record by record in the compiled search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.from_outputs.codebook import Codebook, Variable

VALUE, LOOKUP, BETWEEN, LOG, POWER = range(5)
INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class Factor:
    """A function of one variable: its value, a number by level, an indicator of an interval, a log or a power."""

    variable: int
    kind: int
    low: float = 0.0
    high: float = 0.0
    table: tuple[float, ...] = ()

    def of(self, file: Floats) -> Floats:
        """Evaluate it for every record."""
        values: Floats = file[:, self.variable]
        if self.kind == LOOKUP:
            return np.array(self.table)[values.astype(np.int64)]
        if self.kind == BETWEEN:
            return ((values >= self.low) & (values <= self.high)).astype(np.float64)
        if self.kind == LOG:
            return np.log(values)
        return values**self.low if self.kind == POWER else values


Column = tuple[Factor, ...]


def evaluated(column: Column, file: Floats) -> Floats:
    """Return the product of the factors for every record."""
    product = np.ones(len(file))
    for factor in column:
        product *= factor.of(file)
    return product


def design(columns: Sequence[Column], file: Floats) -> Floats:
    """Return the matrix of several columns."""
    matrix = np.empty((len(file), len(columns)), order="F")
    for place, column in enumerate(columns):
        matrix[:, place] = evaluated(column, file)
    return matrix


def level_column(codebook: Codebook, name: str, positions: Sequence[int]) -> Factor:
    """Return the indicator of some levels."""
    variable = codebook[name]
    table = [0.0] * len(variable.levels)
    for place in positions:
        table[place] = 1.0
    return Factor(codebook.index(name), LOOKUP, table=tuple(table))


def number_column(codebook: Codebook, name: str) -> Factor:
    """Return the variable as a number; levels that are numbers count as such."""
    variable = codebook[name]
    if variable.is_number:
        return Factor(codebook.index(name), VALUE)
    return Factor(codebook.index(name), LOOKUP, table=tuple(variable.level_numbers()))


def filter_columns(codebook: Codebook, where: Mapping[str, Any]) -> Column:
    """Return the base of a figure: by variable a level, a list of levels, or ``{"from": …, "to": …}``."""
    factors = []
    for name, wanted in where.items():
        variable = codebook[name]
        if variable.is_number:
            low, high = _interval(variable, wanted)
            factors.append(Factor(codebook.index(name), BETWEEN, low, high))
            continue
        values = wanted if isinstance(wanted, list | tuple) else [wanted]
        factors.append(level_column(codebook, name, [variable.position(value) for value in values]))
    return tuple(factors)


def term_column(codebook: Codebook, term: str) -> Column:
    """Read a term of a model: ``AGE``, ``AGE^2``, ``log(PAY)``, ``SEX[2]`` or a product such as ``AGE:SEX[2]``."""
    if term == INTERCEPT:
        return ()
    return tuple(_factor(codebook, part.strip(), term) for part in _split(term))


def dummies_in(term: str) -> list[tuple[str, str]]:
    """Name the variables and levels in brackets of a term."""
    found = [re.fullmatch(r"(.+?)\[(.*)\]", part.strip()) for part in _split(term)]
    return [(match[1], match[2]) for match in found if match]


class Columns(NamedTuple):
    """Columns laid out flat for compiled code: the factors of column c stand at ``start[c]`` to ``start[c + 1]``."""

    start: Integers
    variable: Integers
    kind: Integers
    low: Floats
    high: Floats
    offset: Integers
    table: Floats

    @classmethod
    def laid_out(cls, columns: Sequence[Column]) -> Columns:
        """Lay out the columns."""
        factors = [factor for column in columns for factor in column]
        sizes = [len(factor.table) for factor in factors]
        return cls(
            np.concatenate([[0], np.cumsum([len(column) for column in columns])]).astype(np.int64),
            np.array([factor.variable for factor in factors], dtype=np.int64),
            np.array([factor.kind for factor in factors], dtype=np.int64),
            np.array([factor.low for factor in factors], dtype=np.float64),
            np.array([factor.high for factor in factors], dtype=np.float64),
            np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64),
            np.array([entry for factor in factors for entry in factor.table] or [0.0], dtype=np.float64),
        )


def _split(term: str) -> list[str]:
    """Split at colons outside brackets: a level may hold one."""
    return re.split(r":(?![^\[]*\])", term)


def _factor(codebook: Codebook, part: str, term: str) -> Factor:
    if part in codebook.names:
        return number_column(codebook, part)
    if match := re.fullmatch(r"(.+?)\[(.*)\]", part):
        variable = codebook[match[1]]
        if not variable.is_categorical:
            raise ParameterError(f"Term '{term}': '{variable.name}' has no levels, so it takes no brackets.")
        return level_column(codebook, variable.name, [variable.position(match[2])])
    if match := re.fullmatch(r"log\((.+)\)", part):
        return _logarithm(codebook, match[1].strip(), term)
    if match := re.fullmatch(r"(.+?)\^(\d+)", part):
        name = match[1].strip()
        if codebook[name].is_number:
            return Factor(codebook.index(name), POWER, float(match[2]))
        numbers = codebook[name].level_numbers() ** float(match[2])
        return Factor(codebook.index(name), LOOKUP, table=tuple(numbers))
    codebook.index(part)
    raise AssertionError("index() refuses a name that is not in the codebook")


def _logarithm(codebook: Codebook, name: str, term: str) -> Factor:
    variable = codebook[name]
    numbers = variable.level_numbers() if variable.is_categorical else np.array([variable.low])
    if (numbers <= 0).any():
        raise ParameterError(
            f"Term '{term}': '{name}' can be zero or less, which has no logarithm. Mend its range."
        )
    if variable.is_number:
        return Factor(codebook.index(name), LOG)
    return Factor(codebook.index(name), LOOKUP, table=tuple(np.log(numbers)))


def _interval(variable: Variable, wanted: Any) -> tuple[float, float]:
    if isinstance(wanted, Mapping) and wanted and set(wanted) <= {"from", "to"}:
        return float(wanted.get("from", variable.low)), float(wanted.get("to", variable.high))
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return float(wanted), float(wanted)
    raise ParameterError(
        f"A filter on the number '{variable.name}' is written {{'from': …, 'to': …}} (both ends count), "
        "or as one value."
    )
