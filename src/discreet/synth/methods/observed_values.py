"""Columns without a model: values that are given, or drawn from observed ones.

Given are columns that are kept, computed, constant or read off another column. Draws come from the whole column, or
from records that agree on other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.constraints import AtLeast, ColumnName, Public
from discreet.core.errors import ColumnError
from discreet.numerics.alias_tables import places_within
from discreet.numerics.trees.walk_kernels import intervals
from discreet.synth.column_forms import Variable
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.saved_models import stored

# Of the spread, what a straight line may leave over: a correlation of 0.99999.
_STRAIGHT = 0.0045


@dataclass(frozen=True)
class Constant(Method):
    """The one value that the column has."""

    name = "constant"
    proper_by: ClassVar[ProperBy] = "nothing"
    needs_predictors = False

    def fit(self, task: Task) -> OneValue:
        """Note the value."""
        return OneValue(task.target.values[:1].copy())


@stored("one-value")
@dataclass(frozen=True, eq=False)
class OneValue(Conditional):
    """A law with one value."""

    value: Array

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Repeat the value."""
        return np.repeat(self.value, size)


@dataclass(frozen=True)
class Collinear(Method):
    """A function of another column: its value is looked up.

    Parameters
    ----------
    of
        The other column.
    """

    name = "collinear"
    proper_by: ClassVar[ProperBy] = "nothing"
    of: ColumnName = ""

    def fit(self, task: Task) -> LookUp:
        """Note which value goes with which."""
        keys = cell_frame(task.predictors)
        table = keys.with_columns(
            pl.Series("target", task.target.values),
            pl.Series("weight", np.ones(len(task.target)) if task.weights is None else task.weights),
        )
        # Where a few records break the relation, the value that most have is the one that goes with it.
        sums = table.group_by(*keys.columns, "target").agg(pl.col("weight").sum())
        ranked = sums.sort("weight", "target", descending=[True, False])
        pairs = ranked.unique(keys.columns, keep="first", maintain_order=True).sort(keys.columns)
        numbers = [*task.predictors, task.target]
        line = _line(pairs) if len(numbers) == 2 and all(v.is_number for v in numbers) else None
        return LookUp(pairs.drop("weight"), line)


@stored("look-up")
@dataclass(frozen=True, eq=False)
class LookUp(Conditional):
    """A law that is a table of pairs; a value that is not in it takes what goes with the nearest one.

    Numbers on a straight line (``line``: its intercept and slope) are computed there instead.
    """

    pairs: pl.DataFrame
    line: Floats | None = None

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Look the values up; of a category, each level once."""
        if len(predictors) == 1 and not predictors[0].is_number:
            levels = pl.DataFrame({"k0": np.arange(predictors[0].levels, dtype=np.int32)})
            return self._found(levels)[predictors[0].values]
        return self._found(cell_frame(predictors))

    def _found(self, wanted: pl.DataFrame) -> Array:
        *exact, last = wanted.columns
        found = (
            wanted.with_row_index("record")
            .sort(wanted.columns)
            .join_asof(self.pairs, on=last, by=exact or None, strategy="nearest", check_sortedness=False)
        )
        target = found.sort("record")["target"].fill_null(self.pairs["target"][0]).to_numpy()
        if self.line is None:
            return target
        given = wanted[last].to_numpy()
        seen = wanted[last].is_in(self.pairs[last].implode()).to_numpy()
        return np.where(seen, target, self.line[0] + self.line[1] * given)


def _line(pairs: pl.DataFrame) -> Floats | None:
    """Return the intercept and the slope of the line that all pairs lie on; None where they do not."""
    x, y = pairs[pairs.columns[0]].to_numpy(), pairs["target"].to_numpy()
    if len(x) < 3 or np.ptp(x) == 0:
        return None
    slope, intercept = np.polyfit(x, y, 1)
    off = y - intercept - slope * x
    return np.array([intercept, slope]) if off.std() <= _STRAIGHT * y.std() else None


class _NotDrawn(Method):
    """A column that the synthesis itself provides; there is nothing to fit."""

    needs_predictors = False

    def fit(self, task: Task) -> OneValue:
        """Return a law that is never drawn from."""
        return OneValue(task.target.values[:1].copy())


@dataclass(frozen=True)
class Keep(_NotDrawn):
    """The column stays as it is: the synthesis is partial and its records are the original ones."""

    name = "keep"
    also = ("",)


@dataclass(frozen=True)
class Stratum(_NotDrawn):
    """The column is a stratum; its value is known before its records are drawn."""

    name = "stratum"


@dataclass(frozen=True)
class Numbered(_NotDrawn):
    """The column numbers units of records (households), which are numbered anew as they are drawn."""

    name = "numbered"


@dataclass(frozen=True)
class Passive(_NotDrawn):
    """The column is computed from synthetic values of others.

    Parameters
    ----------
    expression
        What it is, e.g. ``"weight / (height / 100) ** 2"``.
    """

    name = "passive"
    expression: Annotated[str, Public()] = ""


@dataclass(frozen=True)
class Near(_NotDrawn):
    """The column is computed from synthetic values of others, and off by as much as it is in the data.

    A total that holds in all but a few records, or up to the rounding of its parts: what is left over is drawn by a
    tree from those of similar records, and is nothing for most.

    Parameters
    ----------
    expression
        What it nearly is, e.g. ``"homes + shops + industry"``.
    """

    name = "near"
    needs_predictors = True
    targets: ClassVar[frozenset[str]] = frozenset({"number"})
    expression: Annotated[str, Public()] = ""


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
    shared_by: Annotated[int, AtLeast(1)] = 1

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


@stored("observed-shares")
@dataclass(frozen=True, eq=False)
class ObservedShares(Conditional):
    """Distinct values and the running total of their counts or weights."""

    values: Array
    mass: Floats

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw values by inverse transform."""
        at = intervals(np.asarray(self.mass, dtype=np.float64), rng.random(size) * self.mass[-1])
        return np.asarray(self.values[np.minimum(at, len(self.values) - 1)])


@dataclass(frozen=True)
class Satcat(Method):
    """Draw from the records that agree on all predictors: the saturated model of categories."""

    name = "satcat"
    gives_observed_values = True
    proper_by: ClassVar[ProperBy] = "cells"

    def fit(self, task: Task) -> CellDonors:
        """Group the records by all predictors."""
        return CellDonors(Cells.of(task.predictors, task.target.values, task.weights), task.target.name)


@dataclass(frozen=True)
class Nested(Satcat):
    """Draw from the records with the same value of one other column, of which this one is a finer version.

    Parameters
    ----------
    within
        The coarser column.
    """

    name = "nested"
    within: ColumnName = ""


@stored("cell-donors")
@dataclass(frozen=True, eq=False)
class CellDonors(Conditional):
    """Donors that agree on the predictors."""

    cells: Cells
    target: str

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw a donor of each record's own cell; a combination that no record has is an error."""
        cells, found = self.cells.find(predictors)
        if not found.all():
            raise ColumnError(
                f"{int((~found).sum()):,} synthetic records have combinations of predictors that no observed record "
                f"has, so '{self.target}' has no donors there. Give it fewer predictors, or model it with cart."
            )
        return self.cells.draw(cells, rng)


# Records that agree on all predictors, as cells: how they are keyed and how donors are drawn from them.


def cell_frame(predictors: Sequence[Variable]) -> pl.DataFrame:
    """Return the predictors as columns ``k0``, ``k1``…, to be grouped and joined by."""
    return pl.DataFrame({f"k{place}": variable.values for place, variable in enumerate(predictors)})


@stored("cells")
@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of observed records, each with its donors."""

    keys: pl.DataFrame
    starts: Integers
    donors: Array
    mass: Floats | None

    @classmethod
    def of(cls, predictors: Sequence[Variable], values: Array, weights: Floats | None) -> Cells:
        """Group the records; ``mass`` is the running total of the weights, cell after cell."""
        frame = cell_frame(predictors)
        sized = frame.group_by(frame.columns).agg(pl.len().alias("·many")).sort(frame.columns)
        keys = sized.drop("·many").with_row_index("cell")
        at = frame.join(keys, on=frame.columns, how="left", maintain_order="left")["cell"].to_numpy()
        order = np.argsort(at, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sized["·many"].to_numpy())]).astype(np.int64)
        mass = None if weights is None else np.cumsum(weights[order])
        return cls(keys, starts, values[order], mass)

    def find(self, predictors: Sequence[Variable]) -> tuple[Integers, Flags]:
        """Return the cell of every record and whether it has one."""
        frame = cell_frame(predictors)
        cell = frame.join(self.keys, on=frame.columns, how="left", maintain_order="left")["cell"]
        return cell.fill_null(0).to_numpy().astype(np.int64), cell.is_not_null().to_numpy()

    def draw(self, cells: Integers, rng: np.random.Generator) -> Array:
        """Draw one donor of each cell, in proportion to the weights where there are any."""
        low, high = self.starts[cells], self.starts[cells + 1]
        if self.mass is None:
            return self.donors[low + (rng.random(len(cells)) * (high - low)).astype(np.int64)]
        return self.donors[places_within(self.mass, low, high, rng.random(len(cells)))]


def resampled_within(predictors: Sequence[Variable], rng: np.random.Generator) -> Array:
    """Draw as many records with replacement, each from those of its own cell, so that no cell is lost."""
    cells = Cells.of(predictors, np.arange(len(predictors[0])), None)
    return cells.draw(cells.find(predictors)[0], rng)
