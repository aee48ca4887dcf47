"""Which questions about the columns tell the outcomes apart? Regression and classification trees.

Splits lower the sum of squares (numbers) or the Gini impurity (classes) as much as possible. A category is split
into two sets of levels: levels are put in order by their mean outcome, which finds the best of all sets exactly
for numbers and two classes, by their mean rank where classes are ordered groups of a number, or along the first
principal component of their class shares for other classes. The cost is linear in records and levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Codes, Floats
from discreet.core.constraints import AtLeast, Between
from discreet.core.errors import ParameterError
from discreet.core.parameters import check_fields
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, RISK, START, STOP, Tree

_NONE: Floats = np.empty(0)


@dataclass(frozen=True)
class TreeLimits:
    """When growth stops, and which columns a split may use.

    Parameters
    ----------
    min_leaf, min_split
        The fewest rows in a leaf, and in a node that is split (default: three times ``min_leaf``, as in rpart).
    cp
        A split must lower the risk by at least this share of the risk of the root.
    max_depth
        The most splits on a way down.
    features_per_split
        How many columns, drawn at random, a split may use (default: all).
    level_penalty
        Columns are compared by their gain less this many times what chance alone would give for so many levels of a
        category, or cuts of a number. With 0 a split goes to columns of many values on noise, and columns of few drown,
        as in rpart; with 1 columns that say nothing are chosen equally often.
    criterion
        Above 0: columns are chosen by tests, and a node is split while 1 minus the corrected p-value exceeds this.
    """

    min_leaf: Annotated[int, AtLeast(1)] = 5
    min_split: int | None = None
    cp: Annotated[float, AtLeast(0)] = 1e-8
    max_depth: Annotated[int, AtLeast(0)] = 30
    features_per_split: Annotated[int, AtLeast(1)] | None = None
    level_penalty: Annotated[float, AtLeast(0)] = 0.0
    criterion: Annotated[float, Between(0, 1, below=True)] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


def grow_regression(
    codes: Array,
    features: Sequence[Feature],
    y: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    **limits: Any,
) -> Tree:
    """Grow a tree for a number.

    Parameters
    ----------
    codes, features
        The coded predictors and what their columns are (`discreet.numerics.trees.coding.encode`).
    y
        The outcome of every row of ``codes``, without missing values.
    rng
        Draws the columns a split may use; not used when all may be.
    columns
        The columns of ``codes`` to use (default: all). The tree keeps their numbers, and later takes tables with
        all columns.
    rows
        The rows to grow on, repeated ones counted as often as they come (default: all).
    weights
        A weight for every row; rows of weight zero are left out. Sizes (``min_leaf``) count rows, not weight.
    **limits
        When to stop and what a split may use: the fields of `TreeLimits`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.growing import grow_regression
    >>> x = [1, 2, 3, 4, 5, 6]
    >>> feature = Feature.numeric(x)
    >>> codes = encode([feature], [x])
    >>> rng = np.random.default_rng(1)
    >>> tree = grow_regression(codes, [feature], [0, 0, 0, 9, 9, 9], min_leaf=2, rng=rng)
    >>> tree.leaf_means
    array([0., 9.])
    >>> bool(tree.draw(codes, rng)[0] in (0, 1, 2))
    True
    """
    used: dict[str, Any] = {"rng": rng, "columns": columns, "rows": rows, "weights": weights}
    return grow_tree(codes, features, *number_outcome(y), 0, TreeLimits(**limits), **used)


def grow_classification(
    codes: Array,
    features: Sequence[Feature],
    classes: npt.ArrayLike,
    n_classes: int,
    *,
    rng: np.random.Generator,
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    fine: npt.ArrayLike | None = None,
    **limits: Any,
) -> Tree:
    """Grow a tree for classes coded 0 to ``n_classes - 1``; parameters as in `grow_regression`.

    With ``fine``, a number for every row, the classes are groups of its values in ascending order: splits lower the sum
    of the risks of all questions "up to this class, or above?", and nodes of a single class are split further, by the
    sum of squares of ``fine``, so that what happens within a group is not lost.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.growing import grow_classification
    >>> town = Feature.category(3)
    >>> codes = encode([town], [[0, 0, 1, 1, 2, 2]])
    >>> tree = grow_classification(
    ...     codes, [town], [0, 0, 1, 1, 0, 0], 2, min_leaf=2, rng=np.random.default_rng(1)
    ... )
    >>> tree.leaf_shares.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    used: dict[str, Any] = {"rng": rng, "columns": columns, "rows": rows, "weights": weights}
    outcome, stop = class_outcome(classes, n_classes), TreeLimits(**limits)
    return grow_tree(codes, features, *outcome, int(n_classes), stop, **used, fine=fine_outcome(fine))


def number_outcome(y: npt.ArrayLike) -> tuple[Floats, Codes]:
    """Check a numeric outcome."""
    outcome = np.ascontiguousarray(y, dtype=np.float64)
    if not np.isfinite(outcome).all():
        raise ParameterError("y must be finite: give missing outcomes a class or a tree of their own.")
    return outcome, np.empty(0, np.int32)


def class_outcome(classes: npt.ArrayLike, n_classes: int) -> tuple[Floats, Codes]:
    """Check classes; two of them are grown as the number 0 or 1, which splits the same way."""
    labels = np.ascontiguousarray(classes, dtype=np.int32)
    if n_classes < 1 or (len(labels) and (labels.min() < 0 or labels.max() >= n_classes)):
        raise ParameterError(
            "classes must be coded 0 to n_classes - 1; give missing outcomes a class of their own."
        )
    return (labels.astype(np.float64) if n_classes <= 2 else np.empty(0)), labels


def fine_outcome(fine: npt.ArrayLike | None) -> Floats:
    """Check the numbers that split nodes of one class; none is an empty array."""
    return _NONE if fine is None else number_outcome(fine)[0]


def grow_tree(  # noqa: PLR0917
    codes: Array,
    features: Sequence[Feature],
    outcome: Floats,
    labels: Codes,
    n_classes: int,
    limits: TreeLimits,
    *,
    rng: np.random.Generator,
    columns: Sequence[int] | None,
    rows: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    fine: Floats = _NONE,
) -> Tree:
    """Check the input and grow."""
    if codes.ndim != 2 or codes.shape[1] != len(features):
        raise ParameterError("codes must be a table with one column for each feature.")
    used = np.arange(len(features)) if columns is None else np.asarray(columns, dtype=np.int64)
    if len(used) and (used.min() < 0 or used.max() >= len(features)):
        raise ParameterError(f"columns must be numbers from 0 to {len(features) - 1}.")
    n = len(codes)
    if max(len(outcome), len(labels)) != n:
        raise ParameterError(f"There are {n} rows of codes but {max(len(outcome), len(labels))} outcomes.")
    if len(fine) not in (0, n):
        raise ParameterError(f"There are {n} rows of codes but {len(fine)} fine outcomes.")
    weight = _weights(weights, n)
    taken = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    if len(weight):
        taken = taken[weight[taken] > 0]
    if not len(taken):
        raise ParameterError("A tree needs at least one row with a positive weight.")
    bins = np.array([feature.levels for feature in features], dtype=np.int32)
    for column in used.tolist():
        low, high = codes[:, column].min(), codes[:, column].max()
        if high >= bins[column] or (low < 0 and codes[taken, column].min() < 0):
            raise ParameterError(
                f"Column {column} of the codes has codes outside 0 to {bins[column] - 1}; "
                "learn its feature from all training values, with missing ones as a level."
            )
    categorical = np.array([feature.categorical for feature in features], dtype=np.bool_)
    several = n_classes > 2 or len(fine) > 0
    table = (
        used.astype(np.int32),
        bins,
        categorical,
        np.concatenate([feature.scores for feature in features] or [np.empty(0)]),
        np.append(0, np.cumsum(bins, dtype=np.int64)),
    )
    everything = rows is None and len(taken) == n
    work = np.empty((len(used), len(taken)), dtype=codes.dtype)
    for place, column in enumerate(used.tolist()):
        work[place] = codes[:, column] if everything else codes[taken, column]
    nodes, figures, members, order = run_growth(
        work,
        taken.astype(np.int32),
        outcome[taken] if len(outcome) else outcome,
        weight[taken] if len(weight) else weight,
        labels[taken] if several else np.empty(0, np.int32),
        fine[taken] if len(fine) else fine,
        n_classes,
        table,
        limits,
        int(rng.integers(2**63)),
    )
    if n_classes and not several:
        figures[:, RISK] *= 2.0  # the Gini risk of two classes, from the sum of squares of their indicator
    by_level = np.zeros(len(nodes), dtype=np.bool_)
    split = nodes[:, FEATURE] >= 0
    by_level[split] = categorical[nodes[split, FEATURE]]
    leaf_starts = np.sort(nodes[~split, START]).astype(np.int64)
    return Tree(
        nodes=nodes,
        figures=figures,
        members=members,
        by_level=by_level,
        rows=order,
        starts=np.append(leaf_starts, len(order)),
        classes=labels[order] if n_classes else np.empty(0, np.int32),
        weights=weight[order] if len(weight) else weight,
        n_columns=len(features),
        n_classes=n_classes,
    )


def run_growth(  # noqa: PLR0917
    work: Array,
    rows: Codes,
    outcome: Floats,
    weights: Floats,
    classes: Codes,
    fine: Floats,
    n_classes: int,
    table: tuple[Any, ...],
    limits: TreeLimits,
    seed: int,
) -> tuple[Codes, Floats, Codes, Codes]:
    """Set the table for the compiled growth; return nodes, figures, members and the rows grouped by leaf.

    All arrays of records are overwritten.
    """
    from discreet.numerics.trees.grow_kernels import Limits, Scores, Table, grow
    from discreet.numerics.trees.split_kernels import CELLS, Desk, Space

    q, n = work.shape
    several, held = len(classes) > 0, n_classes if len(classes) else 0
    most = int(max(table[1], default=1)) or 1
    listed = max(n, CELLS) if several else 0
    room = 2 * max(n // limits.min_leaf, 1) + 1  # memory that is never written to is never taken

    def whole(size: int) -> Codes:
        return np.empty(size, dtype=np.int32)

    desk = Desk(
        tally=np.zeros((most, 3)),
        cells=np.zeros(CELLS if several else 0),
        levels=whole(most),
        sequence=whole(most),
        keys=np.empty(most),
        spare_keys=np.empty(most),
        spare_items=whole(most),
        entry_starts=whole(most + 1),
        entry_classes=whole(listed),
        entry_weights=np.empty(listed),
        axis=np.empty(held),
        moved=np.empty(held),
    )
    space = Space(
        rows=rows,
        outcome=np.empty(n) if several else outcome,
        weights=weights,
        classes=classes,
        fine=fine,
        local=whole(n if several else 0),
        goes=np.empty(n, dtype=np.uint8),
        spare_codes=np.empty(n, dtype=work.dtype),
        spare_floats=np.empty(n),
        spare_rows=whole(n),
        nodes=np.zeros((room, 8), dtype=np.int32),
        figures=np.zeros((room, 4)),
        relabel=np.full(held, -1, dtype=np.int32),
        present=whole(held),
        totals=np.empty(held),
        factors=np.ones(held),
        best_levels=whole(most),
        side=np.zeros(most, dtype=np.uint8),
        draw=np.arange(q, dtype=np.int32),
        tails=np.empty(q),
        stack=whole(limits.max_depth + 2),
        state=np.array([seed], dtype=np.uint64),
    )
    limit = Limits(
        limits.min_leaf,
        3 * limits.min_leaf if limits.min_split is None else limits.min_split,
        float(limits.cp),
        limits.max_depth,
        min(limits.features_per_split or q, q),
        float(limits.criterion),
        float(limits.level_penalty),
        len(fine) > 0,
    )
    tests = Scores(*table[3:]) if limit.criterion > 0.0 else None
    count, used, members = grow(work, space, desk, Table(*table[:3]), limit, tests)
    return space.nodes[:count].copy(), space.figures[:count].copy(), members[:used].copy(), rows


def _weights(weights: npt.ArrayLike | None, n: int) -> Floats:
    if weights is None:
        return np.empty(0)
    weight = np.ascontiguousarray(weights, dtype=np.float64)
    if len(weight) != n:
        raise ParameterError(f"There are {n} rows of codes but {len(weight)} weights.")
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0:
        raise ParameterError("weights must be finite and not negative.")
    return weight


# How much of a classification tree is worth keeping? Cost-complexity pruning on misclassified records.
#
# A tree is grown on Gini impurity and cut back so that every split that stays saves, with the splits below it, more
# than ``cp`` times the errors of the root for each split (Breiman, Friedman, Olshen and Stone 1984). This is what
# propensity measures of utility are defined on: an unpruned tree tells any two files apart.


def prune(tree: Tree, *, cp: float = 1e-3) -> Tree:
    """Cut a classification tree back to the smallest one that is best at ``cp`` times the errors of its root.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.growing import grow_classification
    >>> x = np.arange(40)
    >>> feature = Feature.numeric(x)
    >>> tree = grow_classification(
    ...     encode([feature], [x]), [feature], (x >= 20) & (x != 30), 2, min_leaf=1, rng=np.random.default_rng(1)
    ... )
    >>> tree.n_leaves, prune(tree, cp=0.1).n_leaves
    (4, 2)
    """
    from discreet.numerics.trees.walk_kernels import misclassified, surviving

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
    cp: float = 1e-3,
    **options: Any,
) -> Tree:
    """Grow a classification tree on Gini impurity and prune it; the defaults are those of rpart with ``cp`` 0.001.

    The options are those of `grow_classification`, the generator among them.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.growing import grow_pruned
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=400)
    >>> feature = Feature.numeric(noise)
    >>> tree = grow_pruned(encode([feature], [noise]), [feature], np.arange(400) % 2, 2, cp=0.1, rng=rng)
    >>> tree.n_leaves
    1
    """
    options = {"min_leaf": 7, "min_split": 20, **options, "cp": 0.0}
    return prune(grow_classification(codes, features, classes, n_classes, **options), cp=cp)
