"""Gradient boosting, or any function of the user's own, as the model of which file a record came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError
from discreet.utility.propensity.fitting import Fit
from discreet.utility.propensity.stacking import Stack

_MOST_CATEGORIES = 255
USUAL: Mapping[str, Any] = {
    "max_iter": 50,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "early_stopping": False,
}


@dataclass(frozen=True)
class Boosting:
    """Histogram gradient boosting (scikit-learn); ``options`` are those of its classifier."""

    options: Mapping[str, Any] = field(default_factory=dict)

    fixed_columns = False

    def prepare(self, stacked: Stack) -> PreparedScorer:
        """Lay out the predictors once."""
        table = np.column_stack([column.values for column in stacked.columns] or [np.zeros(stacked.cells)])
        categories = [
            column.kind == "category" and len(column.levels) <= _MOST_CATEGORIES for column in stacked.columns
        ] or [False]
        rows: Floats = (table if stacked.cell is None else table[stacked.cell]).astype(np.float64)
        return PreparedScorer(
            stacked, lambda labels, weight: self._scores(rows, categories, labels, weight), rows
        )

    def _scores(
        self, rows: Floats, categories: list[bool], labels: Flags, weight: Floats | None
    ) -> tuple[Floats, Callable[[Floats], Floats]]:
        from sklearn.ensemble import HistGradientBoostingClassifier

        try:
            model = HistGradientBoostingClassifier(
                **{**USUAL, "random_state": 0, **self.options}, categorical_features=categories
            ).fit(rows, labels, sample_weight=weight)
        except TypeError as error:
            raise ParameterError(
                "tree holds an option that gradient boosting does not know; it takes those of scikit-learn's "
                "HistGradientBoostingClassifier, e.g. max_iter or max_leaf_nodes."
            ) from error
        return model.predict_proba(rows)[:, 1], lambda other: model.predict_proba(other)[:, 1]


@dataclass(frozen=True)
class Custom:
    """A function of the user: (predictors as a table, labels) to the chance of being released, by record."""

    scorer: Callable[[pl.DataFrame, Flags], Any]

    fixed_columns = False

    def prepare(self, stacked: Stack) -> PreparedScorer:
        """Lay out the predictors once."""
        rows = stacked.table() if stacked.cell is None else stacked.table()[stacked.cell]
        rows.columns = [column.name for column in stacked.columns]

        def scores(labels: Flags, weight: Floats | None) -> tuple[Floats, None]:
            found = np.asarray(self.scorer(rows, labels), dtype=np.float64).ravel()
            if (
                len(found) != len(labels)
                or not np.isfinite(found).all()
                or found.min() < 0
                or found.max() > 1
            ):
                raise ParameterError(
                    f"The model function must give one number between 0 and 1 for each of the {len(labels):,} records."
                )
            return found, None

        return PreparedScorer(stacked, scores, None)


@dataclass(frozen=True)
class PreparedScorer:
    """Predictors, ready for fits with the true or with permuted labels."""

    stacked: Stack
    scorer: Callable[[Flags, Floats | None], tuple[Floats, Callable[[Floats], Floats] | None]]
    rows: Floats | None

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit and score."""
        labels = self.stacked.released if released is None else released
        each = np.ones(len(labels)) if self.stacked.weight is None else self.stacked.weight
        scores, model = self.scorer(labels, self.stacked.weight)
        details: dict[str, Any] = {}
        if spread and model is not None and self.rows is not None:
            rows, again = self.rows, model
            details["importances_later"] = lambda: _importances(rows, again, scores)
        return Fit(scores, np.where(labels, each, 0.0), each, details=details)


def _importances(rows: Floats, model: Callable[[Floats], Floats], scores: Floats) -> Floats:
    """Say how far the scores move, in squares, when one column is shuffled."""
    order = np.random.default_rng(0).permutation(len(rows))
    moved = []
    for column in range(rows.shape[1]):
        other = rows.copy()
        other[:, column] = rows[order, column]
        moved.append(float(((model(other) - scores) ** 2).mean()))
    return np.array(moved)
