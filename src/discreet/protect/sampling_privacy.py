"""How large must classes be when only a random sample is released, so that nobody's part in it shows?

A Bernoulli sample, generalized in a way that does not depend on it, of which only classes of at least k records are
released, is (epsilon, delta)-differentially private if k is large enough (Li, Qardaji, Su 2012; Bild, Kuhn, Prasser
2018). This module finds the smallest such k, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from discreet.core.constraints import Above, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

_CAUTION = 1 + 1e-9
_GRID = tuple(round(0.05 * step, 2) for step in range(1, 20))


def highest_rate(epsilon: float) -> float:
    """Give the largest sampling rate that a budget admits: 1 - exp(-epsilon).

    Examples
    --------
    >>> round(highest_rate(0.9), 6)
    0.59343
    """
    # Rounded down: a rate a last digit above the bound would not be covered by the proof.
    top = -math.expm1(-epsilon)
    return math.nextafter(math.nextafter(top, 0.0), 0.0)


def telling_share(epsilon: float, rate: float) -> float:
    """Give the share gamma of a class above which its sampled size tells too much about one member.

    Examples
    --------
    >>> round(telling_share(0.9, highest_rate(0.9)), 6)
    0.834701
    """
    return 1.0 - (1.0 - rate) * math.exp(-epsilon)


def delta_of(k: int, epsilon: float, rate: float) -> float:
    """Bound the chance that a released class of at least ``k`` records tells too much.

    The largest P[Bin(n, rate) > gamma n] over all n that can give k records. Terms are added until the Chernoff
    bound exp(-n KL(gamma, rate)), which falls in n, rules out that a later one is larger.

    Examples
    --------
    >>> f"{delta_of(44, 0.9, highest_rate(0.9)):.4e}"
    '9.8983e-05'
    """
    from scipy.stats import binom

    gamma = telling_share(epsilon, rate)
    # 1 - gamma is (1 - rate) exp(-epsilon), which stays a number where gamma is rounded to 1.
    spread = gamma * math.log(gamma / rate) - (1 - rate) * math.exp(-epsilon) * epsilon
    n = max(math.ceil(k / gamma - 1 - 1e-9), 1)
    worst, length = 0.0, 64
    while True:
        sizes = np.arange(n, n + length)
        # A product that rounding lifts over a whole number must not shorten the tail.
        least = np.maximum(np.floor(gamma * sizes * (1 - 1e-13)) + 1, k)
        worst = max(worst, float(binom.sf(least - 1, sizes, rate).max()))
        n += length
        length = min(2 * length, 65_536)
        if math.exp(-n * spread) <= worst or n * spread > 745:
            return worst * _CAUTION


def smallest_k(epsilon: float, delta: float, rate: float) -> int:
    """Find the smallest class size at which a sample of this rate is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta
        The budget of the release; epsilon without what is spent on choosing the levels.
    rate
        The sampling rate.

    Examples
    --------
    >>> smallest_k(0.9, 1e-4, 0.2), smallest_k(0.9, 1e-4, highest_rate(0.9))
    (10, 44)
    """
    top = highest_rate(epsilon)
    if not 0 < rate <= top * (1 + 1e-12):
        raise ParameterError(
            f"sampling_rate must be above 0 and at most {top:.6f}, which is the most that epsilon={epsilon:g} for "
            "the release admits."
        )
    high = 2
    while delta_of(high, epsilon, rate) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if delta_of(middle, epsilon, rate) > delta:
            low = middle
        else:
            high = middle
    return max(high, 2)


@dataclass(frozen=True)
class SamplingPlan:
    """What sampling rates cost, and the one that gives the finest classes.

    ``table`` has for each ``rate`` the class size ``k`` and ``k_per_rate``, the size in records of the file.
    """

    rate: float
    k: int
    table: pl.DataFrame


@checked
def sampling_plan(
    epsilon: Annotated[float, Above(0)],
    delta: Annotated[float, Share(above=True, below=True)],
    rates: Sequence[float] | None = None,
) -> SamplingPlan:
    """Choose the sampling rate that needs the smallest classes, relative to what is sampled.

    Nothing of the data is looked at: k(rate) / rate is the size of the smallest class that is expected to be
    released, counted in the file.

    Parameters
    ----------
    epsilon, delta
        The budget of the release; epsilon without what is spent on choosing the levels.
    rates
        The rates to choose from; 0.05, 0.10, … and the highest possible unless given.

    Examples
    --------
    >>> plan = sampling_plan(0.9, 1e-4)
    >>> plan.rate, plan.k
    (0.25, 12)
    """
    top = highest_rate(epsilon)
    chosen = [rate for rate in _GRID if rate < top] + [top] if rates is None else list(rates)
    table = pl.DataFrame(
        {"rate": chosen, "k": [smallest_k(epsilon, delta, rate) for rate in chosen]}
    ).with_columns(k_per_rate=pl.col("k") / pl.col("rate"))
    best = table.sort("k_per_rate", "rate", descending=[False, True]).row(0, named=True)
    return SamplingPlan(best["rate"], best["k"], table)
