"""What every propensity model hands back, and the distances between the scores of the two files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.utility.propensity.stacking import Stack

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fit:
    """Propensity scores of cells of like records.

    Attributes
    ----------
    scores
        The estimated chance, by cell, that a record is a released one.
    ours, every
        Weight of the released records of each cell, and of all.
    columns
        Coefficients, the intercept among them, of a model with fixed ones.
    leaves
        Leaves of a tree.
    separated
        Whether some records were told apart for sure.
    """

    scores: Floats
    ours: Floats
    every: Floats
    columns: int | None = None
    leaves: int | None = None
    separated: bool = False
    converged: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of the released records."""
        return float(self.ours.sum() / self.every.sum())

    @property
    def pmse(self) -> float:
        """The mean squared distance of the scores from the share of released records; exactly 0 where all are equal."""
        away = self.scores - self.share
        # Scores that differ from the share by rounding alone say nothing, and two such nothings have no ratio.
        away = np.where(np.abs(away) < _ROUNDING, 0.0, away)
        return float(self.every @ away**2 / self.every.sum())


class Prepared(Protocol):
    """A model whose predictors are laid out; only the labels change from fit to fit."""

    @property
    def stacked(self) -> Stack:
        """The files it was prepared for."""
        ...

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit with the true labels, or with these."""
        ...


class Learner(Protocol):
    """A kind of propensity model."""

    fixed_columns: bool

    def prepare(self, stacked: Stack) -> Prepared:
        """Lay out the predictors."""
        ...


def score_distances(fit: Fit) -> dict[str, float]:
    """Compare the scores of the two files: SPECKS, the Mann-Whitney U and AUC, and PO50.

    PO50 is the percentage of records that the threshold c classifies correctly, less 50; a score of exactly c counts
    as half right, so that files that cannot be told apart have 0.
    """
    order = np.argsort(fit.scores)
    scores = fit.scores[order]
    released, original = fit.ours[order], (fit.every - fit.ours)[order]
    # Equal scores of different records may differ in their last digits; they must not be ranked by them.
    same = 1e-9 * float(scores[-1] - scores[0])
    last = np.flatnonzero(np.append(np.diff(scores) > same, True))
    after, before = np.cumsum(released)[last], np.cumsum(original)[last]
    total, rest = after[-1], before[-1]
    here, there = np.diff(after, prepend=0.0), np.diff(before, prepend=0.0)
    u = float((here * (before - there / 2)).sum())
    away = scores[last] - fit.share
    tied = np.abs(away) <= max(same, 1e-12)
    right = (here * (away > 0) + there * (away < 0))[~tied].sum() + (here + there)[tied].sum() / 2
    return {
        "specks": float(np.abs(after / total - before / rest).max()),
        "po50": float(100 * right / (total + rest) - 50),
        "u": u,
        "auc": float(u / (total * rest)),
    }
