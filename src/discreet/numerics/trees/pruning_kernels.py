"""The compiled loops of pruning over nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Codes, Floats
from discreet.core.compiling import compiled


@compiled
def misclassified(starts: Codes, stops: Codes, classes: Codes, weights: Floats, n_classes: int) -> Floats:
    """Weigh the records of each run of rows that are not of its commonest class."""
    weighted = len(weights) > 0
    totals, errors = np.zeros(n_classes), np.zeros(len(starts))
    for t in range(len(starts)):
        weight, most = 0.0, 0.0
        for i in range(starts[t], stops[t]):
            more = weights[i] if weighted else 1.0
            totals[classes[i]] += more
            weight += more
            most = max(most, totals[classes[i]])
        errors[t] = weight - most
        for i in range(starts[t], stops[t]):
            totals[classes[i]] = 0.0
    return errors


@compiled
def surviving(lefts: Codes, rights: Codes, errors: Floats, alpha: float) -> npt.NDArray[np.int8]:
    """Mark the nodes of the smallest best subtree: 0 gone, 1 a leaf, 2 still split.

    A branch is worth keeping when its errors and ``alpha`` for each of its leaves are clearly less than the errors
    of its root and ``alpha``. Children come after their parent.
    """
    tolerance = 1e-9 * max(errors[0], alpha)
    costs, worth = np.empty(len(lefts)), np.zeros(len(lefts), np.bool_)
    for t in range(len(lefts) - 1, -1, -1):
        costs[t] = errors[t] + alpha
        if lefts[t] > 0:
            below = costs[lefts[t]] + costs[rights[t]]
            if below < costs[t] - tolerance:
                costs[t], worth[t] = below, True
    fate = np.zeros(len(lefts), np.int8)
    fate[0] = 1
    for t in range(len(lefts)):
        if fate[t] == 1 and worth[t]:
            fate[t], fate[lefts[t]], fate[rights[t]] = 2, 1, 1
    return fate
