"""Published figures made ready to compute: levels found, columns built, printed precision known.

A bound target computes its figures from a file (a matrix of numbers and level positions) and says how far they are
from the published ones. NaN stands for a figure that the file cannot give (no records, separation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.synth.from_outputs.columns import Column, Factor, evaluated

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
        near: Flags = np.abs(achieved - self.published) <= slack
        return near

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
        kept: Floats = file[evaluated(self.base, file) > 0]
        return kept


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
        errors: Floats = np.sqrt(shares * (1 - shares) / len(file)) / self.scale
        return errors

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
        errors: Floats = np.maximum(1 - self.published**2, 1e-3) / np.sqrt(size - 1)
        return errors

    def columns(self) -> list[Column]:
        """Return the two numbers and the base."""
        return [(self.first,), (self.second,), self.base]
