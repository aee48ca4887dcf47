"""Numbers and households of a release against a population that is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, utility
from discreet.core.errors import ColumnError, ParameterError

PEOPLE = pl.DataFrame(
    {
        "home": [1, 1, 2, 3, 3],
        "age": [40, 10, 9, 70, 130],
        "role": ["head", "child", "child", "head", "head"],
        "pay": [100.0, 0.0, 5.0, 80.0, None],
        "wage": [60.0, 0.0, 5.0, 80.0, None],
        "rent": [40.0, 0.0, 0.0, 10.0, None],
        "w": [2.0, 2.0, 3.0, 1.0, 1.0],
    }
)
HOMES = Microdata(PEOPLE, household="home", weight="w")


def test_further_rules_count_the_households_that_break_them():
    found = utility.household_rules(
        HOMES,
        ages=(0, 120),
        reference="role == 'head'",
        no_income="pay",
        parts={"pay": ["wage", "rent"]},
        rules={
            "one head": "one member: role == 'head'",
            "no infant": "no member: age < 10",
            "all paid": "every member: pay > 0",
            "some old": "some member: age >= 65",
        },
    )
    assert dict(found.rows()) == {
        "households": 6.0,
        "without an adult": 3.0,
        "age out of bounds": 1.0,
        "without a reference person": 3.0,
        "income of a child": 3.0,
        "parts that miss the total": 1.0,
        "one head": 4.0,
        "no infant": 3.0,
        "all paid": 2.0,
        "some old": 5.0,
    }


def test_broken_rules_are_a_figure_of_the_measure():
    found = utility.household_plausibility(HOMES, HOMES, rules={"one head": "one member: role == 'head'"})
    assert found.figures["rules_broken"] == pytest.approx(4 / 6)
    assert utility.household_plausibility(HOMES, HOMES).figures["rules_broken"] is None


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"rules": {"x": "age > 3"}}, ParameterError),
        ({"rules": {"x": "any member: age > 3"}}, ParameterError),
        ({"rules": {"x": "every member: age + 3"}}, ParameterError),
        ({"rules": {"households": "every member: age > 3"}}, ParameterError),
        ({"rules": {"x": "every member: agee > 3"}}, ColumnError),
        ({"ages": (5,)}, ParameterError),
        ({"parts": {"pay": ["nothing"]}}, ColumnError),
        ({"no_income": "nothing"}, ColumnError),
    ],
)
def test_rules_that_say_nothing_are_refused(asked, error):
    with pytest.raises(error):
        utility.household_rules(HOMES, **asked)


def test_weighted_distributions_zeros_and_quantiles_by_hand():
    people = Microdata(pl.DataFrame({"pay": [0, 0, 0, 5, 10, None]}))
    made = Microdata(pl.DataFrame({"pay": [0, 5, 10], "w": [1.0, 1.0, 2.0]}), weight="w")
    found = utility.population_numbers(made, made, population=people)
    assert found.value == pytest.approx(0.35)
    assert found.figures["zero_gap"] == pytest.approx(0.6 - 0.25)
    assert found.figures["missing_gap"] == pytest.approx(1 / 6)
    middle = found.detail["quantiles"].filter(pl.col("share") == 0.5).row(0, named=True)
    assert (middle["truth"], middle["estimate"]) == (5.0, 10.0)


@settings(max_examples=examples(10))
@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 5)), min_size=1, max_size=30))
def test_a_weight_is_worth_as_many_records(rows):
    weighted = pl.DataFrame({"x": [x for x, _ in rows], "w": [float(w) for _, w in rows]})
    repeated = pl.DataFrame({"x": np.repeat([x for x, _ in rows], [w for _, w in rows])})
    found = utility.population_numbers(Microdata(weighted, weight="w"), Microdata(repeated))
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.figures["zero_gap"] == pytest.approx(0, abs=1e-9)


def test_columns_that_are_no_numbers_are_refused():
    with pytest.raises(ColumnError):
        utility.population_numbers(HOMES, HOMES, columns="role")
    with pytest.raises(ParameterError):
        utility.population_numbers(*(Microdata(PEOPLE.select("role")),) * 2)
