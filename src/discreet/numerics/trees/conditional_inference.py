"""Which column is associated with the outcome beyond chance? Conditional inference trees.

A node chooses its column by tests and its cut afterwards, so that columns with many cuts have no head start
(Hothorn, Hornik and Zeileis 2006). The test is the quadratic form of the linear statistic under permutations of
the outcomes, with its chi-square limit; p-values are corrected for the number of columns tested (1 - (1 - p)^m).
Growth stops where no column reaches the wanted confidence. The cut is the one with the greatest two-sample
statistic: for a number the greatest gain in the sum of squares, for classes the greatest chi-square.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.growing import class_outcome, grow_tree, number_outcome
from discreet.numerics.trees.tree import Tree


def grow_conditional(
    codes: Array,
    features: Sequence[Feature],
    y: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_classes: int = 0,
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    mincriterion: float = 0.9,
    min_leaf: int = 5,
    min_split: int = 20,
    max_depth: int = 30,
) -> Tree:
    """Grow a conditional inference tree for a number, or for classes when ``n_classes`` is given.

    Parameters
    ----------
    y
        Numbers, or classes coded 0 to ``n_classes - 1``.
    weights
        Sampling weights; they are scaled to a mean of one, so that the tests see as many records as there are.
    mincriterion
        A node is split while 1 minus the corrected p-value of its best column exceeds this.
    codes, features, rng, columns, rows, min_leaf, min_split, max_depth
        As in `discreet.numerics.trees.growing.grow_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode, grow_conditional
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(200, 2))
    >>> features = [Feature.numeric(column) for column in x.T]
    >>> tree = grow_conditional(encode(features, list(x.T)), features, x[:, 1] > 0, n_classes=2, rng=rng)
    >>> tree.n_leaves, tree.importances.round().tolist()
    (2, [0.0, 100.0])
    """
    if not 0 < mincriterion < 1:
        raise ParameterError(
            "mincriterion must lie between 0 and 1: it is one minus the largest p-value of a split."
        )
    outcome, labels = class_outcome(y, n_classes) if n_classes else number_outcome(y)
    if weights is not None:
        weight = np.asarray(weights, dtype=np.float64)
        inside = weight if rows is None else weight[np.asarray(rows, dtype=np.int64)]
        weights = weight * ((inside > 0).sum() / inside.sum()) if inside.sum() > 0 else weight
    return grow_tree(
        codes, features, outcome, labels, n_classes, rng=rng, columns=columns, rows=rows, weights=weights,
        min_leaf=min_leaf, min_split=min_split, cp=0.0, max_depth=max_depth, criterion=mincriterion,
    )  # fmt: skip
