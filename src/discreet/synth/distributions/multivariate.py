"""Draw correlated normal variables from independent ones, by a root of the covariance matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.draws import Draws, count_of

Root = Literal["cholesky", "spectral"]


def multivariate_normal(
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
    size: int | None = None,
    *,
    method: Root = "cholesky",
    tolerance: float = 1e-10,
    standard: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Floats]:
    """Draw normal vectors with a given mean and covariance: X = mean + root · Y.

    Parameters
    ----------
    mean
        One number a variable.
    covariance
        The covariance matrix.
    size
        Number of vectors.
    method
        ``cholesky`` needs a matrix of full rank. ``spectral`` also takes a singular one.
    tolerance
        Eigenvalues this much below 0, relative to the largest, are rounding; below that the matrix is refused.
    standard
        The vectors Y to use, a row each. They must have mean 0 and the identity as covariance: that they are
        independent is not enough.
    seed
        For Y.

    Returns
    -------
    Draws
        ``diagnostics["root"]`` is the matrix whose product with its transpose is the covariance.

    Examples
    --------
    >>> drawn = multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], standard=[[1.0, 1.0]])
    >>> drawn.values.round(6).tolist(), drawn.diagnostics["root"].round(6).tolist()
    ([[1.0, 2.414143]], [[1.0, 0.0], [0.7, 0.714143]])
    """
    center, matrix = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    if center.ndim != 1 or matrix.shape != (len(center), len(center)):
        raise ParameterError("covariance must be a square matrix with a row for each number of mean.")
    root, values = covariance_root(matrix, method=method, tolerance=tolerance)
    if standard is None:
        if size is None:
            raise ParameterError("Say how many to draw with size=.")
        noise = generator(seed).standard_normal((count_of(size), len(center)))
    else:
        noise = np.asarray(standard, dtype=np.float64)
        if noise.ndim != 2 or noise.shape[1] != len(center):
            raise ParameterError("standard must have a column for each variable.")
    return Draws(
        center + noise @ root.T,
        {"method": f"{method} root", "draws": len(noise), "root": root, "eigenvalues": values},
    )


def covariance_root(
    covariance: npt.ArrayLike, *, method: Root = "cholesky", tolerance: float = 1e-10
) -> tuple[Floats, Floats]:
    """Return a root of a covariance matrix (times its transpose it is the matrix), and the eigenvalues.

    Examples
    --------
    >>> root, eigenvalues = covariance_root([[1, 1], [1, 1]], method="spectral")
    >>> (root @ root.T).round(6).tolist(), eigenvalues.round(6).tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [0.0, 2.0])
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ParameterError("covariance must be a square matrix of finite numbers.")
    scale = max(float(np.abs(matrix).max(initial=0.0)), 1e-300)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * scale:
        raise ParameterError("covariance must be symmetric.")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values.min(initial=0.0) < -tolerance * scale:
        raise ParameterError(
            f"covariance has a negative eigenvalue ({values.min():.3g}), so it is the covariance of nothing. "
            "discreet.numerics.correlation.nearest_correlation mends a correlation matrix."
        )
    values = np.maximum(values, 0.0)
    if method == "spectral":
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(vectors))])
        return vectors * signs * np.sqrt(values), values
    if method != "cholesky":
        raise ParameterError("method must be 'cholesky' or 'spectral'.")
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64), values
    except np.linalg.LinAlgError as error:
        raise ParameterError("covariance is singular. Use method='spectral'.") from error
