"""Generalized linear models: categories by logistic regression, counts by Poisson and binomial regression.

Separation (a predictor that tells the levels apart without error) would send coefficients to infinity, so every fit
sees a few pseudo-records around the middle of each predictor (White, Daniel and Royston 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.special import softmax

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.constraints import ColumnName
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.column_forms import Variable
from discreet.synth.methods import model_matrix
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.saved_models import stored

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

    def fit(self, task: Task) -> Conditional:
        """Fit by Newton's method, with weights by pseudo-likelihood."""
        design = model_matrix.Design.of(task.predictors, weights=task.weights)
        extra = model_matrix.augmented(design, task.predictors, 2) if self.augment else None
        beta, root = model_matrix.newton_logit(
            design,
            task.predictors,
            task.target.values,
            weights=task.weights,
            extra=extra,
            sandwich=self.covariance == "sandwich",
        )
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        there = np.arange(2, dtype=np.int32)
        return ClassShares(design, np.column_stack([np.zeros(len(beta)), beta]), there)


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
        design = model_matrix.Design.of(task.predictors, weights=task.weights)
        there, codes = np.unique(task.target.values, return_inverse=True)
        self._check_work(design, len(there), task.target)
        extra = model_matrix.augmented(design, task.predictors, len(there)) if self.augment else None
        beta, converged = model_matrix.multinomial_fit(
            design,
            task.predictors,
            codes,
            len(there),
            weights=task.weights,
            extra=extra,
            iterations=self.max_iterations,
        )
        return ClassShares(design, beta, there, converged=converged)

    def _check_work(self, design: model_matrix.Design, levels: int, target: Variable) -> None:
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
        design = model_matrix.Design.of(task.predictors, weights=task.weights)
        there, codes = np.unique(task.target.values, return_inverse=True)
        fitted = model_matrix.ordered_fit(
            design, task.predictors, codes, len(there), weights=task.weights, iterations=self.max_iterations
        )
        if fitted is None:
            plain = Polyreg().fit(task)
            return replace(plain, unordered=True)
        return OrderedShares(design, *fitted, there)


@stored("class-shares")
@dataclass(frozen=True, eq=False)
class ClassShares(model_matrix.OfDesign):
    """Shares of the levels that are a softmax of linear predictions."""

    design: model_matrix.Design
    beta: Floats
    there: Array
    converged: bool = True
    unordered: bool = False

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
            drawn[rows] = _levels(softmax(x @ self.beta, axis=1), u[rows])
        return self.there[drawn]


@stored("ordered-shares")
@dataclass(frozen=True, eq=False)
class OrderedShares(model_matrix.OfDesign):
    """Shares of ordered levels: thresholds on one linear prediction."""

    design: model_matrix.Design
    cuts: Floats
    slopes: Floats
    there: Array

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw levels by inverse transform, block by block."""
        drawn = np.empty(size, dtype=np.int32)
        u = rng.random(size)
        for x, _, rows in self.design.parts(predictors):
            drawn[rows] = _levels(model_matrix.ordered_shares(x[:, 1:] @ self.slopes, self.cuts), u[rows])
        return self.there[drawn]


def _levels(shares: Floats, u: Floats) -> Integers:
    upto = np.cumsum(shares, axis=1)
    passed = (u[:, None] * upto[:, -1:] > upto).sum(axis=1)
    return np.asarray(np.minimum(passed, shares.shape[1] - 1), dtype=np.int64)


# Counts by Poisson regression.
_SPREAD_OUT = 1.5


@dataclass(frozen=True)
class Poisson(Method):
    """Poisson regression of a column of counts, with weights by pseudo-likelihood.

    Parameters
    ----------
    covariance
        Of the coefficients in a proper synthesis: ``"model"`` or ``"sandwich"``.
    """

    name = "poisson"
    targets: ClassVar[frozenset[str]] = frozenset({"number"})
    proper_by: ClassVar[ProperBy] = "posterior"
    covariance: Literal["model", "sandwich"] = "model"

    def fit(self, task: Task) -> Conditional:
        """Regress the logarithm of the expected count on the predictors."""
        counts = task.target.values
        bad = int(((counts < 0) | (counts != np.round(counts))).sum())
        if bad:
            raise ColumnError(
                f"Column '{task.target.name}' is negative or no whole number in {bad:,} records, so it is no count. "
                "Use norm or cart for it, or declare the codes as special_codes."
            )
        design = model_matrix.Design.of(task.predictors, weights=task.weights)
        beta, root = model_matrix.newton_poisson(
            design, task.predictors, counts, weights=task.weights, sandwich=self.covariance == "sandwich"
        )
        expected = np.exp(np.concatenate([x @ beta for x, _, _ in design.parts(task.predictors)]))
        away = np.square(counts - expected) / np.maximum(expected, 1e-12)
        spread = float(np.average(away, weights=task.weights))
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        return PoissonLaw(design, beta, float(expected.max()), spread)


@stored("poisson-law")
@dataclass(frozen=True, eq=False)
class PoissonLaw(model_matrix.OfDesign):
    """Poisson counts around a log-linear mean."""

    design: model_matrix.Design
    beta: Floats
    most: float
    spread: float

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the counts vary more than a Poisson law allows for."""
        if self.spread <= _SPREAD_OUT:
            return ()
        return (
            f"the counts vary {self.spread:.1f} times as much as a Poisson law allows for, and synthetic ones will "
            "vary too little; model the column with cart or pmm, or name more predictors.",
        )

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw counts; none is expected to be larger than the largest that any observed record was."""
        limit = np.log(max(self.most, 1e-12))
        means = [np.exp(np.minimum(x @ self.beta, limit)) for x, _, _ in self.design.parts(predictors)]
        return rng.poisson(np.concatenate(means or [np.empty(0)])).astype(np.float64)


# Counts out of a known number: a binomial law with a logistic share.


@dataclass(frozen=True)
class Binomial(Method):
    """A count of successes out of the trials in another column.

    Parameters
    ----------
    of
        The column of trials, which is one of the predictors.
    """

    name = "binomial"
    targets: ClassVar[frozenset[str]] = frozenset({"number"})
    proper_by: ClassVar[ProperBy] = "posterior"
    of: ColumnName = ""

    def fit(self, task: Task) -> Conditional:
        """Fit the share: every record counts its successes and its failures."""
        trials, others = _apart(task.predictors, self.of)
        if trials is None:
            raise ColumnError(
                f"Column '{task.target.name}' counts out of '{self.of}', which is no number. Name another denominator."
            )
        part = (task.target.values % 1 != 0) | (trials.values % 1 != 0)
        if part.any():
            raise ColumnError(
                f"Column '{task.target.name}' counts out of '{self.of}', but {int(part.sum()):,} records do not hold "
                "whole numbers in both. Round them, or model the column otherwise."
            )
        too_many = int(((task.target.values > trials.values) | (task.target.values < 0)).sum())
        if too_many:
            raise ColumnError(
                f"Column '{task.target.name}' counts out of '{self.of}', but is larger than it, negative, or known "
                f"where it is missing, in {too_many:,} records. Correct them, or name another denominator."
            )
        constant = Variable("constant", np.ones(len(task.target)))
        given = others or [constant]
        weight = np.ones(len(task.target)) if task.weights is None else task.weights
        twice = np.tile(np.arange(len(task.target)), 2)
        doubled = [variable.take(twice) for variable in given]
        outcome = np.repeat([1, 0], len(task.target))
        counts = np.concatenate([weight * task.target.values, weight * (trials.values - task.target.values)])
        design = model_matrix.Design.of(given, weights=task.weights)
        beta, root = model_matrix.newton_logit(
            design, doubled, outcome, weights=counts, extra=model_matrix.augmented(design, given, 2)
        )
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        return BinomialLaw(design, beta, self.of)


@stored("binomial-law")
@dataclass(frozen=True, eq=False)
class BinomialLaw(Conditional):
    """Binomial counts with a logistic share."""

    design: model_matrix.Design
    beta: Floats
    of: str

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return tuple(name for name in self.design.dropped if name != "constant")

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw successes out of the synthetic trials."""
        from scipy.special import expit

        trials, others = _apart(predictors, self.of)
        assert trials is not None
        given = others or [Variable("constant", np.ones(size))]
        share = np.concatenate(
            [expit(x @ self.beta) for x, _, _ in self.design.parts(given)] or [np.empty(0)]
        )
        return rng.binomial(np.rint(np.maximum(trials.values, 0)).astype(np.int64), share).astype(np.float64)


def _apart(predictors: Sequence[Variable], of: str) -> tuple[Variable | None, list[Variable]]:
    """Tell the trials from the other predictors; where they are missing they count as 0."""
    trials = [variable for variable in predictors if variable.is_number and variable.name == of]
    others = [variable for variable in predictors if variable not in trials]
    return (trials[0] if trials else None), others
