"""Totals and means that print counts, people behind records, and counts beside survival curves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.outputs import Session


def wards(values):
    """Three wards of 60; the values are of the first."""
    rest = np.tile([0.0, 1.0], 60)
    return pl.DataFrame({"ward": np.repeat(["a", "b", "c"], 60), "x": np.concatenate([values, rest])})


ILL = np.array([1.0] * 3 + [0.0] * 57)


@pytest.mark.parametrize("statistics", [["total"], ["mean"], ["count", "mean"], ["sd"], ["variance"]])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: 1 - x, lambda x: 1 + x, lambda x: 100 * x + 50])
def test_three_ill_people_are_not_printed_as_a_total_mean_or_spread(statistics, make):
    frame = wards(make(ILL)).with_columns(
        x=pl.when(pl.col("ward") == "a").then("x").otherwise(pl.Series(make(np.tile([0.0, 1.0], 90))))
    )
    with Session(data=frame) as s:
        assert s.summary("x", "ward", statistics=statistics).status == "fail"
        assert s.summary("x", where={"ward": "a"}, statistics=statistics).status == "fail"
        assert s.summary("x", where={"ward": ["b", "c"]}, statistics=statistics).status == "pass"


def test_a_mean_of_true_and_false_and_a_weighted_one_are_judged_alike():
    frame = wards(ILL).with_columns(pl.col("x").cast(pl.Boolean), w=pl.lit(37.5))
    with Session(data=frame) as s:
        assert s.summary("x", "ward", statistics=["mean"]).status == "fail"
        assert s.summary("x", "ward", statistics=["mean"], weight="w").status == "fail"
        assert s.summary("x", "ward", statistics=["mean"], margins=True, mitigate="suppress").status == "pass"


def test_an_indicator_that_nobody_or_everybody_has_is_class_disclosure():
    with Session(data=wards(np.zeros(60))) as s:
        found = s.summary("x", "ward", statistics=["mean"])
    assert found.checked.cells("one value") == ((0,),)


def test_few_valued_counts_are_judged_by_those_off_their_ends():
    children = np.array([0.0] * 55 + [1, 1, 2, 2, 3])
    frame = wards(children).with_columns(
        x=pl.when(pl.col("ward") == "a").then("x").otherwise(pl.Series(np.tile([0.0, 1, 2, 3], 45)))
    )
    with Session(data=frame) as s:
        assert s.summary("x", "ward", statistics=["mean"]).checked.cells("numerator") == ((0,),)


def test_a_total_that_few_contribute_to_fails_though_many_have_a_value():
    pay = np.concatenate([[10.5, 11.5, 9.7, 12.1], np.zeros(176)])
    frame = pl.DataFrame({"ward": ["a"] * 180, "gain": pay})
    with Session(data=frame) as s:
        assert "contributors" in [
            f.check for f in s.summary("gain", statistics=["total"]).findings if f.status == "fail"
        ]
        assert s.hhi("gain").status == "fail"
        assert s.gini("gain").status == "fail"
        assert s.lorenz("gain").status == "fail"
        assert s.concentration("gain").status == "fail"


def test_concentration_of_an_indicator_is_a_count():
    with Session(data=wards(ILL)) as s:
        assert s.hhi("x", "ward").status == "fail"
        assert s.gini("x", "ward").status == "fail"


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 60), st.sampled_from([(0.0, 1.0), (1.0, 2.0), (3.0, 7.5), (0.0, 100.0)]))
def test_an_indicator_passes_exactly_when_both_of_its_counts_do(ill, values):
    low, high = values
    mine = np.repeat([high, low], [ill, 60 - ill])
    frame = wards(mine).with_columns(
        x=pl.when(pl.col("ward") == "a").then("x").otherwise(pl.Series(np.tile([low, high], 90)))
    )
    with Session(data=frame) as s:
        status = s.summary("x", "ward", statistics=["mean"]).status
        table = s.crosstab("ward", "x")
    assert (status == "pass") == (10 <= ill <= 50) == (table.status == "pass")


@pytest.mark.parametrize("role", ["person", "contributor"])
def test_every_statistic_counts_people_not_records(role):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "who": np.repeat(np.arange(8), 25),
            "x": rng.normal(50, 5, 200),
            "y": rng.normal(50, 5, 200),
            "g": np.tile(["a", "b"], 100),
            "h": rng.choice(["u", "v"], 200),
            "t": rng.integers(1, 5, 200),
            "ill": rng.random(200) < 0.5,
        }
    )
    with Session(data=Microdata(frame, **{role: "who"})) as s:
        made = [
            s.crosstab("g"),
            s.summary("x", statistics=["mean"]),
            s.summary("x", statistics=["median"]),
            s.summary("x", statistics=["sd"]),
            s.quantiles("x", probabilities=[0.5]),
            s.histogram("x", bins=2),
            s.gini("x"),
            s.hhi("x"),
            s.lorenz("x", points=2),
            s.concentration("x"),
            s.correlation(["x", "y"]),
            s.test("t", "x", "g"),
            s.test("chi2", "g", "h"),
            s.test("paired-t", "x", "y"),
            s.survival("t", "ill"),
            s.odds_ratio("g", "h"),
            s.ols("x ~ y"),
        ]
    assert [output.kind for output in made if output.status != "fail"] == []


def test_events_of_three_to_seven_are_not_printed_beside_a_curve():
    rng = np.random.default_rng(5)
    n = 300
    frame = pl.DataFrame({"months": rng.integers(1, 40, n), "ill": rng.random(n) < 0.35})
    with Session(data=frame) as s:
        counts = s.survival("months", "ill", mitigate="group-times")
        alone = s.survival("months", "ill", mitigate="group-times", show_counts=False)
        dropped = s.survival("months", "ill", mitigate="drop-tail")
    assert alone.table.columns == ["time", "survival"]
    assert dropped.status == "fail"
    censored = counts.table["exits"] - counts.table["events"]
    assert counts.table["events"].min() >= 10
    assert censored.min() >= 10
    assert counts.table.height < alone.table.height


def test_where_no_step_is_long_enough_the_curve_is_shown_without_counts():
    frame = pl.DataFrame({"t": np.repeat(np.arange(1, 9), 12), "ill": np.tile([True] * 10 + [False] * 2, 8)})
    frame = frame.with_columns(ill=pl.when(pl.col("t") > 1).then(pl.lit(True)).otherwise("ill"))
    with Session(data=frame) as s:
        found = s.survival("t", "ill", mitigate="group-times")
    assert found.table.columns == ["time", "survival"]
    assert "without counts" in found.draft.notes[0]
