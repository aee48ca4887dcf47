"""Counts out of a known number: a binomial law with a logistic share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError
from discreet.synth.methods.design import Design
from discreet.synth.methods.likelihood import newton_logit
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.methods.pseudo_records import augmented
from discreet.synth.variables import Variable


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
    of: str = ""

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
        design = Design.of(given, weights=task.weights)
        beta, root = newton_logit(design, doubled, outcome, weights=counts, extra=augmented(design, given, 2))
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        return BinomialLaw(design, beta, self.of)


class BinomialLaw(Conditional):
    """Binomial counts with a logistic share."""

    def __init__(self, design: Design, beta: Floats, of: str) -> None:
        self.design = design
        self.beta = beta
        self.of = of

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

    def state(self) -> dict[str, Any]:
        """Return the fit."""
        return {"design": self.design.state(), "beta": self.beta, "of": self.of}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Design.restored(state["design"]), state["beta"], state["of"])


def _apart(predictors: Sequence[Variable], of: str) -> tuple[Variable | None, list[Variable]]:
    """Tell the trials from the other predictors; where they are missing they count as 0."""
    trials = [variable for variable in predictors if variable.is_number and variable.name == of]
    others = [variable for variable in predictors if variable not in trials]
    return (trials[0] if trials else None), others
