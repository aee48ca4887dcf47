"""Microdata from tables: provenance, conversion, limits, totals, scenarios, rules, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetError, DiscreetWarning, ParameterError
from discreet.synth.from_aggregates import MacroToMicro, UnitMargin, latent_correlation
from discreet.synth.from_aggregates.latent_correlation import between_units
from discreet.synth.from_aggregates.macro_to_micro_model import brought_to_total, largest_remainder
from discreet.synth.synthesizer import load

TABLE = pl.DataFrame(
    {
        "sector": ["58", "62", "63", "64"],
        "revenue": [12_000.0, 90_000.0, 5_000.0, 30_000.0],
        "result": [-500.0, 4_000.0, 200.0, -100.0],
        "staff": [300.0, 2_000.0, 90.0, 700.0],
        "records": [60, 200, 25, 90],
    }
)
SPREAD = {"revenue": 200.0, "result": 80.0, "staff": 12.0}
MATRIX = [[1, 0.3, 0.5], [0.3, 1, 0.1], [0.5, 0.1, 1]]
PLAIN = MacroToMicro(unit="sector", sds=SPREAD, correlation=MATRIX, marginals={"staff": "negative binomial"})


def test_totals_counts_types_and_units_are_those_of_the_table():
    drawn = PLAIN.fit(TABLE).sample(seed=1)
    frame = drawn.frame
    assert drawn.roles.strata == ("sector",)
    assert frame.columns == ["sector", "revenue", "result", "staff"]
    assert frame.schema["staff"] == pl.Int64
    sums = frame.group_by("sector", maintain_order=True).agg(pl.all().sum(), pl.len().alias("records"))
    for name in ("revenue", "result", "staff", "records"):
        assert sums[name].to_list() == pytest.approx(TABLE[name].to_list(), rel=1e-9)
    assert frame["revenue"].min() > 0
    assert frame["result"].min() < 0
    assert frame["staff"].min() >= 0


def test_every_parameter_has_a_provenance():
    table = PLAIN.fit(TABLE).parameters
    assert table.filter(pl.col("provenance") == "").is_empty()
    source = dict(table.group_by("parameter").agg(pl.col("provenance").first()).iter_rows())
    assert source == {
        "records": "published",
        "total": "published",
        "mean": "derived from published",
        "sd": "published",
        "family": "assumed",
        "correlation": "published",
        "latent correlation": "converted (NORTA)",
    }
    staff = table.filter((pl.col("parameter") == "family") & (pl.col("variable") == "staff"))
    assert staff["provenance"].item() == "given"


def test_the_same_seed_gives_the_same_file_and_copies_differ():
    model = PLAIN.fit(TABLE)
    assert model.sample(seed=3).frame.equals(model.sample(seed=3).frame)
    first, second = model.sample(copies=2, seed=3)
    assert not first.frame.equals(second.frame)


def test_another_number_of_records_keeps_the_means():
    drawn = PLAIN.fit(TABLE).sample(n=1500, seed=1).frame
    assert drawn.height == 1500
    means = drawn.group_by("sector", maintain_order=True).agg(pl.col("revenue").mean())
    assert means["revenue"].to_list() == pytest.approx(
        (TABLE["revenue"] / TABLE["records"]).to_list(), rel=1e-9
    )


def test_a_model_is_saved_and_loaded(tmp_path):
    model = PLAIN.fit(TABLE)
    loaded = load(model.save(tmp_path / "macro.model"))
    assert loaded.sample(seed=5).frame.equals(model.sample(seed=5).frame)
    assert loaded.parameters.equals(model.parameters)


def test_pandas_tables_give_pandas_files():
    assert isinstance(PLAIN.fit(TABLE.to_pandas()).sample(seed=1).frame, pd.DataFrame)


def test_a_plan_file_can_hold_the_parameters():
    plain = PLAIN.to_dict()
    again = MacroToMicro.from_dict(plain)
    assert again.fit(TABLE).sample(seed=1).frame.equals(PLAIN.fit(TABLE).sample(seed=1).frame)


# --- margins and dependence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "mean", "sd", "zero"),
    [
        ("lognorm", 50.0, 80.0, 0.0),
        ("gamma", 50.0, 40.0, 0.0),
        ("truncnorm", 50.0, 30.0, 0.0),
        ("norm", -5.0, 3.0, 0.0),
        ("beta", 0.3, 0.2, 0.0),
        ("nbinom", 8.0, 6.0, 0.0),
        ("lognorm", 50.0, 90.0, 0.3),
        ("gamma", 20.0, 30.0, 0.5),
    ],
)
def test_margins_have_the_mean_the_sd_and_the_zeros_they_were_given(family, mean, sd, zero):
    shares = (np.arange(300_000) + 0.5) / 300_000
    values = UnitMargin.of(family, mean, sd, zero=zero).quantile(shares)
    assert values.mean() == pytest.approx(mean, rel=3e-3)
    assert values.std() == pytest.approx(sd, rel=3e-2)
    if zero:
        assert (values == 0).mean() == pytest.approx(zero, abs=1e-5)


@pytest.mark.parametrize(
    "family", ["lognorm", "gamma", "expon", "truncnorm", "norm", "uniform", "poisson", "nbinom"]
)
def test_quantiles_are_finite_up_to_the_last_share_below_one(family):
    sd = {"expon": 20.0, "uniform": 5.0, "poisson": 20.0**0.5}.get(family, 15.0)
    margin = UnitMargin.of(family, 20.0, sd)
    shares = np.array([0.0, 1e-300, 2.0**-60, 0.5, 1 - 2.0**-52, 1 - 2.0**-53, 1.0])
    values = margin.quantile(shares)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()


@given(st.floats(0.02, 0.97), st.floats(1e-6, 1e6))
@settings(max_examples=examples(60), deadline=None)
def test_quantiles_of_a_truncated_normal_are_those_of_scipy_and_never_negative(ratio, mean):
    from scipy import stats

    margin = UnitMargin.of("truncnorm", mean, ratio * mean)
    shares = np.array([1e-12, 1e-4, 0.1, 0.5, 0.9, 1 - 1e-4, 1 - 1e-9])
    expected = stats.truncnorm(**margin.parameters).ppf(shares)
    assert margin.quantile(shares) == pytest.approx(expected, rel=1e-6, abs=1e-9 * mean)
    assert (margin.quantile(np.array([0.0, 1e-300, 1e-17])) >= 0).all()


def test_a_margin_whose_spread_cannot_be_computed_is_refused_and_no_constant():
    wide = UnitMargin("lognorm", {"s": 60.0, "loc": 0.0, "scale": 1e100}, zero=0.1)
    with pytest.raises(ParameterError, match="lognorm"):
        latent_correlation(wide, UnitMargin.of("gamma", 20.0, 15.0), 0.4)


def test_only_a_margin_with_one_value_is_a_constant():
    constant, other = UnitMargin.of("gamma", 20.0, 0.0), UnitMargin.of("gamma", 20.0, 15.0)
    assert latent_correlation(constant, other, 0.4).correlation == 0.0
    narrow = UnitMargin.of("gamma", 20.0, 1e-6)
    assert latent_correlation(narrow, other, 0.4).correlation > 0.35


def test_zeros_that_contradict_the_sd_are_refused():
    with pytest.raises(ParameterError, match="zeros"):
        UnitMargin.of("lognorm", 50.0, 10.0, zero=0.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gamma", "gamma"),
        ("lognorm", "norm"),
        ("norm", "norm"),
        ("nbinom", "gamma"),
        ("truncnorm", "lognorm"),
    ],
)
@pytest.mark.parametrize("target", [-0.3, 0.0, 0.45, 0.7])
@pytest.mark.slow
def test_the_latent_correlation_gives_the_one_asked_for(one, other, target):
    margins = [UnitMargin.of(family, 20.0, 15.0) for family in (one, other)]
    found = latent_correlation(*margins, target)
    assert not found.clipped
    from scipy.special import ndtr

    rng = np.random.default_rng(1)
    z = rng.standard_normal((150_000, 2))
    z[:, 1] = found.correlation * z[:, 0] + np.sqrt(1 - found.correlation**2) * z[:, 1]
    x = [margin.quantile(ndtr(z[:, i])) for i, margin in enumerate(margins)]
    assert np.corrcoef(x)[0, 1] == pytest.approx(target, abs=0.02)


def test_two_normals_need_no_conversion():
    one = UnitMargin.of("norm", 0.0, 1.0)
    assert latent_correlation(one, one, 0.37).correlation == pytest.approx(0.37, abs=1e-6)


@given(st.floats(0.2, 2.0), st.floats(0.2, 2.0), st.floats(-0.99, 0.99))
@settings(max_examples=examples(40), deadline=None)
def test_the_closed_form_of_lognormals_and_the_series_agree(first, second, latent):
    margins = [UnitMargin("lognorm", {"s": s, "loc": 0.0, "scale": 1.0}) for s in (first, second)]
    both = np.sqrt(np.expm1(first**2) * np.expm1(second**2))
    target = float(np.expm1(latent * first * second) / both)
    assert latent_correlation(*margins, target).correlation == pytest.approx(latent, abs=1e-6)
    # A zero share of next to nothing sends the pair through the series.
    series = [UnitMargin("lognorm", dict(margin.parameters), zero=1e-12) for margin in margins]
    assert latent_correlation(*series, target).correlation == pytest.approx(latent, abs=0.02)


def test_a_correlation_beyond_the_frechet_limits_is_clipped_and_reported():
    table = pl.DataFrame({"a_mean": [1.0], "b_mean": [1.0], "a_sd": [3.0], "b_sd": [3.0], "records": [100]})
    model = MacroToMicro(correlation={"a": {"b": -0.9}}).fit(table)
    assert any("the limit was taken" in note for note in model.notes)
    assert model.latent[0, 0, 1] == pytest.approx(-1.0)


def test_correlations_that_contradict_each_other_are_mended_and_reported():
    torn = [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]
    model = MacroToMicro(unit="sector", sds=SPREAD, correlation=torn, correlation_of="latent").fit(TABLE)
    assert np.linalg.eigvalsh(model.latent[0]).min() > -1e-9
    assert any("contradicted" in note for note in model.notes)


def test_without_a_correlation_the_units_are_correlated_with_a_warning():
    with pytest.warns(DiscreetWarning, match="means of 4 units"):
        model = MacroToMicro(unit="sector", sds=SPREAD).fit(TABLE)
    assert "estimated between units" in model.parameters["provenance"].to_list()


def test_few_units_are_shrunk_more():
    rng = np.random.default_rng(1)
    means = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 200)
    assert between_units(means)[1] < between_units(means[:6])[1]
    assert between_units(means[:2])[0].tolist() == [[1, 0], [0, 1]]


def test_a_covariance_brings_its_own_sds():
    table = pl.DataFrame({"a_mean": [50.0], "b_mean": [20.0], "records": [50_000]})
    drawn = MacroToMicro(covariance=[[400, 60], [60, 25]]).fit(table).sample(seed=1).frame
    assert np.cov(drawn["a"], drawn["b"]) == pytest.approx(np.array([[400, 60], [60, 25]]), rel=0.06)


def test_a_family_can_be_chosen_by_the_means_of_the_units():
    means = np.random.default_rng(3).lognormal(3, 1.5, 40)
    table = pl.DataFrame({"u": range(40), "x_mean": means, "x_sd": means, "records": [10] * 40})
    model = MacroToMicro(unit="u", marginals={"x": ["norm", "lognorm"]}).fit(table)
    assert {margin.family for row in model.margins for margin in row} == {"lognorm"}


@pytest.mark.parametrize("scale", ["none", "minmax", "standard", "log"])
def test_scaled_margins_are_scaled_back(scale):
    options = MacroToMicro(
        unit="sector", variables=["revenue"], sds={"revenue": 200.0}, scale=scale, match_totals=False
    )
    drawn = options.fit(TABLE).sample(n=200_000, seed=1).frame
    means = drawn.group_by("sector", maintain_order=True).agg(pl.col("revenue").mean())["revenue"].to_numpy()
    assert means == pytest.approx((TABLE["revenue"] / TABLE["records"]).to_numpy(), rel=0.05)


def test_flags_and_shares_match_their_totals():
    table = pl.DataFrame({"exports_mean": [0.25], "share_mean": [0.4], "records": [80]})
    model = MacroToMicro(
        marginals={"exports": "bernoulli", "share": "beta"},
        sds={"share": 0.2},
        correlation={"exports": {"share": 0.3}},
    ).fit(table)
    drawn = model.sample(seed=1).frame
    assert drawn["exports"].sum() == 20
    assert set(drawn["exports"]) == {0, 1}
    assert drawn["share"].mean() == pytest.approx(0.4)
    assert drawn["share"].is_between(0, 1).all()


def test_zero_inflation_of_the_table_is_in_the_file():
    table = pl.DataFrame({"x_mean": [10.0], "x_sd": [30.0], "x_zeros": [0.4], "records": [5000]})
    drawn = MacroToMicro().fit(table).sample(seed=1).frame
    assert (drawn["x"] == 0).mean() == pytest.approx(0.4, abs=0.03)


# --- totals -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=50),
    st.integers(0, 10**7),
    st.sampled_from(["amount", "signed", "count"]),
)
def test_every_nature_reaches_its_total(values, total, nature):
    x = np.array(values)
    made = brought_to_total(x, float(total), nature, np.arange(len(x), dtype=float))
    assert made.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)
    if nature != "signed":
        assert (made >= -1e-9 * max(total, 1)).all()
    if nature == "count":
        assert (made == np.round(made)).all()


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=30))
def test_largest_remainder_moves_nobody_by_one_or_more(values):
    x = np.array(values)
    rounded = largest_remainder(x, round(x.sum()))
    assert rounded.sum() == round(x.sum())
    assert (np.abs(rounded - x) < 1 + 1e-6).all()


# --- scenarios ----------------------------------------------------------------------------------------------------


def test_an_intruder_without_knowledge_draws_correlations_and_counts_at_random():
    options = MacroToMicro(unit="sector", scenario="none", records=(20, 40), sds=SPREAD)
    models = [options.fit(TABLE, seed=seed) for seed in (1, 1, 2)]
    assert (models[0].latent == models[1].latent).all()
    assert not (models[0].latent == models[2].latent).all()
    assert ((models[0].records >= 20) & (models[0].records <= 40)).all()
    assert set(models[0].parameters.filter(pl.col("parameter") == "records")["provenance"]) == {"random"}
    with pytest.raises(ParameterError, match="range"):
        MacroToMicro(unit="sector", scenario="none", sds=SPREAD).fit(TABLE)


def test_an_insider_takes_counts_sds_and_correlations_from_the_real_file():
    real = PLAIN.fit(TABLE).sample(seed=9)
    options = MacroToMicro(unit="sector", scenario="internal", marginals={"staff": "nbinom"})
    model = options.fit(TABLE.drop("records"), microdata=real)
    assert model.records.tolist() == TABLE["records"].to_list()
    assert "real microdata" in model.parameters["provenance"].to_list()
    with pytest.raises(ParameterError, match="microdata"):
        options.fit(TABLE)


def test_an_outsider_s_numbers_are_marked_as_guesses():
    options = MacroToMicro(unit="sector", scenario="external", sds=SPREAD, correlation=MATRIX, records=50)
    sources = options.fit(TABLE.drop("records")).parameters["provenance"].to_list()
    assert "external guess" in sources
    with pytest.raises(ParameterError, match="external"):
        MacroToMicro(unit="sector", scenario="external", sds=SPREAD).fit(TABLE)


def test_counts_follow_from_totals_and_means():
    table = pl.DataFrame({"a_total": [120.0], "a_mean": [12.0], "a_sd": [3.0]})
    assert MacroToMicro().fit(table).sample(seed=1).frame.height == 10


# --- rules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repair", ["projection", "reject"])
def test_rules_and_totals_hold_together(repair):
    table = pl.DataFrame(
        {"sector": ["a", "b"], "costs": [6000.0, 900.0], "revenue": [10_000.0, 2000.0], "records": [100, 40]}
    )
    options = MacroToMicro(
        unit="sector",
        sds={"costs": {"a": 30.0, "b": 12.0}, "revenue": {"a": 60.0, "b": 30.0}},
        correlation={"costs": {"revenue": 0.6}},
        rules=["profit == revenue - costs", "costs <= revenue", "revenue >= 0"],
        repair=repair,
    )
    model = options.fit(table)
    drawn = model.sample(seed=1)
    assert model.check(drawn).value == 0
    assert drawn.frame.columns == ["sector", "costs", "revenue", "profit"]
    sums = drawn.frame.group_by("sector", maintain_order=True).agg(pl.all().sum())
    assert sums["costs"].to_list() == pytest.approx([6000, 900])
    assert sums["profit"].to_list() == pytest.approx([4000, 1100])


def test_rules_that_cannot_hold_are_reported_not_hidden():
    table = pl.DataFrame({"a": [100.0], "b": [50.0], "records": [20]})
    options = MacroToMicro(sds={"a": 1.0, "b": 1.0}, correlation=np.eye(2), rules=["a <= b"], repair="reject")
    with pytest.warns(DiscreetWarning, match="still break a rule"):
        drawn = options.fit(table).sample(seed=1)
    assert drawn.frame["a"].sum() == pytest.approx(100)


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"unit": "sectr"}, TABLE, "Did you mean 'sector'"),
        ({}, TABLE, "unit="),
        ({"unit": "sector"}, TABLE, "cv="),
        ({"unit": "sector", "cv": 1.0, "marginals": {"result": "lognormal"}}, TABLE, "above 0"),
        ({"unit": "sector", "sds": SPREAD, "marginals": {"staff": "weird"}}, TABLE, "family"),
        ({"unit": "sector", "sds": SPREAD, "marginals": {"stuff": "gamma"}}, TABLE, "staff"),
        ({"unit": "sector", "sds": {"turnover": 1.0}}, TABLE, "sds"),
        ({"unit": "sector", "sds": SPREAD, "whole": ["stuff"]}, TABLE, "whole"),
        ({"unit": "sector", "sds": SPREAD, "variables": ["stuff"]}, TABLE, "variables"),
        ({"unit": "sector", "sds": SPREAD}, TABLE.drop("records"), "records="),
        ({"unit": "sector", "sds": SPREAD}, TABLE.head(0), "no row"),
        ({"unit": "sector", "sds": SPREAD}, pl.concat([TABLE, TABLE]), "two rows"),
        ({"unit": "sector", "sds": SPREAD, "correlation": [[1, 2], [2, 1]]}, TABLE, "row and a column"),
        ({"unit": "sector", "sds": SPREAD, "correlation": 3 * np.eye(3)}, TABLE, "diagonal"),
        ({"unit": "sector", "sds": SPREAD, "scale": "log10"}, TABLE, "scale"),
        ({"unit": "sector", "sds": SPREAD, "records": 0}, TABLE, "at least 1"),
        (
            {"unit": "sector", "sds": SPREAD},
            TABLE.with_columns(revenue=pl.lit(None)),
            "neither total nor mean",
        ),
        (
            {"unit": "sector", "sds": SPREAD, "rules": ["revenue == staff + result"]},
            TABLE,
            "do not fit the rule",
        ),
        (
            {
                "unit": "sector",
                "sds": SPREAD,
                "rules": ["revenue == staff + result", "staff == revenue - result"],
            },
            TABLE,
            "circle",
        ),
        (
            {
                "unit": "sector",
                "sds": SPREAD,
                "rules": ["revenue == staff", "staff == result", "result == revenue"],
            },
            TABLE,
            "circle",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
def test_bad_input_names_what_is_wrong(options, table, message):
    with pytest.raises(DiscreetError, match=message):
        MacroToMicro(**options).fit(table)


def test_totals_that_contradict_means_and_counts_are_listed():
    table = pl.DataFrame({"a_total": [1000.0], "a_mean": [12.0], "a_sd": [3.0], "records": [10]})
    with pytest.raises(ParameterError, match="'a' in unit 1"):
        MacroToMicro().fit(table)
    rounded = table.with_columns(a_total=pl.lit(121.0), a_mean=pl.lit(12.0))
    assert MacroToMicro().fit(rounded).sample(seed=1).frame["a"].sum() == pytest.approx(121)


@pytest.mark.parametrize(
    "options",
    [
        {"scenario": "all"},
        {"cells": "median"},
        {"repair": "force"},
        {"correlation_of": "rank"},
        {"correlation": np.eye(2), "covariance": np.eye(2)},
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(options):
    with pytest.raises(ParameterError):
        MacroToMicro(**options)


def test_an_unknown_column_in_a_rule_is_named():
    with pytest.raises(ColumnError, match="Did you mean 'revenue'"):
        MacroToMicro(unit="sector", sds=SPREAD, correlation=MATRIX, rules=["revenu >= 0"]).fit(TABLE)


def test_a_microdata_of_aggregates_does_as_well():
    assert PLAIN.fit(Microdata(TABLE)).sample(seed=1).frame.height == 375


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variables": ["revenu"]}, "Did you mean 'revenue'"),
        ({"variables": "revenu"}, "Did you mean 'revenue'"),
        ({"records": "recrods"}, "Did you mean 'records'"),
        ({"records": {"58": 3, "62": 3, "63": 3, "64": 3, "99": 3}}, "'records' names a unit"),
        ({"scenario": "none", "records": (2.5, 9)}, "records must be"),
        ({"sds": {**SPREAD, "revenue": -200.0}}, "'revenue' in unit 1 is negative"),
        ({"sds": {**SPREAD, "revenue": "many"}}, "sds must be"),
        ({"correlation": [[1, 0], [0]]}, "matrix of numbers"),
        ({"correlation": {"revenue": 0.5}}, "must be a matrix or"),
        ({"correlation": None, "covariance": [[9, 60, 0], [60, 9, 0], [0, 0, 9]]}, "larger than the product"),
        ({"rules": "revenu >= 0"}, "Did you mean 'revenue'"),
    ],
)
def test_what_is_named_or_written_wrongly_is_told(options, said):
    with pytest.raises(DiscreetError, match=said):
        MacroToMicro(**{"unit": "sector", "sds": SPREAD, "correlation": MATRIX, **options}).fit(TABLE)


@pytest.mark.parametrize(("option", "value"), [("scale", "z"), ("cv", 0), ("cv", "half")])
def test_a_scale_or_spread_that_is_none_is_refused_at_once(option, value):
    with pytest.raises(ParameterError, match=option):
        MacroToMicro(**{option: value})


def test_the_real_file_must_fit_the_aggregates_and_is_refused_where_nobody_asked_for_it():
    real = PLAIN.fit(TABLE).sample(seed=1).frame
    inside = MacroToMicro(unit="sector", scenario="internal")
    assert inside.fit(TABLE, microdata=real.to_pandas()).rows == 375
    with pytest.raises(ColumnError, match="'sector' is String in the aggregates and Int64"):
        inside.fit(TABLE, microdata=real.with_columns(pl.col("sector").cast(pl.Int64)))
    with pytest.raises(ColumnError, match="'revenue' of the microdata is not numeric"):
        inside.fit(TABLE, microdata=real.with_columns(pl.col("revenue").cast(pl.String)))
    with pytest.raises(ParameterError, match="scenario 'internal' only"):
        PLAIN.fit(TABLE, microdata=real)


def test_three_units_in_a_line_are_no_proof_of_a_correlation():
    found, shrunk = between_units(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))
    assert shrunk == 0.5
    assert found[0, 1] == pytest.approx(0.5)


def test_a_mean_that_rests_on_a_random_number_of_records_does_not_claim_to_be_published():
    blind = MacroToMicro(unit="sector", sds=SPREAD, scenario="none", records=(20, 40)).fit(TABLE, seed=1)
    means = blind.parameters.filter(pl.col("parameter") == "mean")
    assert set(means["provenance"]) == {"random"}


def test_each_unit_tells_by_itself_where_its_number_of_records_came_from():
    table = pl.DataFrame(
        {
            "u": ["a", "b"],
            "x": [120.0, 300.0],
            "x_mean": [12.0, 10.0],
            "x_sd": [3.0, 3.0],
            "records": [None, 30],
        }
    ).rename({"x": "x_total"})
    rows = MacroToMicro(unit="u").fit(table).parameters.filter(pl.col("parameter") == "records")
    assert rows["value"].to_list() == [10.0, 30.0]
    assert rows["provenance"].to_list() == ["derived from published", "published"]


def test_a_unit_without_a_label_is_found_in_the_real_file():
    table = TABLE.with_columns(sector=pl.when(pl.col("sector") != "62").then(pl.col("sector")))
    real = PLAIN.fit(table).sample(seed=1)
    found = MacroToMicro(unit="sector", scenario="internal").fit(table, microdata=real)
    assert found.records.tolist() == TABLE["records"].to_list()
