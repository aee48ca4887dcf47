"""Trees over sites: the merged tree is the vote, bins are the same thing at every site, and epsilon is told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, ParameterError
from discreet.federated import (
    Discoleaf,
    bin_codes,
    bin_edges,
    dirichlet_split,
    merge_trees,
    split_by_class_shares,
)
from discreet.federated.merged_trees import majority, predicted
from discreet.federated.randomized_bins import public_matrix, threshold_of

values = st.integers(0, 4).map(float)
labels = st.integers(0, 2)
trees = st.recursive(
    labels,
    lambda inner: st.tuples(st.sampled_from("ABC"), values.map(lambda one: one + 0.5), inner, inner),
    max_leaves=6,
)
GRID = {name: column.ravel().astype(float) for name, column in zip("ABC", np.indices((6, 6, 6)), strict=True)}


@settings(max_examples=examples(150))
@given(st.lists(trees, min_size=1, max_size=6))
def test_the_merged_tree_is_the_vote_on_every_input(given_trees):
    vote = majority([predicted(tree, GRID, 216) for tree in given_trees], [1.0] * len(given_trees))
    assert merge_trees(given_trees).predict(GRID).tolist() == vote.tolist()


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(trees, st.integers(1, 9)), min_size=1, max_size=5))
def test_a_weighted_merge_is_the_weighted_vote(pairs):
    given_trees, weights = [tree for tree, _ in pairs], [float(weight) for _, weight in pairs]
    vote = majority([predicted(tree, GRID, 216) for tree in given_trees], weights)
    assert merge_trees(given_trees, weights=weights).predict(GRID).tolist() == vote.tolist()


@settings(max_examples=examples(60))
@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e6), st.integers(1, 40), st.integers(0, 2**32))
def test_a_threshold_between_bins_parts_values_as_the_bins_do(low, width, bins, seed):
    edges = bin_edges(low, low + width, bins)
    x = np.concatenate([np.random.default_rng(seed).uniform(low - 1, low + width + 1, 50), edges])
    codes = bin_codes(x, edges)
    for code in range(bins - 1):
        assert ((x <= threshold_of(code, edges)) == (codes <= code)).all()


def test_ten_trees_merge_into_their_vote_and_a_cap_holds():
    """How long it takes is measured in bench/federated.py."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    grown = []
    for _ in range(10):
        x = rng.normal(size=(300, 6))
        y = (x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=300) > 0).astype(int)
        grown.append(DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y))
    merged = merge_trees(grown)
    x = rng.normal(size=(500, 6))
    vote = majority([one.predict(x) for one in grown], [1.0] * 10)
    # Trees of scikit-learn compare in single precision.
    assert merged.predict(x.astype(np.float32).astype(np.float64)).tolist() == vote.tolist()
    with pytest.raises(ParameterError, match="more than 20 nodes"):
        merge_trees(grown, max_nodes=20)
    voting = merge_trees(grown, max_nodes=20, too_large="vote")
    assert not voting.is_merged
    assert voting.predict(x.astype(np.float32).astype(np.float64)).tolist() == vote.tolist()


def people(rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    job = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    ill = np.where(rng.random(rows) < 1 / (1 + np.exp(-(age - 55) / 5)), "yes", "no")
    return pl.DataFrame({"age": age, "job": job, "ill": ill})


def test_the_pipeline_finds_what_is_there_and_tells_epsilon():
    clients = [people(400, seed) for seed in range(3)]
    clients[0] = clients[0].with_columns(
        age=pl.when(pl.int_range(pl.len()) < 5).then(None).otherwise("age"),
        job=pl.when(pl.int_range(pl.len()) > 390).then(None).otherwise("job"),
    )
    fit = Discoleaf("ill", continuous=["age"], categorical=["job"], theta=0.05, bins=8).fit(clients, seed=2)
    test = people(500, 9)
    assert fit.predict(test) == fit.vote(test)
    assert fit.quality(test)["accuracy"] > 0.8
    assert 17 < fit.ranges["age"][0] < 20
    assert fit.epsilon_of_record > max(fit.sites[0].epsilons.values()) > 0
    assert "'ill' was not randomized" in fit.leakage.meaning
    beyond = pl.DataFrame({"age": [-50, 500, None], "job": ["a", "unseen", None], "ill": ["no"] * 3})
    assert len(fit.predict(beyond)) == 3


def test_an_epsilon_may_be_asked_for_and_one_class_still_votes():
    clients = [people(200, 1), people(200, 2), people(50, 3).with_columns(ill=pl.lit("no"))]
    fit = Discoleaf(
        "ill", continuous=["age"], categorical=["job"], epsilon=4.0, bins=3, protect_target=True
    ).fit(clients, seed=1)
    assert all(one <= 4.0 + 1e-9 for site in fit.sites for one in site.epsilons.values())
    assert fit.sites[2].tree in (0, 1)
    assert set(fit.sites[0].epsilons) == {"age", "job", "ill"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"theta": 1.5}, "theta"),
        ({"continuous": [], "categorical": []}, "Name columns"),
        ({"categorical": ["age"]}, "stands once"),
        ({"bins": 0}, "bins"),
    ],
)
def test_bad_settings_are_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        Discoleaf("ill", **{"continuous": ["age"], "categorical": ["job"], **options}).fit(
            [people(50, 1), people(50, 2)]
        )


def test_clients_that_do_not_fit_together_are_refused():
    with pytest.raises(ColumnError, match="no column 'job'"):
        Discoleaf("ill", categorical=["job"]).fit([people(50, 1), people(50, 2).drop("job")])
    with pytest.raises(ColumnError, match="numbers at some clients"):
        Discoleaf("ill", categorical=["job"]).fit([people(50, 1), people(50, 2).with_columns(job=pl.lit(1))])


def test_splits_lose_nobody_and_come_near_the_shares_asked_for():
    frame = people(600, 4)
    parts = dirichlet_split(frame, "ill", 4, alpha=0.3, seed=1)
    assert sum(part.height for part in parts) == 600
    shares = [part["ill"].eq("yes").mean() for part in parts if part.height]
    assert max(shares) - min(shares) > 0.2
    gaps = pl.DataFrame({"ill": ["no", "yes", None] * 40})
    for split in (
        dirichlet_split(gaps, "ill", 3, seed=1),
        split_by_class_shares(gaps, "ill", [[1, 2, 1]] * 2, seed=1),
    ):
        assert pl.concat(split)["ill"].value_counts()["count"].to_list() == [40, 40, 40]
    two = split_by_class_shares(frame, "ill", [[0.9, 0.1], [0.1, 0.9]], seed=1)
    assert sum(part.height for part in two) == 600
    assert two[0]["ill"].eq("yes").mean() < 0.25 < 0.75 < two[1]["ill"].eq("yes").mean()


@pytest.mark.parametrize("strength", [{"theta": 0.05}, {"epsilon": 5.0}])
def test_chances_from_noisy_or_public_counts_cost_what_is_said(strength):
    clients = [people(400, seed) for seed in range(3)]
    prior = {"age": dict.fromkeys(range(6), 10.0), "job": {"a": 60, "b": 30, "c": 10}}
    options = {"continuous": ["age"], "categorical": ["job"], "bins": 6, **strength}
    public = Discoleaf("ill", counts=prior, **options).fit(clients, seed=2)
    # Public counts are the same everywhere, and with them the matrix and epsilon.
    assert len({tuple(sorted(site.epsilons.items())) for site in public.sites}) == 1
    assert "made from public counts" in public.leakage.meaning
    assert public.quality(people(500, 9))["accuracy"] > 0.75
    noisy = Discoleaf("ill", counts="noisy", counts_epsilon=0.5, **options).fit(clients, seed=2)
    assert all(one >= 0.5 for site in noisy.sites for one in site.epsilons.values())
    if "epsilon" in strength:
        assert all(one <= 5.5 + 1e-6 for site in noisy.sites for one in site.epsilons.values())
        assert all(one <= 5.0 + 1e-6 for site in public.sites for one in site.epsilons.values())
    assert "noisy counts of its column" in noisy.leakage.meaning
    assert noisy.predict(people(50, 9)) == noisy.vote(people(50, 9))
    with pytest.raises(ParameterError, match="no public counts of 'job'"):
        Discoleaf("ill", counts={"age": {0: 1}}, **options).fit(clients)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 300), min_size=2, max_size=6), st.floats(0.01, 0.6), st.integers(0, 99))
def test_a_matrix_from_noisy_counts_covers_what_does_not_occur(counts, theta, seed):
    codes = np.repeat(np.arange(len(counts)), counts)
    made = public_matrix(codes, list(range(len(counts))), theta=theta, seed=seed)
    for row in made.values():
        assert sum(row.values()) == pytest.approx(1)
        assert len(row) == len(counts)
        assert min(row.values()) > 0
