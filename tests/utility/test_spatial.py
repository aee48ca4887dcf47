"""Clark-Evans and shares by zone."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.protect.donut_masking import DonutMask
from discreet.utility.point_patterns import (
    NearestNeighborStatistics,
    clark_evans,
    smallest_rectangle,
    zone_shares,
)

HALVES = {
    "west": "POLYGON ((100000 400000, 102000 400000, 102000 404000, 100000 404000, 100000 400000))",
    "east": "POLYGON ((102000 400000, 104000 400000, 104000 404000, 102000 404000, 102000 400000))",
}


def city(n=2000, seed=0, **more):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": rng.uniform(1e5, 1.04e5, n),
            "y": rng.uniform(4e5, 4.04e5, n),
            "ill": rng.random(n) < 0.2,
            "w": rng.uniform(1, 3, n),
        }
    ).with_columns(side=pl.when(pl.col("x") < 1.02e5).then(pl.lit("west")).otherwise(pl.lit("east")))
    return Microdata(frame, location=("x", "y"), sensitive="ill", **more)


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=30),
    st.floats(0, 2 * np.pi),
)
def test_the_rectangle_does_not_depend_on_how_the_points_are_turned(points, turn):
    xy = np.array(points, dtype=float)
    spin = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    area = smallest_rectangle(xy)
    assert area <= np.prod(np.ptp(xy, axis=0)) + 1e-9
    assert smallest_rectangle(xy @ spin) == pytest.approx(area, abs=1e-6)


def test_random_points_have_a_ratio_near_one():
    """10,000 points; the standard error of the ratio is 0.0052, the edge adds about a percent."""
    points = np.random.default_rng(1).uniform(0, 1e4, (10_000, 2))
    assert NearestNeighborStatistics.of(points).ratio == pytest.approx(1, abs=0.03)


def test_degrees_and_meters_agree_on_the_same_town():
    rng = np.random.default_rng(2)
    meters = rng.normal(0, 2000, (3000, 2))
    up = np.degrees(1 / 6_371_008.8)
    degrees = np.column_stack((48 + meters[:, 1] * up, 16 + meters[:, 0] * up / np.cos(np.radians(48))))
    one = Microdata(pl.DataFrame(degrees, schema=["lat", "lon"]), location=("lat", "lon"))
    two = Microdata(pl.DataFrame(meters + 1e5, schema=["x", "y"]), location=("x", "y"))
    curved = clark_evans(one, one, geographic=True).figures
    flat = clark_evans(two, two).figures
    for name in ("ratio_original", "observed_distance_original", "area_original"):
        assert curved[name] == pytest.approx(flat[name], rel=0.005)


def test_masking_dissolves_clusters():
    rng = np.random.default_rng(3)
    doors = np.repeat(rng.uniform(1e5, 1.1e5, (400, 2)), 5, axis=0)
    data = Microdata(pl.DataFrame(doors, schema=["x", "y"]), location=("x", "y"))
    masked = DonutMask(r_min=100, r_max=200).apply(data, seed=1).data
    found = clark_evans(data, masked)
    assert found.figures["observed_distance_original"] == 0
    assert found.value > 0.4
    assert clark_evans(data, masked, area=1e8).figures["area_released"] == 1e8


def test_one_point_has_no_neighbor_and_a_line_no_area():
    one = Microdata(pl.DataFrame({"x": [1e5], "y": [1e5]}), location=("x", "y"))
    assert clark_evans(one, one).value is None
    line = Microdata(pl.DataFrame({"x": [1e5, 2e5, 3e5], "y": [1e5, 2e5, 3e5]}), location=("x", "y"))
    with pytest.raises(InputError, match="one line"):
        clark_evans(line, line)
    assert clark_evans(line, line, area=1e10).value == 0
    with pytest.raises(ParameterError, match="area"):
        clark_evans(line, line, area=0)


def test_shares_by_zone_of_an_unmoved_file_are_the_same():
    pytest.importorskip("shapely")
    data = city()
    for zones in ({"zone": "side"}, {"polygons": HALVES}):
        found = zone_shares(data, data, **zones)
        assert found.value == 0
        assert found.figures["share_moved"] == 0
        assert found.figures["zones"] == 2


def test_shares_by_zone_agree_with_counting_by_hand():
    pytest.importorskip("shapely")
    data = city(weight="w")
    masked = DonutMask(r_min=300, r_max=900).apply(data, seed=1).data
    found = zone_shares(data, masked, polygons=HALVES)
    table = found.detail["zones"]
    here = masked.frame.filter(pl.col("x").is_between(1e5, 1.02e5) & pl.col("y").is_between(4e5, 4.04e5))
    share = here.filter("ill")["w"].sum() / here["w"].sum()
    row = table.filter((pl.col("zone") == "west") & (pl.col("level") == "true")).row(0, named=True)
    assert row["share_released"] == pytest.approx(share)
    assert row["points_released"] == here.height
    moves = found.detail["moves"]
    assert moves["points"].sum() == 2000
    stayed = moves.filter(pl.col("old_zone") == pl.col("new_zone"))["points"].sum()
    assert found.figures["share_moved"] == pytest.approx(1 - stayed / 2000)
    assert found.figures["points_outside_released"] > 0
    assert found.figures["points_outside_original"] == 0
    assert found.value == pytest.approx(table["difference"].abs().max())


def test_containment_keeps_every_point_in_its_zone():
    pytest.importorskip("shapely")
    data = city()
    masked = DonutMask(r_min=100, r_max=300, polygons=HALVES).apply(data, seed=1).data
    assert zone_shares(data, masked, polygons=HALVES).figures["share_moved"] == 0


def test_an_emptied_zone_is_named_in_a_caveat():
    data = city()
    gone = data.with_frame(data.frame.with_columns(x=pl.lit(1.01e5)))
    found = zone_shares(data, gone, zone="side")
    assert found.figures["zones_emptied"] == 1
    assert any("no points any more" in caveat for caveat in found.caveats)


def test_bad_input_is_refused():
    data = city()
    with pytest.raises(ParameterError, match="needs zones"):
        zone_shares(data, data)
    with pytest.raises(ColumnError, match="Did you mean 'side'"):
        zone_shares(data, data, zone="sides")
    with pytest.raises(ColumnError, match="Band it"):
        zone_shares(data, data, zone="side", sensitive="w")
    with pytest.raises(ParameterError, match="sensitive"):
        zone_shares(data.with_roles(sensitive=None), data, zone="side")
    with pytest.raises(InputError, match="same records"):
        zone_shares(data, data.with_frame(data.frame[:5]), zone="side")
