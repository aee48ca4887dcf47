"""Pictures of comparisons of two files."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, utility
from discreet.core.charts import Bars, Contours, Dots, Grid, Lines
from discreet.core.randomness import generator
from discreet.report.plots import chart_svg, charts_of


def people(seed):
    random = generator(seed, "pictures")
    x = random.normal(50, 10, 300)
    return Microdata(
        pl.DataFrame(
            {
                "age": x,
                "pay": 100 * x + random.normal(0, 500, 300),
                "sex": pl.Series(["femme", "homme"])[random.integers(0, 2, 300)],
                "région with a long name": random.integers(0, 9, 300),
            }
        )
    )


@pytest.fixture(scope="module")
def found():
    ours, theirs = people(1), people(2)
    return {
        "pairs": utility.tabular(ours, theirs),
        "every size": utility.tabular(ours, theirs, ways=[1, 2, 3]),
        "margins": utility.margins(ours, theirs),
        "dependence": utility.dependence(ours, theirs),
        "densities": utility.densities(ours, theirs, ["age", "pay"]),
        "importance": utility.importance_shift(ours, theirs, "sex", trees=10),
        "grouping": utility.grouping_sensitivity(ours, theirs),
    }


KINDS = {
    "pairs": [Grid],
    "every size": [Grid, Bars, Bars],
    "margins": [Bars, *[Lines] * 9],
    "dependence": [Dots, Grid, Grid, Grid],
    "densities": [Contours],
    "importance": [Dots],
    "grouping": [Lines],
}


@pytest.mark.parametrize("name", KINDS)
def test_each_comparison_gets_the_pictures_that_fit(found, name):
    assert [type(chart) for chart in charts_of(found[name])] == KINDS[name]


@pytest.mark.parametrize("name", KINDS)
def test_every_picture_is_well_formed_told_in_words_and_shows_no_value(found, name):
    for place, chart in enumerate(charts_of(found[name])):
        drawn = chart_svg(chart, name=f"p{place}")
        ET.fromstring(drawn)
        assert len(drawn) < 120_000
        assert len(chart.text) > 40
        assert "femme" not in drawn + chart.text


def test_a_comparison_is_drawn_as_one_figure_and_as_a_report(found, tmp_path):
    assert found["dependence"].plot().get_size_inches()[1] > 5
    page = found["densities"].to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "age" in page


def test_contours_are_cropped_to_where_people_are():
    random = generator(3, "outlier")
    x = np.append(random.normal(size=(400, 2)), [[1000.0, 1000.0]], axis=0)
    data = Microdata(pl.DataFrame({"x": x[:, 0], "y": x[:, 1]}))
    [chart] = charts_of(utility.densities(data, data, ["x", "y"], bandwidth=(10, 10), grid=60))
    assert len(chart.layers[0].heights) < 60
