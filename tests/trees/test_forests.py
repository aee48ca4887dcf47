"""A forest draws from the donors of its trees."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.forest import Forest, grow_forest


def records(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.integers(0, 6, n)
    features = [Feature.numeric(x), Feature.category(6)]
    return features, encode(features, [x, z]), x + (z % 2) + 0.2 * rng.normal(size=n), rng


@pytest.mark.parametrize("weighted", [False, True])
def test_a_donor_is_drawn_from_every_tree_alike(weighted):
    features, codes, y, rng = records()
    weights = rng.integers(1, 5, 400).astype(float) if weighted else None
    forest = grow_forest(codes, features, y, n_trees=4, weights=weights, rng=rng)
    pool = np.zeros(400)
    for tree in forest.trees:
        leaf = tree.leaves(codes[:1], rng)[0]
        donors = tree.rows[tree.starts[leaf] : tree.starts[leaf + 1]]
        own = np.ones(len(donors)) if weights is None else weights[donors]
        pool[donors] += own / own.sum()
    drawn = forest.draw(np.asfortranarray(np.repeat(codes[:1], 60_000, axis=0)), rng)
    assert np.bincount(drawn, minlength=400) / 60_000 == pytest.approx(pool / pool.sum(), abs=0.01)


def test_every_tree_offers_every_row_once():
    features, codes, y, rng = records()
    forest = grow_forest(codes, features, np.digitize(y, [0, 1]), n_classes=3, n_trees=3, rng=rng)
    for tree in forest.trees:
        assert sorted(tree.rows.tolist()) == list(range(400))
        assert np.diff(tree.starts).min() >= 1
        assert tree.leaf_shares.sum(axis=1) == pytest.approx(1)


def test_threads_and_files_change_nothing(tmp_path):
    features, codes, y, _ = records()
    one, two = (
        grow_forest(codes, features, y, n_trees=4, threads=k, rng=np.random.default_rng(5)) for k in (1, 2)
    )
    np.savez(tmp_path / "forest.npz", **one.to_arrays())
    with np.load(tmp_path / "forest.npz", allow_pickle=False) as arrays:
        back = Forest.from_arrays(dict(arrays))
    draws = [forest.draw(codes, np.random.default_rng(1)) for forest in (one, two, back)]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] == draws[2]).all()
    assert one.importances == pytest.approx(two.importances)


def test_rows_left_out_are_no_donors():
    features, codes, y, rng = records()
    forest = grow_forest(
        codes, features, y, rows=np.arange(100, 300), n_trees=2, features_per_split=None, rng=rng
    )
    drawn = forest.draw(codes, rng)
    assert drawn.min() >= 100
    assert drawn.max() < 300
    with pytest.raises(ParameterError, match="n_trees"):
        grow_forest(codes, features, y, n_trees=0, rng=rng)
