"""Published figures made ready to compute: levels found, columns built, printed precision known.

A bound target computes its figures from a file (a matrix of numbers and level positions) and says how far they are
from the published ones. NaN stands for a figure that the file cannot give (no records, separation).

A bound model does so by being fitted to the file. Columns of a design are products of simple functions of one
variable each.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.from_outputs.codebook import Codebook, Variable

LossScale = Literal["raw", "se", "precision"]


@dataclass(frozen=True, eq=False)
class Bound(ABC):
    """A target in terms of columns.

    Attributes
    ----------
    title
        Name of the target in the report.
    labels
        One a figure.
    published
        The figures as they were printed.
    halves
        Half the printing unit of each: what rounds to the printed figure.
    scale
        What a difference is multiplied with in the raw loss; one over n turns counts into shares.
    weight
        Weight of the target in the loss.
    base
        Product of indicators of the records that the figures speak of.
    """

    title: str
    labels: tuple[str, ...]
    published: Floats
    halves: Floats
    scale: Floats
    weight: float
    base: Column

    @abstractmethod
    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Compute the figures from a file; ``near`` are those of a similar file, to start from."""

    @abstractmethod
    def spread(self, file: Floats) -> Floats:
        """Return the standard error of each figure, published or implied by the file."""

    def variables(self) -> set[int]:
        """Name the variables that the figures depend on."""
        return {factor.variable for column in self.columns() for factor in column}

    @abstractmethod
    def columns(self) -> list[Column]:
        """Return every column it is computed from."""

    def met(self, achieved: Floats) -> Flags:
        """Say which figures round to the printed ones."""
        slack = self.halves * (1 + 1e-9) + 1e-12
        return np.asarray(np.abs(achieved - self.published) <= slack)

    def loss(self, achieved: Floats, scale: LossScale, penalty: float, spread: Floats | None = None) -> float:
        """Return the mean squared difference, on the raw scale, in standard errors or in half printing units."""
        away = (achieved - self.published) * self.scale
        if scale == "precision":
            away = np.where(self.met(achieved), 0.0, (achieved - self.published) / self.halves)
        elif scale == "se" and spread is not None:
            away = (achieved - self.published) / spread
        squared = np.where(np.isfinite(away), away * away, penalty)
        return float(squared.mean())

    def rows(self, file: Floats) -> Floats:
        """Return the records of the base."""
        if not self.base:
            return file
        return np.asarray(file[evaluated(self.base, file) > 0])


@dataclass(frozen=True, eq=False)
class Form:
    """One cell of a table as a condition on counts.

    Without ``share_of`` the count of ``cell`` is to be within ``half`` of ``value``; with it the count is to be that
    share, within ``half``, of the count of ``share_of``.
    """

    cell: Column
    share_of: Column | None
    value: float
    half: float

    def count_bounds(self, cell: Floats, whole: Floats | None) -> tuple[Floats, Floats, float, float]:
        """Return two rows of weights and the bounds below the first and above the second."""
        if whole is None:
            return cell, cell, self.value - self.half, self.value + self.half
        low, high = max(0.0, self.value - self.half), min(1.0, self.value + self.half)
        return cell - low * whole, cell - high * whole, 0.0, 0.0

    def columns(self) -> list[Column]:
        """Return the columns it counts."""
        return [self.cell] if self.share_of is None else [self.cell, self.share_of]


# Columns of a design: products of simple functions of one variable each.
#
# Everything a published figure is computed from is a column: the constant, AGE in years, the dummy of a level, a cell
# of a table, the base of a filter. A file is a matrix with one row a record, holding the number or the position of
# the level. The same columns are evaluated on whole files here and record by record in the compiled search.
VALUE, LOOKUP, BETWEEN, LOG, POWER = range(5)


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


@dataclass(frozen=True, eq=False)
class BoundTable(Bound):
    """Frequencies or a cross-tabulation.

    ``exact`` where its cells depend on categories alone; ``per`` is n where a proportion is held as a count in n.
    """

    forms: tuple[Form, ...]
    exact: bool
    per: float
    notes: tuple[str, ...] = ()

    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Count the cells."""
        found = np.empty(len(self.forms))
        totals: dict[Column, float] = {}
        for place, form in enumerate(self.forms):
            count = evaluated(form.cell, file).sum() / self.per
            if form.share_of is not None:
                if form.share_of not in totals:
                    totals[form.share_of] = float(evaluated(form.share_of, file).sum())
                whole = totals[form.share_of]
                count = count / whole if whole > 0 else np.nan
            found[place] = count
        return found

    def spread(self, file: Floats) -> Floats:
        """Return the standard error of a share of the file."""
        shares = np.clip(self.published * self.scale, 0.5 / len(file), 1 - 0.5 / len(file))
        return np.asarray(np.sqrt(shares * (1 - shares) / len(file)) / self.scale)

    def columns(self) -> list[Column]:
        """Return the cells and their bases."""
        return [column for form in self.forms for column in form.columns()]


@dataclass(frozen=True, eq=False)
class BoundGroups(Bound):
    """Means or medians of a number by group."""

    groups: tuple[Column, ...]
    outcome: Factor
    median: bool

    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Compute the mean or median of every group; NaN where a group is empty."""
        values = self.outcome.of(file)
        found = np.full(len(self.groups), np.nan)
        for place, group in enumerate(self.groups):
            there = values[evaluated(group, file) > 0]
            if len(there):
                found[place] = np.median(there) if self.median else there.mean()
        return found

    def spread(self, file: Floats) -> Floats:
        """Return the standard error of a mean; that of a median is a quarter larger, as for a normal variable."""
        values = self.outcome.of(file)
        errors = np.full(len(self.groups), np.nan)
        for place, group in enumerate(self.groups):
            there = values[evaluated(group, file) > 0]
            if len(there) > 1 and there.std() > 0:
                errors[place] = there.std(ddof=1) / np.sqrt(len(there)) * (1.2533 if self.median else 1.0)
        return errors

    def columns(self) -> list[Column]:
        """Return the groups and the outcome."""
        return [*self.groups, (self.outcome,)]


@dataclass(frozen=True, eq=False)
class BoundCorrelation(Bound):
    """A product-moment correlation."""

    first: Factor
    second: Factor

    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Compute the correlation; NaN where one of the two is constant."""
        rows = self.rows(file)
        if len(rows) < 3:
            return np.array([np.nan])
        x, y = self.first.of(rows), self.second.of(rows)
        x, y = x - x.mean(), y - y.mean()
        size = np.sqrt((x @ x) * (y @ y))
        return np.array([x @ y / size if size > 0 else np.nan])

    def spread(self, file: Floats) -> Floats:
        """Return the usual large-sample standard error."""
        size = max(len(self.rows(file)), 4)
        return np.asarray(np.maximum(1 - self.published**2, 1e-3) / np.sqrt(size - 1))

    def columns(self) -> list[Column]:
        """Return the two numbers and the base."""
        return [(self.first,), (self.second,), self.base]


# A published model, ready to be fitted to a file.
class Fit(NamedTuple):
    """What statistical software prints below the coefficients."""

    errors: Floats
    r2: float
    residual_sd: float
    covariance: Floats


@dataclass(frozen=True, eq=False)
class BoundModel(Bound):
    """A logistic or linear model.

    The figures are the published coefficients, then standard errors, R2 and residual standard deviation where they
    were published. ``beta`` is NaN for a term whose coefficient was not.
    """

    family: Literal["logit", "linear"]
    terms: tuple[str, ...]
    matrix: tuple[Column, ...]
    outcome: Factor
    beta: Floats
    se: Floats
    r2: float
    residual_sd: float

    def design(self, file: Floats) -> tuple[Floats, Floats]:
        """Return the model matrix and the outcome, for the records of the base."""
        rows = self.rows(file)
        return np.ascontiguousarray(design(self.matrix, rows)), self.outcome.of(rows)

    def coefficients(self, file: Floats, near: Floats | None = None) -> Floats:
        """Fit the model."""
        from discreet.synth.from_outputs import search_kernels

        x, y = self.design(file)
        if self.family == "linear":
            return np.asarray(search_kernels.least_squares(x, y)[0])
        start = near if near is not None else np.nan_to_num(self.beta)
        return np.asarray(search_kernels.logit(x, y, start, 60)[0])

    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Fit the model and put the figures in order."""
        return self.figures(file, self.coefficients(file, near))

    def figures(self, file: Floats, beta: Floats) -> Floats:
        """Return the published kinds of figure for fitted coefficients."""
        wanted = np.isfinite(self.se)
        parts = [beta[np.isfinite(self.beta)]]
        if wanted.any() or np.isfinite(self.r2) or np.isfinite(self.residual_sd):
            x, y = self.design(file)
            fit = self.statistics(x, y, beta)
            parts.append(fit.errors[wanted])
            parts += [np.array([fit.r2])] if np.isfinite(self.r2) else []
            parts += [np.array([fit.residual_sd])] if np.isfinite(self.residual_sd) else []
        return np.concatenate(parts)

    def statistics(self, x: Floats, y: Floats, beta: Floats) -> Fit:
        """Compute standard errors, R2 and residual standard deviation at some coefficients."""
        there = np.isfinite(beta)
        size = len(beta)
        none = Fit(np.full(size, np.nan), np.nan, np.nan, np.full((size, size), np.nan))
        if not there.any() or len(y) <= there.sum():
            return none
        x, kept = x[:, there], beta[there]
        fitted = x @ kept
        if self.family == "logit":
            chance = 1 / (1 + np.exp(-np.clip(fitted, -500, 500)))
            inverse = inverted(x.T @ (x * (chance * (1 - chance))[:, None]))
            r2, sd = np.nan, np.nan
        else:
            rest, around = y - fitted, y - y.mean()
            sd = float(np.sqrt(rest @ rest / (len(y) - len(kept))))
            r2 = float(1 - rest @ rest / (around @ around)) if around @ around > 0 else np.nan
            inverse = inverted(x.T @ x) * sd**2
        covariance = none.covariance.copy()
        covariance[np.ix_(there, there)] = inverse
        return Fit(np.sqrt(np.diag(covariance)), r2, sd, covariance)

    def spread(self, file: Floats) -> Floats:
        """Return the published standard errors, else those implied at the published coefficients."""
        x, y = self.design(file)
        beta = np.where(np.isfinite(self.beta), self.beta, np.nan_to_num(self.coefficients(file)))
        fit = self.statistics(x, y, beta)
        errors = np.where(np.isfinite(self.se), self.se, fit.errors)
        freedom = max(len(y) - len(beta), 1)
        parts = [errors[np.isfinite(self.beta)]]
        # A standard error, like a standard deviation, is itself known to one part in the root of twice the size.
        parts.append(self.se[np.isfinite(self.se)] / np.sqrt(2 * freedom))
        if np.isfinite(self.r2):
            parts.append(
                np.array([max(2 * np.sqrt(max(self.r2, 1e-6)) * (1 - self.r2), 1e-6) / np.sqrt(len(y))])
            )
        if np.isfinite(self.residual_sd):
            parts.append(np.array([self.residual_sd / np.sqrt(2 * freedom)]))
        return np.concatenate(parts)

    def columns(self) -> list[Column]:
        """Return the model matrix, the outcome and the base."""
        return [*self.matrix, (self.outcome,), self.base]


def inverted(matrix: Floats) -> Floats:
    """Invert a cross-product; units are taken out first, so that years and dummies do not spoil the digits."""
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return np.asarray(np.linalg.pinv(matrix / np.outer(size, size), hermitian=True) / np.outer(size, size))


INTERCEPT = "(Intercept)"


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
