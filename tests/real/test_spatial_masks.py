"""Donut masks, spatial k and density maps on real places: Vienna, New York, and Dutch dwellings and enterprises."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.protect.density_maps import SpatialRaster
from discreet.protect.donut_masking import DonutMask
from discreet.risk.spatial_k import spatial_k
from discreet.utility.point_patterns import clark_evans, zone_shares


@pytest.fixture(scope="module")
def vienna(test_data):
    table = pl.read_csv(test_data / "geo" / "vienna_property.csv.gz")
    return Microdata(table, location=("latitude", "longitude"), keys=["property_type"])


@pytest.fixture(scope="module")
def new_york(test_data):
    table = pl.read_csv(test_data / "geo" / "airbnb_nyc.csv.gz")
    return Microdata(table, location=("latitude", "longitude"), keys=["room_type"])


def dutch(test_data, which, flag):
    table = pl.read_csv(test_data / f"sdcspatial_{which}.csv.gz", schema_overrides={flag: pl.String})
    return Microdata(table.with_columns(pl.col(flag).str.to_uppercase() == "TRUE"), location=("x", "y"))


@pytest.mark.parametrize("town", ["vienna", "new_york"])
@pytest.mark.slow
def test_larger_shifts_hide_more_people_and_keys_hide_fewer(town, request):
    data = request.getfixturevalue(town)
    near, far = (
        DonutMask(r_min=low, r_max=high, geographic=True).apply(data, seed=1).data
        for low, high in ((100, 200), (300, 400))
    )
    small, large = (spatial_k(data, released, geographic=True).figures for released in (near, far))
    assert small["share_critical"] > 1.5 * large["share_critical"]
    assert small["share_critical_place"] < small["share_critical"]
    assert small["mean_displacement"] == pytest.approx(150, abs=1)
    before, after = (
        clark_evans(data, near, geographic=True).figures[f"ratio_{file}"] for file in ("original", "released")
    )
    assert before < after < 1


@pytest.mark.slow
def test_the_tree_counts_as_all_pairs_do_in_vienna(vienna):
    some = vienna.with_frame(vienna.frame.sample(3000, seed=1))
    released = DonutMask(r_min=200, r_max=400, geographic=True).apply(some, seed=1).data
    found = spatial_k(some, released, geographic=True).detail["records"]["k"].to_numpy()
    place = [np.radians(data.frame.select("latitude", "longitude").to_numpy()) for data in (some, released)]
    (lat, lon), (to_lat, to_lon) = (points.T for points in place)
    half = (
        np.sin((to_lat[None] - lat[:, None]) / 2) ** 2
        + np.cos(lat)[:, None] * np.cos(to_lat)[None] * np.sin((to_lon[None] - lon[:, None]) / 2) ** 2
    )
    kind = some.frame["property_type"].to_physical().rank("dense").to_numpy()
    near = half <= np.diag(half)[:, None] * (1 + 1e-9)
    np.testing.assert_array_equal(found, (near & (kind[:, None] == kind[None])).sum(axis=1))


def test_points_held_in_their_borough_stay_there(new_york):
    """Without a hold one point in 250 changes borough at 100 to 400 m."""
    free, held = (
        DonutMask(r_min=100, r_max=400, geographic=True, zone=zone, unreachable="suppress").apply(
            new_york, seed=1
        )
        for zone in (None, "neighbourhood_group")
    )
    moved = [
        zone_shares(
            new_york, done.data, zone="neighbourhood_group", sensitive="room_type", geographic=True
        ).figures["share_moved"]
        for done in (free, held)
    ]
    assert 0.001 < moved[0] < 0.02
    assert moved[1] == 0


def test_adaptive_rings_leave_fewer_people_exposed_than_one_ring_of_the_same_mean_shift(new_york):
    adaptive = DonutMask(adaptive=(20, 60), r_min=20, geographic=True).apply(new_york, seed=1).data
    first = spatial_k(new_york, adaptive, keys=(), geographic=True).figures
    mean = first["median_displacement"]
    fixed = DonutMask(r_min=mean * 0.7, r_max=mean * 1.3, geographic=True).apply(new_york, seed=1).data
    second = spatial_k(new_york, fixed, keys=(), geographic=True).figures
    assert first["share_critical"] < second["share_critical"] / 3


@pytest.mark.parametrize(
    ("which", "flag", "value"),
    [
        ("dwellings", "unemployed", "consumption"),
        ("dwellings", "unemployed", "unemployed"),
        ("enterprises", "fined", "production"),
    ],
)
def test_a_quadtree_keeps_nearly_everybody_on_the_map_where_removal_does_not(test_data, which, flag, value):
    data = dutch(test_data, which, flag)
    removed, merged, smooth = (
        SpatialRaster(200, value=value, method=method, levels=4).apply(data)
        for method in ("remove", "quadtree", "smooth")
    )
    lost = [done.log[0].parameters["share_in_removed_cells"] for done in (removed, merged, smooth)]
    assert lost[0] > 0.02
    assert lost[1] < 0.001
    assert lost[2] < 0.01
    for done in (removed, merged):
        cells = done.data.frame
        assert (cells["count"] >= 10).all()
        kept = cells["count"].sum() / data.frame.height
        assert kept == pytest.approx(1 - done.log[0].parameters["share_in_removed_cells"])
    assert removed.data.frame["cell_size"].unique().to_list() == [200.0]
    assert merged.data.frame["cell_size"].max() > 200


def test_whole_meters_of_dutch_dwellings_stay_whole(test_data):
    data = dutch(test_data, "dwellings", "unemployed")
    released = DonutMask(r_min=100, r_max=200).apply(data, seed=1).data
    assert released.frame.schema["x"] == pl.Int64
    found = spatial_k(data, released)
    assert found.figures["acceptable"] is True
    shift = found.detail["records"]["displacement"]
    assert shift.min() > 99
    assert shift.max() < 201
