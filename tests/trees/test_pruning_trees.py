"""Pruning keeps what saves errors and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.growing import grow_classification, grow_pruned, grow_regression, prune

RNG = np.random.default_rng(0)
FEATURE, LEFT, RIGHT, START, STOP = 0, 3, 4, 5, 6


def by_hand():
    """Class counts (8,2), (7,3), (2,8), (5,5) at x = 0, 1, 2, 3: only the middle cut saves errors (18 -> 12)."""
    counts = [(8, 2), (7, 3), (2, 8), (5, 5)]
    x = np.repeat(range(4), [sum(c) for c in counts]).astype(float)
    y = np.concatenate([np.repeat([0, 1], c) for c in counts])
    feature = Feature.numeric(x)
    return grow_classification(
        encode([feature], [x]), [feature], y, 2, min_leaf=5, min_split=10, cp=0, rng=RNG
    )


@pytest.mark.parametrize(("cp", "leaves"), [(0.0, 2), (0.3, 2), (1 / 3, 1), (0.34, 1)])
def test_a_split_stays_when_it_saves_more_than_cp_of_the_errors_of_the_root(cp, leaves):
    tree = by_hand()
    assert tree.n_leaves == 4
    pruned = prune(tree, cp=cp)
    assert pruned.n_leaves == leaves
    assert sorted(pruned.rows.tolist()) == list(range(40))
    if leaves == 2:
        assert pruned.leaf_means.tolist() == [0.25, 0.65]
        assert pruned.leaf_shares[:, 1].tolist() == [0.25, 0.65]


def all_prunings(tree, errors, t=0):
    """(errors, leaves) of every subtree that starts at node t."""
    found = [(errors[t], 1)]
    if tree.nodes[t, FEATURE] >= 0:
        for left in all_prunings(tree, errors, tree.nodes[t, LEFT]):
            found += [
                (left[0] + right[0], left[1] + right[1])
                for right in all_prunings(tree, errors, tree.nodes[t, RIGHT])
            ]
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_pruned_tree_is_the_smallest_of_the_best_subtrees(seed, n_classes):
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 6, 120), rng.integers(0, 5, 120)
    y = (x * z + rng.integers(0, 3, 120)) % n_classes
    w = rng.integers(1, 4, 120).astype(float)
    features = [Feature.numeric(x), Feature.category(5)]
    tree = grow_classification(
        encode(features, [x, z]), features, y, n_classes, weights=w, min_leaf=7, max_depth=4, rng=rng
    )
    errors = []
    for node in tree.nodes:
        inside = tree.rows[node[START] : node[STOP]]
        totals = np.bincount(y[inside], w[inside], n_classes)
        errors.append(totals.sum() - totals.max())
    for cp in (0.0, 0.01, 0.03, 0.1):
        alpha = cp * errors[0]
        cost, size = min((round(e + alpha * k, 6), k) for e, k in all_prunings(tree, errors))
        pruned = prune(tree, cp=cp)
        shares = pruned.leaf_shares
        kept = ((1 - shares.max(axis=1)) * pruned.leaf_weights).sum()
        assert pruned.n_leaves == size
        assert kept + alpha * size == pytest.approx(cost, abs=1e-5)


def test_propensities_of_a_pruned_tree_find_a_shift_and_only_a_shift():
    rng = np.random.default_rng(3)
    is_new = np.repeat([0, 1], 2000)
    x = rng.normal(size=4000)
    town = rng.integers(0, 50, 4000)
    features = [Feature.numeric(x + is_new), Feature.category(50)]
    shifted = grow_pruned(encode(features, [x + is_new, town]), features, is_new, 2, rng=rng)
    features[0] = Feature.numeric(x)
    same = grow_pruned(encode(features, [x, town]), features, is_new, 2, rng=rng, cp=0.02)
    pmse = [((tree.leaf_means - 0.5) ** 2 * np.diff(tree.starts)).sum() / 4000 for tree in (shifted, same)]
    assert pmse[0] > 0.04
    assert pmse[1] < pmse[0] / 2
    assert np.diff(shifted.starts).min() >= 7


def test_trees_for_numbers_are_not_pruned_on_errors():
    x = np.arange(20.0)
    feature = Feature.numeric(x)
    codes = encode([feature], [x])
    with pytest.raises(ParameterError, match="classification"):
        prune(grow_regression(codes, [feature], x, rng=RNG))
    tree = grow_classification(codes, [feature], x > 9, 2, rng=RNG)
    with pytest.raises(ParameterError, match="cp"):
        prune(tree, cp=-1)
