"""Which correlation of latent normal variables gives two variables the correlation that was published?

A Gaussian copula bends correlations: two lognormal amounts whose logarithms correlate by 0.6 correlate by less
themselves. The way back (NORTA, "normal to anything", Cario and Nelson 1997) is in closed form for two lognormals; for
other pairs the correlation is a power series in the latent one, whose coefficients are those of the two quantile
functions in Hermite polynomials (Mehler's formula).

A variable in one unit (a sector, a region) has a margin of its own, and the correlation of two of them comes from the
best source there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.numerics.correlation import nearest_correlation
from discreet.synth.distributions.families import from_moments
from discreet.synth.saved_models import stored

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


# One variable in one unit (a sector, a region): from a share of its records to an amount.
Nature = Literal["amount", "signed", "share", "flag", "count"]

#: What the values of a family are, which decides how they are brought to a total.
NATURES: Mapping[str, Nature] = {
    "lognorm": "amount",
    "gamma": "amount",
    "expon": "amount",
    "truncnorm": "amount",
    "norm": "signed",
    "uniform": "signed",
    "beta": "share",
    "bernoulli": "flag",
    "poisson": "count",
    "nbinom": "count",
}
_LARGEST_TABLE = 10_000_000
_INVERTIBLE = (1e-300, 1 - 2.0**-53)
"""The shares that are neither 0 nor 1, where the quantiles of a family without an end are infinite."""


@stored("unit-margin")
@dataclass(frozen=True)
class UnitMargin:
    """The distribution of one variable in one unit.

    Attributes
    ----------
    family
        As scipy.stats calls it, or ``"constant"`` where there is no spread.
    parameters
        Of the family; ``{"value": …}`` of a constant.
    zero
        Probability of a zero besides the family.
    origin, unit
        The family describes (value - origin) / unit: the scaling, undone here.

    Examples
    --------
    >>> margin = UnitMargin.of("lognorm", 100.0, 150.0)
    >>> float(margin.quantile(np.array([0.5]))[0].round(4))
    55.47
    """

    family: str
    parameters: Mapping[str, float]
    zero: float = 0.0
    origin: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(
        cls,
        family: str,
        mean: float,
        sd: float,
        *,
        zero: float = 0.0,
        origin: float = 0.0,
        unit: float = 1.0,
    ) -> UnitMargin:
        """Find the member of the family with this mean and sd, zeros included."""
        if not 0 <= zero < 1:
            raise ParameterError("A share of zeros must be at least 0 and below 1.")
        above = mean / (1 - zero)
        variance = (sd**2 + mean**2) / (1 - zero) - above**2
        if variance < -1e-9 * above**2:
            raise ParameterError(
                f"With {zero:.0%} zeros the sd must be at least {abs(mean) * np.sqrt(zero / (1 - zero)):.6g}. Check "
                "the share of zeros."
            )
        spread = float(np.sqrt(max(variance, 0.0)))
        if spread <= 1e-12 * max(abs(above), 1e-300) and family not in ("bernoulli", "poisson"):
            return cls("constant", {"value": above}, zero)
        return cls(family, from_moments(family, (above - origin) / unit, spread / unit), zero, origin, unit)

    @property
    def nature(self) -> Nature:
        """What the values are: amounts, signed amounts, shares, flags or counts."""
        if self.family == "constant":
            return "amount" if self.parameters["value"] >= 0 else "signed"
        # An amount that was scaled with a moved origin may come out negative.
        return "signed" if self.origin and NATURES[self.family] == "amount" else NATURES[self.family]

    def quantile(self, uniform: Floats) -> Floats:
        """Return the values below which these shares of the unit lie."""
        if self.family == "constant":
            return np.where((uniform <= self.zero) & (self.zero > 0), 0.0, self.parameters["value"])
        inner = np.clip((uniform - self.zero) / (1 - self.zero), *_INVERTIBLE)
        drawn = _inverted(self.family, self.parameters, inner)
        if not np.isfinite(drawn).all():
            raise ParameterError(
                f"A {self.family} with this mean and sd reaches beyond the largest number there is. Check the mean and "
                "the sd, or choose a family with a shorter tail."
            )
        values = self.origin + self.unit * np.asarray(drawn)
        return np.where(uniform <= self.zero, 0.0, values) if self.zero else values


def _inverted(family: str, parameters: Mapping[str, float], shares: Floats) -> Floats:
    """Return the quantiles of a family, by the shortest way there is."""
    if family in ("norm", "lognorm"):
        from scipy.special import ndtri

        normal = ndtri(shares)
        if family == "norm":
            return np.asarray(parameters["loc"] + parameters["scale"] * normal)
        with np.errstate(over="ignore"):  # refused where it happens, by name
            return np.asarray(parameters["scale"] * np.exp(parameters["s"] * normal))
    if family == "truncnorm":
        return _truncated_normal(parameters, shares)
    from scipy import stats

    law = getattr(stats, family)(**parameters)
    if NATURES[family] != "count":
        return np.asarray(law.ppf(shares))
    # scipy searches for every share of a count anew; looking it up in a table is a hundred times faster.
    top = law.ppf(shares.max(initial=0.5))
    if not top <= _LARGEST_TABLE:
        return np.asarray(law.ppf(shares))
    return np.searchsorted(law.cdf(np.arange(int(top))), shares, side="left").astype(np.float64)


def _truncated_normal(parameters: Mapping[str, float], shares: Floats) -> Floats:
    """Return the quantiles of a normal variable that is cut off below.

    scipy's way through logarithms is infinite at the largest share below 1 on some processors, and a digit below the
    cut at the smallest. Here both tails are taken from the side on which they are small, and so keep their digits.
    """
    from scipy.special import ndtr, ndtri

    cut = parameters["a"]
    above = ndtr(-cut)
    upper = -ndtri(above * (1 - shares))
    lower = ndtri(ndtr(cut) + above * shares)
    normal = np.maximum(np.where(above * (1 - shares) < 0.5, upper, lower), cut)
    start = parameters["loc"] + parameters["scale"] * cut
    return np.asarray(start + parameters["scale"] * (normal - cut))


# How do the variables of a record hang together? A correlation from the best source there is.
Matrix = npt.ArrayLike | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Dependence:
    """Latent correlations, and what had to be done to them.

    Attributes
    ----------
    latent
        A correlation matrix of the latent normal variables for each unit.
    target
        The correlation of the data that was asked for; None where the latent one was given.
    source
        Where it came from.
    clipped
        Pairs whose target no two variables with these margins can have, and were clipped to the Fréchet limits.
    repaired
        The largest change that made a correlation matrix of what was none.
    notes
        In words.
    """

    latent: Floats
    target: Floats | None
    source: str
    clipped: tuple[tuple[str, str], ...] = ()
    repaired: float = 0.0
    notes: tuple[str, ...] = field(default=())


def as_matrix(given: Matrix, variables: Sequence[str], what: str) -> Floats:
    """Read a matrix in the order of the variables, or a mapping of mappings; pairs that are left out are 0.

    Examples
    --------
    >>> as_matrix({"a": {"b": 0.5}}, ["a", "b"], "correlation").tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    size = len(variables)
    if isinstance(given, Mapping):
        matrix = np.eye(size)
        for one, row in given.items():
            if not isinstance(row, Mapping):
                raise ParameterError(f"{what} must be a matrix or {{variable: {{variable: number}}}}.")
            for other, value in row.items():
                if one not in variables or other not in variables:
                    raise ParameterError(f"'{what}' names '{one}' and '{other}', one of which is not drawn.")
                i, j = variables.index(one), variables.index(other)
                matrix[i, j] = matrix[j, i] = value
    else:
        values = given.to_numpy() if isinstance(given, pl.DataFrame) else given
        try:
            matrix = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"{what} must be a matrix of numbers.") from None
    if matrix.shape != (size, size):
        raise ParameterError(
            f"{what} must have a row and a column for each of {', '.join(map(repr, variables))}."
        )
    if not np.isfinite(matrix).all() or np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * max(
        np.abs(matrix).max(), 1
    ):
        raise ParameterError(f"{what} must be symmetric, without missing numbers.")
    return matrix


def correlation_of_covariance(covariance: Floats) -> tuple[Floats, Floats]:
    """Split a covariance matrix into correlations and standard deviations."""
    if (np.diag(covariance) <= 0).any():
        raise ParameterError("covariance must have variances above 0 on its diagonal.")
    sds = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sds, sds), sds


def checked_correlation(matrix: Floats) -> Floats:
    """Refuse what is no table of correlations."""
    if np.abs(matrix).max() > 1 + 1e-9 or np.abs(np.diag(matrix) - 1).max() > 1e-9:
        raise ParameterError("correlation must have ones on its diagonal and numbers from -1 to 1 elsewhere.")
    return np.clip(matrix, -1.0, 1.0)


def random_correlation(size: int, rng: np.random.Generator) -> Floats:
    """Draw a correlation matrix: that of a Wishart matrix with one degree of freedom more than variables."""
    drawn = rng.standard_normal((size + 1, size))
    return correlation_of_covariance(drawn.T @ drawn)[0]


def between_units(means: Floats) -> tuple[Floats, float]:
    """Correlate the means of units, shrunk towards none as far as their number leaves in doubt.

    The intensity is Schäfer and Strimmer's (2005), with (1 - r²)² / (units - 1) for the variance of a correlation; but
    never below 1 / (units - 1), the r² that unrelated variables have by chance: few means nearly always line up.

    Examples
    --------
    >>> found, shrunk = between_units(np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.0]]))
    >>> round(float(found[0, 1]), 2), round(shrunk, 2)
    (0.67, 0.33)
    """
    units, size = means.shape
    varying = np.ptp(means, axis=0) > 0
    if units < 3:
        return np.eye(size), 1.0
    found = np.eye(size)
    found[np.ix_(varying, varying)] = np.corrcoef(means[:, varying], rowvar=False)
    off = found[~np.eye(size, dtype=bool)]
    doubt = ((1 - off**2) ** 2).sum() / (units - 1)
    shrunk = float(min(1.0, doubt / (off**2).sum())) if (off**2).sum() > 0 else 1.0
    shrunk = max(shrunk, 1 / (units - 1))
    kept = (1 - shrunk) * found
    np.fill_diagonal(kept, 1.0)
    return kept, shrunk


def normal_score_correlation(table: pl.DataFrame, units: Sequence[str], variables: Sequence[str]) -> Floats:
    """Correlate the normal scores of real records, ranked within their unit."""
    from discreet.protect.number_blocks import normal_scores

    parts = table.partition_by(units, maintain_order=True) if units else [table]
    scores = [
        np.column_stack(
            [
                normal_scores(part[name].cast(pl.Float64).fill_null(float("nan")).to_numpy())
                for name in variables
            ]
        )
        for part in parts
        if part.height > 2
    ]
    if not scores:
        raise ParameterError(
            "The microdata have no unit with more than two records, so nothing can be correlated."
        )
    stacked = np.nan_to_num(np.vstack(scores))
    spread = np.sqrt((stacked**2).sum(axis=0))
    found = stacked.T @ stacked / np.outer(np.maximum(spread, 1e-300), np.maximum(spread, 1e-300))
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def dependence_of(
    target: Floats,
    margins: Sequence[Sequence[UnitMargin]],
    variables: Sequence[str],
    *,
    latent: bool,
    source: str,
    notes: Sequence[str] = (),
) -> Dependence:
    """Turn one correlation matrix into a latent one for each unit, clipped and mended where it must be."""
    size, said = len(variables), list(notes)
    wanted = nearest_correlation(target)
    repaired = float(np.abs(wanted - target).max(initial=0.0))
    clipped: dict[tuple[str, str], None] = {}
    matrices = np.empty((len(margins), size, size))
    for row, unit in enumerate(margins):
        found = wanted.copy()
        if not latent:
            pairs = LatentPairs(unit)
            for i in range(size):
                for j in range(i):
                    pair = pairs.of(i, j, float(wanted[i, j]))
                    found[i, j] = found[j, i] = pair.correlation
                    if pair.clipped:
                        clipped.setdefault((variables[j], variables[i]))
        matrices[row] = nearest_correlation(found)
        repaired = max(repaired, float(np.abs(matrices[row] - found).max(initial=0.0)))
    if repaired > 1e-6:
        said.append(
            f"The correlations contradicted each other; the nearest that do not differ by up to {repaired:.3g}."
        )
    for one, other in clipped:
        said.append(
            f"No records with these margins correlate '{one}' and '{other}' as asked; the limit was taken."
        )
    return Dependence(matrices, None if latent else target, source, tuple(clipped), repaired, tuple(said))


def described(dependence: Dependence, variables: Sequence[str]) -> list[dict[str, Any]]:
    """List the correlations with their provenance, a row a pair."""
    rows = []
    for i in range(len(variables)):
        for j in range(i):
            pair = {"unit": None, "variable": f"{variables[j]} and {variables[i]}", "family": None}
            if dependence.target is not None:
                value = float(dependence.target[i, j])
                rows.append(
                    {**pair, "parameter": "correlation", "value": value, "provenance": dependence.source}
                )
            latent = float(dependence.latent[:, i, j].mean())
            how = dependence.source if dependence.target is None else "converted (NORTA)"
            rows.append({**pair, "parameter": "latent correlation", "value": latent, "provenance": how})
    return rows
