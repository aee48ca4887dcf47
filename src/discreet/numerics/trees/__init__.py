"""Trees on coded columns, grown quickly: shared by `discreet.synth` (donors) and `discreet.utility` (propensity).

Learn a `Feature` for each predictor, `encode` the columns, grow a `Tree`, and ask it for leaves or donors.
"""

from __future__ import annotations

from discreet.numerics.trees.coding import Feature, code_type, encode
from discreet.numerics.trees.conditional_inference import grow_conditional, grow_survival, log_rank_scores
from discreet.numerics.trees.forest import Forest, grow_forest
from discreet.numerics.trees.growing import grow_classification, grow_pruned, grow_regression, prune
from discreet.numerics.trees.tree import Tree

__all__ = [
    "Feature",
    "Forest",
    "Tree",
    "code_type",
    "encode",
    "grow_classification",
    "grow_conditional",
    "grow_forest",
    "grow_pruned",
    "grow_regression",
    "grow_survival",
    "log_rank_scores",
    "prune",
]
