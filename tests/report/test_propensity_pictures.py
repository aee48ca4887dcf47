"""Pictures of propensity scores and of coefficients of two files."""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.report.plots import charts_of
from discreet.utility import compare_model, pmse


def files():
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    made = pl.DataFrame({"x": x, "y": x + rng.normal(size=300)})
    return Microdata(made), Microdata(made.with_columns(y=pl.col("y") + 0.5 * rng.normal(size=300)))


def test_propensity_has_a_picture_of_its_drivers_and_of_its_scores(tmp_path):
    found = pmse(*files())
    titles = [chart.title for chart in charts_of(found)]
    assert titles == ["What gives the release away", "Scores of the records of both files"]
    assert found.plot().get_size_inches()[1] > 2
    assert found.to_html(tmp_path / "p.html").exists()


def test_trees_show_shares_of_importance():
    first = charts_of(pmse(*files(), model="cart", n_perm=2, seed=1))[0]
    assert "Share" in first.axis


def test_identical_files_have_nothing_to_show():
    one, _ = files()
    assert charts_of(pmse(one, one)) == ()


def test_answers_stand_beside_the_original():
    chart = charts_of(compare_model("y ~ x", *files()))[0]
    assert [row.label for row in chart.rows] == ["Intercept", "x"]
    assert chart.rows[0].interval[0] < chart.rows[0].values[0] < chart.rows[0].interval[1]
    assert "1.96" in chart.axis
    several = compare_model({"a": "y ~ x", "b": ("x ~ y", "linear")}, *files())
    assert charts_of(several)[0].rows[0].label.startswith("a: ")
