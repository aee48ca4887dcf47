"""A grown tree: where does a record end, and who may lend it a value there?

`Tree` is a handful of flat arrays. ``rows`` holds the training rows grouped by leaf, so that a donor for a record
in leaf ``t`` is ``rows[starts[t] + floor(u * size)]``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.errors import ParameterError

FEATURE, CUT, MEMBERS_END, LEFT, RIGHT, START, STOP, DEPTH = range(8)
WEIGHT, VALUE, RISK, LEFT_SHARE = range(4)


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree on coded columns, with the training rows grouped by leaf.

    Attributes
    ----------
    nodes
        By node, whole numbers: the column it splits on (-1: a leaf), the last code that goes left (or the first of
        its ``members``), the end of its members, both children, the run of ``rows`` under it and its depth.
    figures
        By node: weight, mean outcome (0 for more than two classes), risk (sum of squares, or weighted Gini), and
        the share of the weight that goes left.
    members
        For splits on categories, ``2 * level + (1 if it goes right)`` of the levels that the node has seen.
    by_level
        By node, whether it splits on a category.
    rows
        Training rows (or donors) grouped by leaf.
    starts
        Where each leaf starts in ``rows``, and one end more.
    classes, weights
        The classes and the weights of ``rows``, in their order; empty where there are none.
    n_columns, n_classes
        Columns of the code table; classes of the outcome, 0 for a number.
    """

    nodes: Codes
    figures: Floats
    members: Codes
    by_level: Flags
    rows: Codes
    starts: Integers
    classes: Codes
    weights: Floats
    n_columns: int
    n_classes: int

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.starts) - 1

    @property
    def depth(self) -> int:
        """The number of splits on the longest way down; 0 for a tree that is one leaf."""
        return int(self.nodes[:, DEPTH].max())

    @property
    def leaf_nodes(self) -> Integers:
        """The node of each leaf, in the order of the leaves."""
        leaves = np.flatnonzero(self.nodes[:, FEATURE] < 0)
        # The leaf further left comes first; a leaf is never empty while the tree grows.
        return leaves[np.argsort(self.nodes[leaves, START], kind="stable")]

    @property
    def leaf_means(self) -> Floats:
        """The (weighted) mean outcome in each leaf; for two classes the share of class 1."""
        if self.n_classes > 2:
            raise ParameterError(
                "leaf_means belongs to numbers and two classes; use leaf_shares for this tree."
            )
        means: Floats = self.figures[self.leaf_nodes, VALUE]
        return means

    @property
    def leaf_weights(self) -> Floats:
        """The weight of the donors in each leaf: their number where there are no weights."""
        if not len(self.weights):
            return np.diff(self.starts).astype(np.float64)
        weights: Floats = np.diff(np.append(0.0, np.cumsum(self.weights))[self.starts])
        return weights

    @property
    def leaf_shares(self) -> Floats:
        """The (weighted) class proportions, one row for each leaf; large where leaves and classes are many."""
        if not self.n_classes:
            raise ParameterError("leaf_shares belongs to classes; use leaf_means for this tree.")
        leaf = np.repeat(np.arange(self.n_leaves), np.diff(self.starts))
        weights = self.weights if len(self.weights) else None
        cells = np.bincount(leaf * self.n_classes + self.classes, weights, self.n_leaves * self.n_classes)
        shares: Floats = cells.reshape(self.n_leaves, self.n_classes).astype(np.float64)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    @property
    def risk(self) -> float:
        """The sum over the leaves of squares around the mean, or of weighted Gini impurity."""
        return float(self.figures[self.nodes[:, FEATURE] < 0, RISK].sum())

    @property
    def importances(self) -> Floats:
        """By column, how much its splits lowered the risk (not scaled)."""
        split = np.flatnonzero(self.nodes[:, FEATURE] >= 0)
        risks = self.figures[:, RISK]
        gains = risks[split] - risks[self.nodes[split, LEFT]] - risks[self.nodes[split, RIGHT]]
        summed = np.bincount(self.nodes[split, FEATURE], np.maximum(gains, 0.0), self.n_columns)
        return summed.astype(np.float64)

    def leaves(self, codes: Array, rng: np.random.Generator) -> Codes:
        """Number the leaf that each coded row ends in.

        A level that a node has not seen goes to one of its children at random, by their weight, until a leaf.
        """
        from discreet.numerics.trees.walk_kernels import walk

        if codes.ndim != 2 or codes.shape[1] != self.n_columns:
            raise ParameterError(f"codes must have the {self.n_columns} columns that the tree was grown on.")
        numbers = np.zeros(len(self.nodes), dtype=np.int32)
        numbers[self.leaf_nodes] = np.arange(self.n_leaves)
        seed = int(rng.integers(2**63))
        shares = np.ascontiguousarray(self.figures[:, LEFT_SHARE])
        leaves: Codes = walk(codes, self.nodes, shares, self.members, self.by_level, numbers, seed)
        return leaves

    def donors(self, leaves: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> Codes:
        """Draw a training row for each leaf number, by weight where the tree has weights."""
        rows: Codes = self.rows[self.places(leaves, rng)]
        return rows

    def places(self, leaves: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> Integers:
        """Draw a place in ``rows`` for each leaf number, by weight where the tree has weights."""
        from discreet.numerics.trees.walk_kernels import places_in

        u = rng.random(len(leaves))
        if not len(self.weights):
            drawn: Integers = places_in(leaves, u, self.starts)
            return drawn
        ends = np.cumsum(self.weights)
        before = np.append(0.0, ends)[self.starts]
        place = np.searchsorted(ends, before[leaves] + u * np.diff(before)[leaves], side="right")
        # Rounding may carry a draw past the end of its leaf.
        kept: Integers = np.clip(place, self.starts[leaves], self.starts[leaves + np.int64(1)] - 1)
        return kept

    def draw(self, codes: Array, rng: np.random.Generator) -> Codes:
        """Draw a donor, a training row, for each coded row."""
        return self.donors(self.leaves(codes, rng), rng)

    def with_donors(
        self,
        leaves: npt.NDArray[np.integer[Any]],
        *,
        rows: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> Tree:
        """Put other donors into the leaves: ``rows[i]`` (default: row i) goes into leaf ``leaves[i]``.

        ``classes`` and ``weights`` are those of all rows. The runs of rows under the inner nodes no longer hold
        then, so prune first.
        """
        order = np.argsort(leaves, kind="stable")
        donors = (order if rows is None else np.asarray(rows)[order]).astype(np.int32)
        starts = np.append(0, np.cumsum(np.bincount(leaves, minlength=self.n_leaves))).astype(np.int64)
        return replace(
            self,
            rows=donors,
            starts=starts,
            classes=np.empty(0, np.int32) if classes is None else np.asarray(classes, np.int32)[donors],
            weights=np.empty(0) if weights is None else np.asarray(weights, np.float64)[donors],
        )

    def to_arrays(self) -> dict[str, Array]:
        """Give the tree as plain arrays, to be written to an npz file."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Tree:
        """Read the tree back from the arrays of `to_arrays`."""
        parts: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        for name in ("n_columns", "n_classes"):
            parts[name] = int(parts[name])
        tree = cls(**parts)
        check_tree(tree)
        return tree


# Is a tree that was read from a file one that records can be walked down?
#
# The walk is compiled and trusts its arrays: a child that points out of them, or back up, would read foreign memory or
# never end. So every number that is used as a place is held against what it points into.


_FEATURE, _CUT, _END, _LEFT, _RIGHT, _, _, _DEPTH = range(8)
_KINDS = {
    "nodes": (np.int32, 2), "figures": (np.float64, 2), "members": (np.int32, 1), "by_level": (np.bool_, 1),
    "rows": (np.int32, 1), "starts": (np.int64, 1), "classes": (np.int32, 1), "weights": (np.float64, 1),
}  # fmt: skip


def check_tree(tree: Tree) -> None:
    """Refuse a tree whose arrays do not fit together."""
    if not (_has_kinds(tree) and _has_lengths(tree) and _leads_down(tree) and _has_donors(tree)):
        raise ParameterError("The arrays of a tree do not fit together.")


def _has_kinds(tree: Tree) -> bool:
    return all(
        isinstance(array := getattr(tree, name), np.ndarray)
        and array.dtype == kind
        and array.ndim == dimensions
        for name, (kind, dimensions) in _KINDS.items()
    )


def _has_lengths(tree: Tree) -> bool:
    size = len(tree.nodes)
    donors = len(tree.rows)
    return (
        size > 0
        and tree.nodes.shape[1] == 8
        and tree.figures.shape == (size, 4)
        and len(tree.by_level) == size
        and len(tree.classes) in (0, donors)
        and len(tree.weights) in (0, donors)
        and tree.n_columns >= 0
        and tree.n_classes >= 0
    )


def _leads_down(tree: Tree) -> bool:
    nodes, size = tree.nodes, len(tree.nodes)
    inner = nodes[:, _FEATURE] >= 0
    children = nodes[inner][:, [_LEFT, _RIGHT]]
    if not inner.any():
        return True
    if children.min() < 0 or children.max() >= size or nodes[inner, _FEATURE].max() >= tree.n_columns:
        return False
    # Every step leads one floor down, so that no way is endless.
    if not (nodes[children, _DEPTH] == nodes[inner, _DEPTH][:, None] + 1).all():
        return False
    by_level = inner & tree.by_level
    first, end = nodes[by_level, _CUT], nodes[by_level, _END]
    levels_fit = not len(tree.members) or tree.members.min() >= 0
    return bool(
        levels_fit and (first >= 0).all() and (first <= end).all() and (end <= len(tree.members)).all()
    )


def _has_donors(tree: Tree) -> bool:
    starts, leaves = tree.starts, int((tree.nodes[:, _FEATURE] < 0).sum())
    return bool(
        len(starts) == leaves + 1
        and starts[0] == 0
        and starts[-1] == len(tree.rows)
        and (np.diff(starts) >= 0).all()
        and (not len(tree.rows) or tree.rows.min() >= 0)
    )
