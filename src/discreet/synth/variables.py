"""A column in the form that models work with: numbers, or the codes of categories, without gaps.

Missing values, special codes and spikes have been split off before (see `discreet.synth.column_forms`), so a model
never meets a NaN. A variable remembers how trees code it, so that a column is coded once for all the trees it feeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Flags
from discreet.numerics.trees.coding import FINE, Feature
from discreet.synth.model_codec import stored_as

Rows = npt.NDArray[np.intp] | Flags | slice


class Variable:
    """One modelled column.

    Parameters
    ----------
    name
        Of the column, or of the part of it, e.g. ``"income"`` or ``"income: state"``.
    values
        64-bit floats of a number, 32-bit codes ``0 … levels - 1`` of a category.
    levels
        Number of categories; 0 for a number.
    ordered
        Whether the categories stand in an order that means something.
    decimals
        Decimal places that drawn numbers are rounded to; None leaves them as they are.

    Examples
    --------
    >>> Variable("age", np.array([30.0, 41.0]), decimals=0).is_number
    True
    """

    __slots__ = ("_codes", "_feature", "decimals", "levels", "name", "ordered", "values")

    def __init__(
        self,
        name: str,
        values: Array,
        *,
        levels: int = 0,
        ordered: bool = False,
        decimals: int | None = None,
        feature: Feature | None = None,
        codes: Array | None = None,
    ) -> None:
        self.name = name
        self.values: Array = np.ascontiguousarray(values, dtype=np.int32 if levels else np.float64)
        self.levels = levels
        self.ordered = ordered
        self.decimals = decimals
        self._feature = feature
        self._codes = codes

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers rather than categories."""
        return self.levels == 0

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        kind = "number" if self.is_number else f"{self.levels} levels"
        return f"Variable({self.name!r}, {kind}, {len(self)} values)"

    @property
    def feature(self) -> Feature:
        """How trees see the column: cut points of a number, level count of a category."""
        if self._feature is None:
            self._feature = Feature.numeric(self.values) if self.is_number else Feature.category(self.levels)
        return self._feature

    @property
    def is_coded(self) -> bool:
        """Whether its coding for trees was learned already."""
        return self._feature is not None

    @property
    def codes(self) -> Array:
        """The values in the coding of the trees."""
        if self._codes is None:
            self._codes = self.feature.encode(self.values)
        return self._codes

    def take(self, rows: Rows) -> Variable:
        """Return some of the records, coded as before."""
        codes = None if self._codes is None else self._codes[rows]
        return self._with(self.values[rows], codes)

    def redrawn(self, values: Array) -> Variable:
        """Return other values of the same variable, to be coded the same way."""
        return self._with(values, None)

    def _with(self, values: Array, codes: Array | None) -> Variable:
        return Variable(
            self.name,
            values,
            levels=self.levels,
            ordered=self.ordered,
            decimals=self.decimals,
            feature=self._feature,
            codes=codes,
        )


def _of_parts(parts: tuple[str, Array, int, bool, int | None, Feature | None]) -> Variable:
    name, values, levels, ordered, decimals, feature = parts
    return Variable(name, values, levels=levels, ordered=ordered, decimals=decimals, feature=feature)


stored_as("coded-column", Feature, dict[str, Array], Feature.to_arrays, Feature.from_arrays)
stored_as(
    "variable",
    Variable,
    tuple[str, Array, int, bool, int | None, Feature | None],
    lambda own: (
        own.name,
        own.values,
        own.levels,
        own.ordered,
        own.decimals,
        own.feature if own.is_coded else None,
    ),
    _of_parts,
)


def code_table(predictors: Sequence[Variable], size: int, columns: int | None = None) -> Array:
    """Put the coded predictors side by side, one column after the other in memory.

    Where ``columns`` are more than the predictors, fine categories stand there once more, to be cut in the order of
    their levels (`features_of`).
    """
    again = (
        [variable for variable in predictors if _is_fine(variable)]
        if columns != len(predictors) and columns
        else []
    )
    shown = [*predictors, *again]
    wide = any(variable.codes.dtype == np.int32 for variable in shown)
    table = np.empty((size, len(shown)), dtype=np.int32 if wide else np.int16, order="F")
    for place, variable in enumerate(shown):
        table[:, place] = variable.codes
    return table


def features_of(predictors: Sequence[Variable]) -> list[Feature]:
    """Say what trees see: every predictor, and each category of many levels once more, in the order of its levels.

    Sets of many levels are chosen to fit the records at hand, and are held back for that (``level_penalty``). A cut in
    the order of the levels is not: codes, dates and times of day that are written as text mostly mean something in it.
    """
    again = [Feature.in_order(variable.levels) for variable in predictors if _is_fine(variable)]
    return [*(variable.feature for variable in predictors), *again]


def _is_fine(variable: Variable) -> bool:
    return variable.levels > FINE
