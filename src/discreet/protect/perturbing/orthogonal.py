"""Orthonormal columns: read off a matrix, moved by noise, or drawn at random beside others."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats


def orthonormal(matrix: Floats, *, floor: float = 0.0) -> tuple[Floats, Floats]:
    """Write a matrix as U R, the columns of U orthonormal and as many as the matrix has dimensions.

    Directions shorter than rounding error, or than ``floor``, are left out.

    Examples
    --------
    >>> twice = np.array([[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
    >>> basis, factor = orthonormal(twice)
    >>> basis.shape, bool(np.allclose(basis @ factor, twice))
    ((3, 1), True)
    """
    if not matrix.size:
        return np.zeros((len(matrix), 0)), np.zeros((0, matrix.shape[1]))
    q, r = np.linalg.qr(matrix)
    left, values, right = np.linalg.svd(r, full_matrices=False)
    least = max(values[0] * max(matrix.shape) * np.finfo(float).eps, floor)
    rank = int((values > least).sum())
    return q @ left[:, :rank], values[:rank, None] * right[:rank]


def moved_basis(basis: Floats, level: float, rng: np.random.Generator) -> Floats:
    """Return the orthonormal matrix nearest to the basis plus centered noise of ``level`` times its size.

    Its columns sum to 0. The nearest orthonormal matrix treats all columns alike, so the outcome does not depend
    on which basis of the space was taken.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> basis, _ = orthonormal(np.array([[1.0], [-1.0], [0.0], [0.0]]))
    >>> moved = moved_basis(basis, 0.1, rng)
    >>> round(float(np.linalg.norm(moved)), 12), abs(round(float(moved.sum()), 12))
    (1.0, 0.0)
    """
    moved = basis + rng.standard_normal(basis.shape) * (level / np.sqrt(len(basis)))
    for _ in range(2):
        # The second round takes away what rounding left of the first.
        moved -= moved.mean(axis=0)
        values, vectors = np.linalg.eigh(moved.T @ moved)
        moved = moved @ (vectors / np.sqrt(values)) @ vectors.T
    return np.asarray(moved)


def beside(bases: list[Floats], columns: int, rng: np.random.Generator) -> Floats:
    """Draw orthonormal columns that sum to 0 and are orthogonal to given orthonormal ones, evenly among all such.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> basis, _ = orthonormal(np.array([[1.0], [-1.0], [0.0], [0.0]]))
    >>> drawn = beside([basis], 2, rng)
    >>> bool(np.allclose(drawn.T @ drawn, np.eye(2))), bool(np.allclose(basis.T @ drawn, 0))
    (True, True)
    """
    drawn = rng.standard_normal((len(bases[0]), columns))
    for _ in range(2):
        # Once more, because a draw that lies mostly within the given space loses digits the first time.
        drawn = outside(drawn, bases)
        drawn, triangle = np.linalg.qr(drawn)
        drawn = drawn * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return drawn


def outside(matrix: Floats, bases: list[Floats]) -> Floats:
    """Center a matrix and take away what lies in the span of (centered) orthonormal columns."""
    rest = matrix - matrix.mean(axis=0)
    for basis in bases:
        rest = rest - basis @ (basis.T @ rest)
    return np.asarray(rest - rest.mean(axis=0))
