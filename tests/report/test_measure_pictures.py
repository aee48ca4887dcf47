"""Every measure of the package is drawn from what it really hands over, and no picture shows a data value."""

import math
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, risk
from discreet.core.charts import Bars, Dots, Grid, Lines, Point, Points, Row
from discreet.core.results import Detail, Measure
from discreet.report import draw
from discreet.report.ink import nice_ticks
from discreet.report.plots import _drawn, chart_of, chart_svg, charts_of

SECRET = "SECRET"
KEYS = ["age", "town", "job"]


def people(rows: int = 300, seed: int = 5) -> pl.DataFrame:
    random = np.random.default_rng(seed)

    def texts(levels: int) -> list[str]:
        return [f"{SECRET}{level}" for level in random.integers(0, levels, rows)]

    return pl.DataFrame(
        {
            "age": random.integers(20, 60, rows),
            "town": texts(6),
            "job": texts(9),
            "income": texts(3),
            "illness": texts(4),
            "hours": random.normal(40, 8, rows),
            "w": random.uniform(5, 50, rows),
        }
    )


@pytest.fixture(scope="module")
def found():
    file = Microdata(people(), keys=KEYS, sensitive=["income", "illness"], weight="w")
    original, release = file.with_roles(weight=None), Microdata(people(seed=6), keys=KEYS)
    one = original.with_roles(sensitive="income")
    numbers = {"columns": ["age", "hours"]}
    series = pl.DataFrame(
        {
            "meter": np.repeat(np.arange(12), 24),
            "hour": np.tile(np.arange(24), 12),
            "kwh": np.random.default_rng(3).gamma(2, 1, 288),
        }
    )
    curves = Microdata(series, sensitive="kwh", contributor="meter", time="hour")
    continuous = Microdata(people(), keys=["age"], sensitive="hours")
    months = [Microdata(people().head(rows), keys=["town"]) for rows in (290, 300)]
    return {
        "individual": risk.individual(file, threshold=0.02),
        "special_uniques": risk.special_uniques(file, progress=False),
        "unsafe_combinations": risk.unsafe_combinations(file, progress=False),
        "population": risk.population(original, estimator="pitman", population_size=5000, seed=1),
        "log_linear": risk.log_linear(original, population_size=5000, seed=1),
        "isolation": risk.isolation(original, population_size=5000),
        "attribution": risk.attribution(original, release),
        "attribution of one": risk.attribution(one),
        "attribution of numbers": risk.attribution(
            continuous, release, intervals={"age": 4, "hours": 4}, surface=4
        ),
        "disclosure": risk.disclosure(original, release),
        "attribute_disclosure": risk.attribute_disclosure(original, release, "income"),
        "replicated_uniques": risk.replicated_uniques(original, release),
        "group_disclosure": risk.group_disclosure(original, release),
        "overlapping_tables": risk.overlapping_tables(original),
        "neighbors": risk.neighbors(original, release, holdout=Microdata(people(seed=7)), **numbers),
        "linkage": risk.linkage(original, original, **numbers),
        "linkage by interval": risk.linkage(original, original, method="interval", **numbers),
        "outliers": risk.outliers(original, release, **numbers),
        "differencing": risk.differencing(*months),
        "series": risk.series(curves, k=[3, 4]),
        "series of one k": risk.series(curves, k=3),
    }


KINDS = {
    "individual": [Bars],
    "special_uniques": [Bars, Bars],
    "unsafe_combinations": [Bars],
    "population": [Dots, Dots],
    "isolation": [Points],
    "attribution": [Dots],
    "attribution of one": [Bars],
    "attribution of numbers": [Bars, Grid],
    "disclosure": [Dots],
    "attribute_disclosure": [Bars],
    "replicated_uniques": [Bars],
    "group_disclosure": [Bars],
    "overlapping_tables": [Bars],
    "neighbors": [Lines],
    "linkage": [Bars],
    "linkage by interval": [Bars],
    "outliers": [Bars],
    "differencing": [Bars],
    "series": [Lines, Grid],
    "series of one k": [Bars, Grid],
}


@pytest.mark.parametrize("name", KINDS)
def test_each_measure_gets_the_kinds_of_picture_that_fit(found, name):
    assert [type(chart) for chart in charts_of(found[name])] == KINDS[name]


def test_every_picture_is_small_well_formed_and_told_in_words(found):
    for name, measure in found.items():
        for chart in charts_of(measure):
            text = chart_svg(chart, name="picture")
            root = ET.fromstring(text)
            assert len(text) < 20_000, name
            assert root.attrib["role"] == "img"
            assert chart.title in chart.text
            assert len(chart.text) > len(chart.title) + len(chart.axis) + 5, name
            _drawn.cache_clear()
            assert text == chart_svg(chart, name="picture"), name


def test_no_picture_shows_a_data_value(found):
    for name, measure in found.items():
        for chart in charts_of(measure):
            assert SECRET not in chart.text, name
            assert SECRET not in chart_svg(chart, name="picture"), name


def test_a_measure_with_two_pictures_is_drawn_as_one_figure(found):
    picture = draw(found["special_uniques"])
    titles = [part.get_suptitle() for part in picture.subfigs]
    assert titles == ["Which keys make people stand out", "How many key values it takes to stand alone"]


def test_records_above_the_threshold_are_marked(found):
    chart = chart_of(found["individual"])
    above = sum(value for value, risky in zip(chart.values, chart.at_risk, strict=True) if risky)
    assert above == found["individual"].figures["records_above_threshold"] > 0
    assert "above the threshold of 2 %" in chart.axis


def test_the_largest_combinations_come_first_and_the_rest_is_counted():
    sets = pl.DataFrame({"keys": [f"set {n}" for n in range(40)], "unsafe_combinations": list(range(40))})
    chart = chart_of(Measure("unsafe_combinations", 1, {"threshold": 3}, "Rare.", detail={"sets": sets}))
    assert (len(chart.labels), chart.labels[0], chart.values[0]) == (15, "set 39", 39.0)
    assert chart.title.endswith("(15 of 39)")


def test_estimators_that_simulate_are_not_run_again_for_a_picture():
    def refuse() -> None:
        raise AssertionError("the sensitivity was computed")

    estimates = pl.DataFrame({"estimator": ["average"], "B": [0.1], "B_low": [0.05], "B_high": [None]})
    detail = Detail(estimates=lambda: estimates, sensitivity=refuse)
    [chart] = charts_of(
        Measure("population", 0.1, {}, "B.", parameters={"estimator": "average"}, detail=detail)
    )
    assert chart.rows == (Row("average", (0.1,), None),)


def test_points_that_lie_together_are_one_dot_and_none_is_lost():
    cells = pl.DataFrame(
        {
            "P_A": [1e-3] * 500 + [0.2, 1e-12],
            "gain": [50.0] * 500 + [math.inf, 1e60],
            "flag": ["none"] * 501 + ["may enable identification"],
        }
    )
    chart = chart_of(Measure("isolation", 1.0, {"records": 1000}, "Gain.", detail={"cells": cells}))
    assert sum(point.count for point in chart.points) == 502
    assert len(chart.points) == 3
    assert [point.risky for point in chart.points if point.up == 1e6] == [True, False]
    assert chart.mark == 0.001


def test_a_guess_that_is_undefined_leaves_a_gap_and_not_a_zero():
    table = pl.DataFrame(
        {
            "sensitive": ["a", "b"],
            "cap_original": [0.5, 0.6],
            "cap_released": [None, 0.2],
            "baseline": [0.4, 0.4],
        }
    )
    chart = chart_of(Measure("attribution", 0.2, {}, "Guess.", detail={"variables": table}))
    assert chart.rows[1] == Row("a", (None, 0.5, 0.4))
    assert "a: From the original 50 %, Without either 40 %" in chart.text
    draw(Measure("attribution", 0.2, {}, "Guess.", detail={"variables": table}))


def test_moments_are_gathered_when_there_are_too_many_to_draw():
    times = pl.DataFrame({"time": range(17520), "p": [0.5] * 17520})
    [grid] = charts_of(Measure("series", 0.5, {}, "Curves.", detail={"times": times}))
    assert len(grid.values[0]) <= 96
    assert set(grid.values[0]) == {0.5}


@pytest.mark.parametrize(
    "chart",
    [
        Dots("Title", ("one",), (Row("a", (0.0,)),), "Axis"),
        Dots("Title", ("one", "two"), (Row("a", (None, None)),), "Axis"),
        Lines("Title", (3.0,), (), "Axis"),
        Grid("Title", ("a", "b"), ("c",), ((None,), (None,)), "Axis"),
        Points("Title", (Point(1.0, 1.0, 1, False),), "across", "up", "Axis"),
        Bars("Title", ("a",), (0.0,), "Axis", (False,), by_tens=True),
    ],
)
def test_empty_and_flat_pictures_are_drawn_without_complaint(chart):
    ET.fromstring(chart_svg(chart, name="picture"))
    assert chart.text.startswith("Title. Axis.")


@settings(max_examples=examples(60), deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_round_ticks_hold_the_whole_range_in_a_few_steps(low, spread):
    ticks = nice_ticks(low, low + spread)
    slack = 1e-5 * max(abs(low), spread, 1e-9)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + spread - slack
    assert 2 <= len(ticks) <= 7
    assert ticks == sorted(set(ticks))


def test_a_surface_of_one_line_is_drawn_as_a_line_and_a_flat_one_not_at_all():
    def drawn(shares):
        surface = pl.DataFrame(
            {"key_intervals": [None] * 3, "target_intervals": [1, 2, 3], "cap_released": shares},
            schema_overrides={"key_intervals": pl.Int64},
        )
        figures = {"cap_released": 0.5}
        return charts_of(Measure("attribution", 0.5, figures, "said", detail=Detail(surface=lambda: surface)))

    (line,) = [chart for chart in drawn([0.9, 0.6, 0.4]) if "how exactly" in chart.title]
    assert isinstance(line, Lines)
    assert line.lines[0].values == (0.9, 0.6, 0.4)
    assert not [chart for chart in drawn([1.0, 1.0, 1.0]) if "how exactly" in chart.title]
