"""Numbers by linear regression: as they are, or transformed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.methods.design import Design, squarable
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task, check_number, check_whole
from discreet.synth.variables import Variable


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A least-squares fit: coefficients, their spread, and the spread of what they leave over.

    Attributes
    ----------
    beta
        Coefficients of the design's columns.
    root
        A square root of the covariance of the coefficients.
    sigma
        Standard deviation of the residuals.
    """

    beta: Floats
    root: Floats
    sigma: float

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Draw coefficients from their normal law."""
        return np.asarray(self.beta + self.root @ rng.standard_normal(self.root.shape[1]))


def least_squares(
    design: Design,
    predictors: Sequence[Variable],
    y: Floats,
    *,
    weights: Floats | None = None,
    ridge: float = 0.0,
    df_adjust: int = 0,
    covariance: Literal["model", "sandwich"] = "model",
    posterior: np.random.Generator | None = None,
) -> LinearFit:
    """Fit by (weighted) least squares; one pass over the records, a second for the residuals.

    Weights are scaled to sum to the number of records: with raw weights the covariance would be that of a file as
    large as the population. The residual variance divides by n less the number of coefficients, and in the weighted
    fit by the sum of weights (pseudo-likelihood; Kim, Drechsler and Thompson 2021). With ``posterior`` the residual
    standard deviation of an unweighted fit is drawn from its scaled inverse chi-square law.
    """
    width = design.width
    gram, moment = np.zeros((width, width)), np.zeros(width)
    for x, w, rows in design.parts(predictors, weights):
        weighted = x if w is None else x * w[:, None]
        gram += weighted.T @ x
        moment += weighted.T @ y[rows]
    gram += ridge * np.diag(np.diag(gram))
    beta = np.asarray(np.linalg.solve(gram, moment), dtype=np.float64)
    total, meat = 0.0, np.zeros((width, width))
    for x, w, rows in design.parts(predictors, weights):
        residual = y[rows] - x @ beta
        total += float(np.sum(residual**2 if w is None else w * residual**2))
        if covariance == "sandwich":
            scores = x * (residual if w is None else w * residual)[:, None]
            meat += scores.T @ scores
    n = len(y)
    df = max(n - width - df_adjust, 1)
    if weights is not None:
        variance = total / n
    elif posterior is not None:
        variance = total / float(posterior.chisquare(df))
    else:
        variance = total / df
    bread = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    spread: Floats = bread @ meat @ bread if covariance == "sandwich" else variance * bread
    return LinearFit(beta, _root(spread), float(np.sqrt(variance)))


@dataclass(frozen=True)
class Norm(Method):
    """Linear regression with normal residuals.

    Parameters
    ----------
    ridge
        Share of the diagonal that is added to it; for nearly collinear predictors.
    df_adjust
        What is taken from the residual degrees of freedom besides the number of coefficients (R's synthpop: 1).
    covariance
        Of weighted coefficients in a proper synthesis: ``"model"`` or ``"sandwich"``.
    """

    name = "norm"
    targets: ClassVar[frozenset[str]] = frozenset({"number"})
    proper_by: ClassVar[ProperBy] = "posterior"
    ridge: float = 0.0
    df_adjust: int = 0
    covariance: Literal["model", "sandwich"] = "model"

    _transform: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge)
        check_whole("df_adjust", self.df_adjust, least=0)
        if self.covariance not in ("model", "sandwich"):
            raise ParameterError('covariance must be "model" or "sandwich".')

    def fit(self, task: Task) -> Conditional:
        """Regress the (transformed) target on the predictors."""
        shift = _shift(self._transform, task.target)
        y = _TRANSFORMS[self._transform][0](task.target.values + shift)
        return NormalLaw(*self.fitted(y, task.predictors, task), self._transform, shift)

    def fitted(self, y: Floats, predictors: Sequence[Variable], task: Task) -> tuple[Design, Floats, float]:
        """Return the design, its coefficients (drawn in a proper synthesis) and the residual standard deviation."""
        squarable(Variable(task.target.name, y))
        design = Design.of(predictors, weights=task.weights)
        fitted = least_squares(
            design,
            predictors,
            y,
            weights=task.weights,
            ridge=self.ridge,
            df_adjust=self.df_adjust,
            covariance=self.covariance,
            posterior=task.rng if task.proper else None,
        )
        return design, fitted.drawn(task.rng) if task.proper else fitted.beta, fitted.sigma


@dataclass(frozen=True)
class Lognorm(Norm):
    """Linear regression of the logarithm; where there are zeros, half the smallest positive value is added first."""

    name = "lognorm"
    _transform = "log"


@dataclass(frozen=True)
class Sqrtnorm(Norm):
    """Linear regression of the square root."""

    name = "sqrtnorm"
    _transform = "sqrt"


@dataclass(frozen=True)
class Cubertnorm(Norm):
    """Linear regression of the cube root."""

    name = "cubertnorm"
    _transform = "cube root"


class NormalLaw(Conditional):
    """Normal around a linear prediction, after a transformation."""

    def __init__(self, design: Design, beta: Floats, sigma: float, transform: str, shift: float) -> None:
        self.design = design
        self.beta = beta
        self.sigma = sigma
        self.transform = transform
        self.shift = shift

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.design.dropped

    def predict(self, predictors: Sequence[Variable]) -> Floats:
        """Return the linear predictions, block by block."""
        return np.concatenate([x @ self.beta for x, _, _ in self.design.parts(predictors)] or [np.empty(0)])

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Predict, add noise, transform back."""
        drawn = self.predict(predictors) + self.sigma * rng.standard_normal(size)
        back: Floats = _TRANSFORMS[self.transform][1](drawn) - self.shift
        return np.maximum(back, 0.0) if self.transform in ("log", "sqrt") else back

    def state(self) -> dict[str, Any]:
        """Return the fit."""
        return {
            "design": self.design.state(),
            "beta": self.beta,
            "sigma": self.sigma,
            "transform": self.transform,
            "shift": self.shift,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(
            Design.restored(state["design"]),
            state["beta"],
            state["sigma"],
            state["transform"],
            state["shift"],
        )


_TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "identity": (lambda y: y, lambda z: z),
    "log": (np.log, np.exp),
    "sqrt": (np.sqrt, lambda z: np.maximum(z, 0.0) ** 2),
    "cube root": (np.cbrt, lambda z: z**3),
}


def _shift(transform: str, target: Variable) -> float:
    low = float(target.values.min())
    if transform == "log":
        if low < 0:
            raise ColumnError(
                f"Column '{target.name}' has negative values, which have no logarithm. Use norm or cubertnorm for it, "
                "or declare the codes as special_codes."
            )
        if low == 0:
            positive = target.values[target.values > 0]
            return float(positive.min()) / 2 if len(positive) else 0.0
    if transform == "sqrt" and low < 0:
        raise ColumnError(
            f"Column '{target.name}' has negative values, which have no square root. Use norm or cubertnorm for it, or "
            "declare the codes as special_codes."
        )
    return 0.0


def _root(covariance: Floats) -> Floats:
    """Return a square root that also exists where the covariance is singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
