"""Categories by logistic regression: two levels, several, or several in an order.

Separation (a predictor that tells the levels apart without error) would send coefficients to infinity, so every fit
sees a few pseudo-records around the middle of each predictor (White, Daniel and Royston 2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.methods.design import Design
from discreet.synth.methods.likelihood import (
    multinomial_fit,
    newton_logit,
    ordered_fit,
    ordered_shares,
    softmax,
)
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.methods.pseudo_records import augmented
from discreet.synth.variables import Variable

# An exponential takes as long as about ten products.
_COST_OF_A_LEVEL = 10
_CATEGORIES = frozenset({"binary", "category", "ordered"})


@dataclass(frozen=True)
class Logreg(Method):
    """Logistic regression of a column with two levels.

    Parameters
    ----------
    augment
        Add pseudo-records against separation.
    covariance
        Of the coefficients in a proper synthesis: ``"model"`` or ``"sandwich"``.
    """

    name = "logreg"
    also = ("logit",)
    targets: ClassVar[frozenset[str]] = frozenset({"binary"})
    proper_by: ClassVar[ProperBy] = "posterior"
    augment: bool = True
    covariance: Literal["model", "sandwich"] = "model"

    def __post_init__(self) -> None:
        if self.covariance not in ("model", "sandwich"):
            raise ParameterError('covariance must be "model" or "sandwich".')

    def fit(self, task: Task) -> Conditional:
        """Fit by Newton's method, with weights by pseudo-likelihood."""
        design = Design.of(task.predictors, weights=task.weights)
        extra = augmented(design, task.predictors, 2) if self.augment else None
        beta, root = newton_logit(
            design,
            task.predictors,
            task.target.values,
            weights=task.weights,
            extra=extra,
            sandwich=self.covariance == "sandwich",
        )
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        return ClassShares(design, np.column_stack([np.zeros(len(beta)), beta]))


@dataclass(frozen=True)
class Polyreg(Method):
    """Multinomial logistic regression of a column with several levels.

    Parameters
    ----------
    augment
        Add pseudo-records against separation.
    max_iterations
        Of the fit.
    max_work
        Refuse a fit that takes more terms a step than this (records times levels times coefficients of a level), before
        it takes hours.
    """

    name = "polyreg"
    also = ("multinom",)
    targets: ClassVar[frozenset[str]] = _CATEGORIES
    augment: bool = True
    max_iterations: int = 200
    max_work: float = 2e9

    def fit(self, task: Task) -> ClassShares:
        """Fit the levels that occur; the others are never drawn."""
        design = Design.of(task.predictors, weights=task.weights)
        there, codes = np.unique(task.target.values, return_inverse=True)
        self._check_work(design, len(there), task.target)
        extra = augmented(design, task.predictors, len(there)) if self.augment else None
        beta, converged = multinomial_fit(
            design,
            task.predictors,
            codes,
            len(there),
            weights=task.weights,
            extra=extra,
            iterations=self.max_iterations,
        )
        return ClassShares(design, beta, there, converged=converged)

    def _check_work(self, design: Design, levels: int, target: Variable) -> None:
        pseudo = 2 * (design.width - 1) * levels if self.augment else 0
        work = (len(target) + pseudo) * levels * (design.width + _COST_OF_A_LEVEL)
        if work > self.max_work:
            raise ParameterError(
                f"Column '{target.name}' has {levels:,} levels and its predictors fill {design.width:,} columns: "
                "polyreg would take too long. Model it with cart, name fewer predictors, group its levels, or raise "
                f"max_work (now {self.max_work:.3g})."
            )


@dataclass(frozen=True)
class Polr(Method):
    """Proportional odds: logistic regression of a column whose levels stand in an order.

    Parameters
    ----------
    max_iterations
        Of the fit; where it fails, the levels are fitted without their order (polyreg).
    """

    name = "polr"
    targets: ClassVar[frozenset[str]] = _CATEGORIES
    max_iterations: int = 200

    def fit(self, task: Task) -> Conditional:
        """Fit thresholds and one slope a predictor."""
        design = Design.of(task.predictors, weights=task.weights)
        there, codes = np.unique(task.target.values, return_inverse=True)
        fitted = ordered_fit(
            design, task.predictors, codes, len(there), weights=task.weights, iterations=self.max_iterations
        )
        if fitted is None:
            plain = Polyreg().fit(task)
            plain.unordered = True
            return plain
        return OrderedShares(design, *fitted, there)


class ClassShares(Conditional):
    """Shares of the levels that are a softmax of linear predictions."""

    def __init__(
        self,
        design: Design,
        beta: Floats,
        there: Array | None = None,
        *,
        converged: bool = True,
        unordered: bool = False,
    ) -> None:
        self.design = design
        self.beta = beta
        self.unordered = unordered
        self.there = np.arange(beta.shape[1], dtype=np.int32) if there is None else there
        self.converged = converged

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.design.dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the fit came to its end."""
        found = []
        if self.unordered:
            found.append(
                "proportional odds (polr) did not converge, so the levels were fitted without their order."
            )
        if not self.converged:
            found.append(
                "the multinomial fit had not converged; name fewer predictors, or model the column with cart."
            )
        return tuple(found)

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw levels by inverse transform, block by block."""
        drawn = np.empty(size, dtype=np.int32)
        u = rng.random(size)
        for x, _, rows in self.design.parts(predictors):
            drawn[rows] = _levels(softmax(x @ self.beta), u[rows])
        return self.there[drawn]

    def state(self) -> dict[str, Any]:
        """Return the fit."""
        return {
            "design": self.design.state(),
            "beta": self.beta,
            "there": self.there,
            "converged": self.converged,
            "unordered": self.unordered,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(
            Design.restored(state["design"]),
            state["beta"],
            state["there"],
            converged=state["converged"],
            unordered=state.get("unordered", False),
        )


class OrderedShares(Conditional):
    """Shares of ordered levels: thresholds on one linear prediction."""

    def __init__(self, design: Design, cuts: Floats, slopes: Floats, there: Array) -> None:
        self.design = design
        self.cuts = cuts
        self.slopes = slopes
        self.there = there

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.design.dropped

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw levels by inverse transform, block by block."""
        drawn = np.empty(size, dtype=np.int32)
        u = rng.random(size)
        for x, _, rows in self.design.parts(predictors):
            drawn[rows] = _levels(ordered_shares(x[:, 1:] @ self.slopes, self.cuts), u[rows])
        return self.there[drawn]

    def state(self) -> dict[str, Any]:
        """Return the fit."""
        return {
            "design": self.design.state(),
            "cuts": self.cuts,
            "slopes": self.slopes,
            "there": self.there,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Design.restored(state["design"]), state["cuts"], state["slopes"], state["there"])


def _levels(shares: Floats, u: Floats) -> Integers:
    upto = np.cumsum(shares, axis=1)
    passed = (u[:, None] * upto[:, -1:] > upto).sum(axis=1)
    return np.asarray(np.minimum(passed, shares.shape[1] - 1), dtype=np.int64)
