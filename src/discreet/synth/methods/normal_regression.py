"""Numbers by linear regression: as they are, transformed, by ranks, or from donors with the nearest prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError
from discreet.synth.column_forms import Variable
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.methods.model_matrix import Design, OfDesign, squarable
from discreet.synth.saved_models import stored


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
    ridge: Annotated[float, AtLeast(0)] = 0.0
    df_adjust: Annotated[int, AtLeast(0)] = 0
    covariance: Literal["model", "sandwich"] = "model"

    _transform: ClassVar[str] = "identity"

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


@stored("normal-law")
@dataclass(frozen=True, eq=False)
class NormalLaw(OfDesign):
    """Normal around a linear prediction, after a transformation."""

    design: Design
    beta: Floats
    sigma: float
    transform: str
    shift: float

    def predict(self, predictors: Sequence[Variable]) -> Floats:
        """Return the linear predictions, block by block."""
        return np.concatenate([x @ self.beta for x, _, _ in self.design.parts(predictors)] or [np.empty(0)])

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Predict, add noise, transform back."""
        drawn = self.predict(predictors) + self.sigma * rng.standard_normal(size)
        back: Floats = _TRANSFORMS[self.transform][1](drawn) - self.shift
        return np.maximum(back, 0.0) if self.transform in ("log", "sqrt") else back


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
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


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


# Numbers by linear regression that gives observed values: by ranks, or from the donors with the nearest prediction.
_DONORS = 3
_NARROW = 0.9
_FEW_VALUES = 20


@dataclass(frozen=True)
class Normrank(Norm):
    """Linear regression of normal scores; gives observed values and nearly keeps the margin.

    Parameters
    ----------
    rank_predictors
        Also turn numeric predictors into normal scores; a skewed predictor then no longer distorts the margin.
    ties
        ``"mean"`` gives equal values their mean rank. Where a few values hold many records, the scores are then not
        normal and the margin is distorted; ``"random"`` spreads equal values over the ranks they share, which keeps it.
    """

    name = "normrank"
    gives_observed_values: ClassVar[bool] = True
    rank_predictors: bool = False
    ties: Literal["mean", "random"] = "mean"

    def fit(self, task: Task) -> Conditional:
        """Regress the normal scores of the target."""
        from scipy.special import ndtri

        spread = task.rng if self.ties == "random" else None
        values, score, mass = normal_scores(task.target.values, task.weights, spread)
        scores = [
            _knots(variable) if self.rank_predictors and variable.is_number else None
            for variable in task.predictors
        ]
        turned = _turned(task.predictors, scores)
        normal = ndtri(score)
        design, beta, sigma = self.fitted(normal, turned, task)
        center = np.average(normal, weights=task.weights)
        width = float(np.sqrt(np.average(np.square(normal - center), weights=task.weights)))
        return RankLaw(NormalLaw(design, beta, sigma, "identity", 0.0), values, mass, scores, width)


@stored("rank-law")
@dataclass(frozen=True, eq=False)
class RankLaw(Conditional):
    """A normal law of ranks, read back as observed values; ``width`` is the standard deviation of the scores."""

    law: NormalLaw
    values: Floats
    mass: Floats
    scores: Sequence[Floats | None]
    width: float = 1.0

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.law.dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether equal values make the scores other than normal; the largest values are then hardly ever drawn."""
        if self.width >= _NARROW or len(self.values) <= _FEW_VALUES:
            return ()
        share = float(np.diff(self.mass, prepend=0.0).max())
        return (
            f"{share:.0%} of the records share one value, which bends the ranks of normrank: rare values would be "
            "drawn too seldom. Name that value under semicontinuous, set method_options={'normrank': {'ties': "
            "'random'}}, or model the column with cart.",
        )

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw scores, turn them into ranks and ranks into observed values."""
        from scipy.special import ndtr

        rank = ndtr(self.law.draw(_turned(predictors, self.scores), size, rng))
        # ``mass`` is the share of values up to each one; the value whose share covers the rank is taken.
        at = np.searchsorted(self.mass, rank * self.mass[-1], side="left")
        return np.asarray(self.values[np.minimum(at, len(self.values) - 1)])


@dataclass(frozen=True)
class Pmm(Norm):
    """Predictive mean matching: one of the three records with the nearest prediction lends its value.

    With weights, the donor is drawn in proportion to its weight.
    """

    name = "pmm"
    gives_observed_values: ClassVar[bool] = True

    def fit(self, task: Task) -> Conditional:
        """Regress the target and keep the predictions of the observed records."""
        design, beta, sigma = self.fitted(task.target.values, task.predictors, task)
        law = NormalLaw(design, beta, sigma, "identity", 0.0)
        return MatchedDonors.of(law, task.predictors, task.target.values, task.weights)


@stored("matched-donors")
@dataclass(frozen=True, eq=False)
class MatchedDonors(Conditional):
    """Donors in the order of their predictions; ``mass`` is the running total of their weights."""

    law: NormalLaw
    predicted: Floats
    values: Floats
    mass: Floats

    @classmethod
    def of(
        cls, law: NormalLaw, predictors: Sequence[Variable], values: Floats, weights: Floats | None
    ) -> MatchedDonors:
        """Put the observed records in the order of their predictions."""
        predicted = _settled(law, law.predict(predictors))
        order = np.argsort(predicted, kind="stable")
        mass = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
        return cls(law, predicted[order], values[order], mass)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.law.dropped

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Find the three nearest predictions of each record and draw one."""
        wanted = _settled(self.law, self.law.predict(predictors))
        n, few = len(self.predicted), min(_DONORS, len(self.predicted))
        middle, after = (
            np.searchsorted(self.predicted, wanted),
            np.searchsorted(self.predicted, wanted, "right"),
        )
        # The nearest few of a sorted list lie among the few on either side.
        around = np.clip(middle[:, None] + np.arange(-_DONORS, _DONORS), 0, n - 1)
        gap = np.abs(self.predicted[around] - wanted[:, None])
        gap[:, 1:][around[:, 1:] == around[:, :-1]] = np.inf
        nearest = np.take_along_axis(around, np.argsort(gap, axis=1, kind="stable")[:, :few], axis=1)
        weight = np.diff(self.mass, prepend=0.0)
        upto = np.cumsum(weight[nearest], axis=1)
        u = rng.random(size)
        pick = np.minimum((u[:, None] * upto[:, -1:] >= upto).sum(axis=1), few - 1)
        # Many records with the very same prediction are equally near, so any of them may lend its value.
        before = np.where(middle > 0, self.mass[middle - 1], 0.0)
        total = np.where(after > 0, self.mass[after - 1], 0.0)
        alike = np.searchsorted(self.mass, before + u * (total - before), side="right")
        alike = np.clip(alike, middle, np.maximum(after - 1, middle)).clip(0, n - 1)
        place = np.where(after - middle > few, alike, nearest[np.arange(size), pick])
        return np.asarray(self.values[place])


def normal_scores(
    values: Floats, weights: Floats | None, spread: np.random.Generator | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return distinct values, the rank of every record as a share in (0, 1), and the running share of values.

    Equal values share their mean rank, or are spread at random over the ranks they hold.
    """
    distinct, place = np.unique(values, return_inverse=True)
    held = np.bincount(place, weights=weights, minlength=len(distinct)).astype(np.float64)
    upto = np.cumsum(held)
    if spread is not None:
        u = spread.random(len(values))
        return distinct, (upto[place] - u * held[place] + 0.5) / (upto[-1] + 1.0), upto / upto[-1]
    middle = (upto - held / 2 + 0.5) / (upto[-1] + 1.0)
    return distinct, middle[place], upto / upto[-1]


def _knots(variable: Variable) -> Floats:
    """Return values and normal scores between which later values are interpolated."""
    from scipy.special import ndtri

    distinct, place = np.unique(variable.values, return_inverse=True)
    held = np.bincount(place)
    middle = (np.cumsum(held) - held / 2 + 0.5) / (len(variable) + 1.0)
    return np.vstack([distinct, ndtri(middle)])


def _turned(predictors: Sequence[Variable], scores: Sequence[Floats | None]) -> list[Variable]:
    return [
        variable if knots is None else Variable(variable.name, np.interp(variable.values, knots[0], knots[1]))
        for variable, knots in zip(predictors, scores, strict=True)
    ]


def _settled(law: NormalLaw, predicted: Floats) -> Floats:
    """Round away the last digits, in which equal predictions may differ by how they were summed."""
    unit = max(law.sigma, float(np.abs(law.beta).max()) * 1e-3, 1e-300) * 1e-9
    return np.asarray(np.round(predicted / unit) * unit)
