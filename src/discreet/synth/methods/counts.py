"""Counts by Poisson regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.methods.design import Design
from discreet.synth.methods.likelihood import newton_poisson
from discreet.synth.methods.method import Conditional, Method, ProperBy, Task
from discreet.synth.variables import Variable

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

    def __post_init__(self) -> None:
        if self.covariance not in ("model", "sandwich"):
            raise ParameterError('covariance must be "model" or "sandwich".')

    def fit(self, task: Task) -> Conditional:
        """Regress the logarithm of the expected count on the predictors."""
        counts = task.target.values
        bad = int(((counts < 0) | (counts != np.round(counts))).sum())
        if bad:
            raise ColumnError(
                f"Column '{task.target.name}' is negative or no whole number in {bad:,} records, so it is no count. "
                "Use norm or cart for it, or declare the codes as special_codes."
            )
        design = Design.of(task.predictors, weights=task.weights)
        beta, root = newton_poisson(
            design, task.predictors, counts, weights=task.weights, sandwich=self.covariance == "sandwich"
        )
        expected = np.exp(np.concatenate([x @ beta for x, _, _ in design.parts(task.predictors)]))
        away = np.square(counts - expected) / np.maximum(expected, 1e-12)
        spread = float(np.average(away, weights=task.weights))
        if task.proper:
            beta = beta + root @ task.rng.standard_normal(len(beta))
        return PoissonLaw(design, beta, float(expected.max()), spread)


class PoissonLaw(Conditional):
    """Poisson counts around a log-linear mean."""

    def __init__(self, design: Design, beta: Floats, most: float, spread: float) -> None:
        self.design = design
        self.beta = beta
        self.most = most
        self.spread = spread

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing new."""
        return self.design.dropped

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

    def state(self) -> dict[str, Any]:
        """Return the fit."""
        return {"design": self.design.state(), "beta": self.beta, "most": self.most, "spread": self.spread}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Design.restored(state["design"]), state["beta"], state["most"], state["spread"])
