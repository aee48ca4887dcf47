"""Spatial k against counting all pairs, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.numerics.geography import EARTH_RADIUS
from discreet.protect.donut_masking import DonutMask
from discreet.risk.spatial_k import counted_within, has_within, spatial_k


def homes(n=300, seed=0, **more):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": rng.uniform(1e5, 1.02e5, n),
            "y": rng.uniform(4e5, 4.02e5, n),
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(["a", "b", "c"], n),
            "w": rng.uniform(1, 5, n),
            "id": np.arange(n),
        }
    )
    return Microdata(frame, location=("x", "y"), **more)


def by_all_pairs(true, moved, group):
    distance = np.hypot(*(true[:, None, :] - moved[None, :, :]).transpose(2, 0, 1))
    own = np.diag(distance)
    return ((distance <= own[:, None] * (1 + 1e-12)) & (group[:, None] == group[None, :])).sum(axis=1)


def xy(data):
    return data.frame.select("x", "y").to_numpy()


@pytest.mark.parametrize("keys", [(), ("sex",), ("sex", "ill")])
def test_k_agrees_with_all_pairs(keys):
    original = homes()
    released = DonutMask(r_min=100, r_max=300).apply(original, seed=1).data
    found = spatial_k(original, released, keys=keys).detail["records"]
    group = (
        original.frame.select(pl.concat_str(["sex", "ill"][: len(keys)] or [pl.lit("")]))
        .to_series()
        .to_numpy()
    )
    np.testing.assert_array_equal(found["k"].to_numpy(), by_all_pairs(xy(original), xy(released), group))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(*[st.integers(-20, 20)] * 4, st.integers(0, 2)),
        min_size=1,
        max_size=40,
    )
)
def test_counts_within_groups_agree_with_all_pairs_also_with_ties(rows):
    table = np.array(rows, dtype=float)
    true, moved, group = table[:, :2] + 1e3, table[:, 2:4] + 1e3, table[:, 4].astype(np.int64)
    radius = np.sqrt(((true - moved) ** 2).sum(axis=1))
    found = counted_within(moved, true, radius, group)
    np.testing.assert_array_equal(found, by_all_pairs(true, moved, group))
    assert (found >= 1).all()
    assert has_within(moved, true, radius, groups=(group, group)).all()


def test_degrees_are_counted_on_the_sphere():
    rng = np.random.default_rng(2)
    n = 200
    lat, lon = rng.uniform(47.9, 48.0, n), rng.uniform(179.95, 180.0, n) * rng.choice([-1, 1], n)
    original = Microdata(pl.DataFrame({"lat": lat, "lon": lon}), location=("lat", "lon"))
    released = DonutMask(r_min=500, r_max=3000, geographic=True).apply(original, seed=1).data
    found = spatial_k(original, released, geographic=True).detail["records"]

    def haversine(a, b):
        (p, q), (r, s) = np.radians(a), np.radians(b)
        h = np.sin((r - p) / 2) ** 2 + np.cos(p) * np.cos(r) * np.sin((s - q) / 2) ** 2
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(h))

    ours = original.frame.to_numpy().T[:, :, None]
    theirs = released.frame.to_numpy().T[:, None, :]
    distance = haversine(ours, theirs)
    own = np.diag(distance)
    np.testing.assert_array_equal(found["k"].to_numpy(), (distance <= own[:, None] * (1 + 1e-9)).sum(axis=1))
    np.testing.assert_allclose(found["displacement"].to_numpy(), own, rtol=1e-6)


def test_an_unmoved_file_hides_nobody():
    original = homes()
    found = spatial_k(original, original)
    assert found.value == 1.0
    assert found.figures["share_found"] == 1.0
    assert found.figures["acceptable"] is False


def test_keys_and_sensitive_values_come_from_the_roles():
    original = homes(keys=["sex"], sensitive="ill", weight="w")
    released = DonutMask(r_min=300, r_max=600).apply(original, seed=1).data
    found = spatial_k(original, released)
    assert found.parameters["keys"] == ["sex"]
    assert found.figures["median_k"] < found.figures["median_k_place"]
    assert 0 <= found.figures["share_critical_weighted"] <= 1
    records = found.detail["records"]
    assert records["distinct_ill"].is_between(1, 3).all()
    assert (records["distinct_ill"] <= records["k"]).all()
    assert list(found.detail["summary"]["crowd"]) == ["place and keys", "place alone"]


def test_a_key_that_was_dropped_is_of_no_use_to_the_intruder():
    original = homes(keys=["sex"])
    found = spatial_k(original, original.with_frame(original.frame.drop("sex")))
    assert found.parameters["keys"] == []
    assert any("no 'sex'" in caveat for caveat in found.caveats)
    with pytest.raises(ColumnError, match="sex"):
        spatial_k(original, original.with_frame(original.frame.drop("sex")), keys=["sex"])


def test_records_alone_with_their_keys_are_named_in_a_caveat():
    original = homes()
    alone = original.with_frame(
        original.frame.with_columns(sex=pl.when(pl.col("id") == 7).then(pl.lit("x")).otherwise("sex"))
    )
    released = DonutMask(r_min=300, r_max=600).apply(alone, seed=1).data
    found = spatial_k(alone, released, keys=["sex"])
    assert found.figures["alone_in_group"] == 1
    assert found.detail["records"]["k"][7] == 1


def test_the_ring_counts_only_points_that_the_mask_could_have_made():
    original = homes(2000)
    released = DonutMask(r_min=200, r_max=300).apply(original, seed=1).data
    found = spatial_k(original, released, ring=(200, 300)).detail["records"]["k_ring"].to_numpy()
    distance = np.hypot(*(xy(original)[:, None, :] - xy(released)[None, :, :]).transpose(2, 0, 1))
    np.testing.assert_array_equal(found, ((distance >= 200) & (distance <= 300)).sum(axis=1))


def test_a_population_of_points_or_of_areas_gives_about_the_same_k():
    """20,000 people on 4 km2: 785 in a disc of 200 m; tolerance six standard deviations of a count."""
    pytest.importorskip("shapely")
    rng = np.random.default_rng(5)
    people = pl.DataFrame({"x": rng.uniform(1e5, 1.02e5, 20_000), "y": rng.uniform(4e5, 4.02e5, 20_000)})
    one = Microdata(pl.DataFrame({"x": [101000.0], "y": [401000.0]}), location=("x", "y"))
    moved = one.with_frame(pl.DataFrame({"x": [101200.0], "y": [401000.0]}))
    points = spatial_k(one, moved, population=Microdata(people, location=("x", "y")))
    areas = spatial_k(
        one,
        moved,
        population_polygons={
            "west": "POLYGON ((100000 400000, 101000 400000, 101000 402000, 100000 402000, 100000 400000))",
            "east": "POLYGON ((101000 400000, 102000 400000, 102000 402000, 101000 402000, 101000 400000))",
        },
        population_counts={"west": 10_000, "east": 10_000},
    )
    exact = 20_000 * np.pi * 200**2 / 4e6
    assert areas.figures["median_k_population"] == pytest.approx(exact, rel=1e-9)
    assert points.figures["median_k_population"] == pytest.approx(exact, abs=6 * np.sqrt(exact))


def test_files_in_another_order_are_matched_by_a_column():
    original = homes()
    released = DonutMask(r_min=100, r_max=300).apply(original, seed=1).data
    shuffled = released.with_frame(released.frame.sample(fraction=0.9, shuffle=True, seed=1))
    with pytest.raises(InputError, match="match"):
        spatial_k(original, shuffled)
    found = spatial_k(original, shuffled, match="id")
    assert found.figures["records"] == 270
    assert found.figures["mean_displacement"] == pytest.approx(200, abs=15)


def test_records_without_a_location_are_left_out_and_counted():
    original = homes()
    released = original.with_frame(original.frame.with_columns(x=pl.when(pl.col("id") >= 10).then("x")))
    found = spatial_k(original, released)
    assert found.figures["records_left_out"] == 10
    assert any("10 records" in caveat for caveat in found.caveats)


def test_pandas_and_polars_give_the_same_answer():
    original = homes(keys=["sex"])
    released = DonutMask(r_min=100, r_max=300).apply(original, seed=1).data
    other = spatial_k(
        Microdata(original.frame.to_pandas(), location=("x", "y"), keys=["sex"]),
        Microdata(released.frame.to_pandas(), location=("x", "y")),
    )
    assert other.figures == spatial_k(original, released).figures
    assert isinstance(other.detail["records"], pd.DataFrame)


def test_bad_input_is_refused_with_the_way_out():
    original = homes()
    with pytest.raises(ParameterError, match="two location columns"):
        spatial_k(Microdata(original.frame), original)
    with pytest.raises(ColumnError, match="not numbers"):
        spatial_k(original, original, location=("x", "sex"))
    with pytest.raises(ColumnError, match="Did you mean 'x'"):
        spatial_k(original, original, location=("xx", "y"))
    with pytest.raises(ParameterError, match="k_critical"):
        spatial_k(original, original, k_critical=0)
    with pytest.raises(ParameterError, match="ring"):
        spatial_k(original, original, ring=(5, 1))
    with pytest.raises(ParameterError, match="go together"):
        spatial_k(original, original, population_counts={"a": 1})
    with pytest.raises(ColumnError, match="distinct values"):
        spatial_k(original, original, sensitive="w")
    with pytest.raises(ColumnError, match="beyond 90 degrees"):
        spatial_k(original, original, geographic=True)


def test_degrees_taken_for_meters_raise_a_warning():
    degrees = Microdata(pl.DataFrame({"a": [48.1, 48.2], "b": [16.1, 16.2]}), location=("a", "b"))
    with pytest.warns(DiscreetWarning, match="look like degrees"):
        spatial_k(degrees, degrees)


def test_one_record_has_k_one():
    one = Microdata(pl.DataFrame({"x": [1000.0], "y": [1000.0]}), location=("x", "y"))
    moved = one.with_frame(pl.DataFrame({"x": [1100.0], "y": [1000.0]}))
    assert spatial_k(one, moved).figures["max_k"] == 1
