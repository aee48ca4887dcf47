"""The choice among masks."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.utility.point_patterns import donut_settings


def city(n=3000):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.uniform(1e5, 1.03e5, n),
            "y": rng.uniform(4e5, 4.03e5, n),
            "fine": rng.integers(0, 12, n),
            "ill": rng.random(n) < 0.1,
        }
    ).with_columns(coarse=pl.col("fine") // 3, side=(pl.col("x") < 1.015e5).cast(pl.String))
    return Microdata(frame, location=("x", "y"), keys=["fine"], sensitive="ill")


SETS = {"fine": ["fine"], "coarse": ["coarse"], "none": []}


@pytest.mark.slow
def test_the_choice_has_the_smallest_inner_then_outer_radius_of_the_acceptable():
    found = donut_settings(city(), keys=SETS, zone="side", seed=3)
    table = found.detail["variants"]
    assert table.height == 18
    assert {"max_zone_difference", "share_changed_zone"} <= set(table.columns)
    safe = table.filter(pl.col("share_critical") < 0.10)
    assert safe.height == found.figures["acceptable_variants"] == table["acceptable"].sum()
    first = safe.sort("r_min", "r_max").row(0, named=True)
    assert (found.figures["r_min"], found.figures["r_max"]) == (first["r_min"], first["r_max"])
    critical = {name: table.filter(pl.col("keys") == name)["share_critical"].mean() for name in SETS}
    assert critical["fine"] > critical["coarse"] > critical["none"]


def test_the_same_seed_gives_the_same_table_and_a_variant_does_not_depend_on_the_others():
    data = city(500)
    whole = donut_settings(data, keys=SETS, seed=1).detail["variants"]
    assert whole.equals(donut_settings(data, keys=SETS, seed=1).detail["variants"])
    alone = donut_settings(data, rings=[(200, 300)], keys={"fine": ["fine"]}, seed=1).detail["variants"]
    assert alone.row(0) == whole.filter((pl.col("r_min") == 200) & (pl.col("r_max") == 300)).row(0)


def test_without_an_acceptable_variant_there_is_no_choice():
    found = donut_settings(city(200), rings=[(1, 2)], seed=1)
    assert found.value is None
    assert found.figures["acceptable_variants"] == 0
    assert "None of the 2 variants" in found.meaning


def test_empty_grids_are_refused():
    with pytest.raises(ParameterError, match="rings"):
        donut_settings(city(50), rings=[])
    with pytest.raises(ParameterError, match="keys"):
        donut_settings(city(50), keys={})


def test_rings_that_are_no_pairs_are_refused():
    homes = Microdata(pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), location=("x", "y"))
    with pytest.raises(ParameterError, match="pairs"):
        donut_settings(homes, rings=[(1.0, 2.0, 3.0)])
