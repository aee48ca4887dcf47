"""Predictors as the columns of a linear model: numbers centered and scaled, categories as indicators.

Columns that are constant, or that the others already say, are left out, so that every fit has one solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError
from discreet.synth.variables import Variable

_CHUNK = 200_000
_SAME = 1e-9
_LARGEST = 1e120


@dataclass(frozen=True, eq=False)
class Design:
    """How predictors become the columns of a model matrix, its first being the intercept.

    Attributes
    ----------
    names, levels
        Of the predictors; 0 levels is a number.
    center, scale
        By column before any is left out: numbers are shifted and divided by these, indicators are not.
    kept
        Which columns stay.
    owner
        The predictor that each column comes from; -1 for the intercept.
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]
    center: Floats
    scale: Floats
    kept: Flags
    owner: Integers

    @classmethod
    def of(cls, predictors: Sequence[Variable], *, weights: Floats | None = None) -> Design:
        """Learn the columns from the observed predictors."""
        owner, center, scale = [-1], [0.0], [1.0]
        for place, variable in enumerate(predictors):
            if variable.is_number:
                values = squarable(variable)
                spread = float(values.std())
                owner.append(place)
                center.append(float(values.mean()))
                scale.append(spread if spread > 0 else 1.0)
            else:
                width = variable.levels - 1
                owner += [place] * width
                center += [0.0] * width
                scale += [1.0] * width
        everything = np.ones(len(owner), dtype=np.bool_)
        draft = cls(
            tuple(v.name for v in predictors),
            tuple(v.levels for v in predictors),
            np.array(center),
            np.array(scale),
            everything,
            np.array(owner),
        )
        gram = sum(
            (
                part.T @ (part if w is None else part * w[:, None])
                for part, w, _ in draft.parts(predictors, weights)
            ),
            start=np.zeros((len(owner), len(owner))),
        )
        return cls(draft.names, draft.levels, draft.center, draft.scale, _independent(gram), draft.owner)

    @property
    def width(self) -> int:
        """Number of columns, the intercept included."""
        return int(self.kept.sum())

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors of which no column stays."""
        there = set(self.owner[self.kept].tolist())
        return tuple(name for place, name in enumerate(self.names) if place not in there)

    def matrix(self, predictors: Sequence[Variable], rows: slice = slice(None)) -> Floats:
        """Return the model matrix of some records."""
        size = len(range(*rows.indices(len(predictors[0])))) if predictors else 0
        columns = np.empty((size, self.width), order="F")
        columns[:, 0] = 1.0
        at = 1
        place = 1
        for variable in predictors:
            if variable.is_number:
                if self.kept[place]:
                    columns[:, at] = (variable.values[rows] - self.center[place]) / self.scale[place]
                    at += 1
                place += 1
                continue
            values = variable.values[rows]
            for level in range(1, variable.levels):
                if self.kept[place]:
                    columns[:, at] = values == level
                    at += 1
                place += 1
        return columns

    def parts(
        self, predictors: Sequence[Variable], weights: Floats | None = None
    ) -> Iterator[tuple[Floats, Floats | None, slice]]:
        """Hand over the model matrix in blocks of records, so that a long file needs little memory."""
        size = len(predictors[0]) if predictors else 0
        for start in range(0, size, _CHUNK):
            rows = slice(start, min(start + _CHUNK, size))
            yield self.matrix(predictors, rows), None if weights is None else weights[rows], rows

    def state(self) -> dict[str, Any]:
        """Return the design for a model file."""
        return {
            "names": list(self.names),
            "levels": list(self.levels),
            "center": self.center,
            "scale": self.scale,
            "kept": self.kept,
            "owner": self.owner,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Design:
        """Make the design again."""
        return cls(
            tuple(state["names"]), tuple(state["levels"]), state["center"], state["scale"], state["kept"],
            state["owner"],
        )  # fmt: skip


def squarable(variable: Variable) -> Floats:
    """Return the values of a number, or refuse those whose squares no float can hold."""
    if len(variable) and float(np.abs(variable.values).max()) > _LARGEST:
        raise ColumnError(
            f"Column '{variable.name}' has values that are too large to be squared. If they stand for something else, "
            "name them under special_codes; otherwise divide the column by its unit, or model it with cart."
        )
    return variable.values


def _independent(gram: Floats) -> Flags:
    """Find columns that add something to those before them, by elimination on the scaled cross-products."""
    size = np.sqrt(np.maximum(np.diag(gram), 0.0))
    whole = np.where(size > 0, size, 1.0)
    rest = gram / np.outer(whole, whole)
    kept = np.zeros(len(gram), dtype=np.bool_)
    for column in range(len(gram)):
        if rest[column, column] <= _SAME:
            continue
        kept[column] = True
        rest -= np.outer(rest[:, column], rest[column]) / rest[column, column]
    return kept
