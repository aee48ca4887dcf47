"""Rules of tables count people, where a role says whose the records are."""

from __future__ import annotations

import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.tables import (
    Dominance,
    GroupDisclosure,
    KDisclosure,
    MinimumContributors,
    Ones,
    PPercent,
    Table,
    Threshold,
    primary,
)

NINE = pl.DataFrame(
    {
        "who": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "sex": ["f"] * 3 + ["m"] * 6,
        "age": [30] * 3 + [40] * 3 + [50] * 3,
        "pay": [10.0, 11.0, 12.0, 50.0, 51.0, 52.0, 90.0, 91.0, 92.0],
    }
)


def flagged(data, rule, **options):
    cells = primary(Table.from_microdata(data, "sex*age", **options), rule).cells
    return set(cells.filter("primary").select("sex", "age").rows())


ALONE = {
    ("f", "30"),
    ("m", "40"),
    ("m", "50"),
    ("f", "Total"),
    ("Total", "30"),
    ("Total", "40"),
    ("Total", "50"),
}


@pytest.mark.parametrize("role", ["person", "contributor"])
@pytest.mark.parametrize("rule", [Threshold(3), Threshold.up_to(2), Ones(), MinimumContributors(2)], ids=str)
def test_cells_of_one_person_are_small_however_many_records_they_have(role, rule):
    found = flagged(Microdata(NINE, **{role: "who"}), rule)
    assert found >= ALONE
    assert not flagged(Microdata(NINE), rule)


@pytest.mark.parametrize("rule", [Dominance(n=1, k=70), PPercent(10)], ids=str)
def test_the_records_of_one_person_are_one_contribution(rule):
    assert flagged(Microdata(NINE, person="who"), rule, measure="pay") >= ALONE


def test_a_threshold_on_records_can_still_be_asked_for():
    assert not flagged(Microdata(NINE, person="who"), Threshold(3, of="count"))


def test_a_group_is_disclosed_by_its_people():
    # Two of the three men are in one category; one man with four records is outside of it.
    frame = pl.DataFrame(
        {
            "who": [1, 2, 3, 3, 3, 3, 4, 5],
            "place": ["a"] * 6 + ["b"] * 2,
            "ill": ["y"] * 2 + ["n"] * 4 + ["y", "n"],
        }
    )
    table = Table.from_microdata(Microdata(frame, person="who"), "place*ill")
    found = primary(table, KDisclosure(1, ["ill"])).cells
    assert ("a", "y") in found.filter("primary").select("place", "ill").rows()
    by_record = primary(Table.from_microdata(frame, "place*ill"), KDisclosure(1, ["ill"])).cells
    assert ("a", "y") not in by_record.filter("primary").select("place", "ill").rows()
    assert primary(table, GroupDisclosure(["ill"])).cells["primary"].sum() == 0


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(2, 4), st.sampled_from([Threshold(3), Ones(), MinimumContributors(3), KDisclosure(1)]))
def test_repeating_the_records_of_people_never_makes_a_cell_safe(times, rule):
    frame = NINE.with_columns(who=pl.Series([1, 1, 2, 3, 4, 4, 5, 6, 7]))
    once, again = (
        flagged(Microdata(file, person="who"), rule) for file in (frame, pl.concat([frame] * times))
    )
    assert once == again
