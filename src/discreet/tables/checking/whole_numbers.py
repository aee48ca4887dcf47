"""How far can a sum of counts go, when every count is a whole number?

A linear program may end in half a person. Where it does, an integer program says how far whole people can go; only what
whole numbers reach protects a count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Floats

SECONDS = 10.0
_NEAR = 1e-6


def whole_solution(solution: Floats, a: Any, right: Floats) -> Floats | None:
    """A solution in whole numbers, if the one of the linear program is one; checked against the sums."""
    rounded = np.rint(solution)
    if np.abs(solution - rounded).max(initial=0.0) > _NEAR:
        return None
    return rounded if (np.abs(rounded @ a - right) < 0.5).all() else None


def whole_extreme(
    a: Any,
    right: Floats,
    lower: Floats,
    upper: Floats,
    goal: Floats,
    *,
    largest: bool,
    seconds: float = SECONDS,
) -> Floats | None:
    """Whole numbers that add up to what is given and make a weighted sum extreme; None where none were found in time.

    After the time limit the best ones so far are given: what they reach can be reached, though perhaps not only that.

    Examples
    --------
    >>> from scipy import sparse
    >>> a = sparse.csc_matrix([[2], [2]])
    >>> whole_extreme(a, np.array([6.0]), np.zeros(2), np.full(2, 9.0), np.array([1.0, 0.0]), largest=True).tolist()
    [3.0, 0.0]
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    answer = milp(
        -goal if largest else goal,
        constraints=[LinearConstraint(a.T, right, right)] if a.shape[1] else [],
        bounds=Bounds(lower, upper),
        integrality=np.ones(len(lower)),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    return None if answer.x is None else np.rint(answer.x)
