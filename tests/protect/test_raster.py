"""Density maps: which cells are sensitive, merging, smoothing, and the frame that comes back."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.protect import Plan
from discreet.protect.density_maps import Records, SafetyRule, SpatialRaster, _two_largest, smoothed


def town(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": 1e5 + rng.normal(0, 1500, n),
            "y": -4e5 + rng.normal(0, 1500, n),
            "use": rng.lognormal(3, 1, n),
            "out_of_work": rng.random(n) < 0.1,
            "firm": rng.integers(0, n // 2, n),
        }
    )
    return Microdata(frame, location=("x", "y"))


def by_hand(data, size):
    return (
        data.frame.with_columns(
            (pl.col("x") / size).floor().alias("i"), (pl.col("y") / size).floor().alias("j")
        )
        .group_by("i", "j")
        .agg(count=pl.len(), total=pl.col("use").sum(), top=pl.col("use").max())
    )


def test_removal_leaves_exactly_the_cells_that_are_safe():
    data = town()
    released = SpatialRaster(400, value="use", method="remove", min_count=5, max_share=0.4).apply(data)
    cells = by_hand(data, 400)
    safe = cells.filter((pl.col("count") >= 5) & (pl.col("top") <= 0.4 * pl.col("total")))
    found = released.data.frame.sort("x", "y")
    wanted = safe.sort("i", "j")
    np.testing.assert_allclose(found["x"].to_numpy(), (wanted["i"].to_numpy() + 0.5) * 400)
    np.testing.assert_allclose(found["y"].to_numpy(), (wanted["j"].to_numpy() + 0.5) * 400)
    assert found["count"].to_list() == wanted["count"].to_list()
    np.testing.assert_allclose(found["total"].to_numpy(), wanted["total"].to_numpy())
    log = released.log[0].parameters
    assert log["cells"] == cells.height
    assert log["cells_removed"] == log["cells_sensitive_before"] == cells.height - safe.height
    assert released.guarantee is None


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(st.integers(-900, 900), st.integers(-900, 900)), min_size=1, max_size=120),
    st.integers(1, 12),
    st.integers(0, 5),
)
def test_merged_cells_never_overlap_never_double_a_record_and_are_safe(points, least, levels):
    frame = pl.DataFrame(points, schema=["x", "y"], orient="row").cast(pl.Float64) + 0.5
    data = Microdata(frame + 10_000, location=("x", "y"))
    released = SpatialRaster(25, min_count=least, levels=levels).apply(data)
    cells = released.data.frame
    assert (cells["count"] >= least).all()
    half = cells["cell_size"].to_numpy() / 2
    inside = np.zeros(frame.height, dtype=int)
    for x, y, side, count in zip(cells["x"], cells["y"], half, cells["count"], strict=True):
        here = (
            (data.frame["x"] >= x - side)
            & (data.frame["x"] < x + side)
            & (data.frame["y"] >= y - side)
            & (data.frame["y"] < y + side)
        ).to_numpy()
        assert here.sum() == count
        inside += here
    assert inside.max(initial=0) <= 1
    assert (inside == 0).sum() == pytest.approx(
        released.log[0].parameters["share_in_removed_cells"] * frame.height
    )


def test_merging_saves_records_that_removal_would_lose():
    data = town()
    lost = [
        SpatialRaster(200, min_count=10, method=method, levels=3)
        .apply(data)
        .log[0]
        .parameters["share_in_removed_cells"]
        for method in ("remove", "quadtree")
    ]
    assert lost[1] < lost[0] / 3


def test_a_large_share_of_yes_is_sensitive():
    frame = pl.DataFrame(
        {"x": [1050.0] * 20 + [1150.0] * 20, "y": [950.0] * 40, "ill": [True] * 20 + [True, False] * 10}
    )
    data = Microdata(frame, location=("x", "y"))
    found = SpatialRaster(100, value="ill", method="remove").apply(data).data.frame
    assert found.rows() == [(1150.0, 950.0, 100.0, 20, 10.0, 0.5)]


def test_records_of_one_contributor_are_added_first():
    frame = pl.DataFrame(
        {"x": [1050.0] * 12, "y": [950.0] * 12, "pay": [10.0] * 12, "firm": ["a"] * 6 + list("bcdefg")}
    )
    data = Microdata(frame, location=("x", "y"))
    one = {"value": "pay", "method": "remove", "min_count": 5, "max_share": 0.4}
    assert SpatialRaster(100, **one).apply(data).data.frame.height == 1
    assert SpatialRaster(100, **one, contributor="firm").apply(data).data.frame.height == 0
    assert (
        SpatialRaster(100, **{**one, "min_count": 8, "max_share": 1}, contributor="firm")
        .apply(data)
        .data.frame.height
        == 0
    )


def test_the_p_percent_rule_removes_what_dominance_lets_pass():
    frame = pl.DataFrame({"x": [1050.0] * 3, "y": [950.0] * 3, "pay": [900.0, 500.0, 50.0]})
    data = Microdata(frame, location=("x", "y"))
    one = {"value": "pay", "method": "remove", "min_count": 1}
    assert SpatialRaster(100, **one).apply(data).data.frame.height == 1
    assert SpatialRaster(100, **one, p=0.1).apply(data).data.frame.height == 0


def slow_smooth(records, bandwidth, rule):
    """Every record on every cell, as the definition has it."""
    reach = int(np.ceil(3 * bandwidth))
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (offsets / bandwidth) ** 2)
    kernel /= kernel.sum()
    found = {}
    for i, j, value in zip(records.column, records.row, records.value, strict=True):
        for di, wi in zip(offsets, kernel, strict=True):
            for dj, wj in zip(offsets, kernel, strict=True):
                found.setdefault((i + di + 0.5, j + dj + 0.5), []).append((wi * wj, wi * wj * value))
    cells = {}
    for place, parts in found.items():
        weight, given = np.array(parts).T
        largest = np.sort(given)[::-1]
        unsafe = weight.sum() ** 2 / (weight**2).sum() < rule.min_count
        unsafe |= largest[0] > rule.max_share * given.sum()
        unsafe |= rule.p is not None and given.sum() - largest[:2].sum() < rule.p * largest[0]
        cells[place] = (weight.sum(), given.sum(), bool(unsafe))
    return cells


def test_smoothing_agrees_with_its_definition_also_in_what_it_calls_sensitive():
    rng = np.random.default_rng(3)
    records = Records(rng.integers(-6, 6, 60), rng.integers(-4, 9, 60), rng.lognormal(0, 1.5, 60), None)
    rule = SafetyRule(4.3, 0.43, 0.21, shares=False)
    cells, _ = smoothed(records, 1.3, rule)
    wanted = slow_smooth(records, 1.3, rule)
    assert len(cells.count) == len(wanted)
    for i, j, count, total, unsafe in zip(
        cells.column, cells.row, cells.count, cells.total, cells.sensitive, strict=True
    ):
        assert (count, total) == pytest.approx(wanted[i, j][:2])
        assert unsafe == wanted[i, j][2]
    assert 0 < cells.sensitive.sum() < len(cells.count)


def test_the_two_largest_are_found_in_two_passes():
    rng = np.random.default_rng(1)
    first = rng.random((7, 9))
    second = first * rng.random((7, 9))
    kernel = np.array([0.2, 0.6, 0.2])
    best, next_best = _two_largest(first, second, kernel)
    for i in range(7):
        for j in range(9):
            around = [
                kernel[a + 1] * kernel[b + 1] * layer[i + a, j + b]
                for a in (-1, 0, 1)
                for b in (-1, 0, 1)
                for layer in (first, second)
                if 0 <= i + a < 7 and 0 <= j + b < 9
            ]
            assert [best[i, j], next_best[i, j]] == pytest.approx(sorted(around)[::-1][:2])


def test_smoothing_keeps_the_number_of_people_and_shows_no_halo_of_a_lonely_home():
    data = town()
    lonely = data.with_frame(pl.concat([data.frame, data.frame[:1].with_columns(x=pl.lit(1.2e5))]))
    everything = SpatialRaster(250, method="smooth", min_count=1, digits=9).apply(lonely).data.frame
    assert everything["count"].sum() == pytest.approx(3001, rel=1e-6)
    safe = SpatialRaster(250, method="smooth", min_count=3).apply(lonely).data.frame
    assert everything["x"].max() > 1.2e5 > 1.15e5 > safe["x"].max()


def test_degrees_make_cells_that_are_about_square():
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"lat": 48.2 + rng.normal(0, 0.03, 4000), "lon": 16.4 + rng.normal(0, 0.03, 4000)})
    data = Microdata(frame, location=("lat", "lon"))
    found = SpatialRaster(500, method="remove", geographic=True).apply(data).data.frame
    up = np.diff(np.unique(found["lat"].to_numpy().round(9))).min()
    across = np.diff(np.unique(found["lon"].to_numpy().round(9))).min()
    assert up * 111_195 == pytest.approx(500, abs=1)
    assert across * 111_195 * np.cos(np.radians(48)) == pytest.approx(500, abs=1)
    assert found["lat"].is_between(47, 49).all()


def test_the_map_comes_back_in_the_kind_of_frame_that_came_in():
    data = town()
    grid = SpatialRaster(400, value="use")
    wanted = grid.apply(data).data.frame
    assert isinstance(
        grid.apply(Microdata(data.frame.to_pandas(), location=("x", "y"))).data.frame, pd.DataFrame
    )
    lazy = grid.apply(Microdata(data.frame.lazy(), location=("x", "y"))).data.frame
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(wanted)
    duckdb = pytest.importorskip("duckdb")
    frame = data.frame
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    there = grid.apply(Microdata(relation, location=("x", "y"))).data.frame.pl()
    assert there.sort("x", "y")["count"].to_list() == wanted.sort("x", "y")["count"].to_list()


def test_a_plan_can_mask_and_then_map():
    plan = Plan([SpatialRaster(400, value="use", location=("x", "y"), p=0.1)])
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.apply(town(), seed=1).log[0].treatment == "spatial-raster"


def test_missing_locations_and_values_are_refused_or_counted():
    data = town()
    holes = data.with_frame(data.frame.with_columns(use=pl.when(pl.int_range(pl.len()) > 4).then("use")))
    with pytest.raises(ColumnError, match="5 records"):
        SpatialRaster(400, value="use").apply(holes)
    released = SpatialRaster(400, value="use", on_missing="drop", min_count=1, max_share=1).apply(holes)
    assert released.data.frame["count"].sum() == 2995
    assert any("5 records" in note for note in released.log[0].notes)
    nothing = data.with_frame(data.frame.with_columns(x=pl.lit(None, dtype=pl.Float64)))
    with pytest.raises(InputError, match="nothing to map"):
        SpatialRaster(400, on_missing="drop").apply(nothing)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"cell_size": 0}, "cell_size"),
        ({"cell_size": 1, "method": "blur"}, "method"),
        ({"cell_size": 1, "levels": -1}, "levels"),
        ({"cell_size": 1, "bandwidth": 0}, "bandwidth"),
        ({"cell_size": 1, "min_count": 0}, "min_count"),
        ({"cell_size": 1, "max_share": 0}, "max_share"),
        ({"cell_size": 1, "p": 2}, "p must"),
        ({"cell_size": 1, "digits": 0}, "digits"),
        ({"cell_size": 1, "on_missing": "keep"}, "on_missing"),
    ],
)
def test_senseless_parameters_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        SpatialRaster(**parameters)


def test_senseless_columns_are_refused():
    data = town()
    with pytest.raises(ColumnError, match="Did you mean 'use'"):
        SpatialRaster(100, value="uses").apply(data)
    named = data.with_frame(data.frame.with_columns(name=pl.lit("a")))
    with pytest.raises(ColumnError, match="needs numbers"):
        SpatialRaster(100, value="name").apply(named)
    with pytest.raises(ParameterError, match="cell_size is too small"):
        SpatialRaster(1e-9, method="quadtree").apply(data)
    with pytest.raises(ParameterError, match="too many to smooth"):
        SpatialRaster(0.1, method="smooth").apply(data)
    taken = Microdata(data.frame.rename({"x": "count"}), location=("count", "y"))
    with pytest.raises(ColumnError, match="Rename"):
        SpatialRaster(100).apply(taken)
