"""Correlation matrices: mended where pairs contradict each other, and put together from the edges of a vine."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.native_libraries import one_thread

_STEPS = 300
_SETTLED = 1e-5


def nearest_correlation(
    matrix: Floats, *, weights: Floats | None = None, tolerance: float = 1e-10, rounds: int = 500
) -> Floats:
    """Find the correlation matrix nearest to a symmetric one (Frobenius norm).

    Higham's (2002) alternating projections with Dykstra's correction between the positive semi-definite matrices
    and those with a unit diagonal. A matrix that is a correlation matrix already comes back as it is.

    ``weights`` from 0 to 1 say how much each entry counts; one of 0 is free. The weighted sum of squares is then
    brought down by accelerated projections onto the positive semi-definite matrices, and the diagonal to 1 at the end.

    Examples
    --------
    >>> torn = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    >>> nearest_correlation(torn).round(4).tolist()
    [[1.0, 0.5, -0.5], [0.5, 1.0, 0.5], [-0.5, 0.5, 1.0]]
    """
    unit = (matrix + matrix.T) / 2
    np.fill_diagonal(unit, 1.0)
    if np.linalg.eigvalsh(unit)[0] >= 0:
        return np.asarray(unit)
    if weights is not None:
        # Hundreds of small decompositions: threads would wait for each other longer than they work, and the last bits
        # of a large one would depend on their number.
        with one_thread():
            return _weighted(unit, (weights + weights.T) / 2)
    correction = np.zeros_like(unit)
    for _ in range(rounds):
        shifted = unit - correction
        positive = _positive(shifted)
        correction = positive - shifted
        unit = positive.copy()
        np.fill_diagonal(unit, 1.0)
        if np.abs(unit - positive).max() < tolerance:
            break
    return np.asarray(np.clip(unit, -1.0, 1.0))


def _weighted(wanted: Floats, weights: Floats) -> Floats:
    """Nesterov's (1983) steps: from a point beyond the last one, towards what is wanted, back to where it may be."""
    found = beyond = _positive(wanted)
    speed = 1.0
    for _ in range(_STEPS):
        moved = _positive(beyond + weights * (wanted - beyond))
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        beyond = moved + (speed - 1) / faster * (moved - found)
        settled = np.abs(moved - found).max() < _SETTLED
        found, speed = moved, faster
        if settled:
            break
    spread = np.sqrt(np.maximum(np.diag(found), 1e-12))
    unit = found / np.outer(spread, spread)
    np.fill_diagonal(unit, 1.0)
    return np.asarray(np.clip(unit, -1.0, 1.0))


def _positive(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def correlation_of_vine(partial: Floats) -> Floats:
    """Put a correlation matrix together from the edges of a D-vine with Gaussian pair copulas.

    ``partial[i, j]`` is the correlation of columns i and j given those between them. With Gaussian pair copulas
    the vine is a Gaussian copula, and its correlations follow tree by tree.

    Examples
    --------
    >>> edges = np.zeros((3, 3))
    >>> edges[0, 1], edges[1, 2], edges[0, 2] = 0.5, 0.4, 0.2
    >>> round(float(correlation_of_vine(edges)[0, 2]), 6)
    0.358745
    """
    size = len(partial)
    found = np.eye(size)
    for step in range(1, size):
        for i in range(size - step):
            j, between = i + step, slice(i + 1, i + step)
            left, right = found[i, between], found[j, between]
            # The least-squares solution stays finite where columns between are all but copies of each other.
            onto = np.linalg.lstsq(found[between, between], np.stack([left, right], axis=1), rcond=1e-12)[0]
            rest = (1 - left @ onto[:, 0]) * (1 - right @ onto[:, 1])
            value = left @ onto[:, 1] + partial[i, j] * np.sqrt(max(rest, 0.0))
            found[i, j] = found[j, i] = np.clip(value, -1.0, 1.0)
    return nearest_correlation(found)


def root_of(correlation: Floats) -> Floats:
    """Return a matrix whose product with its transpose is the correlation, also where that is singular.

    Examples
    --------
    >>> root = root_of(np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> (root @ root.T).round(6).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    values, vectors = np.linalg.eigh(correlation)
    # The sign of an eigenvector is arbitrary; fixing it keeps the same seed giving the same records everywhere.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(vectors))])
    return np.asarray(vectors * signs * np.sqrt(np.maximum(values, 0.0)))
