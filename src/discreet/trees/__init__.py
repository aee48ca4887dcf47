"""Trees on coded columns, grown quickly: shared by `discreet.synth` (donors) and `discreet.utility` (propensity).

Learn a `Feature` for each predictor, `encode` the columns, grow a `Tree`, and ask it for leaves or donors.
"""

from discreet.trees.coding import Feature, encode
from discreet.trees.growing import grow_classification, grow_regression
from discreet.trees.tree import Tree

__all__ = ["Feature", "Tree", "encode", "grow_classification", "grow_regression"]
