"""Trees find the cuts that an exhaustive search finds, keep their limits, and do not care for labels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.growing import grow_classification, grow_regression
from discreet.numerics.trees.tree import Tree

RNG = np.random.default_rng(0)


def risk_of(parts, y, w=None, classes=None):
    """Sum of squares, or weighted Gini impurity, over the parts."""
    w = np.ones(len(y)) if w is None else w
    total = 0.0
    for part in parts:
        weight = w[part].sum()
        if classes is None:
            mean = (w[part] * y[part]).sum() / weight
            total += (w[part] * (y[part] - mean) ** 2).sum()
        else:
            shares = np.bincount(y[part], w[part], classes)
            total += weight - (shares**2).sum() / weight
    return total


def mixed(n, seed, levels=(2, 6, 30)):
    rng = np.random.default_rng(seed)
    numbers = [rng.normal(size=n), rng.integers(0, 9, n).astype(float)]
    categories = [rng.integers(0, k, n) for k in levels]
    features = [Feature.numeric(x) for x in numbers] + [Feature.category(k) for k in levels]
    codes = encode(features, numbers + categories)
    y = numbers[0] + np.sin(categories[1]) + (categories[2] % 5 == 0) + 0.3 * rng.normal(size=n)
    return features, codes, y, rng


def partition(tree):
    return [set(tree.rows[a:b].tolist()) for a, b in zip(tree.starts[:-1], tree.starts[1:], strict=True)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_cut_of_a_number_is_the_best_of_all(seed, weighted):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 20, 60).astype(float), rng.normal(size=60)
    w = rng.random(60) + 0.1 if weighted else None
    feature = Feature.numeric(x)
    tree = grow_regression(
        encode([feature], [x]), [feature], y, weights=w, min_leaf=5, min_split=2, max_depth=1, rng=rng
    )
    best = min(
        risk_of([x < cut, x >= cut], y, w)
        for cut in feature.cuts
        if min((x < cut).sum(), (x >= cut).sum()) >= 5
    )
    assert tree.risk == pytest.approx(best)


@pytest.mark.parametrize("kind", ["number", "two classes"])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_cut_of_a_category_is_the_best_of_all_subsets(seed, kind):
    rng = np.random.default_rng(seed)
    levels = 8
    x = rng.integers(0, levels, 100)
    w = rng.integers(1, 4, 100).astype(float)
    feature, codes = Feature.category(levels), encode([Feature.category(levels)], [x])
    options = {"weights": w, "min_leaf": 1, "min_split": 2, "max_depth": 1, "rng": rng, "cp": 0.0}
    if kind == "number":
        y, classes = rng.normal(size=100), None
        tree = grow_regression(codes, [feature], y, **options)
    else:
        y, classes = rng.integers(0, 2, 100), 2
        tree = grow_classification(codes, [feature], y, 2, **options)
    subsets = [s for k in range(1, levels) for s in combinations(range(levels), k)]
    best = min(risk_of([np.isin(x, s), ~np.isin(x, s)], y, w, classes) for s in subsets)
    assert tree.risk == pytest.approx(best)


def test_the_cut_of_a_category_for_three_classes_comes_near_the_best_of_all_subsets():
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 7, 300)
        shares = rng.dirichlet(np.ones(3), 7)
        y = (rng.random(300)[:, None] > np.cumsum(shares, axis=1)[x]).sum(axis=1)
        tree = grow_classification(
            encode([Feature.category(7)], [x]), [Feature.category(7)], y, 3, min_leaf=1, max_depth=1, rng=rng
        )
        root = risk_of([np.full(300, True)], y, classes=3)
        subsets = [s for k in range(1, 7) for s in combinations(range(7), k)]
        best = min(risk_of([np.isin(x, s), ~np.isin(x, s)], y, classes=3) for s in subsets)
        ratios.append((root - tree.risk) / (root - best))
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) > 0.95


@pytest.mark.parametrize("n_classes", [0, 2, 5, 60])
def test_every_leaf_keeps_its_limits_and_the_donors_partition_the_rows(n_classes):
    features, codes, y, rng = mixed(2000, 3)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
        tree = grow_classification(codes, features, y, n_classes, min_leaf=7, rng=rng)
    else:
        tree = grow_regression(codes, features, y, min_leaf=7, rng=rng)
    assert tree.n_leaves > 20
    assert np.diff(tree.starts).min() >= 7
    assert sorted(tree.rows.tolist()) == list(range(2000))
    assert tree.depth <= 30
    leaves = tree.leaves(codes, rng)
    own = np.empty(2000, int)
    own[tree.rows] = np.repeat(np.arange(tree.n_leaves), np.diff(tree.starts))
    assert (leaves == own).all()
    parts = [tree.rows[a:b] for a, b in zip(tree.starts[:-1], tree.starts[1:], strict=True)]
    assert tree.risk == pytest.approx(risk_of(parts, y, classes=n_classes or None))
    assert tree.figures[0, 2] - tree.importances.sum() == pytest.approx(tree.risk)
    drawn = tree.draw(codes, rng)
    assert (own[drawn] == leaves).all()


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.sampled_from([0, 2, 4]))
def test_other_labels_for_the_categories_change_nothing_in_the_partition(seed, n_classes):
    features, codes, y, rng = mixed(300, seed)
    renamed = codes.copy(order="F")
    for j in range(2, 5):
        renamed[:, j] = rng.permutation(features[j].levels)[codes[:, j]]
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
        trees = [
            grow_classification(c, features, y, n_classes, min_leaf=3, rng=rng) for c in (codes, renamed)
        ]
    else:
        trees = [grow_regression(c, features, y, min_leaf=3, rng=rng) for c in (codes, renamed)]
    as_sets = [{frozenset(part) for part in partition(tree)} for tree in trees]
    assert as_sets[0] == as_sets[1]


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.sampled_from([0, 2, 4]))
def test_a_weight_of_two_is_a_record_twice(seed, n_classes):
    features, codes, y, rng = mixed(200, seed)
    y = np.round(y, 1)
    weights = np.full(200, 2.0)
    twice = np.repeat(np.arange(200), 2)
    options = {"rng": rng, "cp": 1e-6}
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
        one = grow_classification(codes, features, y, n_classes, weights=weights, min_leaf=4, **options)
        two = grow_classification(codes, features, y, n_classes, rows=twice, min_leaf=8, **options)
    else:
        one = grow_regression(codes, features, y, weights=weights, min_leaf=4, **options)
        two = grow_regression(codes, features, y, rows=twice, min_leaf=8, **options)
    assert partition(one) == partition(two)
    assert one.risk == pytest.approx(two.risk)


@pytest.mark.parametrize("n_classes", [0, 2, 6])
def test_on_numbers_the_risk_is_that_of_scikit_learn(n_classes):
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 5))
    y = x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(size=3000)
    features = [Feature.numeric(column) for column in x.T]
    codes = encode(features, list(x.T))
    options = {"min_leaf": 10, "min_split": 20, "cp": 0.0, "rng": rng}
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
        ours = grow_classification(codes, features, y, n_classes, **options)
        theirs = DecisionTreeClassifier(min_samples_leaf=10, random_state=0).fit(x, y)
    else:
        ours = grow_regression(codes, features, y, **options)
        theirs = DecisionTreeRegressor(min_samples_leaf=10, random_state=0).fit(x, y)
    parts = theirs.apply(x)
    risk = risk_of([np.flatnonzero(parts == leaf) for leaf in np.unique(parts)], y, classes=n_classes or None)
    assert ours.risk == pytest.approx(risk, rel=0.02)


def test_unseen_levels_go_to_a_child_at_random_by_its_size():
    x = np.repeat([0, 1, 2], [100, 200, 100])
    y = np.repeat([0.0, 0.0, 10.0], [100, 200, 100])
    feature = Feature.category(4)
    tree = grow_regression(encode([feature], [x]), [feature], y, rng=RNG)
    assert tree.n_leaves == 2
    for level in (3, 77, -1):
        leaves = tree.leaves(encode([feature], [np.full(4000, level)]), np.random.default_rng(1))
        assert leaves.mean() == pytest.approx(0.25, abs=0.03)


def test_donors_are_drawn_by_weight():
    x, y = np.repeat([0, 1], 10), np.repeat([0.0, 1.0], 10)
    weights = np.tile(np.arange(1, 11), 2).astype(float)
    feature = Feature.category(2)
    tree = grow_regression(encode([feature], [x]), [feature], y, weights=weights, rng=RNG)
    drawn = tree.donors(np.ones(40_000, int), np.random.default_rng(2))
    assert drawn.min() >= 10
    shares = np.bincount(drawn - 10, minlength=10) / 40_000
    assert shares == pytest.approx(weights[:10] / 55, abs=0.01)
    assert tree.leaf_weights.tolist() == [55.0, 55.0]


def test_rows_of_weight_zero_are_left_out():
    features, codes, y, rng = mixed(300, 8)
    weights = np.ones(300)
    weights[::3] = 0
    y[::3] = 1e6
    tree = grow_regression(codes, features, y, weights=weights, rng=rng)
    plain = grow_regression(codes, features, y, rows=np.flatnonzero(weights), rng=rng)
    assert partition(tree) == partition(plain)


def test_a_tree_survives_a_file(tmp_path):
    features, codes, y, rng = mixed(500, 2)
    tree = grow_regression(codes, features, y, rng=rng)
    np.savez(tmp_path / "tree.npz", **tree.to_arrays())
    with np.load(tmp_path / "tree.npz", allow_pickle=False) as arrays:
        back = Tree.from_arrays(dict(arrays))
    assert (back.draw(codes, np.random.default_rng(1)) == tree.draw(codes, np.random.default_rng(1))).all()
    for feature in features:
        again = Feature.from_arrays(feature.to_arrays())
        assert (again.levels, again.categorical, again.missing) == (
            feature.levels,
            feature.categorical,
            feature.missing,
        )


@pytest.mark.parametrize("levels", [5000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_thousands_of_classes_and_levels_are_grown(levels):
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, levels, 5000), rng.integers(0, 3000, 5000)
    z = y % 7 + rng.normal(size=5000)
    features = [Feature.category(levels), Feature.numeric(z)]
    codes = encode(features, [x, z])
    assert codes.dtype == (np.int16 if levels < 32_768 else np.int32)
    tree = grow_classification(codes, features, y, 3000, rng=rng)
    assert tree.n_leaves > 20


def test_the_age_and_income_example_has_the_published_gini():
    # The example cuts at age 40 and income 75; its leaves have impurity 0.5, 0 and 0.375, together 0.35.
    age = np.array([22, 25, 28, 30, 40, 40, 45, 50, 55, 60.0])
    income = np.array([30, 35, 40, 40, 50, 60, 80, 80, 85, 90.0])
    sex = np.array([1, 0, 1, 0, 1, 1, 1, 0, 0, 0])
    parts = [age < 40, (age >= 40) & (income < 75), income >= 75]
    assert risk_of([np.full(10, True)], sex, classes=2) / 10 == pytest.approx(0.5)
    assert risk_of(parts, sex, classes=2) / 10 == pytest.approx(0.35)
    features = [Feature.numeric(age), Feature.numeric(income)]
    codes = encode(features, [age, income])
    tree = grow_classification(codes, features, sex, 2, min_leaf=2, min_split=4, max_depth=2, rng=RNG)
    assert tree.risk / 10 <= 0.35


@pytest.mark.parametrize("n_classes", [0, 2, 9])
def test_a_penalty_on_levels_keeps_many_meaningless_levels_from_drowning_a_real_column(n_classes):
    rng = np.random.default_rng(2)
    x, z, noise = rng.normal(size=24_000), rng.integers(0, 400, 24_000), 0.5 * rng.normal(size=24_000)
    y, new_y = (x + noise)[:4000], (x + noise)[4000:]
    features = [Feature.numeric(x[:4000]), Feature.category(400)]
    codes, fresh = (encode(features, [x[part], z[part]]) for part in (slice(4000), slice(4000, None)))
    errors = []
    for penalty in (0.0, 1.0):
        if n_classes:
            classes = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
            tree = grow_classification(codes, features, classes, n_classes, level_penalty=penalty, rng=rng)
        else:
            tree = grow_regression(codes, features, y, level_penalty=penalty, rng=rng)
        # A perfect donor differs by the noise of both, 2 * 0.25; what comes on top is the tree's.
        errors.append(((y[tree.draw(fresh, rng)] - new_y) ** 2).mean() - 0.5)
    assert errors[1] < 0.75 * errors[0]


@pytest.mark.parametrize("outcome", ["number", "groups", "classes"])
@pytest.mark.parametrize("records", [40, 300])
def test_columns_that_say_nothing_are_chosen_equally_often_whatever_their_levels(outcome, records):
    rng = np.random.default_rng(7)
    levels, picked = (2, 5, 12, 40), {0.0: np.zeros(6), 1.0: np.zeros(6)}
    for _ in range(200):
        columns = [rng.integers(0, most, records) for most in levels]
        numbers = [rng.integers(0, 5, records).astype(float), rng.normal(size=records)]
        features = [*(Feature.category(most) for most in levels), *(Feature.numeric(x) for x in numbers)]
        codes, y = encode(features, [*columns, *numbers]), rng.normal(size=records)
        place = np.argsort(np.argsort(y))
        for penalty, counts in picked.items():
            options = {"level_penalty": penalty, "max_depth": 1, "rng": rng}
            if outcome == "number":
                tree = grow_regression(codes, features, y, **options)
            elif outcome == "groups":
                tree = grow_classification(codes, features, place * 20 // records, 20, fine=y, **options)
            else:
                tree = grow_classification(codes, features, place * 4 // records, 4, **options)
            counts[tree.nodes[0, 0]] += 1 / 200
    assert picked[0.0][3] > 0.9  # 40 levels win on noise
    assert picked[1.0].min() > 0.03
    assert picked[1.0].max() < 0.45


@pytest.mark.parametrize("weighted", [False, True])
def test_fine_outcomes_tell_apart_what_is_one_class(weighted):
    rng = np.random.default_rng(5)
    place, noise = rng.permutation(np.repeat(np.arange(30), 20)), rng.normal(size=600)
    features = [Feature.category(30), Feature.numeric(noise)]
    codes, w = encode(features, [place, noise]), rng.random(600) + 0.1 if weighted else None
    coarse = grow_classification(codes, features, place // 10, 3, weights=w, rng=rng)
    assert len(coarse.starts) - 1 == 3
    tree = grow_classification(codes, features, place // 10, 3, fine=place, weights=w, rng=rng)
    assert all(len({int(place[row]) for row in leaf}) == 1 for leaf in partition(tree))


@given(seed=st.integers(0, 10**6), n_classes=st.integers(3, 6))
@settings(max_examples=examples(40))
def test_ordered_classes_are_split_where_all_questions_up_to_a_class_gain_most(seed, n_classes):
    features, codes, y, rng = mixed(120, seed)
    features, codes = features[:1], codes[:, :1]
    classes = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
    tree = grow_classification(codes, features, classes, n_classes, fine=y, min_leaf=3, max_depth=1, rng=rng)

    def risk(rows):
        up_to = np.array([(classes[rows] <= k).mean() for k in range(n_classes)])
        return rows.sum() * (up_to * (1 - up_to)).sum()

    everyone = np.ones(120, dtype=bool)
    sides = [codes[:, 0] <= cut for cut in np.unique(codes[:, 0])[:-1]]
    gains = [risk(everyone) - risk(left) - risk(~left) for left in sides if 3 <= left.sum() <= 117]
    found = np.zeros(120, dtype=bool)
    found[list(partition(tree)[0])] = True
    assert risk(everyone) - risk(found) - risk(~found) == pytest.approx(max(gains))


def test_bad_input_is_refused_with_the_way_out():
    feature = Feature.category(3)
    codes = encode([feature], [[0, 1, 2, -1]])
    with pytest.raises(ParameterError, match="missing ones as a level"):
        grow_regression(codes, [feature], [1, 2, 3, 4], rng=RNG)
    codes = encode([feature], [[0, 1, 2, 1]])
    with pytest.raises(ParameterError, match="finite"):
        grow_regression(codes, [feature], [1, 2, 3, np.nan], rng=RNG)
    with pytest.raises(ParameterError, match="outcomes"):
        grow_regression(codes, [feature], [1, 2, 3], rng=RNG)
    with pytest.raises(ParameterError, match="fine outcomes"):
        grow_classification(codes, [feature], [0, 1, 2, 2], 3, fine=[1.0], rng=RNG)
    with pytest.raises(ParameterError, match="coded 0 to"):
        grow_classification(codes, [feature], [0, 1, 2, 3], 3, rng=RNG)
    with pytest.raises(ParameterError, match="weights"):
        grow_regression(codes, [feature], [1, 2, 3, 4], weights=[1, 1, 1, -1], rng=RNG)
    with pytest.raises(ParameterError, match="positive weight"):
        grow_regression(codes, [feature], [1, 2, 3, 4], weights=np.zeros(4), rng=RNG)
