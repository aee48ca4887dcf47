"""Transition matrices of categories: how they are made, what they keep, and what they give away.

Entry (i, j) of a matrix is the chance that a value i is released as j. A matrix is invariant for counts t when
t times the matrix is t again: the expected counts of the released values are the counts of the file.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError


def even_change(size: int, change: float) -> Floats:
    """Make the matrix that changes every value with the same chance, to any other with the same chance.

    Examples
    --------
    >>> even_change(3, 0.2)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    if size < 2:
        return np.ones((size, size))
    matrix = np.full((size, size), change / (size - 1))
    np.fill_diagonal(matrix, 1.0 - change)
    return matrix


def two_stage_invariant(first: Floats, counts: npt.ArrayLike) -> Floats:
    """Follow a matrix by the one that undoes it on average, which keeps the expected counts.

    Q = P R with R_kl = p_lk t_l / sum_m p_mk t_m (Gouweleeuw et al. 1998): R draws a value from those that P may
    have come from, so that nobody is told the direction of the change.

    Parameters
    ----------
    first
        The matrix P, one row for each category.
    counts
        How often each category occurs; above zero.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([50.0, 30.0, 20.0])
    >>> made = two_stage_invariant(even_change(3, 0.2), counts)
    >>> np.allclose(counts @ made, counts)
    True
    """
    joint = first * np.asarray(counts, dtype=np.float64)[:, None]
    reached = joint.sum(axis=0)
    back = joint.T[reached > 0] / reached[reached > 0, None]
    made: Floats = first[:, reached > 0] @ back
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def one_step_invariant(counts: npt.ArrayLike, theta: float) -> Floats:
    """Make the invariant matrix with P_ii = 1 - theta t_min / t_i and equal chances for all other values.

    Examples
    --------
    >>> one_step_invariant([50, 30, 20], 0.3).round(2)
    array([[0.88, 0.06, 0.06],
           [0.1 , 0.8 , 0.1 ],
           [0.15, 0.15, 0.7 ]])
    """
    known = np.asarray(counts, dtype=np.float64)
    size = len(known)
    if size < 2:
        return np.ones((size, size))
    leaving = theta * known.min() / known
    matrix: Floats = np.repeat((leaving / (size - 1))[:, None], size, axis=1)
    np.fill_diagonal(matrix, 1.0 - leaving)
    return matrix


def local_epsilon(matrix: Floats) -> float:
    """Work out the local differential privacy of a matrix: how much a released value can favor one origin.

    The largest log ratio of two entries of a column; infinite where a released value rules an origin out.

    Examples
    --------
    >>> round(local_epsilon(one_step_invariant([50, 30, 20], 0.3)), 6)
    2.590267
    >>> local_epsilon(np.eye(2))
    inf
    """
    reached = matrix[:, matrix.max(axis=0, initial=0.0) > 0]
    if len(matrix) < 2 or not reached.size:
        return 0.0
    low = reached.min(axis=0)
    if (low <= 0).any():
        return float("inf")
    return float(np.log(reached.max(axis=0) / low).max())


def whole_weights(matrix: Floats) -> npt.NDArray[np.uint64]:
    """Write every row of a matrix in whole parts of 2^62, from which values are drawn exactly.

    Chances are rounded down and the largest takes the rest; rows of zeros stay as they are.

    Examples
    --------
    >>> whole_weights(np.array([[0.25, 0.75]])).tolist() == [[2**60, 3 * 2**60]]
    True
    """
    parts = np.asarray(
        [[math.floor(Fraction(float(chance)) * 2**62) for chance in row] for row in matrix], dtype=np.uint64
    ).reshape(matrix.shape)
    full = np.flatnonzero(parts.any(axis=1))
    left = np.uint64(2**62) - parts[full].sum(axis=1, dtype=np.uint64)
    parts[full, parts[full].argmax(axis=1)] += left
    return parts


def whole_local_epsilon(weights: npt.NDArray[np.uint64]) -> float:
    """Work out the local epsilon of whole weights, as `local_epsilon` does for chances, without rounding it down.

    Examples
    --------
    >>> round(whole_local_epsilon(whole_weights(np.array([[0.75, 0.25], [0.25, 0.75]]))), 6)
    1.098612
    """
    named = weights[weights.any(axis=1)]
    reached = named[:, named.any(axis=0)]
    if len(named) < 2 or not reached.size:
        return 0.0
    low, high = reached.min(axis=0), reached.max(axis=0)
    if not low.all():
        return float("inf")
    worst = max(Fraction(int(top), int(bottom)) for top, bottom in zip(high, low, strict=True))
    return math.nextafter(math.log(worst), math.inf) if worst > 1 else 0.0


def theta_for_epsilon(counts: npt.ArrayLike, epsilon: float, *, column: str = "the column") -> float:
    """Find the strength at which `one_step_invariant` has this local epsilon.

    On (0, (c-1)/c] for c categories epsilon falls as theta rises, so the answer is unique.

    Examples
    --------
    >>> round(theta_for_epsilon([50, 30, 20], 3.0), 6)
    0.213503
    """
    size = len(np.asarray(counts))
    if size < 2:
        return 0.0
    low, high = 0.0, (size - 1) / size
    least = local_epsilon(one_step_invariant(counts, high))
    if epsilon < least:
        raise ParameterError(
            f"epsilon={epsilon:g} is not reachable for {column} with this invariant matrix; the least is "
            f"{least:.4f}. Merge rare values first, or give a matrix of your own with invariant=False."
        )
    for _ in range(200):
        middle = (low + high) / 2
        if local_epsilon(one_step_invariant(counts, middle)) > epsilon:
            low = middle
        else:
            high = middle
    return high


def expected_change(matrix: Floats, counts: npt.ArrayLike) -> float:
    """Work out the share of the values that a matrix is expected to change (rows and columns alike).

    Examples
    --------
    >>> round(expected_change(even_change(3, 0.2), [50, 30, 20]), 6)
    0.2
    """
    known = np.asarray(counts, dtype=np.float64)
    total = known.sum()
    return float(known @ (1.0 - np.diag(matrix)[: len(known)]) / total) if total else 0.0
