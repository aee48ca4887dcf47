"""What a protected release may not break, and what a chosen epsilon promises."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.tables import epsilon_meaning, invariant_violations

PEOPLE = pl.DataFrame(
    {
        "block": ["a", "a", "b", "b", "c", "c"],
        "age": [40, 5, 40, 5, 40, 5],
        "count": [6, 3, 4, 2, 0, 0],
    }
)
HOMES = pl.DataFrame(
    {"block": ["a", "b", "c"], "count": [3, 2, 0], "persons": [8, 6, 0], "institutions": [1, 0, 0]}
)


def check(people=PEOPLE, **options):
    return invariant_violations(people, unit="block", **options)


def changed(*counts):
    return PEOPLE.with_columns(count=pl.Series(counts))


def test_the_original_itself_breaks_nothing():
    found = check(
        original=PEOPLE,
        invariants={"total": True, "voting age": pl.col("age") >= 18},
        households=HOMES,
        living_in="persons",
        elsewhere="institutions",
        adults=pl.col("age") >= 18,
        uninhabitable=["c"],
        groups=[pl.DataFrame({"block": ["a", "b", "c"], "group": ["X", "X", "Y"], "count": [15, 15, 0]})],
    )
    assert found.value == 0
    assert set(found.figures.values()) == {0, 3}
    assert found.detail["violations"].height == 0
    assert "All 10 checks hold" in found.meaning


def test_each_kind_of_violation_is_found_and_named():
    people = changed(6.0, 4.0, 0.0, 5.0, -1.0, 2.5)
    found = check(
        people,
        original=PEOPLE,
        invariants={"total": True, "voting age": pl.col("age") >= 18},
        households=HOMES,
        living_in="persons",
        elsewhere="institutions",
        adults=pl.col("age") >= 18,
        uninhabitable=["c"],
        groups=[pl.DataFrame({"block": ["a", "b", "c"], "group": ["X", "X", "Y"], "count": [15, 15, 1]})],
    )
    assert dict(found.figures) == {
        "units": 3,
        "negative": 1,
        "not_whole": 1,
        "invariant total": 3,
        "invariant voting age": 2,
        "persons_without_households": 1,
        "households_without_persons": 0,
        "persons_not_those_of_households": 3,
        "children_only": 2,
        "uninhabitable": 1,
        "not_additive": 1,
    }
    assert found.value == 1.0
    wrong = found.detail["violations"].filter(pl.col("check") == "invariant voting age")
    assert wrong.sort("unit").rows() == [
        ("invariant voting age", "b", 0.0, 4.0),
        ("invariant voting age", "c", -1.0, 0.0),
    ]


def test_households_without_people_are_found_and_people_in_institutions_need_none():
    empty = check(changed(6, 3, 0, 0, 0, 0), households=HOMES)
    assert empty.figures["households_without_persons"] == 1
    prison = pl.DataFrame({"block": ["a", "b"], "count": [3, 0], "persons": [9, 0], "institutions": [0, 6]})
    found = check(households=prison, living_in="persons", elsewhere="institutions")
    assert found.value == 0


def test_places_that_only_one_table_has_count_too():
    lost = check(PEOPLE.filter(pl.col("block") != "b"), original=PEOPLE)
    assert lost.figures["invariant total"] == 1
    assert lost.detail["violations"]["expected"].to_list() == [6.0]


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=6, max_size=6), st.lists(st.integers(0, 9), min_size=6, max_size=6)
)
def test_a_total_is_broken_exactly_where_it_differs(before, after):
    found = check(changed(*after), original=changed(*before))
    apart = (np.array(before).reshape(3, 2).sum(axis=1) != np.array(after).reshape(3, 2).sum(axis=1)).sum()
    assert found.figures["invariant total"] == apart


def test_what_cannot_be_checked_is_refused_with_the_way_out():
    with pytest.raises(ColumnError, match=r"persons: .*blok"):
        invariant_violations(PEOPLE, unit="blok")
    with pytest.raises(ParameterError, match="as original"):
        check(invariants={"total": True})
    with pytest.raises(ParameterError, match="give that table"):
        check(living_in="persons")
    with pytest.raises(InputError, match="no rows"):
        check(PEOPLE.clear())
    with pytest.raises(ColumnError, match="missing in 1 rows"):
        check(changed(None, 1, 1, 1, 1, 1))
    with pytest.raises(ColumnError, match="not numeric"):
        check(PEOPLE.with_columns(count=pl.lit("x")))
    with pytest.raises(InputError, match="must be a data frame"):
        check(3)
    with pytest.raises(InputError, match="different counts"):
        check(groups=[pl.DataFrame({"block": ["a", "b"], "group": ["X", "X"], "count": [1, 2]})])


def test_no_privacy_loss_teaches_nothing_and_a_huge_one_excludes_nothing():
    assert epsilon_meaning(0).value == 0.5
    assert epsilon_meaning(0, prior=0.01).value == pytest.approx(0.01)
    sure = epsilon_meaning(1e6)
    assert sure.value == 1.0
    assert sure.figures["odds"] == float("inf")


@settings(max_examples=examples(50), deadline=None)
@given(st.floats(0, 8), st.floats(0.001, 0.999))
def test_the_odds_of_a_belief_move_by_the_factor_of_epsilon(epsilon, prior):
    row = epsilon_meaning(epsilon, prior=prior).detail["epsilons"].row(0, named=True)
    before = prior / (1 - prior)
    assert row["posterior"] / (1 - row["posterior"]) == pytest.approx(before * row["odds"], rel=1e-3)
    assert row["lowest"] / (1 - row["lowest"]) == pytest.approx(before / row["odds"], rel=1e-6)


def test_bad_epsilons_and_priors_are_refused():
    with pytest.raises(ParameterError, match="none of them negative"):
        epsilon_meaning([1.0, -1.0])
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        epsilon_meaning(1.0, prior=1.0)
