"""Donut masks: rings, laws, zones, households, density, and what is refused."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect import Plan
from discreet.protect.donut_masking import DonutMask

RING = {"r_min": 100, "r_max": 200}


def homes(n=500, seed=0, **more):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": rng.uniform(1e5, 1.04e5, n),
            "y": rng.uniform(4e5, 4.04e5, n),
            "home": rng.integers(0, n // 3, n),
            "people": rng.uniform(50, 5000, n),
        }
    ).with_columns(side=pl.when(pl.col("x") < 1.02e5).then(pl.lit("west")).otherwise(pl.lit("east")))
    return Microdata(frame, location=("x", "y"), **more)


def shift(before, after):
    return np.column_stack(
        [after.frame[name].to_numpy() - before.frame[name].to_numpy() for name in ("x", "y")]
    )


def lengths(before, after):
    return np.linalg.norm(shift(before, after), axis=1)


@settings(max_examples=examples(30), deadline=None)
@given(st.floats(0, 5000), st.floats(1, 5000), st.sampled_from(["uniform", "area"]), st.integers(0, 2**32))
def test_every_shift_lies_in_the_ring(r_min, width, law, seed):
    data = homes(60)
    released = DonutMask(r_min=r_min, r_max=r_min + width, radius_law=law).apply(data, seed=seed)
    moved = lengths(data, released.data)
    assert (moved >= r_min - 1e-6).all()
    assert (moved <= r_min + width + 1e-6).all()
    assert released.guarantee is None


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones():
    data = homes()
    one, two, three = (DonutMask(**RING).apply(data, seed=seed).data.frame for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(three)


@pytest.mark.parametrize("latitude", [0.0, 48.0, -65.0, 89.99])
def test_shifts_of_degrees_have_their_length_over_ground_at_every_latitude(latitude):
    pyproj = pytest.importorskip("pyproj")
    n = 400
    frame = pl.DataFrame({"lat": np.full(n, latitude), "lon": np.full(n, 179.9995)})
    data = Microdata(frame, location=("lat", "lon"))
    moved = DonutMask(**RING, geographic=True).apply(data, seed=1).data.frame
    ends = (frame["lon"], frame["lat"], moved["lon"], moved["lat"])
    azimuth, _, meters = pyproj.Geod(ellps="WGS84").inv(*(column.to_numpy() for column in ends))
    assert meters.min() >= 100 - 1e-4
    assert meters.max() <= 200 + 1e-4
    assert moved["lon"].is_between(-180, 180).all()
    assert abs(np.exp(1j * np.radians(azimuth)).mean()) < 5 / np.sqrt(n)


def test_whole_meters_stay_whole_and_float32_stays_float32():
    data = homes()
    typed = data.with_frame(
        data.frame.with_columns(pl.col("x").round().cast(pl.Int32), pl.col("y").cast(pl.Float32))
    )
    released = DonutMask(**RING).apply(typed, seed=1)
    assert released.data.frame.schema["x"] == pl.Int32
    assert released.data.frame.schema["y"] == pl.Float32
    assert released.log[0].changed_cells["x"] > 490


def test_pandas_comes_back_as_pandas_with_its_index():
    data = homes()
    frame = data.frame.to_pandas()
    frame.index = frame.index + 7
    released = DonutMask(**RING).apply(Microdata(frame, location=("x", "y")), seed=1).data.frame
    assert list(released.index) == list(frame.index)
    expected = DonutMask(**RING).apply(data, seed=1).data.frame
    np.testing.assert_array_equal(released["x"].to_numpy(), expected["x"].to_numpy())


@pytest.mark.parametrize("named", [True, False])
def test_a_household_moves_together(named):
    data = homes() if named else homes(household="home")
    released = DonutMask(**RING, by="home" if named else None).apply(data, seed=1)
    spread = (
        data.frame.select("home")
        .hstack(pl.DataFrame(shift(data, released.data), schema=["dx", "dy"]))
        .group_by("home")
        .agg(pl.col("dx", "dy").max() - pl.col("dx", "dy").min())
    )
    assert spread.select("dx", "dy").max().row(0) == pytest.approx((0, 0), abs=1e-6)
    assert any("moved together" in note for note in released.log[0].notes)


def test_people_of_one_house_who_move_apart_are_named_in_a_note():
    frame = pl.DataFrame({"x": [1e5] * 8 + [2e5], "y": [4e5] * 9})
    released = DonutMask(**RING).apply(Microdata(frame, location=("x", "y")), seed=1)
    assert any(note.startswith("8 records share") for note in released.log[0].notes)


def test_points_stay_in_the_zone_of_the_nearest_record():
    data = homes(3000)
    mask = DonutMask(r_min=300, r_max=600, zone="side")
    released = mask.apply(data, seed=1)
    west = (data.frame["side"] == "west").to_numpy()
    # The border is where the nearest records of the two sides are equally near, within the spacing of the records.
    assert (released.data.frame["x"].to_numpy()[west] < 1.02e5 + 150).all()
    assert (released.data.frame["x"].to_numpy()[~west] > 1.02e5 - 150).all()
    assert released.log[0].parameters["records_drawn_again"] > 50
    free = DonutMask(r_min=300, r_max=600).apply(data, seed=1).data.frame["x"].to_numpy()
    assert (free[west] > 1.02e5 + 150).any()


BOXES = {
    "west": "POLYGON ((100000 400000, 102000 400000, 102000 404000, 100000 404000, 100000 400000))",
    "east": "POLYGON ((102000 400000, 104000 400000, 104000 404000, 102000 404000, 102000 400000))",
}


@pytest.mark.parametrize("zone", [None, "side"])
def test_points_stay_in_their_polygon(zone):
    shapely = pytest.importorskip("shapely")
    data = homes()
    moved = DonutMask(r_min=100, r_max=400, polygons=BOXES, zone=zone).apply(data, seed=1).data.frame
    for side, wkt in BOXES.items():
        mine = moved.filter(pl.col("side") == side)
        assert shapely.intersects_xy(shapely.from_wkt(wkt), mine["x"].to_numpy(), mine["y"].to_numpy()).all()


def test_points_without_a_way_out_are_refused_or_suppressed():
    pytest.importorskip("shapely")
    tiny = {"a": "POLYGON ((99990 399990, 100010 399990, 100010 400010, 99990 400010, 99990 399990))"}
    data = Microdata(pl.DataFrame({"x": [100000.0, 3e5], "y": [400000.0, 3e5]}), location=("x", "y"))
    with pytest.raises(ParameterError, match="1 locations found no place"):
        DonutMask(**RING, polygons=tiny, max_tries=20).apply(data, seed=1)
    released = DonutMask(**RING, polygons=tiny, max_tries=20, unreachable="suppress").apply(data, seed=1)
    assert released.data.frame["x"].null_count() == 1
    assert released.log[0].suppressed_cells == {"x": 1, "y": 1}
    assert any("in no zone" in note for note in released.log[0].notes)


def test_adaptive_rings_reach_the_neighbors_they_are_meant_to():
    data = homes(2000)
    released = DonutMask(adaptive=(5, 20)).apply(data, seed=1)
    from scipy.spatial import cKDTree

    xy = data.frame.select("x", "y").to_numpy()
    to_20th = cKDTree(xy).query(xy, k=21)[0][:, 20]
    moved = lengths(data, released.data)
    assert (moved <= to_20th * (1 + 1e-9)).all()
    assert (moved >= to_20th * np.sqrt(5 / 20) * (1 - 1e-6)).all()


def test_adaptive_rings_follow_a_density_column_within_limits():
    data = homes()
    spread = 1 / np.sqrt(np.pi * data.frame["people"].to_numpy() / 1e6)
    moved = lengths(data, DonutMask(adaptive=(10, 40), density="people").apply(data, seed=1).data)
    assert (moved >= spread * np.sqrt(10) - 1e-6).all()
    assert (moved <= spread * np.sqrt(40) + 1e-6).all()
    held = DonutMask(adaptive=(10, 40), density="people", r_min=60, r_max=300).apply(data, seed=1)
    assert lengths(data, held.data).min() >= 60 - 1e-6
    assert lengths(data, held.data).max() <= 300 + 1e-6


def test_a_full_house_needs_a_least_shift():
    frame = pl.DataFrame({"x": [1e5] * 30 + [2e5] * 5, "y": [4e5] * 35})
    data = Microdata(frame, location=("x", "y"))
    with pytest.raises(ParameterError, match="no width"):
        DonutMask(adaptive=(2, 10)).apply(data, seed=1)
    moved = lengths(data, DonutMask(adaptive=(2, 10), r_min=50).apply(data, seed=1).data)
    assert moved.min() >= 50 - 1e-6


def test_missing_locations_are_refused_kept_or_dropped():
    data = homes()
    holes = data.with_frame(data.frame.with_columns(x=pl.when(pl.int_range(pl.len()) > 2).then("x")))
    with pytest.raises(ColumnError, match="3 records have no location"):
        DonutMask(**RING).apply(holes)
    kept = DonutMask(**RING, on_missing="keep").apply(holes, seed=1)
    assert kept.data.frame["x"].null_count() == 3
    dropped = DonutMask(**RING, on_missing="drop").apply(holes, seed=1)
    assert dropped.data.frame.height == 497
    assert dropped.log[0].removed_records == 3


def test_a_plan_file_brings_the_mask_back():
    pytest.importorskip("shapely")
    plan = Plan([DonutMask(r_min=100, r_max=200, location=("x", "y"), adaptive=(2, 9), polygons=BOXES)])
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"r_min": 200, "r_max": 100}, "below r_max"),
        ({"r_min": 100, "r_max": 100}, "below r_max"),
        ({"r_min": -1, "r_max": 100}, "r_min must be"),
        ({"r_min": 1, "r_max": float("nan")}, "r_max must be"),
        ({"r_min": 1}, "r_max is missing"),
        ({**RING, "radius_law": "normal"}, "radius_law"),
        ({"adaptive": (50, 5)}, "adaptive"),
        ({"adaptive": (5,)}, "adaptive"),
        ({**RING, "density": "people"}, "density"),
        ({**RING, "max_tries": 0}, "max_tries"),
        ({**RING, "unreachable": "x"}, "unreachable"),
        ({**RING, "on_missing": "x"}, "on_missing"),
    ],
)
def test_senseless_parameters_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        DonutMask(**parameters)


def test_senseless_columns_are_refused():
    data = homes()
    for parameters, error, words in [
        ({"location": ("x", "yy")}, ColumnError, "There is no column 'yy'"),
        ({"location": ("x", "side")}, ColumnError, "not numbers"),
        ({"location": "x"}, ParameterError, "two location columns"),
        ({"zone": "sides"}, ColumnError, "Did you mean 'side'"),
        ({"by": "homes"}, ColumnError, "Did you mean 'home'"),
    ]:
        with pytest.raises(error, match=words):
            DonutMask(**RING, **parameters).apply(data)
    with pytest.raises(ParameterError, match="Lower K_max"):
        DonutMask(adaptive=(5, 500)).apply(data)
    zero = data.with_frame(data.frame.with_columns(zero=pl.lit(0.0)))
    with pytest.raises(ColumnError, match="density 'zero'"):
        DonutMask(adaptive=(5, 50), density="zero").apply(zero)
    degrees = Microdata(pl.DataFrame({"a": [48], "b": [16]}), location=("a", "b"))
    with pytest.raises(ColumnError, match="whole degrees"):
        DonutMask(**RING, geographic=True).apply(degrees)
