"""Is a tree that was read from a file one that records can be walked down?

The walk is compiled and trusts its arrays: a child that points out of them, or back up, would read foreign memory or
never end. So every number that is used as a place is held against what it points into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.numerics.trees.tree import Tree


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
