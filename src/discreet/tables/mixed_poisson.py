"""Synthetic tables of counts from mixed Poisson laws, and the (epsilon, delta) that these keep.

Both laws are Poisson counts whose mean is multiplied by a random factor of mean 1 and variance ``dispersion``: gamma
factors give the negative binomial, inverse Gaussian ones the Poisson-inverse-Gaussian law. The variance of a count of
mean m is m + dispersion * m², so that large cells move too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled
from discreet.core.errors import ParameterError
from discreet.dp.entropy import Stream
from discreet.tables import poisson
from discreet.tables.count_synthesis import CountSynthesis

_BLOCK = 32
_LEAST_DISPERSION = 1e-3
_LARGEST_ALPHA = 1e4
_MOST_CHANCES = 20_000_000


@dataclass(frozen=True)
class _MixedSynthesis(CountSynthesis):
    """Syntheses whose law has a dispersion as well."""

    dispersion: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law()

    @abstractmethod
    def law(self) -> MixedPoisson:
        """The law of the counts."""

    def drawn(self, means: Floats, alpha: float, stream: Stream) -> Integers:
        """Draw counts of this law."""
        return self.law().draw(means + alpha, stream())

    def variance(self, means: Floats) -> Floats:
        """Poisson's variance and that of the random factors."""
        return means + self.dispersion * means**2

    def calibrated(self, epsilon: float, delta: float) -> float:
        """By the chances of the law."""
        return self.law().calibrate(epsilon, delta)

    def least_epsilon(self, alpha: float, delta: float) -> float:
        """By the chances of the law, to a millionth."""
        return poisson.least_epsilon(lambda epsilon: self.law().delta(alpha, epsilon), delta, 20)

    def deltas(self, alpha: float, epsilon: float) -> dict[str, float]:
        """The tight delta, worked out from the chances of the law."""
        return {"delta": self.law().delta(alpha, epsilon)}


@dataclass(frozen=True)
class NegativeBinomialSynthesis(_MixedSynthesis):
    """Draw every cell of a table of counts from a negative binomial law around its count.

    It protects against learning any single count, large ones included: every published number is a random draw.

    As `PoissonSynthesis`, with a second dial: the variance of a cell of mean m is m + dispersion * m², so that large
    cells, which Poisson leaves nearly as they are, move as well.

    Also known as: negative binomial synthesis; NBI.

    Parameters
    ----------
    alpha, epsilon, delta, model, domain, copies, total, accept_no_guarantee
        As in `PoissonSynthesis`.
    dispersion
        The variance of the random factor of mean 1 that every mean is multiplied by; at least 0.001.

    Notes
    -----
    The factors are drawn in floating point, so that no guarantee is claimed; ``figures`` has the epsilon and delta that
    the law would keep.

    What it costs
    -------------
    All cells move, large ones by a share of about the root of the dispersion.

    When not to use it
    ------------------
    Do not use it where totals must be close: margins are sums of cells that all moved.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 90 + ["b"] * 60}), "place")
    >>> result = NegativeBinomialSynthesis(alpha=1, epsilon=2, dispersion=0.1).apply(table, seed=1)
    >>> result.guarantee is None, round(result.figures["delta"], 4)
    (True, 0.0234)
    """

    def law(self) -> MixedPoisson:
        """The negative binomial law."""
        return NegativeBinomial(self.dispersion)


@dataclass(frozen=True)
class PoissonInverseGaussianSynthesis(_MixedSynthesis):
    """Draw every cell of a table of counts from a Poisson-inverse-Gaussian law around its count.

    It protects against learning any single count, large ones included: every published number is a random draw.

    As `NegativeBinomialSynthesis`, with factors of an inverse Gaussian law, whose rare large ones are larger.

    Also known as: PIG synthesis; Poisson-inverse-Gaussian.

    Parameters
    ----------
    alpha, epsilon, delta, model, domain, copies, total, accept_no_guarantee
        As in `PoissonSynthesis`.
    dispersion
        The variance of the random factor of mean 1; at least 0.001.

    Notes
    -----
    No guarantee is claimed, as in `NegativeBinomialSynthesis`.

    What it costs
    -------------
    All cells move, a few of them much further than with the negative binomial.

    When not to use it
    ------------------
    Do not use it where totals must be close: margins are sums of cells that all moved.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 90 + ["b"] * 60}), "place")
    >>> made = PoissonInverseGaussianSynthesis(alpha=1, domain="observed").apply(table, seed=1)
    >>> made.guarantee is None, made.table.cells.height
    (True, 3)
    """

    def law(self) -> MixedPoisson:
        """The Poisson-inverse-Gaussian law."""
        return PoissonInverseGaussian(self.dispersion)


@dataclass(frozen=True)
class MixedPoisson(ABC):
    """A Poisson law with a random factor of mean 1 and the given variance."""

    dispersion: float

    def __post_init__(self) -> None:
        if not (self.dispersion >= _LEAST_DISPERSION and math.isfinite(self.dispersion)):
            raise ParameterError(
                f"dispersion must be at least {_LEAST_DISPERSION}; with less it is hardly different from "
                f"PoissonSynthesis."
            )

    @abstractmethod
    def factors(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw the factors."""

    @abstractmethod
    def pmf(self, mean: float, most: int) -> Floats:
        """The chances of 0, 1, …, ``most``."""

    @abstractmethod
    def factor_delta(self, ratio: float, epsilon: float) -> float:
        """The delta of the factors alone, where the two means have this ratio: a bound on that of the counts."""

    def draw(self, means: Floats, rng: np.random.Generator) -> Integers:
        """Draw one count a mean."""
        return rng.poisson(means * self.factors(len(means), rng))

    def delta_at(self, count: int, alpha: float, epsilon: float) -> float:
        """The tight delta of one person more or less in a cell of this count, both directions.

        What lies beyond the last chance that is written out is counted as lost.
        """
        more, less = count + alpha, count - 1 + alpha
        most = int(
            20 + 2 * more + 60 * math.sqrt(more + self.dispersion * more**2) + 60 * self.dispersion * more
        )
        if most > _MOST_CHANCES:
            raise ParameterError(
                f"A dispersion of {self.dispersion:g} with an alpha of {alpha:g} spreads counts too far for the delta "
                "to be worked out. Choose a smaller dispersion, or a larger epsilon or delta."
            )
        p, q = self.pmf(more, most), self.pmf(less, most)
        odds = math.exp(epsilon)
        beyond = max(0.0, 1.0 - float(p.sum())) if p.sum() < 1 - 1e-13 else 0.0
        up = float(np.maximum(p - odds * q, 0).sum()) + beyond
        down = float(np.maximum(q - odds * p, 0).sum()) + beyond
        return max(up, down)

    def delta(self, alpha: float, epsilon: float) -> float:
        """The tight delta over all counts.

        Counts are searched from 1 upward. Drawing the factor and then the count hides no less than the factor alone,
        whose delta falls as the two means come closer together; the search ends where that bound is reached.

        Examples
        --------
        >>> NegativeBinomial(0.1).delta(1.0, 2.0) < 0.03
        True
        """
        if not alpha > 0 or not 0 < epsilon <= poisson.MOST_EPSILON:
            raise ParameterError(
                f"alpha must be more than 0, and epsilon too and at most {poisson.MOST_EPSILON}."
            )
        best, count = 0.0, 1
        while True:
            best = max(best, *(self.delta_at(count + i, alpha, epsilon) for i in range(_BLOCK)))
            count += _BLOCK
            if self.factor_delta((count + alpha) / (count - 1 + alpha), epsilon) <= max(best, 1e-300):
                return best

    def calibrate(self, epsilon: float, delta: float) -> float:
        """The smallest pseudocount, to within one percent, that reaches a wanted guarantee; it is recomputed."""
        if not 0 < delta < 1:
            raise ParameterError(
                "delta must be above 0 and below 1: with this law no alpha reaches a delta of 0."
            )
        alpha, step = 1e-3, 1.5
        while self.delta(alpha, epsilon) > delta:
            alpha *= step
            if alpha > _LARGEST_ALPHA:
                raise ParameterError(
                    "No alpha below 10,000 reaches this guarantee. Choose a larger epsilon or delta."
                )
        low, high = alpha / step, alpha
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.delta(middle, epsilon) <= delta else (middle, high)
        return high


@dataclass(frozen=True)
class NegativeBinomial(MixedPoisson):
    """Poisson counts with gamma factors."""

    def factors(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw gamma factors."""
        return rng.gamma(1 / self.dispersion, self.dispersion, size)

    def pmf(self, mean: float, most: int) -> Floats:
        """The chances of 0, 1, …"""
        from scipy.stats import nbinom

        shape = 1 / self.dispersion
        return np.asarray(nbinom.pmf(np.arange(most + 1), shape, shape / (shape + mean)))

    def factor_delta(self, ratio: float, epsilon: float) -> float:
        """The delta between gamma laws of the same shape whose scales have this ratio."""
        from scipy.special import gammainc, gammaincc

        shape = 1 / self.dispersion
        slope, odds = 1 - 1 / ratio, math.exp(epsilon)
        above = (epsilon + shape * math.log(ratio)) / slope
        below = (shape * math.log(ratio) - epsilon) / slope
        up = gammaincc(shape, above / ratio) - odds * gammaincc(shape, above)
        down = gammainc(shape, below) - odds * gammainc(shape, below / ratio) if below > 0 else 0.0
        return float(max(up, down, 0.0))


@dataclass(frozen=True)
class PoissonInverseGaussian(MixedPoisson):
    """Poisson counts with inverse Gaussian factors."""

    def factors(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw inverse Gaussian factors."""
        return rng.wald(1.0, 1 / self.dispersion, size)

    def pmf(self, mean: float, most: int) -> Floats:
        """The chances of 0, 1, …, by a recursion whose terms are all positive."""
        return np.asarray(_inverse_gaussian_chances(float(mean), self.dispersion, most))

    def factor_delta(self, ratio: float, epsilon: float) -> float:
        """The delta between inverse Gaussian laws of the same shape whose means have this ratio."""
        from scipy.stats import invgauss

        s, odds = self.dispersion, math.exp(epsilon)
        slope, pull = 1 - 1 / ratio, ratio - 1

        def place(bound: float) -> float:
            """Where slope * x - pull / x is the bound: the log ratio of the densities rises with x."""
            return (bound + math.sqrt(bound**2 + 4 * slope * pull)) / (2 * slope)

        above = place(2 * s * (epsilon - 0.5 * math.log(ratio)))
        below = place(2 * s * (-epsilon - 0.5 * math.log(ratio)))
        law = invgauss(mu=s, scale=1 / s)
        up = law.sf(above / ratio) - odds * law.sf(above)
        down = law.cdf(below) - odds * law.cdf(below / ratio)
        return float(max(up, down, 0.0))


@compiled
def _inverse_gaussian_chances(mean: float, s: float, most: int) -> Floats:
    spread = 1 + 2 * s * mean
    found = np.zeros(most + 1)
    found[0] = math.exp((1 - math.sqrt(spread)) / s)
    if most > 0:
        found[1] = mean * found[0] / math.sqrt(spread)
    one, two = 2 * s * mean / spread, mean**2 / spread
    for y in range(2, most + 1):
        found[y] = one * (1 - 1.5 / y) * found[y - 1] + two / (y * (y - 1)) * found[y - 2]
    return found
