"""Records are swapped between classes, and the same records of the same file move on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.protect import RecordSwap
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import cells, nothing_collected

PLACES = ["county", "town"]
SWAPS = {
    "keys": RecordSwap(geography=PLACES, keys=["age", "origin"], k=2, share=0.1, carry="grid"),
    "alike": RecordSwap(geography=PLACES, keys=["origin"], match=[["sex", "age"], ["sex"]], share=0.3),
    "flagged": RecordSwap(geography=PLACES, at_risk="flag", share=0.0),
}


def people(rows: int = 1500, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 8, rows)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "county": pl.Series(town // 4).set(pl.Series(rng.random(rows) < 0.02), None),
            "town": town % 4,
            "grid": town * 10,
            "age": rng.integers(0, 5, rows),
            "sex": rng.choice(["f", "m"], rows),
            "origin": rng.choice(["here", "there", "far"], rows, p=[0.9, 0.09, 0.01]),
        }
    ).with_columns(flag=pl.col("origin") == "far")


@pytest.mark.parametrize("name", SWAPS)
def test_the_same_records_move_on_every_engine(name):
    named = "id" if name == "alike" else None
    expected = SWAPS[name].apply(Microdata(people()), record_key=named, seed=3)
    assert expected.log[0].parameters["units_swapped"] > 0
    for kind in ("polars-lazy", "pandas", "pyarrow", "duckdb"):
        lazy = kind in ("polars-lazy", "duckdb")
        with nothing_collected(most=700 if lazy else 2000):
            found = SWAPS[name].apply(Microdata(in_kind(people(), kind)), record_key=named, seed=3)
            assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells), kind
        assert cells(found.data.frame).equals(cells(expected.data.frame)), kind
        assert found.log[0].parameters == expected.log[0].parameters
        assert found.log[0].notes == expected.log[0].notes


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(5, 150), k=st.integers(1, 4), share=st.floats(0, 1))
def test_totals_of_places_stay_and_those_at_risk_leave_their_town(seed, rows, k, share):
    frame = people(rows, seed)
    asked = RecordSwap(
        geography=PLACES, keys=["age", "origin"], match=[["sex"], []], k=k, share=share, carry="grid"
    )
    release = asked.apply(Microdata(frame.lazy()), seed=seed)
    made, log = release.data.frame.collect(), release.log[0].parameters
    homes = [*PLACES, "grid"]
    assert made.select(homes).sort(homes).equals(frame.select(homes).sort(homes))
    assert made.drop(homes).equals(frame.drop(homes))
    moved = pl.any_horizontal((pl.col(name).ne_missing(made[name])).alias(name) for name in PLACES)
    assert frame.select(moved.alias("moved"))["moved"].sum() == log["units_swapped"]
    sizes = frame.select(pl.len().over(*PLACES, "age", "origin"))["len"]
    risky = (sizes < k) & frame["county"].is_not_null()
    assert int(risky.sum()) == log["units_at_risk"]
    wanted = share * rows - 1e-6
    assert log["units_swapped"] >= wanted or "was not reached" in " ".join(release.log[0].notes)


def test_what_looks_at_households_says_so():
    assert SWAPS["keys"].work == "class-wise"
    assert RecordSwap(geography=PLACES, household="hh").work == "whole-file"


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_the_same_records_move_on_spark(spark_session):
    data = Microdata(in_kind(people(), "pyspark", spark_session).repartition(5))
    with pytest.raises(ParameterError, match="record_key='id'"):
        SWAPS["keys"].apply(data, seed=3)
    for treatment in SWAPS.values():
        expected = treatment.apply(Microdata(people()), record_key="id", seed=3)
        with nothing_collected(most=700):
            found = treatment.apply(data, record_key="id", seed=3)
            dict(found.log[0].changed_cells)
        assert cells(found.data.frame).sort("id").equals(cells(expected.data.frame).sort("id"))
