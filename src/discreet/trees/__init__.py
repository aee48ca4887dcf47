"""Trees on coded columns, grown quickly: shared by `discreet.synth` (donors) and `discreet.utility` (propensity).

Learn a `Feature` for each predictor, `encode` the columns, grow a `Tree`, and ask it for leaves or donors.
"""

from discreet.trees.coding import Feature, code_type, encode
from discreet.trees.conditional_inference import grow_conditional
from discreet.trees.forest import Forest, grow_forest
from discreet.trees.growing import grow_classification, grow_regression
from discreet.trees.pruning import grow_pruned, prune
from discreet.trees.survival import grow_survival, log_rank_scores
from discreet.trees.tree import Tree

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
