"""Codings as a careful person would choose them: round, named, and always coarser than the value itself."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.workflow.coding_ladders import following, ladder_of, twins_of
from discreet.workflow.usual_treatments import recoded

DAY = date(1930, 1, 1)


def steps(values, outcomes=None):
    return [(rung.kind, rung.setting, rung.detail) for rung in ladder_of(values, outcomes or {}).rungs[1:]]


def test_dates_become_months_quarters_years_and_longer_periods():
    days = pl.Series("admitted", [date(1950, 1, 1) + timedelta(days=13 * i) for i in range(2_000)])
    assert [detail for _, _, detail in steps(days)] == [
        "month",
        "quarter",
        "year",
        "5 years",
        "decade",
        "20 years",
    ]
    rung = ladder_of(days, {}).rungs[4]
    assert recoded(days, rung.kind, rung.setting).cast(pl.String)[0] == "1950-1954"


def test_ages_have_bands_of_five_ten_and_twenty_years_with_round_ends():
    ages = pl.Series("age", np.random.default_rng(1).integers(0, 95, 2_000))
    found = steps(ages)
    assert [detail for _, _, detail in found][:3] == [5, 10, 20]
    assert all(edge % width == 0 for _, breaks, width in found for edge in breaks)


def test_other_numbers_have_breaks_that_a_person_would_write():
    hours = pl.Series("hours", np.random.default_rng(1).normal(40, 9, 3_000).round())
    pay = pl.Series("pay", np.random.default_rng(1).lognormal(8, 1, 3_000))
    for values in (hours, pay):
        for _, breaks, _ in steps(values):
            assert all(len(f"{edge:g}".replace(".", "").strip("0")) <= 2 for edge in breaks)


def test_small_counts_end_in_or_more_at_their_rarer_end():
    size = pl.Series("hhsize", [1] * 40 + [2] * 60 + [3] * 30 + [4] * 20 + [5] * 4 + [9])
    kinds = [(kind, setting) for kind, setting, _ in steps(size)]
    assert kinds[0] == ("limit", (None, 5))
    assert kinds[1] == ("limit", (None, 4))


def test_the_rest_is_called_other_and_a_few_values_by_their_names():
    jobs = pl.Series(
        "job", ["clerk"] * 500 + ["nurse"] * 400 + [f"rare {i}" for i in range(5) for _ in range(2)]
    )
    assert set(steps(jobs)[-1][1].values()) == {"other"}
    marital = pl.Series("status", ["married"] * 50 + ["single"] * 40 + ["widowed", "divorced"])
    assert set(steps(marital)[0][1].values()) == {"divorced or widowed"}


def test_columns_that_say_the_same_are_coarsened_together():
    years = pl.Series("years", [8, 9, 10, 12, 13, 16] * 50)
    degree = pl.Series("degree", ["none", "some", "most", "school", "college", "master"] * 50)
    table = pl.DataFrame([degree, years])
    assert twins_of(table, table.columns) == {"degree": "years"}
    leader = ladder_of(years, {})
    follower = following(leader, degree)
    for ours, theirs in zip(leader.rungs, follower.rungs, strict=True):
        assert len(set(zip(ours.codes, theirs.codes, strict=True))) == len(set(ours.codes))


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["date", "place", "number"]))
def test_every_step_on_dates_places_and_numbers_is_a_coarsening(seed, kind):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(30, 300))
    values = {
        "date": lambda: pl.Series("born", [DAY + timedelta(days=int(d)) for d in draw.integers(0, 29_000, n)]),
        "place": lambda: pl.Series("plz", [f"{x:05d}" for x in draw.integers(10_000, 19_999, n)]),
        "number": lambda: pl.Series("height", draw.normal(170, 10, n).round(1)),
    }[kind]()  # fmt: skip
    for rung in ladder_of(values, {}).rungs[1:]:
        pairs = pl.DataFrame({"value": values, "label": rung.codes}).unique()
        assert pairs["value"].n_unique() == pairs.height, "one value has two labels"
        made = recoded(values, rung.kind, rung.setting)
        if kind != "number":
            assert not made.cast(pl.String).is_in(values.cast(pl.String).implode()).any()
    labels = [rung.labels for rung in ladder_of(values, {}).rungs]
    assert labels == sorted(labels, reverse=True)


@pytest.mark.parametrize("values", [[True, False] * 20, ["a", "b"] * 20, [1.0, float("inf")] * 20])
def test_a_column_of_two_values_has_no_coarser_coding(values):
    assert len(ladder_of(pl.Series("x", values), {})) == 1


def test_dates_follow_no_other_column():
    """Groups of days joined by name could not be written in a column of dates."""
    days = [date(2020, 1, day) for day in (1, 2, 3, 1)]
    table = pl.DataFrame({"seen": days, "wave": [1, 2, 3, 1], "left": days})
    assert twins_of(table, table.columns) == {}
