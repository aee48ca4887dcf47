"""What a table with suppressed cells gives away: exactly, to contributors, within bounds, by differences."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from discreet.core.errors import InputError, ParameterError
from discreet.tables import Protection, Table, Threshold, audit, linear_programs, primary
from discreet.tables.exact_disclosure import computable
from discreet.tables.feasibility_intervals import feasible_bounds
from discreet.tables.table_audit import nested_differences

from .test_gauss import table_of


def people(*sizes):
    """Records of places a, b, c… by sex, so many of each."""
    places = [place for place, pair in zip("abcdef", sizes, strict=False) for _ in range(sum(pair))]
    sexes = [sex for pair in sizes for sex, n in zip("fm", pair, strict=True) for _ in range(n)]
    return pl.DataFrame({"place": places, "sex": sexes})


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 100_000))
def test_computable_is_a_question_of_rank(seed):
    rng = np.random.default_rng(seed)
    x = table_of(3, 4, rng.random(12) < 0.8)
    published = rng.random(x.shape[1]) < 0.6
    targets = np.flatnonzero(~published)
    found = computable(x, published, targets).cells
    rank = np.linalg.matrix_rank(x[:, published]) if published.any() else 0
    expected = [t for t in targets if np.linalg.matrix_rank(np.hstack([x[:, published], x[:, [t]]])) == rank]
    assert found.tolist() == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 100_000))
def test_a_contributor_computes_what_lies_in_the_span_of_published_and_own_cells(seed):
    rng = np.random.default_rng(seed)
    x = table_of(3, 4, rng.random(12) < 0.9)
    published = rng.random(x.shape[1]) < 0.6
    who = [rng.choice(["s", "t", ""]) or None for _ in range(len(x))]
    targets = np.flatnonzero(~published)
    found = computable(x, published, targets, contributors=who)
    open_columns = x[:, published]
    rank = np.linalg.matrix_rank(open_columns) if published.any() else 0
    pairs = set()
    for name in {w for w in who if w}:
        own = np.eye(len(x), dtype=int)[:, [r for r, w in enumerate(who) if w == name]]
        space = np.hstack([open_columns, own])
        for t in targets:
            mine = all(who[r] == name for r in np.flatnonzero(x[:, t]))
            alone = np.linalg.matrix_rank(np.hstack([open_columns, x[:, [t]]])) == rank
            together = np.linalg.matrix_rank(np.hstack([space, x[:, [t]]])) == np.linalg.matrix_rank(space)
            if together and not mine and not alone:
                pairs.add((int(t), name))
        units = [np.eye(len(x), dtype=int)[:, [r]] for r in range(len(x)) if who[r] == name]
        free = [u for u in units if np.linalg.matrix_rank(np.hstack([open_columns, u])) > rank]
        known_sum = len(units) > 1 and np.linalg.matrix_rank(np.hstack([open_columns, *free])) < rank + len(
            free
        )
        assert (name in found.sums) == known_sum
    assert set(found.by_contributors) == pairs


def bounds_by_linprog(x, y, published, target):
    columns = x[:, published]
    ends = []
    for sign in (1, -1):
        solved = linprog(
            sign * x[:, target], A_eq=columns.T, b_eq=columns.T @ y, bounds=(0, None), method="highs"
        )
        ends.append(sign * solved.fun if solved.status == 0 else sign * -np.inf)
    return ends


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 100_000))
def test_bounds_are_those_of_one_linear_program_a_side(seed):
    rng = np.random.default_rng(seed)
    x = table_of(3, 4, rng.random(12) < 0.9)
    y = rng.integers(0, 9, size=len(x))
    published = rng.random(x.shape[1]) < 0.6
    published[-1] = True
    targets = np.flatnonzero(~published)
    found = feasible_bounds(x, y, published, targets, workers=int(rng.integers(1, 3)))
    for k, target in enumerate(targets):
        low, high = bounds_by_linprog(x, y, published, target)
        assert found.lower[k] == pytest.approx(low, abs=1e-6)
        assert found.upper[k] == pytest.approx(high, abs=1e-6)


def test_without_bindings_to_highs_the_bounds_are_the_same(monkeypatch):
    x, y = table_of(3, 3), np.arange(1, 10)
    published = np.ones(16, dtype=bool)
    published[[0, 1, 4, 5]] = False
    fast = feasible_bounds(x, y, published, ~published)
    monkeypatch.setattr(linear_programs, "highs_library", lambda: None)
    slow = feasible_bounds(x, y, published, ~published)
    np.testing.assert_allclose(fast.lower, slow.lower, atol=1e-7)
    np.testing.assert_allclose(fast.upper, slow.upper, atol=1e-7)


def test_unbounded_cells_are_said_to_be_unbounded():
    x = np.array([[1, 0, 1], [0, 1, 1]])
    found = feasible_bounds(x, [3, 4], [], [0, 2], lower=None)
    assert found.lower.tolist() == [-np.inf, -np.inf]
    assert found.upper.tolist() == [np.inf, np.inf]


def test_bounds_that_need_not_be_followed_farther_are_at_least_what_was_asked():
    x, y = table_of(3, 3), np.arange(1, 10)
    published = np.ones(16, dtype=bool)
    published[[0, 1, 4, 5]] = False
    full = feasible_bounds(x, y, published, ~published)
    value = (x.T @ y)[~published]
    quick = feasible_bounds(x, y, published, ~published, reach=(value - 0.5, value + 0.5))
    assert (quick.lower <= value - 0.5).all()
    assert (quick.upper >= value + 0.5).all()
    assert (quick.lower >= full.lower - 1e-9).all()


def test_an_unprotected_table_fails_the_audit_and_says_why():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    found = audit(table)
    assert not found.safe
    assert found.exact.height == 1
    assert found.exact.select("place", "sex").rows() == [("a", "m")]
    assert "1 primary cell can be computed exactly" in found.line
    assert found.to_dict()["safe"] is False


def test_bounds_of_an_audit_take_the_asked_protection_into_account():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    left_out = [("a", "m"), ("a", "f"), ("b", "f"), ("b", "m")]
    assert audit(table, left_out, intervals=True).safe
    assert audit(table, left_out, intervals=True, protection=Protection(upper=3.0)).safe
    narrow = audit(table, left_out, intervals=True, protection=Protection(upper=5.0))
    assert not narrow.safe
    assert narrow.intervals["upper"].to_list() == [4.0]
    assert "pin 1 primary cell down" in narrow.line


def test_where_zeros_are_shown_nobody_takes_a_suppressed_count_for_zero():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    found = audit(table, [("a", "m"), ("a", "f"), ("b", "f"), ("b", "m")], intervals=True)
    assert found.intervals["lower"].to_list() == [1.0]


def test_cells_that_differ_by_a_small_group_are_found():
    x = sparse.csc_matrix(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]]))
    found = nested_differences(x, np.array([5, 6, 2]), np.ones(3, dtype=bool), threshold=3)
    assert found.rows() == [(1, 0, 2)]
    assert (
        nested_differences(x, np.array([5, 6, 2]), np.array([1, 0, 1], dtype=bool), threshold=3).height == 0
    )


def test_an_earlier_release_of_the_same_people_is_combined_with_this_one():
    data = people((8, 1), (4, 4))
    table = primary(Table.from_microdata(data, "place*sex"), Threshold(3))
    left_out = [("a", "m"), ("a", "f"), ("b", "f"), ("b", "m")]
    earlier = Table.from_microdata(data, "place*sex")
    assert audit(table, left_out).safe
    found = audit(table, left_out, previous=[(earlier, [("a", "m"), ("b", "m")])])
    assert found.exact.height == 1


def test_an_earlier_release_of_other_people_is_compared_cell_by_cell():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    earlier = Table.from_microdata(people((7, 1), (4, 4)), "place*sex")
    found = audit(table, [("a", "m")], previous=[(earlier, [])])
    assert found.successive.filter(pl.col("before") == 7)["now"].to_list() == [8]
    assert not found.safe


def test_an_earlier_table_with_other_dimensions_is_combined_with_this_one():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    left_out = [("a", "m"), ("a", "f"), *(key for key in table.keys if "Total" in key)]
    earlier = Table.from_microdata(people((8, 1), (4, 4)), "sex:place - 1")
    by_place = Table.from_microdata(people((8, 1), (4, 4)), "place")
    assert audit(table, left_out).safe
    assert audit(table, left_out, previous=[(by_place, [])]).safe
    assert audit(table, left_out, previous=[(earlier, [("m", "a")])]).safe
    assert audit(table, left_out, previous=[(by_place, []), (earlier, [("m", "a")])]).exact.height == 1


def test_an_earlier_table_without_a_cell_in_common_is_refused_with_the_way_out():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    other = Table.from_microdata(people((8, 1), (4, 4)), "place*sex - 1", total="All")
    with pytest.raises(ParameterError, match="codes of the totals"):
        audit(table, previous=[(other.from_microdata(pl.DataFrame({"age": ["x", "y"]}), "age - 1"), [])])


def test_published_values_that_contradict_each_other_are_refused():
    x = np.array([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(InputError, match="contradict"):
        feasible_bounds(x, [3, 4], [2], [0], lower=9.0)


def test_unknown_cells_and_columns_are_refused():
    table = primary(Table.from_microdata(people((8, 1), (4, 4)), "place*sex"), Threshold(3))
    with pytest.raises(ParameterError, match="names 1 cells"):
        audit(table, [("z", "m")])
    with pytest.raises(ParameterError, match="no such column"):
        audit(table, "flags")
    with pytest.raises(ParameterError, match="must not be negative"):
        audit(table, intervals=True, protection=-1.0)
    with pytest.raises(ParameterError, match="inner cells"):
        audit(table, contributors=["a"])
