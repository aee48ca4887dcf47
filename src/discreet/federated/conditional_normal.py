"""A normal law, taken apart node by node: each node's variables given those of the nodes before it.

-2 log-likelihood of a row z is p log 2 pi + log|Sigma| + (z - mu) Sigma^-1 (z - mu)'. Conditional covariances and
regression weights need no data; only conditional means do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats, numbers_of
from discreet.core.errors import ParameterError

LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Conditional:
    """The law of one node's variables given those of earlier nodes.

    Attributes
    ----------
    covariance
        S_k, of its variables given all earlier ones.
    inverse
        Of this covariance.
    onward
        S[k, k+]: with the variables of later nodes, given all earlier ones.
    weights
        C_k = S[k+, k] S_k^-1: how later variables follow from these.
    """

    covariance: Floats
    inverse: Floats
    onward: Floats
    weights: Floats


def lower_factor(matrix: Floats) -> Floats | None:
    """Return the lower triangular factor (Cholesky) of a matrix; None where it is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None


def conditionals(sigma: Floats, widths: Sequence[int]) -> list[Conditional] | None:
    """Take a covariance apart by nodes of these widths; None where it is not positive definite.

    Examples
    --------
    >>> sigma = np.full((3, 3), 0.1) + 0.9 * np.eye(3)
    >>> parts = conditionals(sigma, [1, 1, 1])
    >>> [round(float(part.covariance[0, 0]), 7) for part in parts], parts[1].weights.round(8).tolist()
    ([1.0, 0.99, 0.9818182], [[0.09090909]])
    """
    left = sigma
    found = []
    for width in widths:
        own, onward = left[:width, :width], left[:width, width:]
        if lower_factor(own) is None:
            return None
        inverse = np.linalg.inv(own)
        weights = onward.T @ inverse
        found.append(Conditional(own, (inverse + inverse.T) / 2, onward, weights))
        left = left[width:, width:] - weights @ onward
    return found


def minus_two_log_likelihood(rows: Floats, mu: Floats, sigma: Floats) -> float:
    """Evaluate -2 log-likelihood of pooled rows; infinite where the covariance is not positive definite.

    Examples
    --------
    >>> round(minus_two_log_likelihood(np.zeros((1, 1)), np.zeros(1), np.eye(1)), 6)
    1.837877
    """
    lower = lower_factor(sigma)
    if lower is None:
        return math.inf
    from scipy.linalg import solve_triangular

    whitened = solve_triangular(lower, (rows - mu).T, lower=True)
    return float(
        len(rows) * (rows.shape[1] * LOG_2_PI + 2 * np.log(np.diag(lower)).sum()) + np.square(whitened).sum()
    )


def from_moments(rows: float, mean: Floats, covariance: Floats, mu: Floats, sigma: Floats) -> float:
    """Evaluate -2 log-likelihood from the mean and the covariance (divided by n); infinite as above.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.5]])
    >>> mu, sigma = np.array([1.0, 1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    >>> direct = minus_two_log_likelihood(x, mu, sigma)
    >>> round(from_moments(3, x.mean(axis=0), np.cov(x.T, bias=True), mu, sigma) - direct, 12) + 0.0
    0.0
    """
    lower = lower_factor(sigma)
    if lower is None:
        return math.inf
    from scipy.linalg import cho_solve

    off = mean - mu
    distance = np.trace(cho_solve((lower, True), covariance + np.outer(off, off)))
    return float(rows * (len(mu) * LOG_2_PI + 2 * np.log(np.diag(lower)).sum() + distance))


def checked_law(mu: Floats, sigma: Floats, size: int) -> tuple[Floats, Floats]:
    """Check the shape of a mean and a covariance."""
    mean, covariance = numbers_of(mu, "mu"), numbers_of(sigma, "sigma")
    if mean.shape != (size,) or covariance.shape != (size, size):
        raise ParameterError(f"mu must hold {size} numbers and sigma {size} x {size}, one for each variable.")
    if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=1e-12):
        raise ParameterError("sigma must be symmetric.")
    return mean, (covariance + covariance.T) / 2
