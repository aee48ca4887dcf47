"""How much noise does a promise need, and what does a given noise promise?

Balle and Wang (2018) give the exact curve of Gaussian noise; Canonne, Kamath and Steinke (2020) that of discrete
Gaussian noise and the conversion of zero-concentrated differential privacy (Bun and Steinke 2016). Budgets that can be
honored come after it, and what many noisy steps cost that each look at a random part of the records.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.constraints import Above, AtLeast, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

Calibration = Literal["analytic", "classical"]

_STEPS = 200  # of bisection: more than the digits of a float
_CAUTION = 1e-9  # relative; covers the rounding of the functions that are inverted


@checked
def gaussian_delta(
    sigma: Annotated[float, Above(0)],
    sensitivity: Annotated[float, Above(0)],
    epsilon: Annotated[float, AtLeast(0)],
) -> float:
    """The smallest delta for which Gaussian noise of this spread is (epsilon, delta)-differentially private.

    Examples
    --------
    >>> round(gaussian_delta(3.7306, 1.0, 1.0) * 1e5, 3)
    1.0
    """
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
        fits = gaussian_delta(math.exp(middle), 1.0, epsilon) <= delta
        low, high = (low, middle) if fits else (middle, high)
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
def epsilon_from_zcdp(rho: Annotated[float, AtLeast(0)], delta: float, *, tight: bool = True) -> float:
    """The epsilon that rho promises together with delta.

    Also known as: zCDP; zero-concentrated differential privacy; Bun-Steinke.

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
        fits = epsilon_from_zcdp(middle, delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
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


# Which epsilons can be honored? Those for which the draws are exact.


SMALLEST_EPSILON = Fraction(1, 2**30)
LARGEST_EPSILON = Fraction(2**9)  # its exponential can still be written
_SMALLEST, _LARGEST = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)
GRID = 2**50
"""An epsilon is rounded down to a whole number of these parts: what is spent is never more than what was asked."""


def checked_epsilon(epsilon: Any, *, name: str = "epsilon") -> None:
    """Refuse an epsilon that is no number above 0, or lies where draws could not be exact.

    Examples
    --------
    >>> checked_epsilon(1e-20)
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: epsilon must lie between 9.31e-10 and 512, ...
    """
    number = isinstance(epsilon, int | float | Fraction) and not isinstance(epsilon, bool)
    if not number or not epsilon > 0 or not epsilon < math.inf:
        raise ParameterError(f"{name} must be a number of more than 0.")
    # Both bounds are powers of two, which floats hold exactly; comparing fractions would take ten times as long.
    if not _SMALLEST <= epsilon <= _LARGEST:
        raise ParameterError(
            f"{name} must lie between {float(SMALLEST_EPSILON):.3g} and {float(LARGEST_EPSILON):,.0f}, where noise can "
            "be drawn exactly. A smaller one would bury every count, a larger one would protect nothing."
        )


def rational_epsilon(epsilon: float | Fraction, parts: int = 1, *, name: str = "epsilon") -> Fraction:
    """Give one of ``parts`` equal shares of an epsilon as a fraction that the samplers take, never more than asked.

    Examples
    --------
    >>> rational_epsilon(0.5, 2), rational_epsilon(0.1) <= Fraction(1, 10)
    (Fraction(1, 4), True)
    """
    checked_epsilon(epsilon, name=name)
    share = _share(Fraction(epsilon), parts)
    if share is None:
        raise ParameterError(
            f"{name} is shared by {parts:,} draws about the same person, which leaves each less than "
            f"{float(SMALLEST_EPSILON):.3g}: too little to be drawn exactly. Raise it, or publish fewer cells."
        )
    return share


def noise_rate(epsilon: float | Fraction, moved: float | Fraction) -> Fraction:
    """Give one over the scale of Laplace noise in whole steps, for an answer that a unit can move by so many steps.

    To be asked before anything is spent: noise that would be too wide is refused.

    Examples
    --------
    >>> noise_rate(1.0, 4)
    Fraction(1, 4)
    """
    rate = Fraction(epsilon) / Fraction(moved)
    if rate < SMALLEST_EPSILON:
        raise ParameterError(
            "epsilon is too small for how far one person can move this answer: the noise would be too wide to be drawn "
            "exactly. Raise epsilon, or publish fewer numbers, with narrower bounds or fewer records of a person."
        )
    return rational_epsilon(rate)


@lru_cache(maxsize=1024)
def _share(epsilon: Fraction, parts: int) -> Fraction | None:
    share = epsilon / parts
    if share < SMALLEST_EPSILON:
        return None
    # A float is taken down to the grid as well: 0.1 as the machine holds it lies above one tenth.
    return Fraction(share.numerator * GRID // share.denominator, GRID)


# What do many noisy steps cost when each looks at a random part of the records?
#
# Every step takes each record with the same chance, by itself (Poisson sampling), and adds Gaussian noise to a sum. The
# Rényi divergence of such a step is known in closed form for continuous noise (Mironov, Talwar and Zhang 2019), and
# bounded for every mechanism whose own divergences are known (Zhu and Wang 2019, theorem 5). Discrete Gaussian noise
# has the divergences of the continuous one (Canonne, Kamath and Steinke 2020), so the second bound is proved for what
# is drawn here; it is larger by a little.


_LEAST_NOISE = 1e-6  # below, nothing is hidden and the squares underflow
_ORDERS = (*range(2, 65), *range(72, 257, 8), 320, 384, 512, 768, 1024)


@checked
def subsampled_gaussian_epsilon(
    noise: Annotated[float, Above(_LEAST_NOISE)],
    rate: Annotated[float, Share(above=True)],
    steps: Annotated[int, AtLeast(1)],
    delta: Annotated[float, Share(above=True, below=True)],
    *,
    discrete: bool = True,
    besides: float = 0.0,
) -> float:
    """The epsilon of so many subsampled Gaussian steps together, against adding or removing one record.

    Also known as: moments accountant; RDP accountant; Renyi differential privacy.

    Parameters
    ----------
    noise
        The standard deviation of the noise in units of the sensitivity.
    rate
        The chance of a record to be in a step.
    steps
        How many steps.
    delta
        The failure that is accepted in all.
    discrete
        Whether the noise is discrete, as this package draws it; False gives the closed form for continuous noise, with
        which other accountants can be compared.
    besides
        What was spent besides on the same records, in rho of zero-concentrated privacy.

    Examples
    --------
    >>> round(subsampled_gaussian_epsilon(1.0, 0.01, 1000, 1e-5, discrete=False), 1)
    2.1
    >>> subsampled_gaussian_epsilon(1.0, 0.01, 1000, 1e-5) > 2.1
    True
    """
    # Sampling never makes anything worse: looking at all records in every step is a bound as well.
    best = epsilon_from_zcdp(steps / (2 * noise * noise) + besides, delta)
    for order in _ORDERS:
        # A mechanism of rho has a divergence of at most rho times the order, at every order.
        spent = steps * _divergence(order, noise, rate, discrete=discrete) + order * besides
        epsilon = spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, epsilon)
    return max(best, 0.0)


@checked
def subsampled_gaussian_noise(
    epsilon: float, delta: float, rate: float, steps: int, *, besides: float = 0.0
) -> float:
    """The smallest noise, in units of the sensitivity, for which so many discrete steps keep (epsilon, delta).

    ``besides`` is what the same budget has to hold besides, in rho.

    Examples
    --------
    >>> noise = subsampled_gaussian_noise(1.0, 1e-6, 0.02, 500)
    >>> subsampled_gaussian_epsilon(noise, 0.02, 500, 1e-6) <= 1.0
    True
    """
    return _smallest_noise(float(epsilon), float(delta), float(rate), int(steps), float(besides))


@lru_cache(maxsize=256)
def _smallest_noise(epsilon: float, delta: float, rate: float, steps: int, besides: float) -> float:
    """Search for `subsampled_gaussian_noise`, once for a budget: several quantiles ask for the same."""
    low, high = 2.0**-6, 2.0**-5
    while subsampled_gaussian_epsilon(high, rate, steps, delta, besides=besides) > epsilon:
        low, high = high, 2 * high
        if high > 2.0**24:
            raise ParameterError(
                "So small a budget cannot be shared by so many steps. Take fewer, or raise epsilon."
            )
    for _ in range(16):
        middle = math.sqrt(low * high)
        fits = subsampled_gaussian_epsilon(middle, rate, steps, delta, besides=besides) <= epsilon
        low, high = (low, middle) if fits else (middle, high)
    return high


def _divergence(order: int, noise: float, rate: float, *, discrete: bool) -> float:
    """The Rényi divergence of one step, at a whole order."""
    k, ways = _ways(order, discrete)
    out = (order - k) * math.log1p(-rate) if rate < 1 else np.where(k == order, 0.0, -np.inf)
    logs = ways + out + k * math.log(rate) + (k * k - k) / (2 * noise * noise)
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    return max(total / (order - 1), 0.0) * (1 + 1e-9)


@lru_cache(maxsize=256)
def _ways(order: int, discrete: bool) -> tuple[Floats, Floats]:
    """The numbers 0…order and the logarithms of how many ways there are to choose so many."""
    from scipy.special import gammaln

    k = np.arange(order + 1, dtype=np.float64)
    ways = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    if discrete:
        # Moments from the third on are bounded by three times what continuous noise gives.
        ways[3:] += math.log(3.0)
    return k, ways
