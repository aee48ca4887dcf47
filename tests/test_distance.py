import datetime as dt

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.distance.boxes import alike_words, in_boxes
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace


def mixed(rows, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    table = pl.DataFrame(
        {
            "income": np.round(np.exp(z), 1),
            "age": rng.integers(18, 90, rows),
            "job": np.char.add("j", rng.integers(0, 6, rows).astype(str)),
            "sex": np.where(z + rng.normal(size=rows) > 0, "f", "m"),
        }
    )
    return table.with_columns(
        pl.when(pl.Series(rng.random(rows) >= missing)).then(pl.col(name)).alias(name)
        for name in table.columns
    )


def gower_by_hand(left, right, reference, rule):
    """Gower (1971), cell by cell."""
    found = np.empty((left.height, right.height))
    ranges = {
        c: reference[c].max() - reference[c].min()
        for c in reference.columns
        if reference[c].dtype.is_numeric()
    }
    for i, a in enumerate(left.iter_rows(named=True)):
        for j, b in enumerate(right.iter_rows(named=True)):
            total = count = 0.0
            for name in reference.columns:
                if a[name] is None or b[name] is None:
                    if rule == "category":
                        total, count = total + (a[name] is not b[name]), count + 1
                    continue
                count += 1
                total += (
                    abs(a[name] - b[name]) / ranges[name] if name in ranges else float(a[name] != b[name])
                )
            found[i, j] = total / count if count else np.inf
    return found


@pytest.mark.parametrize("rule", ["category", "ignore"])
def test_gower_is_what_its_definition_says_also_with_missing_values(rule):
    left, right = mixed(30, 1, 0.3), mixed(25, 2, 0.3)
    space = MixedSpace.fit(left, right, missing=rule)
    ours = space.matrix(space.place(left), space.place(right))
    np.testing.assert_allclose(ours, gower_by_hand(left, right, left, rule), rtol=1e-12)
    np.testing.assert_allclose(
        space.between(space.place(left[:25]), space.place(right)), np.diag(ours[:25]), rtol=0
    )


def test_euclidean_is_that_of_standardized_and_one_hot_columns():
    from sklearn.metrics import pairwise_distances
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    left, right = mixed(60, 3), mixed(50, 4)
    scaler = StandardScaler().fit(left.select("income", "age").to_numpy())
    coder = OneHotEncoder(sparse_output=False).fit(pl.concat([left, right]).select("job", "sex").to_numpy())

    def flat(table):
        return np.hstack(
            [
                scaler.transform(table.select("income", "age").to_numpy()),
                coder.transform(table.select("job", "sex").to_numpy()),
            ]
        )

    space = MixedSpace.fit(left, right, distance="euclidean")
    ours = space.matrix(space.place(left), space.place(right))
    np.testing.assert_allclose(ours, pairwise_distances(flat(left), flat(right)), atol=1e-6)


@settings(deadline=None, max_examples=examples(25))
@given(
    st.integers(1, 700),
    st.integers(1, 900),
    st.sampled_from(["gower", "euclidean"]),
    st.sampled_from(["category", "ignore"]),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 10**6),
)
def test_the_search_finds_exactly_the_nearest_of_all_pairs(rows, others, distance, rule, gone, seed):
    left, right = mixed(rows, seed, gone), mixed(others, seed + 1, gone)
    space = MixedSpace.fit(right, left, distance=distance, missing=rule)
    points, candidates = space.place(left), space.place(right)
    k = min(4, others)
    found = nearest(space, points, candidates, k=k)
    everything = space.matrix(points, candidates)
    np.testing.assert_array_equal(found.distance, np.sort(everything, axis=1)[:, :k])
    real = found.index >= 0
    np.testing.assert_array_equal(
        np.take_along_axis(everything, np.where(real, found.index, 0), axis=1)[real], found.distance[real]
    )
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in found.index)


def test_ties_go_to_the_record_that_comes_first_and_copies_count():
    table = pl.DataFrame({"age": [30, 20, 30, 30, 20, 30, 40]})
    space = MixedSpace.fit(table)
    points = space.place(table)
    assert nearest(space, points, k=2).index[[0, 3, 5, 1]].tolist() == [[2, 3], [0, 2], [0, 2], [4, 0]]
    assert ties_within(space, points, points, np.zeros(7)).tolist() == [4, 2, 4, 4, 2, 4, 1]


def test_single_precision_never_decides_between_close_candidates():
    base = 1e6
    table = pl.DataFrame({"x": [base + 3e-3, base + 1e-3, base + 2e-3] * 200 + [0.0]})
    space = MixedSpace.fit(table, distance="euclidean", scale="none")
    query = pl.DataFrame({"x": [base]})
    assert nearest(space, space.place(query), space.place(table)).index.tolist() == [[1]]


def test_dates_are_measured_in_days_and_codes_can_be_named_as_categories():
    table = pl.DataFrame(
        {"born": [dt.date(2000, 1, 1), dt.date(2000, 1, 11), dt.date(2000, 1, 21)], "code": [1, 2, 9]}
    )
    space = MixedSpace.fit(table, categorical=["code"])
    assert space.numeric == ("born",)
    assert space.categorical == ("code",)
    points = space.place(table)
    assert space.matrix(points, points)[0].tolist() == [0.0, 0.75, 1.0]


def test_a_constant_column_has_no_unit_and_is_left_out():
    table = pl.DataFrame({"same": [5.0, 5.0], "age": [1, 3]})
    space = MixedSpace.fit(table)
    assert space.constant == ("same",)
    assert space.between(space.place(table[:1]), space.place(table[1:])).tolist() == [1.0]


def test_weights_multiply_the_difference_of_a_column():
    table = pl.DataFrame({"a": [0.0, 1.0], "b": ["x", "y"]})
    space = MixedSpace.fit(table, distance="euclidean", scale="none", weights={"a": 4.0, "b": 0.5})
    assert space.matrix(space.place(table), space.place(table))[0, 1] == pytest.approx(np.sqrt(4 + 1))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (pl.DataFrame({"age": ["old", "young"]}), "different types"),
        (pl.DataFrame({"sex": ["f"]}), "not in all"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(other, words):
    with pytest.raises(ColumnError, match=words):
        MixedSpace.fit(pl.DataFrame({"age": [1, 2]}), other)


def test_bad_options_infinite_values_and_unknown_levels_are_refused():
    table = pl.DataFrame({"age": [1.0, 2.0], "sex": ["f", "m"]})
    for wrong in (
        {"distance": "manhattan"},
        {"missing": "drop"},
        {"scale": "iqr"},
        {"columns": []},
        {"weights": {"age": -1}},
    ):
        with pytest.raises(ParameterError):
            MixedSpace.fit(table, **wrong)
    space = MixedSpace.fit(table)
    with pytest.raises(ColumnError, match="infinite"):
        space.place(pl.DataFrame({"age": [float("inf")], "sex": ["f"]}))
    with pytest.raises(ColumnError, match="not fitted on"):
        space.place(pl.DataFrame({"age": [1.0], "sex": ["x"]}))
    points = space.place(table)
    with pytest.raises(ParameterError, match="k is 3"):
        nearest(space, points, points, k=3)
    with pytest.raises(ParameterError, match="others"):
        nearest(space, points, k=2)


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(1, 80), st.integers(0, 80), st.integers(0, 2), st.integers(0, 10**6))
def test_boxes_hold_exactly_the_pairs_within_reach_in_every_column(rows, others, columns, seed):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, 12, (rows, columns)).astype(float)
    right = rng.integers(0, 12, (others, columns)).astype(float)
    group = pl.Series(rng.integers(0, 3, rows).astype(str))
    theirs = pl.Series(rng.integers(0, 4, others).astype(str), dtype=pl.String)
    reach = np.array([2.0, 1.0])[:columns]
    found = in_boxes(left, right, reach, equal=[(group, theirs)], pairs=True)
    truth = (np.abs(left[:, None] - right[None]) <= reach).all(axis=2)
    truth &= group.to_numpy()[:, None] == theirs.to_numpy()[None]
    np.testing.assert_array_equal(found.pairs, np.argwhere(truth).reshape(-1, 2))
    np.testing.assert_array_equal(found.counts, truth.sum(axis=1))
    np.testing.assert_array_equal(found.back, truth.sum(axis=0))
    alone = truth[truth.sum(axis=1) == 1]
    assert found.unique_both_ways == (alone & (truth.sum(axis=0) == 1)).any(axis=1).sum()


def test_words_are_compared_letter_by_letter():
    """Jaro-Winkler figures of Winkler (1990): MARTHA/MARHTA 0.961, DWAYNE/DUANE 0.84, DIXON/DICKSONX 0.813."""
    ours = pl.Series(["dixon", "dwayne", "martha"])
    theirs = pl.Series(["dicksonx", "duane", "marhta"])
    _, winkler = alike_words(ours, theirs, likeness="jaro_winkler", threshold=0.8)
    np.testing.assert_allclose(np.diag(winkler), [0.8133, 0.84, 0.9611], atol=1e-4)
    words, edits = alike_words(ours, theirs, likeness="levenshtein", threshold=0.5)
    np.testing.assert_allclose(np.diag(edits), [1 - 4 / 8, 1 - 2 / 6, 1 - 2 / 6])
    assert np.diag(words.alike).all()
