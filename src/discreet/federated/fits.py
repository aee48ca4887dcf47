"""A fitted model: estimates, standard errors, how well it fits, and tests of one model against another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Floats, numbers_of
from discreet.core.constraints import Above
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.wording import shown
from discreet.federated.covariance_models import Bounds, CovarianceModel, RAMModel, Saturated
from discreet.federated.leakage import Leakage, Transcript
from discreet.federated.normal_likelihood import Objective, from_moments, minimized, observed_information

if TYPE_CHECKING:
    from discreet.federated.secure_mle import SecureMLE


@dataclass(frozen=True, repr=False)
class Fit:
    """What `SecureMLE.fit` and `fit_from_moments` hand back.

    Attributes
    ----------
    estimates, standard_errors
        By the names of the parameters; a parameter on a bound has no standard error (NaN).
    minus_two_ll
        -2 log-likelihood at the estimates.
    df
        Means, variances and covariances less free parameters.
    converged
        Whether the search ended at a minimum.
    n_evaluations
        How often the likelihood was evaluated.
    boundary
        Parameters that ended on a bound (a Heywood case where it is a residual).
    both_scales
        Variances and covariances where the parameters are standard deviations.
    """

    model: CovarianceModel
    rows: float
    estimates: Mapping[str, float]
    standard_errors: Mapping[str, float]
    minus_two_ll: float
    df: int
    converged: bool
    n_evaluations: int
    boundary: tuple[str, ...]
    hessian: Floats
    both_scales: Mapping[str, float]
    moments: tuple[float, Floats, Floats] | None = None
    transcript: Transcript = field(default_factory=Transcript)
    leakage: Leakage = field(default_factory=lambda: Leakage("moments"))

    @property
    def parameters(self) -> Floats:
        """The estimates in the order of the model."""
        return np.array([self.estimates[name] for name in self.model.names])

    @property
    def implied(self) -> tuple[Floats, Floats]:
        """The mean and covariance at the estimates."""
        return self.model.implied(self.parameters)

    @property
    def loglik(self) -> float:
        """The log-likelihood."""
        return -self.minus_two_ll / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the fit, ready for JSON."""
        return {
            "rows": self.rows,
            "estimates": dict(self.estimates),
            "standard_errors": {
                name: None if math.isnan(value) else value for name, value in self.standard_errors.items()
            },
            "both_scales": dict(self.both_scales),
            "minus_two_ll": self.minus_two_ll,
            "df": self.df,
            "converged": self.converged,
            "n_evaluations": self.n_evaluations,
            "boundary": list(self.boundary),
            "leakage": self.leakage.to_dict(),
        }

    def to_html(self, path: str | Path, *, title: str = "a joint analysis") -> Path:
        """Write a page: the estimates, what each party learned, and how much was passed."""
        figures = {
            name: f"{value:.4f} (standard error {_error(self.standard_errors[name])})"
            for name, value in self.estimates.items()
        }
        figures |= {
            f"variance or covariance: {name}": f"{value:.4f}" for name, value in self.both_scales.items()
        }
        return self.leakage.to_html(
            path, title=title, figures={**figures, "-2 log-likelihood": f"{self.minus_two_ll:.6f}"}
        )

    def __str__(self) -> str:
        width = max(map(len, self.estimates))
        lines = [
            f"{name:<{width}}  {value: .4f}  (standard error {_error(self.standard_errors[name])})"
            for name, value in self.estimates.items()
        ]
        lines.append(
            f"-2 log-likelihood {self.minus_two_ll:,.3f}, {shown(self.rows)} rows, {self.df} degrees of freedom"
        )
        lines += [f"Variance or covariance: {name} = {value:.4f}" for name, value in self.both_scales.items()]
        if not self.converged:
            lines.append("The search did not end at a minimum: do not use these estimates.")
        if self.boundary:
            lines.append(f"On a bound: {', '.join(self.boundary)}; such a parameter has no standard error.")
        return "\n".join(lines)

    __repr__ = __str__


def fitted(run: SecureMLE, model: CovarianceModel, start: Any, bounds: Bounds | None, hessian: str) -> Fit:
    """Fit a model by secure evaluations."""
    if model.size != len(run.variables):
        raise ParameterError(
            f"The model has {model.size} variables, and the holders have {len(run.variables)}."
        )
    if run.mode == "sufficient":
        rows, mean, covariance = run.moments()
        found = fit_from_moments(
            rows, mean, covariance, model, start=start, bounds=bounds, optimizer=run.optimizer
        )
        return _told(found, run, 0)
    spread = np.zeros(len(run.variables))
    for joined in run._runs[:1]:
        named = {
            name: size
            for node, own in zip(joined.nodes, joined.columns, strict=True)
            for name, size in zip(own, joined.joined[node][1], strict=True)
        }
        spread = np.array([named[name] for name in run.variables])
    objective = Objective(model, run.rows, run.log_likelihood, lambda: max(run.predicted_error, 1e-9))
    before = run.evaluations
    found = _fit(objective, run.rows, start, bounds, hessian, spread, run.tol, run.optimizer, None)
    return _told(found, run, run.evaluations - before)


@checked
def fit_from_moments(
    n: Annotated[float, Above(1)], mean: Any, covariance: Any, model: CovarianceModel, *, start: Any = None,
    bounds: Any = None,
    unbiased: bool = False, tol: float = 1e-8, optimizer: Literal["scoring", "L-BFGS-B"] = "scoring",
) -> Fit:  # fmt: skip
    """Which parameters fit these means and covariances best? No rows are needed.

    Parameters
    ----------
    n
        Number of rows (or the sum of weights).
    mean, covariance
        Of the variables; the covariance divided by n.
    model
        The model: `latent_growth`, `factor_model`, `saturated` or a `RAMModel`.
    start
        Where to begin; the model knows a place unless given.
    bounds
        ``{parameter: (lowest, highest)}`` instead of those of the model.
    unbiased
        Whether the covariance was divided by n - 1.
    tol
        Relative tolerance of the minimum.
    optimizer
        ``"scoring"`` or ``"L-BFGS-B"``.

    Examples
    --------
    >>> fit = fit_from_moments(100, [1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]], Saturated(2))
    >>> round(fit.minus_two_ll, 4), fit.df
    (623.537, 0)
    """
    own = numbers_of(mean, "mean")
    spread = numbers_of(covariance, "covariance") * ((n - 1) / n if unbiased else 1.0)
    if own.shape != (model.size,) or spread.shape != (model.size, model.size):
        raise ParameterError(f"The model has {model.size} variables: give as many means and covariances.")
    if not np.allclose(spread, spread.T):
        raise ParameterError("covariance must be symmetric.")
    if isinstance(model, Saturated):
        return _without_model(n, own, spread, model)
    objective = Objective(
        model, n, lambda mu, sigma: from_moments(n, own, spread, mu, sigma), lambda: 1e-12,
        lambda place: _slope(model, n, own, spread, place),
    )  # fmt: skip
    sizes = np.sqrt(np.maximum(np.diag(spread), 0.0))
    begin = model.start(sizes) if start is None else start
    if start is None and isinstance(model, RAMModel):
        begin = _with_means(model, begin, own)
    return _fit(objective, n, begin, bounds, "observed", sizes, tol, optimizer, (n, own, spread))


def _fit(  # noqa: PLR0917
    objective: Objective, rows: float, start: Any, bounds: Bounds | None, hessian: str, spread: Floats, tol: float,
    optimizer: str, moments: tuple[float, Floats, Floats] | None,
) -> Fit:  # fmt: skip
    model = objective.model
    begin = model.start(spread) if start is None else _ordered(model, start)
    limits = model.limits() if bounds is None else bounds
    for name in limits:
        if name not in model.names:
            raise ParameterError(f"bounds name '{name}', which is no free parameter of the model.")
    low = np.array([_bound(limits, name, 0, -math.inf) for name in model.names])
    high = np.array([_bound(limits, name, 1, math.inf) for name in model.names])
    model.check_identified(np.clip(begin, low, high))
    found = minimized(objective, begin, low, high, tol=tol, method=optimizer)
    free = ~found.on_bound
    curvature = np.full((len(begin), len(begin)), np.nan)
    if free.any():
        whole = (
            objective.information(found.parameters)
            if hessian == "expected"
            else observed_information(objective, found.parameters, found.value, free)
        )
        curvature[np.ix_(free, free)] = whole[np.ix_(free, free)]
    errors = np.full(len(begin), np.nan)
    if free.any():
        try:
            variances = np.diag(2 * np.linalg.inv(curvature[np.ix_(free, free)]))
        except np.linalg.LinAlgError:
            variances = np.full(int(free.sum()), np.nan)
        errors[free] = np.sqrt(np.where(variances > 0, variances, np.nan))
    names = model.names
    size = model.size
    return Fit(
        model, rows, dict(zip(names, map(float, found.parameters), strict=True)),
        dict(zip(names, map(float, errors), strict=True)), found.value, size + size * (size + 1) // 2 - len(names),
        found.converged, objective.evaluations, tuple(np.array(names)[found.on_bound].tolist()), curvature,
        model.both_scales(found.parameters), moments,
    )  # fmt: skip


def _without_model(n: float, mean: Floats, covariance: Floats, model: Saturated) -> Fit:
    if n <= model.size:
        raise ParameterError(
            "There are not more rows than variables: means and covariances cannot all be estimated."
        )
    try:
        place = model.of_moments(mean, covariance)
    except np.linalg.LinAlgError as error:
        raise ParameterError(
            "The covariance is not positive definite: a variable follows from the others."
        ) from error
    objective = Objective(
        model, n, lambda mu, sigma: from_moments(n, mean, covariance, mu, sigma), lambda: 1e-12
    )
    curvature = objective.information(place)
    errors = np.sqrt(np.diag(2 * np.linalg.inv(curvature)))
    return Fit(
        model, n, dict(zip(model.names, map(float, place), strict=True)),
        dict(zip(model.names, map(float, errors), strict=True)), objective(place), 0, True, 0, (), curvature, {},
        (n, mean, covariance),
    )  # fmt: skip


@dataclass(frozen=True)
class LikelihoodRatio:
    """A test of a model against a larger one: chi-squared, its degrees of freedom and the p-value."""

    chi2: float
    df: int
    p_value: float
    caveats: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The test statistic."""
        return self.chi2

    def __float__(self) -> float:
        return self.chi2

    def __str__(self) -> str:
        small = "below 0.0001" if self.p_value < 1e-4 else f"{self.p_value:.4f}"
        return f"chi-squared {self.chi2:.3f} with {self.df} degrees of freedom, p {small}"


@checked
def likelihood_ratio(full: Fit, reduced: Fit) -> LikelihoodRatio:
    """Do the data speak against a model, compared with a larger one that contains it?

    The smaller model must be the larger one with some parameters fixed or set equal: it is checked by their names and
    by what both models imply, so that a test of another parameter than the one that is meant does not go unnoticed.

    Also known as: LRT; likelihood-ratio test.

    Examples
    --------
    >>> from discreet.federated.covariance_models import latent_growth
    >>> model = latent_growth(3)
    >>> moments = model.implied(np.array([0.4, 0.5, 0.0, 0.1, 2.0, 0.1]))
    >>> full = fit_from_moments(200, *moments, model)
    >>> reduced = fit_from_moments(200, *moments, latent_growth(3, slope_mean=False))
    >>> likelihood_ratio(full, reduced).df
    1
    """
    if full.rows != reduced.rows:
        raise InputError("The two models were fitted to different rows. Fit both to the same.")
    if full.model.size != reduced.model.size:
        raise ParameterError("The two models are about different variables.")
    more = len(full.model.names) - len(reduced.model.names)
    if more < 1:
        raise ParameterError("The reduced model must have fewer free parameters than the full one.")
    if not isinstance(full.model, Saturated):
        inside = (
            full.model.parameters_of(reduced.model, reduced.parameters)
            if isinstance(full.model, RAMModel)
            else None
        )
        same = inside is not None and all(
            np.allclose(one, other, atol=1e-8)
            for one, other in zip(full.model.implied(inside), reduced.implied, strict=True)
        )
        if not same:
            raise ParameterError(
                "The reduced model is not the full one with parameters fixed or set equal, so that their likelihoods "
                "cannot be compared. Parameters must have the same names in both."
            )
    from scipy.stats import chi2

    value = reduced.minus_two_ll - full.minus_two_ll
    if value < -1e-4 * max(1.0, abs(full.minus_two_ll)) * 1e-2:
        raise InputError(
            "The full model fits worse than the reduced one: its search did not end at the minimum."
        )
    caveats = []
    if full.boundary or reduced.boundary:
        caveats.append(
            f"On a bound: {', '.join(dict.fromkeys((*full.boundary, *reduced.boundary)))}. The chi-squared law does "
            "not hold there, and the p-value is too large or too small."
        )
    return LikelihoodRatio(max(value, 0.0), more, float(chi2.sf(max(value, 0.0), more)), tuple(caveats))


@checked
def fit_vs_saturated(fit: Fit, saturated: Fit | None = None) -> LikelihoodRatio:
    """How much worse does a model fit than no model at all? A large chi-squared speaks against it.

    Parameters
    ----------
    fit
        The fitted model.
    saturated
        The fit of `saturated`; computed here where the model was fitted from moments.
    """
    if saturated is None:
        if fit.moments is None:
            raise ParameterError(
                "Fit federated.saturated(p) in the same run first, and give it as saturated."
            )
        saturated = fit_from_moments(*fit.moments, Saturated(fit.model.size))
    return likelihood_ratio(saturated, fit)


def _told(found: Fit, run: SecureMLE, evaluations: int) -> Fit:
    many = evaluations or found.n_evaluations
    return replace(found, n_evaluations=many, transcript=run.transcript, leakage=run.leakage)


def _slope(model: CovarianceModel, n: float, mean: Floats, covariance: Floats, place: Floats) -> Floats:
    mu, sigma = model.implied(place)
    means, covariances = model.jacobian(place)
    inverse = np.linalg.inv(sigma)
    off = mean - mu
    pull = inverse - inverse @ (covariance + np.outer(off, off)) @ inverse
    return np.asarray(n * (np.einsum("ij,aji->a", pull, covariances) - 2 * means @ inverse @ off))


def _with_means(model: RAMModel, begin: Floats, mean: Floats) -> Floats:
    """Begin with means that fit best, all else as it is: they enter the model in a straight line."""
    mu, _ = model.implied(begin)
    means, covariances = model.jacobian(begin)
    only = (np.abs(means).max(axis=1) > 0) & (np.abs(covariances).max(axis=(1, 2)) == 0)
    if not only.any():
        return begin
    shift = np.linalg.lstsq(means[only].T, mean - mu, rcond=None)[0]
    made = np.array(begin, dtype=np.float64)
    made[only] += shift
    return made


def _ordered(model: CovarianceModel, start: Any) -> Floats:
    if isinstance(start, Mapping):
        missing = [name for name in model.names if name not in start]
        if missing or len(start) != len(model.names):
            raise ParameterError(f"start must name every free parameter: {', '.join(model.names)}.")
        start = [start[name] for name in model.names]
    made = numbers_of(start, "start", infinite=True)
    if made.shape != (len(model.names),) or not np.isfinite(made).all():
        raise ParameterError(f"start must hold {len(model.names)} finite numbers: {', '.join(model.names)}.")
    return made


def _bound(limits: Bounds, name: str, at: int, otherwise: float) -> float:
    given = limits.get(name, (None, None))[at]
    return otherwise if given is None else float(given)


def _error(value: float) -> str:
    return "not available" if math.isnan(value) else f"{value:.4f}"
