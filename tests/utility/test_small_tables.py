"""Measures of one file or of many small tables: exact on small files, 0 where nothing changed, and many against one."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, utility
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import MultiTableRelease, Schema
from discreet.synth.table_schema import LinkedTables

REAL = pl.DataFrame({"area": ["a", "a", "b", "b", "b"], "age": [10, 20, 30, 40, 50], "pay": [0, 2, 4, 6, 8]})
MADE = pl.DataFrame({"area": ["a", "b", "b", "b", "b"], "age": [10, 20, 30, 40, 50], "pay": [0, 1, 2, 3, 4]})


def tables(frame, *sets):
    return MultiTableRelease({frozenset(own): Microdata(frame.select(own)) for own in sets})


def test_counts_are_off_in_people_or_in_percent():
    found = utility.value_counts(Microdata(REAL), Microdata(MADE), columns="area")
    # One of two (50 %) is missing and one of three (33 %) too many: one person is less than either.
    assert found.value == 1.0
    assert found.figures["median_percent"] == pytest.approx((50 + 100 / 3) / 2)
    half = utility.value_counts(Microdata(REAL), Microdata(REAL[[0, 2]]), columns="area", rate=0.4)
    assert half.figures["median_people"] == pytest.approx(0.5)
    new = utility.value_counts(
        Microdata(REAL), Microdata(REAL.with_columns(area=pl.lit("c"))), columns="area"
    )
    assert new.figures["highest_error"] == 5.0


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.integers(0, 9)), min_size=8, max_size=30)
)
def test_a_copy_has_no_error_at_all(rows):
    frame = pl.DataFrame(rows, schema=["area", "age", "pay"], orient="row")
    data = Microdata(frame)
    many = tables(frame, ["area"], ["age"], ["pay"], ["area", "age"], ["area", "pay"], ["age", "pay"])
    for released in (data, many):
        assert utility.value_counts(data, released).value == 0
        assert utility.rank_correlations(data, released).value == 0
        assert utility.table_propensity(data, released).value == pytest.approx(0, abs=1e-12)


def test_slopes_are_compared_by_group():
    found = utility.subgroup_slopes(Microdata(REAL), Microdata(MADE), y="pay", x="age")
    assert found.value == pytest.approx(0.1)
    by = utility.subgroup_slopes(Microdata(REAL), Microdata(MADE), y="pay", x="age", by="area")
    assert by.figures["groups"] == 1
    assert by.value == pytest.approx(0.1)
    with pytest.raises(ParameterError, match="different"):
        utility.subgroup_slopes(Microdata(REAL), Microdata(MADE), y="pay", x="pay")
    with pytest.raises(ColumnError, match="no numbers"):
        utility.subgroup_slopes(Microdata(REAL), Microdata(MADE), y="pay", x="area")


def test_components_see_a_shift():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.normal(size=400) for name in "abcd"})
    data = Microdata(frame)
    assert utility.shared_components(data, data).value == 0
    assert utility.shared_components(data, Microdata(frame + 20)).figures["highest"] == 1
    with pytest.raises(ColumnError, match="together"):
        utility.shared_components(data, tables(frame, ["a", "b"], ["c"], ["d"]))


def test_rules_are_checked_in_the_table_of_their_columns():
    rule = "if age < 15 then pay == 0"
    wrong = REAL.with_columns(pay=pl.lit(3))
    for released in (Microdata(wrong), tables(wrong, ["age", "pay"], ["area"])):
        found = utility.inconsistencies(Microdata(REAL), released, rules=rule)
        assert (found.value, found.figures["original"]) == (1, 0)
    with pytest.raises(ColumnError):
        utility.inconsistencies(Microdata(REAL), Microdata(REAL), rules="size > 0")


def test_improvement_is_a_ratio_with_a_sign():
    assert utility.improvement_factor(1.0, 2.0) == 2
    assert utility.improvement_factor(2.0, 1.0) == -2
    assert utility.improvement_factor(0.0, 1.0) == math.inf
    assert utility.improvement_factor(1.0, 0.0) == -math.inf
    assert utility.improvement_factor(990.0, 980.0, perfect=1000) == 2


def test_what_is_no_release_is_refused():
    for ask in (utility.value_counts, utility.rank_correlations, utility.table_propensity):
        with pytest.raises(ParameterError, match="table_for"):
            ask(Microdata(REAL), REAL)


def test_rules_are_held_against_chance_and_conditions_that_nobody_meets_are_no_success():
    real = Microdata(pl.DataFrame({"flag": [0] * 5 + [1] * 95, "day": [None] * 5 + [7] * 95}))
    made = Microdata(pl.DataFrame({"flag": [0] * 20, "day": [None] + [7] * 19}))
    rules = ["if flag == 0 then day is missing", "if flag == 1 then day is not missing"]
    assert utility.rule_compliance(real, real, rules=rules).value == 1
    found = utility.rule_compliance(real, made, rules=rules)
    assert found.value == pytest.approx(0.0)
    assert found.figures["empty"] == 1
    with pytest.raises(ParameterError, match="if"):
        utility.rule_compliance(real, made, rules="flag == 0")


def test_links_children_and_rules_are_counted():
    links = Schema.from_dict(
        {
            "tables": {
                "person": {"key": "id"},
                "visit": {"key": "v", "parents": {"id": "person"}, "rules": ["day >= `person.born`"]},
            }
        }
    )
    person = pl.DataFrame({"id": [1, 2], "born": [5, 5]})
    real = LinkedTables.of(
        links, {"person": person, "visit": pl.DataFrame({"v": [1, 2], "id": [1, 1], "day": [6, 7]})}
    )
    made = LinkedTables(
        links, {"person": person, "visit": pl.DataFrame({"v": [1, 1], "id": [1, 9], "day": [1, 7]})}
    )
    same = utility.linked_keys(real, real)
    assert (same.value, same.figures["orphans"], same.figures["rules_broken"]) == (0, 0, 0)
    found = utility.linked_keys(real, made)
    assert found.value == 0.5
    assert [found.figures[name] for name in ("orphans", "double_keys", "rules_broken")] == [1, 1, 1]
    assert real.beside("person").frame.rows() == [(5, 2), (5, 0)]


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_a_division_of_linked_tables_loses_nobody_and_parts_no_family(seed, share):
    rng = np.random.default_rng(seed)
    links = {
        "a": {"key": "a"},
        "b": {"key": "b"},
        "both": {"key": "c", "parents": {"a": "a", "b": "b"}},
        "leaf": {"parents": {"c": "both"}},
    }
    frames = {"a": pl.DataFrame({"a": range(12)}), "b": pl.DataFrame({"b": range(9)})}
    frames["both"] = pl.DataFrame({"c": range(8), "a": rng.integers(0, 12, 8), "b": rng.integers(0, 9, 8)})
    frames["leaf"] = pl.DataFrame({"c": rng.integers(0, 8, 10)})
    whole = LinkedTables.of(Schema.from_dict({"tables": links}), frames)
    parts = whole.divided(share, rng)
    for name, frame in frames.items():
        assert parts[0].tables[name].height + parts[1].tables[name].height == frame.height
    for part in parts:
        found = utility.linked_keys(whole, part)
        assert found.figures["orphans"] == 0


def test_households_and_tables_of_a_known_population():
    people = Microdata(
        pl.DataFrame({"home": [1, 1, 2, 3], "age": [40, 38, 10, 70], "sex": ["f", "m", "f", "m"]}),
        household="home",
    )
    found = utility.household_plausibility(people, people, sex="sex")
    assert (found.value, found.figures["mixed_change"]) == (0, 0)
    assert found.figures["without_adult"] == pytest.approx(1 / 3)
    table = utility.population_tables(people, people, by=["sex", "age"])
    assert (table.value, table.figures["aitchison"]) == (0, 0)
    with pytest.raises(ColumnError):
        utility.population_tables(people, people, by="region")
