"""The records of a file while it is read or made, and how one law is fitted to them.

Which records and weights a law sees, and what a proper synthesis varies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.synth.column_forms import Form
from discreet.synth.methods.method import Conditional, Method, Task
from discreet.synth.methods.observed_values import Sample, drawn_alone, resampled_within
from discreet.synth.synthesizer import Stream
from discreet.synth.variables import Rows, Variable


class Scene:
    """The columns that are there so far.

    The same object holds the observed file when models are fitted and the synthetic one while it grows.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.columns: dict[str, pl.Series] = {}
        self.parts: dict[str, tuple[Variable, ...]] = {}

    def add(self, series: pl.Series, parts: tuple[Variable, ...]) -> None:
        """Take in a column and its variables."""
        self.columns[series.name] = series
        self.parts[series.name] = parts

    def predictors(self, names: Sequence[str], rows: Rows | None = None) -> list[Variable]:
        """Return the variables of some columns, at some records."""
        found = [part for name in names for part in self.parts[name]]
        return found if rows is None else [variable.take(rows) for variable in found]

    def frame(self) -> pl.DataFrame:
        """Return the columns as a frame."""
        return pl.DataFrame(self.columns)

    def taken(self, rows: Rows, names: Sequence[str]) -> Scene:
        """Return some columns at some records, e.g. one stratum."""
        keep = pl.Series(rows) if not isinstance(rows, slice) else rows
        part = Scene(0)
        for name in names:
            column = self.columns[name]
            part.add(
                column.filter(keep)
                if isinstance(keep, pl.Series) and keep.dtype == pl.Boolean
                else column[keep],
                tuple(variable.take(rows) for variable in self.parts[name]),
            )
        part.size = len(next(iter(part.columns.values()))) if part.columns else 0
        return part


Shape = tuple[Variable, ...]


@dataclass(frozen=True)
class Fitting:
    """What the fit of a step needs to know beside the data."""

    forms: Mapping[str, Form]
    shapes: Mapping[str, Shape]
    weights: Floats | None
    proper: bool | str
    defaults: Mapping[str, Method]
    stream: Stream
    times: Integers | None = None
    """How often the bootstrap drew each record: one resample for all columns, as relations between them are kept."""

    def law(
        self, method: Method, target: Variable, predictors: Sequence[Variable], rows: Rows | None, *path: str
    ) -> Conditional:
        """Fit a method to some records; a target with one value, or without predictors, is drawn as it is."""
        rng = self.stream("fit", *path)
        weights = None if self.weights is None else self.weights if rows is None else self.weights[rows]
        if weights is not None:
            weights = scaled(weights)
        again = self._resample(method, target, predictors, rows, rng)
        if again is not None:
            target, predictors = target.take(again), [variable.take(again) for variable in predictors]
            weights = None if weights is None else scaled(weights[again])
        alone = (method.needs_predictors and not predictors) or bool(
            np.all(target.values == target.values[0])
        )
        chosen = drawn_alone(method) if alone else method
        posterior = self.proper is True and chosen.proper_by == "posterior"
        return chosen.fit(Task(target, predictors, rng, weights, posterior))

    def _resample(
        self,
        method: Method,
        target: Variable,
        predictors: Sequence[Variable],
        rows: Rows | None,
        rng: np.random.Generator,
    ) -> Array | None:
        """Draw the records that a proper fit sees, with replacement; None where it sees them all."""
        if not self.proper or not len(target) or method.proper_by == "nothing":
            return None
        first = isinstance(method, Sample) or (method.needs_predictors and not predictors)
        if self.proper is True and self.weights is not None and first:
            # By pseudo-likelihood a first column is a new weighted draw for each copy, which is all it varies by.
            return None
        if method.proper_by == "cells" and predictors:
            return resampled_within(predictors, rng)
        if self.times is not None:
            # Where none of these records was drawn, those that there are must do.
            return self.drawn_again(rows)
        if method.proper_by == "posterior":
            return None
        return rng.integers(len(target), size=len(target))

    def drawn_again(self, rows: Rows | None = None) -> Array | None:
        """Return the places of the records that the bootstrap drew; None where it drew none of them."""
        assert self.times is not None
        times = self.times if rows is None else self.times[rows]
        return np.repeat(np.arange(len(times)), times) if times.any() else None


def scaled(weights: Floats) -> Floats:
    """Scale weights to add up to the number of records."""
    return np.asarray(weights * (len(weights) / weights.sum()))
