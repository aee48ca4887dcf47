"""Parametric families: fitted to data by maximum likelihood or moments, or put together from a mean and an sd."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError, near_misses
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.draws import Draws, Size, shape_of

FitMethod = Literal["auto", "ml", "moments"]

#: Families of positive numbers: their origin is known to be 0, and a fitted one would run into the smallest value.
_FROM_ZERO = ("expon", "gamma", "lognorm", "weibull_min", "weibull_max", "invgamma", "fisk", "burr12", "chi2")


@dataclass(frozen=True)
class FittedFamily:
    """A parametric family with its parameters, and where these came from.

    Attributes
    ----------
    family
        As scipy.stats calls it.
    parameters
        By scipy's names: shapes, ``loc``, ``scale``.
    method
        ``"ml"`` or ``"moments"``.
    fixed
        Parameters that were set and not estimated.
    n
        Number of values.
    log_likelihood, aic
        Of the fit.
    tried
        AIC of every family that was tried, where several were.
    """

    family: str
    parameters: Mapping[str, float]
    method: str
    fixed: tuple[str, ...] = ()
    n: int = 0
    log_likelihood: float = np.nan
    aic: float = np.nan
    tried: Mapping[str, float] = field(default_factory=dict)

    @property
    def distribution(self) -> Any:
        """The frozen scipy distribution."""
        return _family(self.family)(**self.parameters)

    def sample(self, size: Size, *, seed: Seed = None) -> Draws[Array]:
        """Draw from the family."""
        values = np.asarray(self.distribution.rvs(size=shape_of(size), random_state=generator(seed)))
        return Draws(
            values,
            {
                "method": f"{self.family} fitted by {self.method}",
                "draws": values.size,
                "parameters": dict(self.parameters),
                "fixed": self.fixed,
            },
        )


def fit_family(
    values: npt.ArrayLike,
    family: str | Sequence[str] = "norm",
    *,
    method: FitMethod = "auto",
    fixed: Mapping[str, float] | None = None,
) -> FittedFamily:
    """Fit a parametric family to values.

    Parameters
    ----------
    values
        Numbers; missing ones are left out.
    family
        A name of scipy.stats, e.g. ``"norm"``, ``"lognorm"``, ``"gamma"``, ``"poisson"``; several names take the one
        with the smallest AIC.
    method
        ``ml`` maximum likelihood, ``moments`` mean and sample variance, ``auto`` the usual one: mean and sample
        variance (divisor n - 1) for the normal, maximum likelihood for the others. The choice is recorded.
    fixed
        Parameters that are known, e.g. ``{"loc": 0}``. The origin of families of positive numbers is 0 unless
        given here.

    Examples
    --------
    >>> normal = fit_family([1.0, 2.0, 3.0], "norm")
    >>> normal.parameters, normal.method
    ({'loc': 2.0, 'scale': 1.0}, 'moments')
    """
    try:
        known = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        # The message of NumPy would show a value.
        raise ParameterError("values must be numbers; some are not.") from None
    known = known[~np.isnan(known)]
    if len(known) < 2 or not np.isfinite(known).all():
        raise ParameterError("A family needs at least two values, all of them finite.")
    if method not in ("auto", "ml", "moments"):
        raise ParameterError("method must be 'auto', 'ml' or 'moments'.")
    names = (family,) if isinstance(family, str) else tuple(family)
    if not names:
        raise ParameterError("family must name at least one family.")
    found: list[FittedFamily] = []
    reasons: list[str] = []
    for name in names:
        try:
            found.append(_fitted(name, known, method, dict(fixed or {})))
        except ParameterError as error:
            if len(names) == 1:
                raise
            reasons.append(str(error))
    if not found:
        raise ParameterError(f"None of the families fits: {' '.join(reasons)}")
    best = min(found, key=lambda fit: fit.aic)
    tried = {fit.family: fit.aic for fit in found} if len(names) > 1 else {}
    return FittedFamily(**{**best.__dict__, "tried": tried})


def fit_sample(
    values: npt.ArrayLike,
    family: str | Sequence[str] = "norm",
    size: Size | None = None,
    *,
    method: FitMethod = "auto",
    fixed: Mapping[str, float] | None = None,
    seed: Seed = None,
) -> Draws[Array]:
    """Fit a parametric family to values and draw from it, as many as there are values unless told otherwise.

    Examples
    --------
    >>> drawn = fit_sample([1.0, 2.0, 4.0], "expon", 5, seed=1)
    >>> len(drawn), round(drawn.diagnostics["parameters"]["scale"], 4)
    (5, 2.3333)
    """
    fit = fit_family(values, family, method=method, fixed=fixed)
    return fit.sample(np.size(values) if size is None else size, seed=seed)


def from_moments(family: str, mean: float, sd: float) -> dict[str, float]:
    """Give the scipy parameters of the member of a family that has this mean and standard deviation.

    Families: norm, uniform; for positive numbers lognorm, gamma, expon and truncnorm (a normal cut off at zero); beta
    for shares; bernoulli, poisson, geom and nbinom for counts. One-parameter families have the mean only.

    Examples
    --------
    >>> {name: round(value, 6) for name, value in from_moments("lognorm", 100, 150).items()}
    {'s': 1.085659, 'loc': 0.0, 'scale': 55.47002}
    """
    if family not in _MOMENTS:
        close = near_misses(family, _MOMENTS)
        raise ParameterError(
            f"'{family}' is no family with parameters from mean and sd. "
            + (f"Did you mean '{close[0]}'?" if close else f"There is: {', '.join(_MOMENTS)}.")
        )
    if not (np.isfinite(mean) and np.isfinite(sd) and sd >= 0):
        raise ParameterError("mean and sd must be finite numbers, and sd not negative.")
    return _MOMENTS[family](float(mean), float(sd))


def _positive(mean: float, sd: float, family: str) -> None:
    if mean <= 0 or sd <= 0:
        raise ParameterError(
            f"{family} needs a mean and an sd above 0. Use 'norm' for amounts that may be negative."
        )


def _lognorm(mean: float, sd: float) -> dict[str, float]:
    _positive(mean, sd, "lognorm")
    variance = np.log1p((sd / mean) ** 2)
    return {"s": float(np.sqrt(variance)), "loc": 0.0, "scale": float(mean * np.exp(-variance / 2))}


def _gamma(mean: float, sd: float) -> dict[str, float]:
    _positive(mean, sd, "gamma")
    return {"a": (mean / sd) ** 2, "loc": 0.0, "scale": sd**2 / mean}


def _expon(mean: float, _: float) -> dict[str, float]:
    _positive(mean, 1.0, "expon")
    return {"loc": 0.0, "scale": mean}


def _truncnorm(mean: float, sd: float) -> dict[str, float]:
    """Solve for the cut, by which the ratio of sd to mean rises from 0 to 1, then scale."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    _positive(mean, sd, "truncnorm")

    def shape(cut: float) -> tuple[float, float]:
        hazard = float(np.exp(-(cut**2) / 2 - np.log(np.sqrt(2 * np.pi)) - log_ndtr(-cut)))
        return hazard - cut, 1 + cut * hazard - hazard**2

    def excess(cut: float) -> float:
        middle, spread = shape(cut)
        return float(np.sqrt(max(spread, 0.0)) / middle - sd / mean)

    if excess(20.0) <= 0:
        raise ParameterError(
            "A normal cut off at zero has an sd below its mean. Use 'gamma' or 'lognorm' for amounts spread as these."
        )
    cut = float(brentq(excess, -max(10.0, 2 * mean / sd), 20.0, xtol=1e-13))
    scale = mean / shape(cut)[0]
    return {"a": cut, "b": float(np.inf), "loc": -cut * scale, "scale": scale}


def _beta(mean: float, sd: float) -> dict[str, float]:
    spare = mean * (1 - mean) / sd**2 - 1 if sd > 0 else np.inf
    if not 0 < mean < 1 or not 0 < spare < np.inf:
        raise ParameterError(
            "beta needs a mean between 0 and 1 and an sd above 0 and below sqrt(mean (1 - mean))."
        )
    return {"a": mean * spare, "b": (1 - mean) * spare, "loc": 0.0, "scale": 1.0}


def _counts(family: str, mean: float, sd: float) -> dict[str, float]:
    wrong, needs = {
        "bernoulli": (not 0 <= mean <= 1, "bernoulli needs a mean from 0 to 1."),
        "poisson": (mean < 0, "poisson needs a mean that is not negative."),
        "geom": (mean < 1, "geom counts from 1 and needs a mean of at least 1."),
        "nbinom": (
            mean <= 0 or sd**2 <= mean,
            "nbinom needs a variance above its mean. Use 'poisson' for counts less spread out.",
        ),
    }[family]
    if wrong:
        raise ParameterError(needs)
    if family == "nbinom":
        return {"n": mean**2 / (sd**2 - mean), "p": mean / sd**2}
    return {"mu": mean} if family == "poisson" else {"p": mean if family == "bernoulli" else 1 / mean}


_MOMENTS: Mapping[str, Callable[[float, float], dict[str, float]]] = {
    "norm": lambda mean, sd: {"loc": mean, "scale": sd},
    "lognorm": _lognorm,
    "gamma": _gamma,
    "expon": _expon,
    "truncnorm": _truncnorm,
    "beta": _beta,
    "uniform": lambda mean, sd: {"loc": mean - np.sqrt(3) * sd, "scale": 2 * np.sqrt(3) * sd},
    **{family: partial(_counts, family) for family in ("bernoulli", "poisson", "geom", "nbinom")},
}
#: Parameters that the moments do not set.
_BOUND: Mapping[str, tuple[str, ...]] = {
    "lognorm": ("loc",),
    "gamma": ("loc",),
    "expon": ("loc",),
    "beta": ("loc", "scale"),
    "truncnorm": ("b", "lower end"),
}
#: Where the mean is the maximum likelihood estimate.
_MEAN_IS_ML = ("bernoulli", "poisson", "geom")


def check_family(name: str) -> None:
    """Refuse what scipy.stats does not have, and name what comes near.

    Examples
    --------
    >>> check_family("gamma")
    """
    _family(name)


def _family(name: str) -> Any:
    from scipy import stats

    found = getattr(stats, name, None)
    if not isinstance(found, stats.rv_continuous | stats.rv_discrete):
        known = [item for item in dir(stats) if isinstance(getattr(stats, item), stats.rv_continuous)]
        close = near_misses(name, [*known, *_MOMENTS])
        raise ParameterError(
            f"scipy.stats has no family '{name}'. "
            + (
                f"Did you mean '{close[0]}'?"
                if close
                else "Use e.g. 'norm', 'lognorm', 'gamma' or 'poisson'."
            )
        )
    return found


def _fitted(name: str, values: Floats, method: FitMethod, fixed: dict[str, float]) -> FittedFamily:
    from scipy import stats

    family = _family(name)
    chosen = ("moments" if name == "norm" else "ml") if method == "auto" else method
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    discrete = isinstance(family, stats.rv_discrete)
    if discrete:
        parameters = _discrete(name, values, chosen, fixed)
    elif chosen == "moments" and name in _MOMENTS and not fixed:
        parameters = from_moments(name, mean, sd)
        fixed = {part: parameters.get(part, 0.0) for part in _BOUND.get(name, ())}
    else:
        if name in _FROM_ZERO or name == "beta":
            fixed = {"loc": 0.0, **({"scale": 1.0} if name == "beta" else {}), **fixed}
        parameters = _continuous(family, name, values, chosen, fixed)
    likelihood = float(np.sum((family.logpmf if discrete else family.logpdf)(values, **parameters)))
    if np.isnan(likelihood) or likelihood == -np.inf:
        raise ParameterError(f"The family '{name}' cannot have produced some of the values.")
    free = len(parameters) - len(fixed)
    return FittedFamily(
        name, parameters, chosen, tuple(fixed), len(values), likelihood, 2 * max(free, 1) - 2 * likelihood
    )


def _continuous(
    family: Any, name: str, values: Floats, method: str, fixed: Mapping[str, float]
) -> dict[str, float]:
    held = {f"f{key}": value for key, value in fixed.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = family.fit(values, method="MLE" if method == "ml" else "MM", **held)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ParameterError(
            f"The family '{name}' cannot be fitted to these values by {method}: some lie outside its range or a fixed "
            "parameter is unknown."
        ) from error
    shapes = [part.strip() for part in family.shapes.split(",")] if family.shapes else []
    return dict(zip([*shapes, "loc", "scale"], map(float, found), strict=True))


def _discrete(name: str, values: Floats, method: str, fixed: Mapping[str, float]) -> dict[str, float]:
    if name not in _MOMENTS or fixed:
        raise ParameterError(
            "Families of counts that can be fitted are bernoulli, poisson, geom and nbinom, without fixed parameters."
        )
    if (values != np.round(values)).any():
        raise ParameterError(f"The family '{name}' is for whole numbers.")
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    start = from_moments(name, mean, sd)
    if method == "moments" or name in _MEAN_IS_ML:
        return start
    from scipy.optimize import minimize_scalar
    from scipy.stats import nbinom

    # Given the size, the best probability has the right mean; so only the size is searched.
    counted, how_often = np.unique(values, return_counts=True)
    found = minimize_scalar(
        lambda log_n: (
            -float(how_often @ nbinom.logpmf(counted, np.exp(log_n), np.exp(log_n) / (np.exp(log_n) + mean)))
        ),
        bounds=(np.log(start["n"]) - 5, np.log(start["n"]) + 5),
        method="bounded",
    )
    size = float(np.exp(found.x))
    return {"n": size, "p": size / (size + mean)}
