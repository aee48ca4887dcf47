"""Draws from observed values: of the whole column, or of the records that agree on other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError
from discreet.numerics.trees.walk_kernels import intervals
from discreet.synth.methods.cells import Cells
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task, check_whole
from discreet.synth.variables import Variable


@dataclass(frozen=True)
class Sample(Method):
    """Draw observed values with replacement, whatever the other columns are.

    With weights, a value is drawn in proportion to the weight of its records, so that the synthetic column has the
    distribution of the population and not of the sample.

    Parameters
    ----------
    shared_by
        Labels that fewer people have are not drawn; 1 draws all. Numbers are drawn as they are: see ``smoothing``.
    """

    name = "sample"
    needs_predictors = False
    gives_observed_values = True
    shared_by: int = 1

    def __post_init__(self) -> None:
        check_whole("shared_by", self.shared_by, least=1)

    def fit(self, task: Task) -> ObservedShares:
        """Count the values."""
        values, place, held = np.unique(task.target.values, return_inverse=True, return_counts=True)
        shared = held >= self.shared_by
        if not task.target.is_number and shared.any() and not shared.all():
            mass = np.bincount(place, weights=task.weights, minlength=len(values))
            return ObservedShares(values[shared], np.cumsum(mass[shared]))
        return ObservedShares(
            values, np.cumsum(np.bincount(place, weights=task.weights, minlength=len(values)))
        )


def drawn_alone(method: Method) -> Sample:
    """Say how a column is drawn that nothing predicts; values that too few share stay out, as the method has it."""
    return method if isinstance(method, Sample) else Sample(shared_by=getattr(method, "shared_by", 1))


class ObservedShares(Conditional):
    """Distinct values and the running total of their counts or weights."""

    def __init__(self, values: Array, mass: Floats) -> None:
        self.values = values
        self.mass = mass

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw values by inverse transform."""
        at = intervals(np.asarray(self.mass, dtype=np.float64), rng.random(size) * self.mass[-1])
        drawn: Array = self.values[np.minimum(at, len(self.values) - 1)]
        return drawn

    def state(self) -> dict[str, Any]:
        """Return values and masses."""
        return {"values": self.values, "mass": np.asarray(self.mass)}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(state["values"], state["mass"])


@dataclass(frozen=True)
class Nested(Method):
    """Draw from the records with the same value of one other column, of which this one is a finer version.

    Parameters
    ----------
    within
        The coarser column.
    """

    name = "nested"
    gives_observed_values = True
    proper_by: ClassVar[ProperBy] = "cells"
    within: str = ""

    def fit(self, task: Task) -> CellDonors:
        """Group the records by the coarser column."""
        return CellDonors(Cells.of(task.predictors, task.target.values, task.weights), task.target.name)


@dataclass(frozen=True)
class Satcat(Method):
    """Draw from the records that agree on all predictors: the saturated model of categories."""

    name = "satcat"
    gives_observed_values = True
    proper_by: ClassVar[ProperBy] = "cells"

    def fit(self, task: Task) -> CellDonors:
        """Group the records by all predictors."""
        return CellDonors(Cells.of(task.predictors, task.target.values, task.weights), task.target.name)


class CellDonors(Conditional):
    """Donors that agree on the predictors."""

    def __init__(self, cells: Cells, target: str) -> None:
        self.cells = cells
        self.target = target

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw a donor of each record's own cell; a combination that no record has is an error."""
        cells, found = self.cells.find(predictors)
        if not found.all():
            raise ColumnError(
                f"{int((~found).sum()):,} synthetic records have combinations of predictors that no observed record "
                f"has, so '{self.target}' has no donors there. Give it fewer predictors, or model it with cart."
            )
        return self.cells.draw(cells, rng)

    def state(self) -> dict[str, Any]:
        """Return the cells."""
        return {"cells": self.cells.state(), "target": self.target}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Cells.restored(state["cells"]), state["target"])
