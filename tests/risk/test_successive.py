"""Comparing two releases, against loops that spell the definitions out."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.risk.release_differencing import differencing, shared_bounds


def release(rows, **roles):
    table = pl.DataFrame(rows, schema={"id": pl.Int64, "x": pl.Int64, "y": pl.String}, orient="row")
    return Microdata(table, keys=["x", "y"], **roles)


people = st.dictionaries(
    st.integers(0, 30), st.tuples(st.integers(0, 1), st.sampled_from(["a", "b", None])), min_size=1
)


@settings(deadline=None)
@given(people, people, st.integers(2, 4))
def test_linked_people_are_exposed_exactly_when_a_loop_says_so(first, second, k):
    if not set(first) & set(second) or all(values[1] is None for values in first.values()):
        return
    before, after = Counter(first.values()), Counter(second.values())
    everybody = set(first) | set(second)
    pairs = Counter((first.get(who), second.get(who)) for who in everybody)
    exposed = {
        who
        for who in everybody
        if pairs[first.get(who), second.get(who)] < k
        and (who not in first or before[first[who]] >= k)
        and (who not in second or after[second[who]] >= k)
    }
    rows = [[(who, *values) for who, values in side.items()] for side in (first, second)]
    found = differencing(release(rows[0], person="id"), release(rows[1]), k=k)
    records = found.detail["records"]
    assert set(records.filter("exposed")["id"]) == exposed
    assert found.value == len(exposed)
    assert found.figures["joined"] == len(set(second) - set(first))
    assert found.figures["left"] == len(set(first) - set(second))
    assert records.height == len(everybody)


@settings(deadline=None)
@given(people, people, st.integers(2, 4))
def test_unlinked_changes_are_exposed_exactly_when_a_loop_says_so(first, second, k):
    before, after = Counter(first.values()), Counter(second.values())
    if not all({values[i] for values in before} & {values[i] for values in after} - {None} for i in (0, 1)):
        return
    exposed = sum(
        abs(after[cell] - before[cell])
        for cell in before
        if min(before[cell], after[cell]) >= k and 0 < abs(after[cell] - before[cell]) < k
    )
    rows = [[(who, *values) for who, values in side.items()] for side in (first, second)]
    found = differencing(release(rows[0]), release(rows[1]), k=k)
    assert found.value == exposed


def test_a_release_compared_with_itself_exposes_nobody():
    rows = [(i, i % 2, "ab"[i % 3 == 0]) for i in range(30)]
    assert differencing(release(rows), release(rows)).value == 0
    linked = differencing(release(rows, person="id"), release(rows), k=5)
    assert (linked.value, linked.figures["stayed"]) == (0, 30)


def test_two_codings_that_overlap_give_away_the_piece_between_them():
    """Ten people aged 0-9 in bands of 5 and 10, and seven of them in a band 0-6: three are 7-9."""
    ages = [1] * 4 + [3] * 3 + [8] * 3 + [12] * 20
    one = pl.DataFrame({"age": ["0-9" if age < 10 else "10-19" for age in ages]})
    two = pl.DataFrame({"age": ["0-6" if age < 7 else "7-19" for age in ages]})
    coding = {"age": {"0-9": ["0-6", "7-19"], "10-19": "7-19"}}
    found = differencing(Microdata(one, keys="age"), Microdata(two, keys="age"), recoding=coding, k=4)
    assert (found.value, found.figures["exposed_stayed"]) == (3, 3)
    row = found.detail["groups"].filter("exposed").row(0, named=True)
    assert (row["previous age"], row["next age"], row["at_least"], row["at_most"]) == ("0-9", "7-19", 3, 3)
    with pytest.raises(ColumnError, match="recoding="):
        differencing(Microdata(one, keys="age"), Microdata(two, keys="age"))


def test_a_finer_release_of_the_same_people_exposes_nobody_by_comparison_but_a_suppressed_record_does():
    fine = pl.DataFrame({"zip": ["11"] * 5 + ["12"] * 5 + ["21"] * 5})
    coarse = fine.with_columns(pl.col("zip").str.head(1) + "*")
    hierarchy = Hierarchy.prefixes([2, 1])
    first, second = Microdata(coarse, keys="zip"), Microdata(fine, keys="zip")
    assert differencing(first, second, recoding={"zip": hierarchy}).value == 0
    hidden = fine.with_columns(pl.when(pl.int_range(pl.len()) > 0).then("zip").alias("zip"))
    found = differencing(first, Microdata(hidden, keys="zip"), recoding={"zip": hierarchy}, missing="drop")
    assert (found.value, found.figures["exposed_left"], found.figures["singled_out"]) == (1, 1, 1)


def test_a_table_hierarchy_relates_two_of_its_levels():
    tree = Hierarchy.from_table(
        pl.DataFrame({"leaf": ["a", "b", "c", "d"], "l1": ["ab", "ab", "cd", "cd"], "l2": ["all"] * 4})
    )
    first = Microdata(pl.DataFrame({"x": ["ab"] * 4 + ["cd"] * 4}), keys="x")
    second = Microdata(pl.DataFrame({"x": ["all"] * 9}), keys="x")
    found = differencing(first, second, recoding={"x": tree})
    assert (found.value, found.figures["exposed_joined"]) == (1, 1)
    changes = found.detail["changes"].row(0, named=True)
    assert (changes["classes_previous"], changes["classes_next"], changes["change"]) == (2, 1, 1)


def test_crossed_codings_expose_more_when_linked_than_when_only_counted():
    """Fine age with coarse region against coarse age with fine region."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"id": range(400), "age": rng.integers(0, 20, 400), "region": rng.integers(0, 10, 400)}
    )
    one = table.with_columns(region=pl.lit(0))
    two = table.with_columns(age=pl.lit(0))
    linked = differencing(Microdata(one, keys=["age", "region"], person="id"), Microdata(two), k=3)
    coding = {"age": dict.fromkeys(range(20), 0), "region": {0: list(range(10))}}
    counted = differencing(Microdata(one, keys=["age", "region"]), Microdata(two), k=3, recoding=coding)
    cells = table.group_by("age", "region").len()["len"]
    assert linked.value == cells.filter(cells < 3).sum()
    assert counted.value <= linked.value


def feasible(a, b, before, after, pair):
    rows = np.vstack(
        [np.equal.outer(np.arange(len(before)), a), np.equal.outer(np.arange(len(after)), b)]
    ).astype(float)
    total = np.concatenate([before, after])
    sign = np.zeros(len(a))
    sign[pair] = 1
    return [round(linprog(direction * sign, A_eq=rows, b_eq=total).fun * direction) for direction in (1, -1)]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["all", "chain", "random"]))
def test_the_bounds_hold_the_best_possible_ones_and_are_them_on_full_tables_and_chains(seed, shape):
    rng = np.random.default_rng(seed)
    n, m = 3, 3
    there = {
        "all": np.ones((n, m), bool),
        "chain": np.tri(n, m, 0, dtype=bool) & ~np.tri(n, m, -2, dtype=bool),
        "random": rng.random((n, m)) < 0.6,
    }[shape]
    if not there.any():
        return
    truth = np.where(there, rng.integers(0, 6, (n, m)), 0)
    a, b = np.nonzero(there)
    before, after = truth.sum(axis=1), truth.sum(axis=0)
    low, high = shared_bounds(a, b, before, after, np.zeros(len(a), dtype=np.int64))
    for pair in range(len(a)):
        least, most = feasible(a, b, before, after, pair)
        assert low[pair] <= least <= truth[a[pair], b[pair]] <= most <= high[pair]
        if shape != "random":
            assert (low[pair], high[pair]) == (least, most)


def test_sizes_that_contradict_each_other_give_no_bounds_instead_of_wrong_ones():
    # Class 0 can only meet class 0, yet is larger than it: people moved between the releases.
    low, high = shared_bounds(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([9, 3]), np.array([5, 7]), np.zeros(3, int)
    )
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [5, 3, 3]


def test_engines_can_be_mixed_and_give_the_same_figures():
    pytest.importorskip("pandas")
    rows = [(i, i % 3, "ab"[i % 2]) for i in range(40)]
    one, two = release(rows), release(rows[:-2])
    mixed = Microdata(two.frame.to_pandas(), keys=["x", "y"])
    assert differencing(one, mixed).figures == differencing(one, two).figures
    assert differencing(one, mixed, person="id").figures == differencing(one, two, person="id").figures


ROWS = [(i, i % 2, "a") for i in range(10)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: differencing(release(ROWS), release(ROWS), k=1),
            ParameterError,
            "k must be a whole number of at least 2",
        ),
        (
            lambda: differencing(release(ROWS), release(ROWS), missing="wildcard"),
            ParameterError,
            "missing must be 'category' or 'drop'",
        ),
        (
            lambda: differencing(release(ROWS), Microdata(pl.DataFrame({"x": [1]}))),
            ColumnError,
            "no column 'y'",
        ),
        (
            lambda: differencing(release(ROWS), release(ROWS), recoding={"z": {}}),
            ParameterError,
            "no key 'z'",
        ),
        (lambda: differencing(release(ROWS), release(ROWS), recoding={"x": {}}), ParameterError, "is empty"),
        (lambda: differencing(release(ROWS), release(ROWS), person="name"), ColumnError, "no column 'name'"),
        (
            lambda: differencing(release(ROWS * 2), release(ROWS), person="id"),
            InputError,
            "10 records of the previous",
        ),
        (
            lambda: differencing(release(ROWS), release([(i + 99, x, y) for i, x, y in ROWS]), person="id"),
            InputError,
            "no value of 'id' in common",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
