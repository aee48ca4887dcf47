"""Worked examples and published figures of donut geomasking and spatial k-anonymity (Cologne study, n = 109,210)."""

import math

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.protect.donut_masking import DonutMask
from discreet.risk.spatial_k import spatial_k
from discreet.utility.point_patterns import NearestNeighborStatistics

TRUE = [(0, 0), (500, 0), (0, 500), (300, 300), (-200, 100), (50, -80), (-60, 40), (120, 90)]
MASKED = [(90, 120), (420, 60), (-30, 140), (40, -30), (-100, 20), (60, -100), (-55, 130), (300, 250)]
AGE = ["35-59", "35-59", "21-34", "35-59", "60-64", "35-59", "35-59", "18-20"]
GENDER = ["m", "f", "m", "m", "m", "m", "f", "f"]
RINGS = [(100, 200), (100, 300), (100, 400), (200, 300), (200, 400), (300, 400)]


def example(points):
    x, y = zip(*points, strict=True)
    frame = pl.DataFrame({"x": x, "y": y, "age": AGE, "gender": GENDER}, schema_overrides={"x": pl.Float64})
    return Microdata(frame, location=("x", "y"))


@pytest.mark.parametrize(
    ("keys", "k"),
    [
        ((), [6, 1, 1, 6, 1, 1, 2, 7]),
        (("age",), [4, 1, 1, 4, 1, 1, 1, 1]),
        (("age", "gender"), [3, 1, 1, 2, 1, 1, 1, 1]),
    ],
)
def test_example_a_has_the_k_of_the_specification(keys, k):
    found = spatial_k(example(TRUE), example(MASKED), keys=keys)
    assert found.detail["records"]["k"].to_list() == k
    assert found.value == pytest.approx(np.mean(np.array(k) < 3))


def test_example_a_has_the_displacements_of_the_specification():
    found = spatial_k(example(TRUE), example(MASKED)).detail["records"]["displacement"].to_numpy()
    wanted = [150, 100, 361.248, 420.119, 128.062, 22.361, 90.139, 240.832]
    np.testing.assert_allclose(found, wanted, atol=5e-4)


def lattice(degrees):
    grid = np.array([[10.0 * i, 10.0 * j] for i in range(10) for j in range(10)])
    turn = math.radians(degrees)
    return grid @ np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])


@pytest.mark.parametrize("degrees", [0, 30, 77])
def test_example_b_lattice_has_the_same_clark_evans_however_it_is_turned(degrees):
    found = NearestNeighborStatistics.of(lattice(degrees))
    assert found.observed == pytest.approx(10)
    assert found.area == pytest.approx(8100)
    assert found.expected == pytest.approx(4.5)
    assert found.ratio == pytest.approx(2.2222, abs=5e-5)
    assert found.z == pytest.approx(23.382, abs=5e-4)


def test_example_b_axis_aligned_box_of_the_turned_lattice_would_be_too_large():
    assert np.prod(np.ptp(lattice(30), axis=0)) == pytest.approx(15114.8, abs=0.05)


def test_example_c_expected_distance_of_cologne_follows_from_its_number_of_points_and_area():
    points = np.random.default_rng(1).uniform(0, 24_000, (109_210, 2))
    found = NearestNeighborStatistics.of(points, area=581.66e6)
    assert found.expected == pytest.approx(36.4899, abs=5e-4)
    assert 8.3477 / found.expected == pytest.approx(0.2288, abs=5e-5)


@pytest.mark.parametrize(
    ("observed", "expected", "ratio"), [(23.0442, 36.9746, 0.6232), (25.0502, 37.4761, 0.6684)]
)
def test_example_c_ratios_of_the_masked_files_recompute(observed, expected, ratio):
    assert observed / expected == pytest.approx(ratio, abs=5e-5)


def test_published_means_follow_the_uniform_law_and_not_the_area_law():
    """(mean k - 1) is proportional to E[d^2]; the published AC1 means are so under the uniform law only."""
    means = [5.61, 9.67, 15.02, 13.76, 19.58, 25.46]
    uniform = [(k - 1) / ((a * a + a * b + b * b) / 3) for k, (a, b) in zip(means, RINGS, strict=True)]
    area = [(k - 1) / ((a * a + b * b) / 2) for k, (a, b) in zip(means, RINGS, strict=True)]
    assert max(uniform) / min(uniform) < 1.025
    assert max(area) / min(area) > 1.15


@pytest.mark.parametrize("law", ["uniform", "area"])
@pytest.mark.parametrize("ring", RINGS)
def test_shifts_have_the_moments_of_their_law(law, ring):
    """200,000 draws; tolerance five standard errors of a distance in a ring at most 300 m wide."""
    a, b = ring
    n = 200_000
    homes = pl.DataFrame({"x": np.full(n, 5e5), "y": np.full(n, 4e6)})
    released = DonutMask(r_min=a, r_max=b, radius_law=law).apply(
        Microdata(homes, location=("x", "y")), seed=4
    )
    east, north = (released.data.frame[name].to_numpy() - homes[name].to_numpy() for name in ("x", "y"))
    d = np.hypot(east, north)
    if law == "uniform":
        mean, square = (a + b) / 2, (a * a + a * b + b * b) / 3
    else:
        mean, square = 2 / 3 * (b**3 - a**3) / (b**2 - a**2), (a * a + b * b) / 2
    assert d.min() >= a - 1e-6
    assert d.max() <= b + 1e-6
    assert d.mean() == pytest.approx(mean, abs=5 * d.std() / math.sqrt(n))
    assert (d**2).mean() == pytest.approx(square, abs=5 * (d**2).std() / math.sqrt(n))
    direction = np.arctan2(north, east)
    for turns in (1, 2, 4):
        assert abs(np.exp(1j * turns * direction).mean()) < 5 / math.sqrt(n)


def test_recoding_helps_and_the_mean_k_grows_with_the_mean_squared_shift():
    """The qualitative results of the study, on a made-up clustered city."""
    rng = np.random.default_rng(7)
    n = 20_000
    middle = rng.normal(0, 2500, (400, 2))[rng.integers(0, 400, n)]
    frame = pl.DataFrame(
        {
            "x": 3.5e5 + middle[:, 0] + rng.normal(0, 150, n),
            "y": 5.6e6 + middle[:, 1] + rng.normal(0, 150, n),
            "fine": rng.integers(0, 11, n),
        }
    ).with_columns(coarse=pl.col("fine") // 3)
    city = Microdata(frame, location=("x", "y"))
    medians, ratios = {}, [NearestNeighborStatistics.of(frame.select("x", "y").to_numpy()).ratio]
    for ring in ((100, 200), (300, 400)):
        masked = DonutMask(r_min=ring[0], r_max=ring[1]).apply(city, seed=1).data
        ratios.append(NearestNeighborStatistics.of(masked.frame.select("x", "y").to_numpy()).ratio)
        for key in ("fine", "coarse"):
            medians[ring, key] = spatial_k(city, masked, keys=[key]).figures["median_k"]
    assert medians[(100, 200), "coarse"] > 1.5 * medians[(100, 200), "fine"]
    assert medians[(300, 400), "fine"] > 2 * medians[(100, 200), "fine"]
    assert ratios[0] < ratios[1] < ratios[2]
