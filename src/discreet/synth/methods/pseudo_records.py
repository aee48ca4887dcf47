"""Pseudo-records that keep a logistic fit finite where a predictor tells the levels apart without error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.synth.methods.design import Design
from discreet.synth.variables import Variable


class PseudoRecords(NamedTuple):
    """Rows of the model matrix, their levels and their weights."""

    x: Floats
    levels: Integers
    weights: Floats


def augmented(design: Design, predictors: Sequence[Variable], levels: int) -> PseudoRecords:
    """Make two records for each column and level, half a standard deviation above and below the mean.

    Their weights add up to the number of coefficients, the intercept included (White, Daniel and Royston 2010).
    """
    total, square, count = 0.0, 0.0, 0
    low, high = np.full(design.width, np.inf), np.full(design.width, -np.inf)
    for x, _, _ in design.parts(predictors):
        total, square, count = total + x.sum(axis=0), square + (x**2).sum(axis=0), count + len(x)
        low, high = np.minimum(low, x.min(axis=0)), np.maximum(high, x.max(axis=0))
    mean = np.asarray(total / count)
    spread = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    rows, own = [], []
    for column in range(1, design.width):
        for sign in (-0.5, 0.5):
            row = mean.copy()
            row[column] = np.clip(mean[column] + sign * spread[column], low[column], high[column])
            rows += [row] * levels
            own += list(range(levels))
    if not rows:
        return PseudoRecords(np.empty((0, design.width)), np.empty(0, dtype=np.int64), np.empty(0))
    return PseudoRecords(np.array(rows), np.array(own), np.full(len(rows), design.width / len(rows)))
