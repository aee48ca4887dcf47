"""Relations and small tables of queries are counted where the data is; what needs records takes a stated sample."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, engine, risk, utility
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.engine import shared_tables
from discreet.protect import AddNoise, Band
from discreet.utility import associations
from discreet.utility.associations import moments
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import nothing_collected


def people(seed: int, rows: int = 3000) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, rows)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "area": rng.choice(["n", "s", None], rows, p=[0.5, 0.45, 0.05]),
            "job": rng.choice(["clerk", "cook", "nurse"], rows),
            "age": pl.Series(age).set(pl.Series(rng.random(rows) < 0.05), None),
            "pay": age * 10 + rng.lognormal(3, 1, rows).round(3),
            "kids": rng.integers(0, 4, rows),
            "w": rng.choice([0.5, 1.0, 2.5], rows),
        }
    )


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_small_tables_by_group_are_counted_and_score_the_same(kind, monkeypatch):
    frames = [people(1), people(2)]
    asked = {"group": "area", "columns": ["job", "age", "pay", "kids"], "top_codes": {"age": 7.0}}
    expected = utility.k_marginal(*map(Microdata, frames), sampling=False, **asked)
    monkeypatch.setattr(shared_tables, "_MOST_IN_MEMORY", 0)
    with nothing_collected(most=2100):
        found = utility.k_marginal(*(Microdata(in_kind(frame, kind)) for frame in frames), **asked)
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    ours, theirs = (each.detail["tables"].sort("column", "other") for each in (found, expected))
    assert ours["difference"].to_list() == pytest.approx(theirs["difference"].to_list(), abs=1e-12)
    assert found.figures["sampling_equivalent"] is None
    assert "sampling_equivalent" in found.caveats[0]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_relations_of_files_too_large_to_hold_are_the_same(kind, weight, monkeypatch):
    frames = [people(1).drop("id"), people(2).drop("id")]
    asked = {"columns": ["area", "job", "age", "pay", "kids"], "categorical": ["kids"], "weight": weight}
    expected = utility.dependence(*map(Microdata, frames), **asked)
    monkeypatch.setattr(shared_tables, "_MOST_IN_MEMORY", 0)
    found = utility.dependence(*(Microdata(in_kind(frame, kind)) for frame in frames), **asked)
    # The sample is the whole of so small a file, so that all of it must agree.
    for name, figure in expected.figures.items():
        assert found.figures[name] == pytest.approx(figure, abs=1e-9), name
    assert not any("random sample" in said for said in found.caveats)
    monkeypatch.setattr(associations, "SAMPLED", 600)
    monkeypatch.setattr(shared_tables, "_MOST_LISTED", 30)
    with nothing_collected(most=2500):
        sampled = utility.dependence(*(Microdata(in_kind(frame, kind)) for frame in frames), **asked)
    assert sampled.figures["pearson_change"] == pytest.approx(expected.figures["pearson_change"], abs=1e-9)
    assert sampled.figures["correlation_ratio_change"] == pytest.approx(
        expected.figures["correlation_ratio_change"], abs=1e-9
    )
    assert sum("about 600 of its 3,000 records" in said for said in sampled.caveats) == 2


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-50, 50)),
            st.one_of(st.none(), st.floats(-1e6, 1e6)),
            st.sampled_from("abc"),
        ),
        min_size=2,
        max_size=40,
    )
)
def test_sums_give_the_correlations_of_all_records(rows):
    table = pl.DataFrame(rows, schema={"x": pl.Float64, "y": pl.Float64, "c": pl.String}, orient="row")
    found, known = engine.added_correlations(Microdata(table.lazy()), ["x", "y"])
    expected = moments(table, ["x", "y"]).correlation[0, 1]
    assert known[0, 1] == table.drop_nulls(["x", "y"]).height
    spreads = [table[name].drop_nulls().std() or 0.0 for name in ("x", "y")]
    if min(spreads) > 1e-3:
        assert found[0, 1] == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("linked", [True, False])
def test_a_measure_of_records_takes_a_stated_sample_whose_interval_holds_the_truth(linked):
    data = Microdata(people(1, 20_000).lazy(), keys=["age", "job"])
    released = AddNoise("pay", level=0.5).apply(Band(widths={"age": 10}).apply(data).data, seed=1).data
    settings_of = {"columns": ["age", "pay", "job"]}
    whole = utility.information_loss(data, released, **settings_of).value
    found = utility.on_sample(
        utility.information_loss,
        data,
        released,
        rows=3000,
        ids="id" if linked else None,
        settings=settings_of,
        seed=4,
    )
    told = found.parameters["sample"]
    assert 2700 < told["records"] < 3300
    assert told["of_records"] == 20_000
    assert told["low"] < found.value < told["high"]
    # Five times as far as the interval says would be no accident.
    assert abs(found.value - whole) < 5 / 2.262 * (told["high"] - found.value)
    assert "random sample" in found.caveats[0]
    assert found.figures["records_changed"] > 0


def test_bad_requests_are_refused():
    data = Microdata(people(1, 400).lazy(), keys=["age"])
    with pytest.raises(ParameterError, match="understates risk"):
        utility.on_sample(risk.k_anonymity, data, data)
    with pytest.raises(ParameterError, match="at least 200"):
        utility.on_sample(utility.tabular, data, data, rows=10)
    with pytest.raises(ColumnError, match="named in ids"):
        utility.on_sample(utility.tabular, data, data, ids="key")
    with pytest.raises(InputError, match="fewer than 200"):
        utility.on_sample(utility.tabular, Microdata(people(1, 50)), Microdata(people(2, 50)))


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_counts_tables_and_relations(spark_session, monkeypatch):
    frames = [people(1), people(2)]
    ours, theirs = (Microdata(in_kind(frame, "pyspark", spark_session).repartition(3)) for frame in frames)
    asked = {"group": "area", "columns": ["job", "age", "kids"]}
    expected = utility.k_marginal(*map(Microdata, frames), sampling=False, **asked)
    with nothing_collected(most=2100):
        assert utility.k_marginal(ours, theirs, **asked).value == pytest.approx(expected.value, abs=1e-9)
    monkeypatch.setattr(associations, "SAMPLED", 600)
    monkeypatch.setattr(shared_tables, "_MOST_LISTED", 30)
    columns = ["job", "age", "pay"]
    exact = utility.dependence(*map(Microdata, frames), columns=columns).figures
    with nothing_collected(most=2500):
        found = utility.dependence(ours, theirs, columns=columns).figures
    assert found["pearson_change"] == pytest.approx(exact["pearson_change"], abs=1e-9)
    assert math.isclose(found["correlation_ratio_change"], exact["correlation_ratio_change"], abs_tol=1e-9)
