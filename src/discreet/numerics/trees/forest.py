"""What do many trees on resampled records say together? Random forests and bagging as pools of donors.

Each tree is grown on a bootstrap sample; then all training rows are dropped down it and become the donors of its
leaves. A record draws a tree, each as likely as another, and a donor from the leaf it falls in there.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Codes, Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import generator
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.growing import TreeLimits, class_outcome, fine_outcome, grow_tree, number_outcome
from discreet.numerics.trees.tree import Tree


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves hold the same training rows as donors."""

    trees: tuple[Tree, ...]

    @property
    def importances(self) -> Floats:
        """By column, how much its splits lowered the risk, averaged over the trees."""
        means: Floats = np.mean([tree.importances for tree in self.trees], axis=0)
        return means

    def draw(self, codes: Array, rng: np.random.Generator) -> Codes:
        """Draw a donor, a training row, for each coded row: a tree at random, then a donor in its leaf.

        Every tree counts alike, as in the prediction of a forest. One pool of all donors would let the trees with the
        largest leaves, which know least about a record, speak loudest.
        """
        chosen = np.empty(len(codes), dtype=np.int32)
        turn = rng.integers(len(self.trees), size=len(codes))
        for number, tree in enumerate(self.trees):
            own = np.flatnonzero(turn == number)
            chosen[own] = tree.draw(codes[own], rng)
        return chosen

    def to_arrays(self) -> dict[str, Array]:
        """Give the forest as plain arrays, to be written to an npz file."""
        arrays: dict[str, Array] = {"n_trees": np.asarray(len(self.trees))}
        for number, tree in enumerate(self.trees):
            arrays |= {f"{number}.{name}": array for name, array in tree.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Forest:
        """Read the forest back from the arrays of `to_arrays`."""
        trees = []
        for number in range(int(arrays["n_trees"])):
            start = f"{number}."
            parts = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            trees.append(Tree.from_arrays(parts))
        return cls(tuple(trees))


def grow_forest(
    codes: Array,
    features: Sequence[Feature],
    y: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_classes: int = 0,
    n_trees: int = 10,
    features_per_split: int | Literal["auto"] | None = "auto",
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    fine: npt.ArrayLike | None = None,
    threads: int = 1,
    **limits: Any,
) -> Forest:
    """Grow a random forest for a number, or for classes when ``n_classes`` is given.

    Parameters
    ----------
    n_trees
        How many trees.
    features_per_split
        Columns drawn at random for each split: ``"auto"`` takes the square root of their number for classes and a
        third of them for numbers; None takes all (bagging).
    weights
        Used for the splits and to draw donors; the bootstrap samples rows alike.
    threads
        How many trees to grow at the same time; the result does not depend on it.
    codes, features, y, rng, columns, rows, **limits
        As in `discreet.numerics.trees.growing.grow_regression`.
    fine
        As in `discreet.numerics.trees.growing.grow_classification`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode, grow_forest
    >>> rng = np.random.default_rng(1)
    >>> x = np.arange(100)
    >>> feature = Feature.numeric(x)
    >>> codes = encode([feature], [x])
    >>> forest = grow_forest(codes, [feature], x, n_trees=3, rng=rng)
    >>> bool(np.abs(forest.draw(codes, rng) - x).max() < 40)
    True
    """
    if n_trees < 1 or threads < 1:
        raise ParameterError("n_trees and threads must be at least 1.")
    outcome, labels = class_outcome(y, n_classes) if n_classes else number_outcome(y)
    finer = fine_outcome(fine)
    taken = np.arange(len(codes)) if rows is None else np.asarray(rows, dtype=np.int64)
    weight = None if weights is None else np.asarray(weights, dtype=np.float64)
    if weight is not None:
        taken = taken[weight[taken] > 0]
    if not len(taken):
        raise ParameterError("A forest needs at least one row with a positive weight.")
    width = len(features) if columns is None else len(columns)
    per_split = features_per_split
    if per_split == "auto":
        per_split = max(1, int(np.sqrt(width)) if n_classes else width // 3)

    stop = TreeLimits(features_per_split=per_split, **limits)

    def grow_one(seed: int) -> Tree:
        own = generator(seed)
        # Sorted, so that the rows are read in the order of memory.
        sample = taken[np.sort(own.integers(len(taken), size=len(taken)))]
        tree = grow_tree(
            codes, features, outcome, labels, n_classes, stop,
            rng=own, columns=columns, rows=sample, weights=weight, fine=finer,
        )  # fmt: skip
        leaves = tree.leaves(codes, own)[taken]
        return tree.with_donors(leaves, rows=taken, classes=labels if n_classes else None, weights=weight)

    seeds = [int(seed) for seed in rng.integers(2**63, size=n_trees)]
    if threads == 1:
        return Forest(tuple(grow_one(seed) for seed in seeds))
    with ThreadPoolExecutor(threads) as pool:
        return Forest(tuple(pool.map(grow_one, seeds)))
