"""How do trees see the columns that predict? As whole numbers, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Array
from discreet.synth.variables import Variable
from discreet.trees import Feature
from discreet.trees.coding import FINE


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
