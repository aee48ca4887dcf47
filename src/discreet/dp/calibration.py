"""How much noise does a promise need, and what does a given noise promise?

Balle and Wang (2018) give the exact curve of Gaussian noise; Canonne, Kamath and Steinke (2020) that of discrete
Gaussian noise and the conversion of zero-concentrated differential privacy (Bun and Steinke 2016).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.dp.budget import checked_epsilon

Calibration = Literal["analytic", "classical"]

_STEPS = 200  # of bisection: more than the digits of a float
_CAUTION = 1e-9  # relative; covers the rounding of the functions that are inverted


@checked
def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """The smallest delta for which Gaussian noise of this spread is (epsilon, delta)-differentially private.

    Examples
    --------
    >>> round(gaussian_delta(3.7306, 1.0, 1.0) * 1e5, 3)
    1.0
    """
    if not (sigma > 0 and sensitivity > 0 and epsilon >= 0):
        raise ParameterError("sigma and sensitivity must be above 0, and epsilon 0 or more.")
    above = sensitivity / (2 * sigma) - epsilon * sigma / sensitivity
    below = -sensitivity / (2 * sigma) - epsilon * sigma / sensitivity
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(above)), epsilon + float(log_ndtr(below))
    if second >= first:
        return 0.0
    return math.exp(first) * -math.expm1(second - first)


@checked
def gaussian_sigma(
    sensitivity: float, epsilon: float, delta: float, *, calibration: Calibration = "analytic"
) -> float:
    """How widely must Gaussian noise spread for (epsilon, delta)?

    Parameters
    ----------
    sensitivity
        How far one unit can move the answer, as a length (L2 norm).
    epsilon, delta
        The promise.
    calibration
        ``"analytic"``: the smallest spread that keeps it, for every epsilon. ``"classical"``: the textbook formula
        ``sensitivity * sqrt(2 log(1.25 / delta)) / epsilon``, proved for epsilon below 1 only and never smaller.

    Examples
    --------
    >>> round(gaussian_sigma(1, 1, 1e-5), 4), round(gaussian_sigma(1, 0.1, 1e-6), 3)
    (3.7306, 36.305)
    >>> round(gaussian_sigma(1, 0.1, 1e-6, calibration="classical"), 3)
    52.988
    """
    _check(sensitivity, epsilon, delta)
    if calibration == "classical":
        if epsilon >= 1:
            raise ParameterError(
                "calibration='classical' is proved for epsilon below 1 only. Use calibration='analytic'."
            )
        return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    if calibration != "analytic":
        raise ParameterError("calibration must be 'analytic' or 'classical'.")
    low = high = 0.0  # logarithms of the spread in units of the sensitivity
    while gaussian_delta(math.exp(high), 1.0, epsilon) > delta:
        high += 1.0
    while gaussian_delta(math.exp(low), 1.0, epsilon) <= delta:
        low -= 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if gaussian_delta(math.exp(middle), 1.0, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return sensitivity * math.exp(high) * (1 + _CAUTION)


def discrete_gaussian_delta(variance: float, steps: int, epsilon: float) -> float:
    """The smallest delta of one discrete Gaussian draw when one unit can move the answer by ``steps`` whole numbers.

    Examples
    --------
    >>> discrete_gaussian_delta(100.0, 1, 1.0) < 1e-20
    True
    """
    sigma = math.sqrt(variance)
    reach = math.ceil(40 * sigma) + 2 * steps
    middle = epsilon * variance / steps
    first = _tail(middle - steps / 2, variance, reach)
    second = _tail(middle + steps / 2, variance, reach)
    return max((first - math.exp(epsilon) * second) / _mass(variance, reach), 0.0) * (1 + _CAUTION)


def _tail(above: float, variance: float, reach: int) -> float:
    """The unscaled chance of a discrete Gaussian above a point."""
    start = math.floor(above) + 1
    if start > reach:
        return 0.0
    if start <= 0:
        return _mass(variance, reach) - _tail(-start, variance, reach)
    values = np.arange(start, reach + 1, dtype=np.float64)
    return float(np.exp(-values * values / (2 * variance))[::-1].sum())


def _mass(variance: float, reach: int) -> float:
    values = np.arange(1, reach + 1, dtype=np.float64)
    return 1.0 + 2.0 * float(np.exp(-values * values / (2 * variance))[::-1].sum())


@checked
def zcdp_from(epsilon: float, delta: float) -> float:
    """The rho whose textbook conversion gives (epsilon, delta).

    It is the inverse of `epsilon_from_zcdp` with ``tight=False``.

    Examples
    --------
    >>> round(zcdp_from(1, 1e-8), 8), round(zcdp_from(1, 1e-6), 8)
    (0.01321536, 0.0174689)
    """
    _check(1.0, epsilon, delta)
    log = -math.log(delta)
    # The difference of two roots, written so that nothing cancels.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


@checked
def epsilon_from_zcdp(rho: float, delta: float, *, tight: bool = True) -> float:
    """The epsilon that rho promises together with delta.

    Parameters
    ----------
    rho
        The bound of zero-concentrated differential privacy.
    delta
        The failure that is accepted.
    tight
        Whether the best known conversion is used (Canonne, Kamath and Steinke 2020, proposition 12) or the textbook
        ``rho + 2 sqrt(rho log(1 / delta))``.

    Examples
    --------
    >>> round(epsilon_from_zcdp(0.01321536, 1e-8, tight=False), 6)
    1.0
    >>> epsilon_from_zcdp(0.1, 1e-6) < epsilon_from_zcdp(0.1, 1e-6, tight=False)
    True
    """
    if rho < 0 or not math.isfinite(rho):
        raise ParameterError("rho must be a number of 0 or more.")
    _check(1.0, 1.0, delta)
    if rho == 0:
        return 0.0
    textbook = rho + 2 * math.sqrt(rho * -math.log(delta))
    if not tight:
        return textbook
    return min(textbook, epsilon_from_renyi(lambda order: order * rho, delta))


@checked
def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho that still promises (epsilon, delta), by the tight conversion.

    Examples
    --------
    >>> rho = largest_rho(1, 1e-5)
    >>> epsilon_from_zcdp(rho, 1e-5) <= 1, rho > zcdp_from(1, 1e-5)
    (True, True)
    """
    return _largest_rho(float(epsilon), float(delta))


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float) -> float:
    """Search for `largest_rho`, once for a budget: a fit of a small file takes less than the search."""
    low = zcdp_from(epsilon, delta)
    high = low
    while epsilon_from_zcdp(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if epsilon_from_zcdp(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * (1 - _CAUTION)


def epsilon_from_renyi(curve: object, delta: float) -> float:
    """The epsilon that a curve of Rényi divergences promises together with delta.

    Parameters
    ----------
    curve
        A function: the bound on the divergence at an order above 1.
    delta
        The failure that is accepted.
    """
    if not callable(curve):
        raise ParameterError("curve must be a function of the order.")

    def epsilon_at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return float(curve(order) + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / excess)

    # Any order gives a valid bound, so a search that misses the best one costs noise, not privacy.
    grid = np.linspace(-8.0, 14.0, 89)
    values = [epsilon_at(place) for place in grid]
    at = int(np.argmin(values))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(epsilon_at, bounds=(float(low), float(high)), method="bounded")
    return max(min(values[at], float(found.fun)), 0.0)


def _check(sensitivity: float, epsilon: float, delta: float) -> None:
    if not sensitivity > 0 or not math.isfinite(sensitivity):
        raise ParameterError("sensitivity must be a number of more than 0.")
    checked_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ParameterError("delta must lie between 0 and 1, and be neither.")
