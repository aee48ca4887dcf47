"""How much of a classification tree is worth keeping? Cost-complexity pruning on misclassified records.

A tree is grown on Gini impurity and cut back so that every split that stays saves, with the splits below it, more
than ``cp`` times the errors of the root for each split (Breiman, Friedman, Olshen and Stone 1984). This is what
propensity measures of utility are defined on: an unpruned tree tells any two files apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.growing import grow_classification
from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, START, STOP, Tree


def prune(tree: Tree, *, cp: float = 1e-3) -> Tree:
    """Cut a classification tree back to the smallest one that is best at ``cp`` times the errors of its root.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode, grow_classification
    >>> x = np.arange(40)
    >>> feature = Feature.numeric(x)
    >>> tree = grow_classification(
    ...     encode([feature], [x]), [feature], (x >= 20) & (x != 30), 2, min_leaf=1, rng=np.random.default_rng(1)
    ... )
    >>> tree.n_leaves, prune(tree, cp=0.1).n_leaves
    (4, 2)
    """
    from discreet.numerics.trees.pruning_kernels import misclassified, surviving

    if not tree.n_classes:
        raise ParameterError(
            "Only a classification tree is pruned on misclassified records; this one is for a number."
        )
    if cp < 0:
        raise ParameterError("cp must not be negative.")
    nodes = tree.nodes
    if nodes[0, STOP] != len(tree.rows):
        raise ParameterError("Prune the tree before giving it other donors.")
    columns = [np.ascontiguousarray(nodes[:, field]) for field in (START, STOP, LEFT, RIGHT)]
    starts, stops, lefts, rights = columns
    errors = misclassified(starts, stops, tree.classes, tree.weights, tree.n_classes)
    fate = surviving(lefts, rights, errors, cp * errors[0])
    kept = np.flatnonzero(fate)
    numbers = np.cumsum(fate > 0) - 1
    smaller = nodes[kept]
    split = fate[kept] == 2
    for child in (LEFT, RIGHT):
        smaller[:, child] = np.where(split, numbers[smaller[:, child]], 0)
    smaller[~split, FEATURE] = -1
    leaf_starts = np.sort(smaller[~split, START]).astype(np.int64)
    return replace(
        tree,
        nodes=smaller,
        figures=tree.figures[kept],
        by_level=tree.by_level[kept] & split,
        starts=np.append(leaf_starts, len(tree.rows)),
    )


def grow_pruned(
    codes: Array,
    features: Sequence[Feature],
    classes: npt.ArrayLike,
    n_classes: int,
    *,
    rng: np.random.Generator,
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    min_leaf: int = 7,
    min_split: int = 20,
    cp: float = 1e-3,
    max_depth: int = 30,
) -> Tree:
    """Grow a classification tree on Gini impurity and prune it; the defaults are those of rpart with ``cp`` 0.001.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode, grow_pruned
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=400)
    >>> feature = Feature.numeric(noise)
    >>> tree = grow_pruned(encode([feature], [noise]), [feature], np.arange(400) % 2, 2, cp=0.1, rng=rng)
    >>> tree.n_leaves
    1
    """
    tree = grow_classification(
        codes, features, classes, n_classes, rng=rng, columns=columns, rows=rows, weights=weights,
        min_leaf=min_leaf, min_split=min_split, cp=0.0, max_depth=max_depth,
    )  # fmt: skip
    return prune(tree, cp=cp)
