"""Which correlation of latent normal variables gives two variables the correlation that was published?

A Gaussian copula bends correlations: two lognormal amounts whose logarithms correlate by 0.6 correlate by less
themselves. The way back (NORTA, "normal to anything", Cario and Nelson 1997) is in closed form for two lognormals; for
other pairs the correlation is a power series in the latent one, whose coefficients are those of the two quantile
functions in Hermite polynomials (Mehler's formula).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.synth.from_aggregates.unit_margins import UnitMargin

_TERMS = 80
_GRID = 3001
_REACH = 9.0
_TRIALS = np.linspace(-1.0, 1.0, 4001)


@dataclass(frozen=True)
class Latent:
    """A latent correlation, the limits of what the two variables can reach, and whether the target was beyond them."""

    correlation: float
    low: float
    high: float
    clipped: bool


@dataclass(frozen=True, eq=False)
class _Curve:
    """A quantile function along the normal scale, centered and scaled, and its Hermite coefficients."""

    values: Floats
    coefficients: Floats


def latent_correlation(one: UnitMargin, other: UnitMargin, correlation: float) -> Latent:
    """Find the latent correlation of two margins; a target beyond the Fréchet limits is clipped to them.

    Examples
    --------
    >>> a, b = UnitMargin.of("lognorm", 100.0, 150.0), UnitMargin.of("lognorm", 40.0, 30.0)
    >>> round(latent_correlation(a, b, 0.484635).correlation, 4)
    0.6
    """
    return LatentPairs([one, other]).of(0, 1, correlation)


class LatentPairs:
    """The margins of one unit, pair by pair; a margin is prepared when it is first needed."""

    def __init__(self, margins: Sequence[UnitMargin]) -> None:
        self.margins = margins
        self._curves: dict[int, _Curve | None] = {}

    def of(self, i: int, j: int, correlation: float) -> Latent:
        """Find the latent correlation of two of the margins."""
        first, second = self.margins[i], self.margins[j]
        if _is_lognormal(first) and _is_lognormal(second):
            return _of_lognormals(first.parameters["s"], second.parameters["s"], correlation)
        one, other = self._curve(i), self._curve(j)
        if one is None or other is None:
            # A constant correlates with nothing.
            return Latent(0.0, 0.0, 0.0, clipped=False)
        weights = _normal_grid()[1]
        high = float((one.values * other.values) @ weights)
        low = float((one.values * other.values[::-1]) @ weights)
        target = float(np.clip(correlation, low, high))
        reached = (one.coefficients * other.coefficients) @ _powers()
        # The series is cut off; at the ends the limits are known.
        reached[0], reached[-1] = low, high
        reached = np.maximum.accumulate(np.clip(reached, low, high))
        found = float(np.interp(target, reached, _TRIALS))
        return Latent(found, low, high, clipped=abs(target - correlation) > 1e-3)

    def _curve(self, i: int) -> _Curve | None:
        if i not in self._curves:
            self._curves[i] = curve_of(self.margins[i])
        return self._curves[i]


def curve_of(margin: UnitMargin) -> _Curve | None:
    """Prepare a margin; None where it is a constant, and only there."""
    from scipy.special import gammaln, ndtr

    z, weights, hermite = _normal_grid()
    values = margin.quantile(ndtr(z))
    if np.ptp(values) == 0:
        return None
    values = values - values @ weights
    spread = float(np.sqrt((values**2) @ weights))
    if not (np.isfinite(spread) and spread > 0):
        raise ParameterError(
            f"The sd of a {margin.family} with these moments cannot be computed, so its correlation would be lost. "
            "Check the mean and the sd, or give the unit of the numbers."
        )
    values = values / spread
    if _is_lognormal(margin):
        k, s = np.arange(_TERMS), margin.parameters["s"]
        coefficients = np.exp(k * np.log(s) - gammaln(k + 1) / 2 - np.log(np.expm1(s**2)) / 2)
        coefficients[0] = 0.0
        return _Curve(values, coefficients)
    return _Curve(values, hermite @ (values * weights))


def _is_lognormal(margin: UnitMargin) -> bool:
    return margin.family == "lognorm" and margin.zero == 0


def _of_lognormals(first: float, second: float, correlation: float) -> Latent:
    both = np.sqrt(np.expm1(first**2) * np.expm1(second**2))
    low, high = (float(np.expm1(sign * first * second) / both) for sign in (-1, 1))
    target = float(np.clip(correlation, low, high))
    found = float(np.clip(np.log1p(target * both) / (first * second), -1.0, 1.0))
    return Latent(found, low, high, clipped=abs(target - correlation) > 1e-3)


@lru_cache(maxsize=1)
def _normal_grid() -> tuple[Floats, Floats, Floats]:
    """Points along the normal scale, their weights, and the normalized Hermite polynomials at them."""
    z = np.linspace(-_REACH, _REACH, _GRID)
    weights = np.exp(-(z**2) / 2)
    weights /= weights.sum()
    hermite = np.empty((_TERMS, _GRID))
    hermite[0], hermite[1] = 1.0, z
    for k in range(1, _TERMS - 1):
        hermite[k + 1] = (z * hermite[k] - np.sqrt(k) * hermite[k - 1]) / np.sqrt(k + 1)
    return z, weights, hermite


@lru_cache(maxsize=1)
def _powers() -> Floats:
    return _TRIALS ** np.arange(_TERMS)[:, None]
