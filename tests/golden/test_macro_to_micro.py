"""Worked examples of macro-to-micro-copula-synthesis.md, and its ordinal claims on simulated data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.synth.distributions import bootstrap, from_moments
from discreet.synth.from_aggregates import MacroToMicro, UnitMargin, latent_correlation
from discreet.synth.record_rules import check_rules, enforce_rules
from discreet.utility.row_novelty import new_rows


def test_m1_lognormal_parameters_from_means_and_sds():
    for (mean, sd), (m, s) in {(100, 150): (4.015843, 1.085659), (40, 30): (3.465736, 0.668047)}.items():
        found = from_moments("lognorm", mean, sd)
        assert [np.log(found["scale"]), found["s"]] == pytest.approx([m, s], abs=5e-7)


def test_m1_latent_and_data_correlation():
    first, second = UnitMargin.of("lognorm", 100, 150), UnitMargin.of("lognorm", 40, 30)
    assert latent_correlation(first, second, 0.484635).correlation == pytest.approx(0.6, abs=1e-6)


def test_m1_drawn_records_have_the_data_correlation():
    table = pl.DataFrame(
        {"a_mean": [100.0], "b_mean": [40.0], "a_sd": [150.0], "b_sd": [30.0], "records": [400_000]}
    )
    model = MacroToMicro(correlation={"a": {"b": 0.6}}, correlation_of="latent").fit(table, seed=1)
    drawn = model.sample(seed=2).frame
    assert np.corrcoef(drawn["a"], drawn["b"])[0, 1] == pytest.approx(0.484635, abs=0.02)
    assert drawn["b"].std() == pytest.approx(30, rel=0.02)


def test_m2_new_rows():
    real = Microdata(pl.DataFrame({"x": [100.0, 200.0, 0.0], "c": ["a", "b", "a"]}))
    drawn = Microdata(pl.DataFrame({"x": [101.0, 230.0, 0.0, 0.5, -100.0], "c": ["a", "b", "a", "a", "a"]}))
    curve = new_rows(real, drawn, tolerances=[0, 0.01, 0.15, 0.5, 1]).detail["curve"]
    assert curve["new"].to_list() == pytest.approx([0.8, 0.6, 0.4, 0.4, 0.0])


def test_m3_a_sum_is_kept_by_construction_and_broken_by_independent_columns():
    rng = np.random.default_rng(1)
    loose = Microdata(pl.DataFrame({name: rng.lognormal(size=500) for name in ("total", "a", "b", "c")}))
    rules = ["total == a + b + c"]
    assert check_rules(loose, rules).figures["summation"] > 0.99
    assert check_rules(enforce_rules(loose, rules), rules).value == 0
    table = pl.DataFrame({"total": [60.0], "a": [10.0], "b": [20.0], "c": [30.0], "records": [200]})
    with pytest.warns(UserWarning, match="drawn independently"):
        model = MacroToMicro(rules=rules, sds=dict.fromkeys("abc", 1.0)).fit(table)
    assert model.derived == ("total",)
    assert model.check(model.sample(seed=1)).value == 0


def test_m4_totals_are_restored_and_amounts_stay_positive():
    table = pl.DataFrame({"sector": ["62"], "revenue": [12_000.0], "records": [60]})
    drawn = MacroToMicro(unit="sector", sds={"revenue": 400.0}).fit(table).sample(seed=1).frame
    assert drawn.height == 60
    assert drawn["revenue"].sum() == pytest.approx(12_000, rel=1e-9)
    assert drawn["revenue"].min() > 0


def production(n=1500):
    """Simulated production statistics: three sectors, costs that follow revenue, and firms with hardly any staff."""
    rng = np.random.default_rng(7)
    sector = rng.choice(["58", "62", "63"], n, p=[0.3, 0.5, 0.2])
    size = (
        rng.normal(0, 1, n) + pl.Series(sector).replace_strict({"58": 0.0, "62": 0.6, "63": -0.3}).to_numpy()
    )
    revenue = np.exp(5 + size)
    without_staff = rng.random(n) < 0.3
    personnel = revenue * np.where(without_staff, 0.02, 0.4) * np.exp(0.2 * rng.standard_normal(n))
    other = revenue * np.where(without_staff, 0.5, 0.12) * np.exp(0.2 * rng.standard_normal(n))
    return pl.DataFrame({"sector": sector, "revenue": revenue, "personnel": personnel, "other": other})


def published(real):
    return real.group_by("sector", maintain_order=True).agg(
        pl.col("revenue", "personnel", "other").sum(), pl.len().alias("records")
    )


def transfer_error(train, test):
    names = ["personnel", "other"]
    design = np.column_stack([np.ones(train.height), train.select(names).to_numpy()])
    coefficients = np.linalg.lstsq(design, train["revenue"].to_numpy(), rcond=None)[0]
    predicted = np.column_stack([np.ones(test.height), test.select(names).to_numpy()]) @ coefficients
    return float(np.mean((predicted - test["revenue"].to_numpy()) ** 2))


def test_micro_beats_macro_in_error_and_macro_is_newest():
    real = production()
    train, test = real.head(1000), real.tail(500)
    micro = bootstrap(train, seed=1).values
    options = {"unit": "sector", "variables": ["revenue", "personnel", "other"]}
    internal = MacroToMicro(**options, scenario="internal").fit(published(train), microdata=Microdata(train))
    blind = MacroToMicro(**options, scenario="none", records=(50, 500), cv=1.0)
    with pytest.warns(UserWarning, match="assumed"):
        blind_model = blind.fit(published(train), seed=4)
    files = {
        "micro": micro,
        "internal": internal.sample(seed=1).frame,
        "none": blind_model.sample(seed=1).frame,
    }
    errors = {name: transfer_error(file, test) for name, file in files.items()}
    assert errors["micro"] < errors["internal"] < errors["none"]
    new = {
        name: new_rows(Microdata(train), Microdata(file), tolerance=0.05).value
        for name, file in files.items()
    }
    assert new["micro"] == 0
    assert new["none"] > 0.9
    assert new["internal"] > 0.5
