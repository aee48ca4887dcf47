import math
import xml.etree.ElementTree as ET

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import DiscreetError
from discreet.core.results import Measure
from discreet.report import draw, svg
from discreet.report.plots import chart_of

from .sample import HOSTILE, classes, measures


def with_detail(name, **tables):
    return Measure(name, 1.0, {}, "Something was found.", detail=tables)


def as_engine(table, engine):
    if engine == "duckdb":
        return duckdb.from_arrow(table.to_arrow())
    return {"polars": table, "lazy": table.lazy(), "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[
        engine
    ]


ENGINES = ["polars", "lazy", "pandas", "pyarrow", "duckdb"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("uniqueness", "Records by size of their group"),
        ("k_anonymity", "Records by size of their group"),
        ("reidentification", "Chance that an intruder points at the right record"),
        ("l_diversity", "Records by number of different sensitive values in their group"),
        ("t_closeness", "Records by distance of their group from the whole file"),
        ("key_contributions", "Records alone in their group if one key is dropped"),
    ],
)
def test_each_measure_gets_the_picture_that_fits(name, title):
    measure = measures()[name]
    assert chart_of(measure).title == title
    assert draw(measure).get_suptitle().replace("\n", " ") == title


def test_several_sensitive_columns_are_compared_with_each_other():
    chart = chart_of(measures(sensitive=("income", "health"))["t_closeness"])
    assert chart.title == "t-closeness by sensitive column"
    assert chart.labels == ("health", "income")


def test_sensitive_columns_that_are_all_alike_give_way_to_the_spread_within_groups():
    chart = chart_of(measures(sensitive=("income", "health"))["l_diversity"])
    assert chart.title == "Records by number of different sensitive values in their group"


def test_class_sizes_fall_into_the_named_groups():
    sizes = pl.DataFrame(
        {"class_size": [1, 2, 3, 4, 9, 10, 99, 100], "classes": 1, "records": [1, 2, 3, 4, 9, 10, 99, 100]}
    )
    chart = chart_of(with_detail("k_anonymity", sizes=sizes))
    assert chart.labels == ("1", "2", "3–4", "5–9", "10–19", "20–99", "100+")
    assert np.allclose(np.array(chart.values) * 228, [1, 2, 7, 9, 10, 99, 100])
    assert chart.at_risk == (True, *[False] * 6)


def test_a_value_on_the_edge_of_a_bin_belongs_to_the_bin_it_opens():
    table = pl.DataFrame({"class_size": [1, 1, 2], "t": [0.1, 0.3, 0.7]})
    chart = chart_of(with_detail("t_closeness", classes=table))
    assert dict(zip(chart.labels, chart.values, strict=True))["0.3–0.4"] == 0.25


def test_an_axis_does_not_start_with_an_empty_half():
    table = pl.DataFrame({"class_size": [1, 1], "alpha": [0.52, 1.0]})
    chart = chart_of(with_detail("alpha_k", classes=table))
    assert (chart.labels[0], chart.labels[-1]) == ("0.5–0.6", "0.9–1")


def test_group_sizes_in_the_population_are_weighted_by_records():
    table = pl.DataFrame({"records": [3, 1], "population": [1, 50], "risk": [1.0, 0.02]})
    chart = chart_of(with_detail("k_map", classes=table))
    assert chart.title == "Records by size of their group in the population"
    assert (chart.values[0], chart.values[5]) == (0.75, 0.25)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["k_anonymity", "l_diversity", "t_closeness"])
def test_every_engine_gives_the_same_picture(name, engine):
    table = classes().select("class_size", "l", "t")
    expected = chart_of(with_detail(name, classes=table))
    found = chart_of(with_detail(name, classes=as_engine(table, engine)))
    assert found.labels == expected.labels
    assert np.allclose(found.values, expected.values, atol=1e-12)


def test_a_measure_without_anything_to_draw_says_so():
    with pytest.raises(DiscreetError, match="A picture does not help with 'k_anonymity'"):
        draw(Measure("k_anonymity", 1, {"k": 1}, "k is 1."))


def test_shares_of_any_other_measure_become_bars():
    chart = chart_of(Measure("new", 1, {"share_here": 0.2, "share_there": 0.4, "count": 7}, "Two shares."))
    assert chart.values == (0.2, 0.4)


@pytest.mark.parametrize("value", [math.inf, math.nan, None])
def test_unbounded_or_missing_figures_do_not_break_a_picture(value):
    table = pl.DataFrame({"class_size": [3, 2], "delta": [0.5, value]})
    assert draw(with_detail("delta_disclosure", classes=table)).axes


def test_unbounded_figures_get_a_bar_of_their_own():
    table = pl.DataFrame({"class_size": [3, 1], "delta": [0.5, math.inf]})
    chart = chart_of(with_detail("delta_disclosure", classes=table))
    assert (chart.labels[-1], chart.values[-1], chart.at_risk[-1]) == ("unbounded", 0.25, True)


def test_one_class_and_one_value_make_a_picture():
    one_key = pl.DataFrame({"key": ["age"], "distinction": [0.1], "unique_share_without": [0.0]})
    for measure in (
        with_detail("t_closeness", classes=pl.DataFrame({"class_size": [7], "t": [0.0]})),
        with_detail("l_diversity", classes=pd.DataFrame({"class_size": [7], "l": [40]})),
        with_detail("key_contributions", variables=one_key),
    ):
        assert draw(measure).axes


def test_svg_is_small_well_formed_and_carries_no_fonts():
    for measure in measures().values():
        text = svg(measure, name="picture")
        root = ET.fromstring(text)
        assert len(text) < 8000
        assert root.attrib["aria-labelledby"] == "picture-title picture-text"
        assert "font-family" not in text
        assert "clip-path" not in text
        assert "var(--bar, #" in text


def test_svg_is_the_same_every_time():
    measure = measures()["l_diversity"]
    assert svg(measure) == svg(measure)


def test_drawing_leaves_the_settings_of_matplotlib_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    svg(measures()["l_diversity"])
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("label", [HOSTILE, "$x_{$", "a\x00b", "年齢", "x" * 300, "a&b"])
def test_strange_column_names_are_drawn_as_text(label):
    table = pl.DataFrame(
        {"key": [label, "age"], "distinction": [0.1, 0.2], "unique_share_without": [0.1, 0.3]}
    )
    text = svg(with_detail("key_contributions", variables=table))
    ET.fromstring(text)
    assert "<script>" not in text


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 5)), min_size=1, max_size=40))
def test_the_bars_of_a_distribution_add_up_to_everyone(pairs):
    size, distance = zip(*pairs, strict=True)
    table = pl.DataFrame({"class_size": size, "t": distance, "l": [1 + s % 7 for s in size]})
    for name in ("t_closeness", "l_diversity", "k_anonymity"):
        assert math.isclose(sum(chart_of(with_detail(name, classes=table)).values), 1, rel_tol=1e-9)


def test_an_assessment_draws_what_leads_its_chapters():
    import polars as pl

    from discreet import Microdata, assess
    from discreet.core.errors import ParameterError
    from discreet.core.results import Assessment, Measure, Scenario

    people = pl.DataFrame({"age": [30, 31, 31, 45, 45, 46] * 5, "ill": ["y", "n", "n"] * 10})
    found = assess(Microdata(people, keys="age", sensitive="ill"))
    parts = [part.get_suptitle() for part in found.plot().subfigs]
    assert 1 < len(parts) <= 4
    assert len(set(parts)) == len(parts)
    bare = Assessment({}, {"s": Scenario("s", ("age",), {"odd": Measure("odd", 1, {}, "")})})
    with pytest.raises(ParameterError, match="nothing to draw"):
        bare.plot()
