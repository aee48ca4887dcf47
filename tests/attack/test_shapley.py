"""Shapley values: efficiency, symmetry, features without effect, and the same answer by every method."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import attack
from discreet.core.errors import ParameterError


def by_definition(f, record, reference):
    n = len(record)
    made = np.zeros(n)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        for size in range(n):
            for taken in combinations(rest, size):
                without = reference.copy()
                without[list(taken)] = record[list(taken)]
                joined = without.copy()
                joined[i] = record[i]
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                made[i] += weight * (f(joined[None])[0] - f(without[None])[0])
    return made


def bumpy(rows):
    return np.sin(rows).sum(axis=1) * rows[:, 0] + np.abs(rows).max(axis=1)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32))
def test_values_add_up_to_the_score_and_equal_the_definition(columns, references, seed):
    rng = np.random.default_rng(seed)
    records, background = rng.normal(size=(3, columns)), rng.normal(size=(references, columns))
    found = attack.explain(bumpy, records, background)
    assert found.values.sum(axis=1) == pytest.approx(bumpy(records) - bumpy(background).mean())
    assert found.base == pytest.approx([bumpy(background).mean()])
    slow = np.mean([by_definition(bumpy, records[0], one) for one in background], axis=0)
    assert found.values[0] == pytest.approx(slow)


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_a_feature_without_effect_gets_nothing_and_equal_features_get_the_same(columns, seed):
    rng = np.random.default_rng(seed)
    records, background = rng.normal(size=(2, columns)), rng.normal(size=(3, columns))

    def blind_to_the_last(rows):
        return bumpy(rows[:, :-1]) if rows.shape[1] > 1 else rows[:, 0]

    for method in ("exact", "permutation"):
        found = attack.shapley_values(blind_to_the_last, records, background, method, seed=1, permutations=4)
        assert found[:, -1] == pytest.approx([0, 0], abs=1e-12)
    records[:, 1], background[:, 1] = records[:, 0], background[:, 0]
    same = attack.shapley_values(lambda rows: np.prod(rows, axis=1), records, background)
    assert same[:, 0] == pytest.approx(same[:, 1])


def test_permutations_come_near_the_exact_values_within_their_standard_errors():
    rng = np.random.default_rng(1)
    records, background = rng.normal(size=(30, 6)), rng.normal(size=(10, 6))
    exact = attack.shapley_values(bumpy, records, background)
    found = attack.explain(bumpy, records, background, "permutation", permutations=200, seed=3)
    assert found.approximate
    assert found.values.sum(axis=1) == pytest.approx(bumpy(records) - bumpy(background).mean())
    off = np.abs(found.values - exact) / found.standard_errors
    assert np.quantile(off, 0.95) < 3
    again = attack.shapley_values(bumpy, records, background, "permutation", permutations=200, seed=3)
    assert (again == found.values).all()


def test_classes_stand_side_by_side():
    rng = np.random.default_rng(1)
    records, background = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))

    def two(rows):
        return np.stack([bumpy(rows), rows[:, 2]], axis=1)

    for method in ("exact", "permutation"):
        found = attack.shapley_values(two, records, background, method, seed=1)
        assert found.shape == (4, 6)
        alone = attack.shapley_values(bumpy, records, background, method, seed=1)
        assert found[:, :3] == pytest.approx(alone)
        assert found[:, 3:5] == pytest.approx(np.zeros((4, 2)))


def test_a_group_of_columns_is_one_feature():
    rng = np.random.default_rng(2)
    records, background = rng.normal(size=(4, 4)), rng.normal(size=(5, 4))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    groups = [[0], [1, 3], [2]]
    for method in ("exact", "linear", "permutation"):
        found = attack.shapley_values(
            lambda rows: rows @ weights, records, background, method, groups=groups, seed=1
        )
        single = (records - background.mean(axis=0)) * weights
        expected = np.stack([single[:, 0], single[:, 1] + single[:, 3], single[:, 2]], axis=1)
        assert found == pytest.approx(expected, abs=1e-9 if method != "permutation" else 1.5)


def test_large_batches_give_the_same_as_small_ones(monkeypatch):
    rng = np.random.default_rng(1)
    records, background = rng.normal(size=(7, 6)), rng.normal(size=(5, 6))
    whole = attack.explain(bumpy, records, background).values
    for rows in (16, 64, 200):
        monkeypatch.setattr("discreet.attack.shapley._ROWS_AT_ONCE", rows)
        assert attack.explain(bumpy, records, background).values == pytest.approx(whole)


def test_bad_input_is_refused_by_name():
    ones = np.ones((3, 2))
    gap = np.array([[1.0, np.nan]])
    with pytest.raises(ParameterError, match="X has missing values"):
        attack.shapley_values(bumpy, gap, ones)
    with pytest.raises(ParameterError, match="does not take"):
        attack.shapley_values(bumpy, gap, ones, allow_nan=True)
    assert attack.shapley_values(lambda rows: np.nansum(rows, axis=1), gap, ones, allow_nan=True).shape == (
        1,
        2,
    )
    with pytest.raises(ParameterError, match=r"2\^17 coalitions"):
        attack.shapley_values(bumpy, np.ones((1, 17)), np.zeros((1, 17)))
    with pytest.raises(ParameterError, match="one score a row"):
        attack.shapley_values(lambda rows: 1.0, ones, ones)
    with pytest.raises(ParameterError, match="not names of classes"):
        attack.shapley_values(lambda rows: np.full(len(rows), "yes"), ones, ones)
    with pytest.raises(ParameterError, match="not linear"):
        attack.shapley_values(bumpy, np.random.default_rng(1).normal(size=(5, 2)), ones, "linear")
    with pytest.raises(ParameterError, match="columns"):
        attack.shapley_values(bumpy, ones, np.ones((3, 3)))
    with pytest.raises(ParameterError, match="groups"):
        attack.shapley_values(bumpy, ones, ones, groups=[[0], [0, 1]])


def test_values_do_not_depend_on_how_many_players_move_in_one_question(monkeypatch):
    rng = np.random.default_rng(3)
    records, references = rng.normal(size=(4, 7)), rng.normal(size=(5, 7))

    def predict(rows):
        return np.column_stack([rows[:, 0] * rows[:, 4], np.abs(rows).max(axis=1)])

    groups = [[0, 6], [3], [1, 2], [5], [4]]
    whole = attack.shapley_values(predict, records, references, groups=groups)
    monkeypatch.setattr("discreet.attack.shapley._ROWS_AT_ONCE", 4)
    np.testing.assert_allclose(
        attack.shapley_values(predict, records, references, groups=groups), whole, rtol=1e-12, atol=1e-13
    )


def test_scores_that_cancel_out_are_refused_where_they_are_infinite_and_taken_where_they_are_large():
    def both(rows):
        return np.where(rows[:, 0] > 0, np.inf, -np.inf)

    with pytest.raises(ParameterError, match="infinite"):
        attack.shapley_values(both, [[1.0, 0.0]], [[-1.0, 0.0]])
    large = attack.shapley_values(lambda rows: np.full(len(rows), 1e308), [[1.0, 0.0]], [[0.0, 2.0]])
    assert large.tolist() == [[0.0, 0.0]]


def test_features_of_several_columns_and_more_players_than_one_question_holds_are_mixed_as_defined():
    rng = np.random.default_rng(4)
    records, background = rng.normal(size=(2, 15)), rng.normal(size=(1, 15))
    found = attack.shapley_values(lambda rows: rows @ np.arange(15.0), records, background)
    assert found == pytest.approx((records - background) * np.arange(15.0))
    pairs = [[0, 14], [13, 1, 7], [2, 3, 4, 5, 6], [8, 9, 10, 11, 12]]
    joined = attack.shapley_values(lambda rows: rows @ np.arange(15.0), records, background, groups=pairs)
    parts = (records - background) * np.arange(15.0)
    assert joined == pytest.approx(np.column_stack([parts[:, group].sum(axis=1) for group in pairs]))
