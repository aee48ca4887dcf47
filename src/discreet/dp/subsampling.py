"""What do many noisy steps cost when each looks at a random part of the records?

Every step takes each record with the same chance, by itself (Poisson sampling), and adds Gaussian noise to a sum. The
Rényi divergence of such a step is known in closed form for continuous noise (Mironov, Talwar and Zhang 2019), and
bounded for every mechanism whose own divergences are known (Zhu and Wang 2019, theorem 5). Discrete Gaussian noise has
the divergences of the continuous one (Canonne, Kamath and Steinke 2020), so the second bound is proved for what is
drawn here; it is larger by a little.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.dp.calibration import epsilon_from_zcdp

_LEAST_NOISE = 1e-6  # below, nothing is hidden and the squares underflow
_ORDERS = (*range(2, 65), *range(72, 257, 8), 320, 384, 512, 768, 1024)


@checked
def subsampled_gaussian_epsilon(
    noise: float, rate: float, steps: int, delta: float, *, discrete: bool = True, besides: float = 0.0
) -> float:
    """The epsilon of so many subsampled Gaussian steps together, against adding or removing one record.

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
    if not noise > _LEAST_NOISE or not 0 < rate <= 1 or not 0 < delta < 1 or steps < 1:
        raise ParameterError(
            f"noise must be above {_LEAST_NOISE:g}, rate and delta between 0 and 1, steps 1 or more."
        )
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
        if subsampled_gaussian_epsilon(middle, rate, steps, delta, besides=besides) <= epsilon:
            high = middle
        else:
            low = middle
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
