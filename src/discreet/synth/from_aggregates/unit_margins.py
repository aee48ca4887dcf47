"""One variable in one unit (a sector, a region): from a share of its records to an amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.synth.distributions.families import from_moments

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

    def to_dict(self) -> dict[str, Any]:
        """Return the margin, ready for a model file."""
        return {**self.__dict__, "parameters": dict(self.parameters)}


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
