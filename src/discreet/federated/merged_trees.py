"""One tree that votes like many: local trees are merged so that every input gets their majority.

A tree is a label (a leaf) or ``(attribute, threshold, left, right)``: ``value <= threshold`` goes left. The merged tree
has nodes with several cuts. It may be much larger than the trees together, so it has a cap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers, numbers_of
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.federated.parties import by_party

Tree = Any
"""A label, or (attribute, threshold, left, right)."""


@dataclass(frozen=True)
class Node:
    """A split of one attribute at several cuts; child i takes what lies above cut i - 1 and not above cut i."""

    attribute: str
    cuts: tuple[float, ...]
    children: tuple[Any, ...]


@dataclass(frozen=True)
class MergedTree:
    """The tree that votes like all the trees it was made of.

    Attributes
    ----------
    root
        A label, or a `Node`.
    trees, weights
        The trees that vote, where the merged tree would have had too many nodes (``root`` is None then).
    """

    root: Any
    trees: tuple[Tree, ...] = field(default=(), repr=False)
    weights: tuple[float, ...] = field(default=(), repr=False)

    @property
    def is_merged(self) -> bool:
        """Whether there is one tree, and not a vote of many."""
        return not self.trees

    @property
    def nodes(self) -> int:
        """How many nodes and leaves it has."""
        return _size(self.root) if self.is_merged else sum(_size(tree) for tree in self.trees)

    def predict(self, rows: Any) -> Array:
        """Predict the label of every row of a frame or mapping of columns."""
        columns = _columns(rows)
        size = len(next(iter(columns.values()))) if columns else 0
        if not self.is_merged:
            votes = [predicted(tree, columns, size) for tree in self.trees]
            return majority(votes, self.weights)
        return predicted(self.root, columns, size)

    def describe(self) -> list[str]:
        """Write the tree as lines of rules."""
        return _lines(self.root, 0) if self.is_merged else [f"a vote of {len(self.trees)} trees"]


@checked
def merge_trees(
    trees: Any, *, weights: Sequence[float] | None = None, max_nodes: int = 100_000,
    too_large: Literal["error", "vote"] = "error",
) -> MergedTree:  # fmt: skip
    """Which one tree predicts what the majority of these trees predicts, for every input?

    Also known as: merged decision trees.

    Parameters
    ----------
    trees
        Trees as ``(attribute, threshold, left, right)`` or labels, or fitted classifiers of scikit-learn.
    weights
        How much each tree counts, e.g. the number of its rows. Ties go to the lowest label.
    max_nodes
        The most nodes it may have.
    too_large
        What happens beyond: an ``"error"``, or the trees go on as a ``"vote"``.

    Examples
    --------
    >>> one = ("A", 3.5, 0, ("B", 1.5, 0, 1))
    >>> two = ("A", 5.5, 0, 1)
    >>> three = ("B", 2.5, 0, ("A", 4.5, 0, 1))
    >>> merged = merge_trees([one, two, three])
    >>> merged.predict({"A": [5, 6, 6], "B": [3, 2, 1]}).tolist(), merged.root.cuts
    ([1, 1, 0], (3.5, 5.5))
    """
    made = tuple(as_tree(tree) for tree in by_party(trees, "trees", named="tree").values())
    if not made:
        raise ParameterError("There are no trees to merge.")
    given = tuple(float(one) for one in weights) if weights is not None else (1.0,) * len(made)
    if len(given) != len(made) or any(not one > 0 for one in given):
        raise ParameterError("weights must be one number above 0 for each tree.")
    try:
        return MergedTree(_Merging(given, max_nodes).merged(made))
    except _TooLargeError:
        if too_large == "vote":
            return MergedTree(None, made, given)
        raise ParameterError(
            f"The merged tree has more than {max_nodes:,} nodes. Use shallower trees or fewer bins, raise max_nodes, "
            "or let the trees vote with too_large='vote'."
        ) from None


class _TooLargeError(Exception):
    """The cap was reached."""


class _Merging:
    """One merge: what was merged already is remembered."""

    def __init__(self, weights: tuple[float, ...], cap: int) -> None:
        self.weights, self.cap, self.made = weights, cap, 0
        self.equal = len(set(weights)) == 1
        self.known: dict[Any, Any] = {}
        self.total = sum(weights)

    def merged(self, trees: tuple[Tree, ...]) -> Any:
        votes: Counter[Any] = Counter()
        for tree, weight in zip(trees, self.weights, strict=True):
            if not isinstance(tree, tuple):
                votes[tree] += weight  # type: ignore[assignment]
        leaders = [label for label, weight in votes.items() if weight > self.total / 2]
        if leaders:
            return leaders[0]
        splits = [tree for tree in trees if isinstance(tree, tuple)]
        if not splits:
            most = max(votes.values())
            return min(label for label, weight in votes.items() if weight == most)
        # With equal weights the order of the trees does not matter.
        key = tuple(sorted(trees, key=repr)) if self.equal else trees
        if key not in self.known:
            self.known[key] = self._split(trees, splits)
        return self.known[key]

    def _split(self, trees: tuple[Tree, ...], splits: list[Tree]) -> Any:
        roots = Counter(tree[0] for tree in splits)
        most = max(roots.values())
        attribute = min(
            (name for name, many in roots.items() if many == most),
            key=lambda name: (isinstance(name, str), name),
        )
        cuts = sorted({tree[1] for tree in splits if tree[0] == attribute})
        self.made += 1 + len(cuts)
        if self.made > self.cap:
            raise _TooLargeError
        bounds = [-np.inf, *cuts, np.inf]
        children = [
            self.merged(tuple(restricted(tree, attribute, low, high) for tree in trees))
            for low, high in pairwise(bounds)
        ]
        kept_cuts, kept = [], [children[0]]
        for cut, child in zip(cuts, children[1:], strict=True):
            if child != kept[-1]:
                kept_cuts.append(cut)
                kept.append(child)
        return kept[0] if not kept_cuts else Node(attribute, tuple(kept_cuts), tuple(kept))


def restricted(tree: Tree, attribute: Any, low: float, high: float) -> Tree:
    """Drop the branches of a tree that no value with low < attribute <= high reaches."""
    if not isinstance(tree, tuple):
        return tree
    name, threshold, left, right = tree
    if name == attribute:
        if high <= threshold:
            return restricted(left, attribute, low, high)
        if low >= threshold:
            return restricted(right, attribute, low, high)
    one, two = restricted(left, attribute, low, high), restricted(right, attribute, low, high)
    return one if one == two else (name, threshold, one, two)


def as_tree(given: Any, names: Sequence[str] | None = None) -> Tree:
    """Take a tree as it is, or read it from a fitted classifier of scikit-learn."""
    if isinstance(given, tuple | list):
        if len(given) != 4 or not np.isfinite(given[1]):
            raise ParameterError(
                "A tree is a label, or (attribute, threshold, left, right) with a finite threshold."
            )
        return (given[0], float(given[1]), as_tree(given[2]), as_tree(given[3]))
    if not hasattr(given, "tree_"):
        return given.item() if isinstance(given, np.generic) else given
    inner = given.tree_
    known = names or getattr(given, "feature_names_in_", None)

    def at(node: int) -> Tree:
        if inner.children_left[node] < 0:
            # The lowest label wins a tie, as in the vote.
            return given.classes_[int(inner.value[node][0].argmax())].item()
        feature = int(inner.feature[node])
        name = str(known[feature]) if known is not None else feature
        children = (at(int(inner.children_left[node])), at(int(inner.children_right[node])))
        return (name, float(inner.threshold[node]), *children)

    return at(0)


def predicted(tree: Any, columns: Mapping[Any, Floats], size: int) -> Array:
    """Predict with one tree, merged or not."""
    made = np.empty(size, dtype=object)
    _fill(tree, columns, np.arange(size), made)
    return np.array(made.tolist())


def majority(votes: Sequence[Array], weights: Sequence[float]) -> Array:
    """Vote row by row; ties go to the lowest label."""
    labels = sorted(set().union(*(set(vote.tolist()) for vote in votes)))
    counted = np.array([
        sum(weight * (vote == label) for vote, weight in zip(votes, weights, strict=True)) for label in labels
    ])  # fmt: skip
    return np.asarray(np.array(labels)[counted.argmax(axis=0)])


def _fill(tree: Any, columns: Mapping[Any, Floats], rows: Integers, made: Array) -> None:
    if not len(rows):
        return
    if isinstance(tree, Node):
        attribute, cuts, children = tree.attribute, tree.cuts, tree.children
    elif isinstance(tree, tuple):
        attribute, cuts, children = tree[0], (tree[1],), (tree[2], tree[3])
    else:
        made[rows] = tree
        return
    if attribute not in columns:
        raise ColumnError(f"The tree asks for '{attribute}', which the rows do not have.")
    which = np.searchsorted(np.asarray(cuts), columns[attribute][rows], side="left")
    for at, child in enumerate(children):
        _fill(child, columns, rows[which == at], made)


def _columns(rows: Any) -> dict[Any, Floats]:
    if isinstance(rows, pl.DataFrame):
        given: Mapping[Any, Any] = {name: rows[name].to_numpy() for name in rows.columns}
    elif isinstance(rows, np.ndarray):
        given = {at: rows[:, at] for at in range(rows.shape[1])}
    else:
        given = dict(rows)
    made = {
        name: numbers_of(values, str(name), missing=True, infinite=True, empty=True)
        for name, values in given.items()
    }
    for name, values in made.items():
        if np.isnan(values).any():
            raise ColumnError(f"'{name}' has missing values: code them as a value of their own first.")
    return made


def _size(tree: Any) -> int:
    if isinstance(tree, Node):
        return 1 + sum(_size(child) for child in tree.children)
    if isinstance(tree, tuple):
        return 1 + _size(tree[2]) + _size(tree[3])
    return 1


def _lines(tree: Any, depth: int) -> list[str]:
    space = "  " * depth
    if not isinstance(tree, Node):
        return [f"{space}-> {tree}"]
    lines = []
    bounds = [None, *tree.cuts, None]
    for at, child in enumerate(tree.children):
        low, high = bounds[at], bounds[at + 1]
        left = "" if low is None else f"{low:.6g} < "
        right = "" if high is None else f" <= {high:.6g}"
        lines += [f"{space}{left}{tree.attribute}{right}", *_lines(child, depth + 1)]
    return lines
