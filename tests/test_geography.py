"""Coordinates: shifts over ground, distances, projections, and zones."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.geography import CoordinateSystem, geodesic_forward, places_of
from discreet.numerics.zones import OUTSIDE, NearestRecordZones, PolygonZones, plain_polygons

WEST = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
EAST = {"type": "Polygon", "coordinates": [[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]}


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 2 * np.pi), st.floats(0, 100_000))
def test_a_geodesic_ends_where_pyproj_says_to_a_hundredth_of_a_millimeter(lon, lat, azimuth, meters):
    pyproj = pytest.importorskip("pyproj")
    ours = geodesic_forward(np.array([[lon, lat]]), np.array([azimuth]), np.array([meters]))[0]
    earth = pyproj.Geod(ellps="WGS84")
    theirs = earth.fwd(lon, lat, np.degrees(azimuth), meters)[:2]
    assert abs(earth.inv(*ours, *theirs)[2]) < 1e-5
    assert -180 <= ours[0] <= 180


def test_a_shift_across_the_date_line_wraps():
    east = geodesic_forward(np.array([[179.999, 0.0]]), np.array([np.pi / 2]), np.array([1000.0]))
    assert east[0, 0] == pytest.approx(-179.992, abs=1e-3)


@pytest.mark.parametrize("system", [CoordinateSystem(), CoordinateSystem(geographic=True)])
def test_a_shift_of_so_many_meters_is_so_many_meters_long(system):
    """On the sphere an ellipsoidal meter is at most 0.6 percent off."""
    xy = np.column_stack((np.linspace(-70, 70, 50), np.linspace(-80, 80, 50)))
    distance = np.linspace(1, 5000, 50)
    moved = system.moved(xy, np.linspace(0, 6, 50), distance)
    straight = np.linalg.norm(system.solid(xy) - system.solid(moved), axis=1)
    np.testing.assert_allclose(system.over_ground(straight), distance, rtol=6e-3)


def test_a_meter_is_a_meter_also_where_the_map_stretches_it():
    pyproj = pytest.importorskip("pyproj")
    mercator = CoordinateSystem(crs="EPSG:3857")
    oslo = np.array([[1196000.0, 8380000.0]])
    moved = mercator.moved(oslo, np.zeros(1), np.array([1000.0]))
    assert np.linalg.norm(moved - oslo) == pytest.approx(2000, abs=20)  # at 60 degrees it stretches by two
    to_degrees = pyproj.Transformer.from_crs("EPSG:3857", "EPSG:4326", always_xy=True)
    ends = [to_degrees.transform(*point) for point in (oslo[0], moved[0])]
    assert pyproj.Geod(ellps="WGS84").inv(*ends[0], *ends[1])[2] == pytest.approx(1000, abs=1e-3)


def test_the_projection_keeps_areas():
    side = np.radians(0.5)
    corner = np.array([[16.0, 48.0], [16.5, 48.0], [16.5, 48.5], [16.0, 48.5]])
    laid = CoordinateSystem(geographic=True).plane(corner)
    x, y = laid.T
    area = abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2
    exact = 6_371_008.8**2 * side * (np.sin(np.radians(48.5)) - np.sin(np.radians(48.0)))
    assert area == pytest.approx(exact, rel=1e-3)


def test_an_unknown_coordinate_system_is_refused():
    pytest.importorskip("pyproj")
    with pytest.raises(ParameterError, match="EPSG:99999999"):
        CoordinateSystem(crs="EPSG:99999999").solid(np.zeros((1, 2)))


def test_longitude_first_is_refused_for_degrees():
    data = Microdata(
        pl.DataFrame({"longitude": [16.0], "latitude": [48.0]}), location=("longitude", "latitude")
    )
    with pytest.raises(ColumnError, match=r"location=\('latitude', 'longitude'\)"):
        places_of(data, None, CoordinateSystem(geographic=True), purpose="a test")


def test_infinite_coordinates_are_refused_without_showing_them():
    data = Microdata(pl.DataFrame({"x": [np.inf, 1e5], "y": [0.0, 1e5]}), location=("x", "y"))
    with pytest.raises(ColumnError, match="1 locations that are not finite"):
        places_of(data, None, CoordinateSystem(), purpose="a test")


def test_polygons_say_where_points_lie_and_a_shared_border_belongs_to_the_first():
    pytest.importorskip("shapely")
    zones = PolygonZones.of({"west": WEST, "east": EAST})
    points = np.array([[5.0, 5.0], [15.0, 5.0], [10.0, 5.0], [25.0, 5.0]])
    assert zones.locate(points).tolist() == [0, 1, 0, OUTSIDE]
    assert zones.inside(points, np.array([0, 0, 1, OUTSIDE])).tolist() == [True, False, True, True]


def test_polygons_become_plain_values():
    shapely = pytest.importorskip("shapely")
    plain = plain_polygons({"west": shapely.from_wkt(WEST), 2: EAST})
    assert plain["west"].startswith("POLYGON")
    assert plain["2"] == EAST
    for bad in ({}, {"a": 3}):
        with pytest.raises(ParameterError, match="polygon"):
            plain_polygons(bad)
    for bad in ("POINT (1 1)", "nonsense"):
        with pytest.raises(ParameterError, match=r"polygon|geometry"):
            PolygonZones.of({"a": bad})


def test_zones_of_records_without_label_or_place_are_not_used():
    labels = pl.Series(["a", None, "b", "b"])
    xy = np.array([[0.0, 0.0], [5.0, 0.0], [10.0, 0.0], [np.nan, 0.0]])
    zones = NearestRecordZones.of(labels, xy, CoordinateSystem())
    assert zones.labels == ("a", "b")
    assert zones.locate(np.array([[4.9, 0.0], [5.1, 0.0]])).tolist() == [0, 1]
