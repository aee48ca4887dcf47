"""Columns whose values are given rather than drawn: kept, computed, constant, or read off another column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.synth.methods.cells import cell_frame
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.variables import Variable

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


class OneValue(Conditional):
    """A law with one value."""

    def __init__(self, value: Array) -> None:
        self.value = value

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Repeat the value."""
        return np.repeat(self.value, size)

    def state(self) -> dict[str, Any]:
        """Return the value."""
        return {"value": self.value}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(state["value"])


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
    of: str = ""

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


class LookUp(Conditional):
    """A law that is a table of pairs; a value that is not in it takes what goes with the nearest one.

    Numbers on a straight line (``line``: its intercept and slope) are computed there instead.
    """

    def __init__(self, pairs: pl.DataFrame, line: Floats | None = None) -> None:
        self.pairs = pairs
        self.line = line

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

    def state(self) -> dict[str, Any]:
        """Return the pairs and their line."""
        return {"columns": self.pairs.columns, "pairs": self.pairs.get_columns(), "line": self.line}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        columns = zip(state["columns"], state["pairs"], strict=True)
        return cls(pl.DataFrame([series.rename(name) for name, series in columns]), state["line"])


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
    expression: str = ""


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
    expression: str = ""
