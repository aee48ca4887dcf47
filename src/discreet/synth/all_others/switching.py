"""The Laplace switch: release a regression draw, unless Laplace noise exceeds its distance from the true value.

For a value x with prediction m, draw c ~ N(m, s²) and l ~ Laplace(0, D / epsilon), where D is the length of the range
of the variable. If |c - x| >= l, c is released, else x + l. It was proposed as a safeguard; what it does is stated
here and tested:

1. a switch needs l > |c - x| >= 0, so the noise that is released is never negative and values drift upward;
2. the coefficients behind m and s are computed from the raw data without noise;
3. the log ratio of the output densities of two inputs is not bounded by epsilon: it grows without limit as s falls.

It is therefore **not differentially private**, whatever epsilon is.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError

NO_SWITCH_IS_PRIVATE = (
    "the Laplace switch is not differentially private whatever epsilon is: its noise is one-sided, its models see the "
    "raw data, and its densities are not within epsilon of each other."
)


def switch(
    values: Floats, predicted: Floats, sigma: float, scale: float, rng: np.random.Generator
) -> tuple[Floats, Flags]:
    """Draw the released values and say which were switched to the noisy truth.

    Parameters
    ----------
    values, predicted
        The true values and their predictions.
    sigma
        Residual standard deviation of the regression.
    scale
        Of the Laplace noise: length of the range over epsilon.
    rng
        For the random numbers.
    """
    drawn = predicted + sigma * rng.standard_normal(len(values))
    noise = rng.laplace(0.0, scale, len(values))
    switched = np.abs(drawn - values) < noise
    return np.where(switched, values + noise, drawn), switched


def switch_moments(away: Floats, sigma: float, scale: float) -> tuple[Floats, Floats]:
    """Return the probability of a switch and the expected shift of the released value from the true one.

    ``away`` is the prediction less the true value. With d = |c - x| a switch has probability exp(-d / b) / 2 and then
    moves the value by d + b on average; both are integrated over the normal law of c.

    Examples
    --------
    >>> share, shift = switch_moments(np.zeros(1), 0.1, 1.0)
    >>> round(float(share[0]), 3), round(float(shift[0]), 3)
    (0.462, 0.498)
    """
    from scipy.special import log_ndtr, ndtr

    if sigma <= 0 or scale <= 0:
        raise ParameterError("sigma and scale must be positive.")
    tilt = sigma / scale
    share = np.zeros(len(away))
    moved = np.zeros(len(away))
    kept = np.zeros(len(away))
    for sign in (1.0, -1.0):
        # d = sign (c - x) on the side where that is positive; exp(-d / b) tilts the normal law by -sigma² / b.
        mean = sign * away
        center = mean - sigma * tilt
        weight = np.exp(tilt**2 / 2 - mean / scale + log_ndtr(center / sigma))
        density = np.exp(-((mean / sigma) ** 2) / 2) / np.sqrt(2 * np.pi)
        first = center * weight + sigma * density
        share += weight / 2
        moved += (first + scale * weight) / 2
        kept += sign * (mean * ndtr(mean / sigma) + sigma * density - first / 2)
    return share, moved + kept


def switch_density(released: Floats, value: float, predicted: float, sigma: float, scale: float) -> Floats:
    """Return the density of the released value given the true one.

    Examples
    --------
    >>> grid = np.linspace(-40, 40, 400_001)
    >>> round(float(np.trapezoid(switch_density(grid, 0.3, 0.5, 0.2, 1.0), grid)), 6)
    1.0
    """
    return np.exp(_log_density(released, value, predicted, sigma, scale))


def worst_log_ratio(epsilon: float, sigma: float, *, predicted: float = 0.0, points: int = 201) -> float:
    """Return a lower bound of the largest log ratio of densities between two true values in [0, 1].

    An epsilon-differentially private mechanism has at most epsilon. Here it is about 1 / (2 sigma²) where the
    prediction lies at an end of the range and sigma is small.

    Examples
    --------
    >>> round(worst_log_ratio(1.0, 0.5), 2), round(worst_log_ratio(1.0, 0.05))
    (1.64, 200)
    """
    if epsilon <= 0 or sigma <= 0:
        raise ParameterError("epsilon and sigma must be positive.")
    released = np.linspace(-2.0, 3.0, 20 * points)
    inputs = np.linspace(0.0, 1.0, points)
    logs = np.array([_log_density(released, x, predicted, sigma, 1 / epsilon) for x in inputs])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def _log_density(released: Floats, value: float, predicted: float, sigma: float, scale: float) -> Floats:
    from scipy.special import log_ndtr

    away = np.abs(released - value)
    kept = (
        -((released - predicted) ** 2) / (2 * sigma**2)
        - np.log(sigma * np.sqrt(2 * np.pi))
        + np.log1p(-np.exp(-away / scale) / 2)
    )
    # The candidate lay nearer to the value than the released one: an interval around the value.
    high = (released - predicted) / sigma
    low = (2 * value - released - predicted) / sigma
    # In the upper tail the difference of two probabilities near 1 is that of two small ones on the other side.
    flip = low > 0
    high, low = np.where(flip, -low, high), np.where(flip, -high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = log_ndtr(high) + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))
        noisy = np.where(released > value, -away / scale - np.log(2 * scale) + between, -np.inf)
    return np.asarray(np.logaddexp(kept, noisy))
