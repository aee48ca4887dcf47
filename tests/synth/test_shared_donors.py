"""Leaves that lend only what enough people share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.growing import grow_classification
from discreet.synth import Sequential, load
from discreet.synth.methods.tree_donors import Groups


def grown(seed: int, rows: int, levels: int, leaf: int):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = np.minimum(np.abs(x * 3 + rng.exponential(2, rows)).astype(np.int32), levels - 1)
    feature = Feature.numeric(x, max_bins=64)
    return grow_classification(encode([feature], [x]), [feature], y, levels, rng=rng, min_leaf=leaf), y


@given(
    st.integers(0, 10_000), st.integers(30, 300), st.integers(2, 30), st.integers(2, 20), st.integers(2, 15)
)
@settings(max_examples=30, deadline=None)
def test_every_group_lends_only_values_that_enough_of_it_have(seed, rows, levels, leaf, shared_by):
    tree, y = grown(seed, rows, levels, leaf)
    groups = Groups.of(tree, shared_by)
    often = np.flatnonzero(np.bincount(y) >= shared_by)
    below_the_root = zip(groups.starts[1:], groups.starts[2:], strict=False)
    for first, last in below_the_root:
        counts = np.bincount(y[groups.rows[first:last]])
        assert (counts[counts > 0] >= shared_by).all()
    assert len(groups.rows) == (np.isin(y, often).sum() if len(often) else rows)
    assert (np.diff(groups.chances) >= 0).all()
    assert np.isclose(np.unique(np.ceil(groups.chances)), np.arange(1, tree.n_leaves + 1)).all()
    drawn = y[groups.donors(np.arange(tree.n_leaves).repeat(20), np.random.default_rng(seed))]
    assert not len(often) or set(drawn) <= set(often)


def test_what_few_of_a_leaf_have_comes_as_often_to_the_leaves_around_it():
    town = np.repeat(["a", "b"], 500)
    job = np.repeat(["clerk", "cook"], 500).astype("U9")
    job[::5] = "nurse"
    job[[1, 2, 3, 501]] = "king"
    job[7] = "priest"
    people = Microdata(pl.DataFrame({"town": town, "job": job}))

    def towns(shared_by: int, job: str) -> tuple[int, int]:
        options = {"cart": {"min_leaf": 100, "shared_by": shared_by}}
        frame = Sequential(method_options=options).fit(people, seed=1).sample(200_000, seed=1).frame
        found = frame.filter(pl.col("job") == job)["town"]
        return int((found == "a").sum()), int((found == "b").sum())

    kings = towns(1, "king")
    assert kings[0] - kings[1] > 200  # 600 and 200 are expected
    shared = towns(4, "king")
    assert abs(shared[0] - shared[1]) < 150  # five times the spread of 400 and 400
    assert min(shared) > 300
    assert towns(1, "priest")[0] > 0
    assert towns(4, "priest") == (0, 0)
    assert towns(5, "king") == (0, 0)


def test_a_model_of_shared_donors_is_saved_and_drawn_from_again(tmp_path):
    rng = np.random.default_rng(2)
    people = Microdata(
        pl.DataFrame(
            {
                "first": rng.choice(["u", "v", "rare"], 900, p=[0.6, 0.398, 0.002]),
                "pay": rng.lognormal(8, 1, 900).round(2),
                "job": rng.choice(list("abcdefgh"), 900, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.007, 0.003]),
            }
        )
    )
    model = Sequential(smoothing="between", method_options={"cart": {"shared_by": 5}}).fit(people, seed=1)
    file = model.sample(500, seed=3)
    assert "rare" not in set(file.frame["first"])
    # Numbers of two decimals meet by chance, but the largest is nobody's.
    assert len(set(file.frame["pay"]) & set(people.frame["pay"])) < 50
    assert file.frame["pay"].max() < people.frame["pay"].max()
    assert load(model.save(tmp_path / "model.zip")).sample(500, seed=3).frame.equals(file.frame)


def test_sharing_is_refused_where_it_cannot_be_counted():
    with pytest.raises(ParameterError, match="shared_by"):
        Sequential(method_options={"cart": {"shared_by": 0}}).plan(
            Microdata(pl.DataFrame({"a": [1, 2], "b": [1, 2]}))
        )
    with pytest.raises(ParameterError, match="groups"):
        Sequential(method_options={"cart": {"shared_by": 5, "groups": 0}}).plan(
            Microdata(pl.DataFrame({"a": [1, 2], "b": [1, 2]}))
        )
