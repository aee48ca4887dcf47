"""A classification tree of which file a record came from, as rpart grows and prunes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.randomness import generator
from discreet.utility.propensity.fitting import Fit
from discreet.utility.propensity.stacking import Stack

if TYPE_CHECKING:
    from discreet.numerics.trees.coding import Feature

USUAL: Mapping[str, float] = {"cp": 1e-3, "minsplit": 20, "minbucket": 7, "maxdepth": 30}


@dataclass(frozen=True)
class Cart:
    """A tree with Gini splits, pruned by misclassified records: one leaf costs ``cp`` times the errors of the root."""

    cp: float = 1e-3
    minsplit: int = 20
    minbucket: int = 7
    maxdepth: int = 30

    fixed_columns = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Cart:
        """Take the options of ``tree=``, the usual ones for the rest."""
        for name, value in options.items():
            if name not in USUAL:
                raise ParameterError(unknown_name(name, USUAL, what="option of tree"))
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise ParameterError(f"The option '{name}' of tree must be a number that is not negative.")
        return cls(**options)

    def prepare(self, stacked: Stack) -> PreparedCart:
        """Code the predictors once; only the labels change from fit to fit."""
        from discreet.numerics.trees.coding import Feature, encode

        features = [
            Feature.category(len(column.levels))
            if column.kind == "category"
            else Feature.numeric(column.values)
            for column in stacked.columns
        ]
        codes = encode(features, [column.values for column in stacked.columns])
        if stacked.cell is not None:
            codes = np.asfortranarray(codes[stacked.cell])
        return PreparedCart(stacked, self, features, codes)


@dataclass(frozen=True)
class PreparedCart:
    """Coded predictors, ready for trees with the true or with permuted labels."""

    stacked: Stack
    settings: Cart
    features: list[Feature]
    codes: Any

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Grow and prune a tree; the score of a record is the share of released ones in its leaf."""
        from discreet.numerics.trees.growing import grow_classification
        from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, RISK, START, STOP, VALUE, WEIGHT
        from discreet.utility.propensity.cart_kernels import LEAF, SPLIT, worthwhile

        labels = self.stacked.released if released is None else released
        each: Floats = np.ones(len(labels)) if self.stacked.weight is None else self.stacked.weight
        ours = np.where(labels, each, 0.0)
        if not self.features:
            return Fit(np.full(len(labels), ours.sum() / each.sum()), ours, each, leaves=1)
        tree = grow_classification(
            self.codes,
            self.features,
            labels.astype(np.int32),
            2,
            rng=generator(0),
            weights=self.stacked.weight,
            min_leaf=int(self.settings.minbucket),
            min_split=int(self.settings.minsplit),
            cp=0.0,
            max_depth=int(self.settings.maxdepth),
        )
        nodes, figures = tree.nodes.astype(np.int64), tree.figures
        inner = nodes[:, FEATURE] >= 0
        left, right = np.where(inner, nodes[:, LEFT], 0), np.where(inner, nodes[:, RIGHT], 0)
        errors = figures[:, WEIGHT] * np.minimum(figures[:, VALUE], 1 - figures[:, VALUE])
        fate = worthwhile(errors, left, right, float(self.settings.cp) * errors[0])
        ends = np.flatnonzero(fate == LEAF)
        ends = ends[np.argsort(nodes[ends, START])]
        scores = np.empty(len(labels))
        scores[tree.rows] = np.repeat(figures[ends, VALUE], nodes[ends, STOP] - nodes[ends, START])
        details = {}
        if spread:
            split, risk = np.flatnonzero(fate == SPLIT), figures[:, RISK]
            gains = np.maximum(risk[split] - risk[left[split]] - risk[right[split]], 0.0)
            details["importances"] = np.bincount(nodes[split, FEATURE], gains, len(self.features))
        return Fit(scores, ours, each, leaves=len(ends), details=details)
