"""Weighted synthesis of surveys: the simulation populations of the pseudo-likelihood specification (E3 to E6)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.microdata import Microdata
from discreet.synth import load
from discreet.synth.sequential.fitting_records import SampledUnits
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.survey_checks import survey_check
from discreet.utility import combine

RANGES = {"linear": (500, 600), "nonlinear": (100, 900)}
MEANS = {"linear": (550, 440, 352, 0.60455, 0.61243), "nonlinear": (500, 400, 320, 0.5, 0.51472)}
UNWEIGHTED = {"linear": 551.52, "nonlinear": 606.67}
CURVES = {"linear": (16, 0.03), "nonlinear": (10, 0.02)}
METHODS = {"M": "sample", "C1": "norm", "C2": "norm", "B1": "logreg", "B2": "logreg"}


def population(kind, size, rng):
    low, high = RANGES[kind]
    at, slope = CURVES[kind]
    m = rng.uniform(low, high, size)
    c1 = rng.normal(0.8 * m, 15)
    c2 = rng.normal(0.8 * c1, 15)
    b1 = (rng.random(size) < 1 / (1 + np.exp(at - slope * m))).astype(int)
    b2 = (rng.random(size) < 1 / (1 + np.exp(3 - 7 * b1))).astype(int)
    return {"M": m, "C1": c1, "C2": c2, "B1": b1.astype(bool), "B2": b2.astype(bool)}


def drawn(people, n, rng):
    """Draw with replacement in proportion to M; the weight is its inverse."""
    m = people["M"]
    at = rng.choice(len(m), size=n, p=m / m.sum())
    columns = {name: values[at] for name, values in people.items()}
    return Microdata(pl.DataFrame(columns).with_columns(w=pl.lit(m.sum() / n) / pl.col("M")), weight="w")


@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
@pytest.mark.parametrize("method", ["cart", "parametric"])
def test_weighted_synthesis_removes_the_bias_of_the_design(kind, method):
    rng = np.random.default_rng(11)
    n = 20_000
    survey = drawn(population(kind, 200_000, rng), n, rng)
    options = {"method": METHODS} if method == "parametric" else {}
    made = Sequential(**options).fit(survey, seed=1).sample(seed=1).frame
    ignored = Sequential(**options, weights="ignore").fit(survey, seed=1).sample(seed=1).frame
    sd = made["M"].std()
    assert ignored["M"].mean() == pytest.approx(UNWEIGHTED[kind], abs=4 * sd / np.sqrt(n))
    for name, truth in zip(("M", "C1", "C2", "B1", "B2"), MEANS[kind], strict=True):
        spread = made[name].cast(pl.Float64).std()
        # Population, sample with unequal weights and synthetic file each add their own error.
        assert made[name].mean() == pytest.approx(truth, abs=4.5 * spread * np.sqrt(3 / n))
    assert "w" not in made.columns


def test_the_check_table_sees_what_ignoring_the_weights_does():
    rng = np.random.default_rng(12)
    survey = drawn(population("nonlinear", 100_000, rng), 5000, rng)
    fitted = Sequential().fit(survey, seed=1)
    good = survey_check(survey, fitted.sample(copies=3, seed=1))
    assert good.value < 3.5
    assert good.figures["beyond_limit"] <= 1
    bad = survey_check(survey, Sequential(weights="ignore").fit(survey, seed=1).sample(seed=1))
    assert bad.value > 10
    assert bad.figures["unweighted_beyond_limit"] >= 5
    means = good.detail["means"].filter(pl.col("column") == "M").row(0, named=True)
    assert means["unweighted"] == pytest.approx(606.67, abs=10)
    assert means["synthetic"] == pytest.approx(500, abs=15)


def test_synthesized_and_regenerated_weights_pass_the_check_as_well():
    rng = np.random.default_rng(13)
    survey = drawn(population("nonlinear", 100_000, rng), 4000, rng)
    for use in ("regenerate", "synthesize"):
        made = Sequential(weights=use).fit(survey, seed=1).sample(seed=1)
        assert made.roles.weight == "w"
        assert survey_check(survey, made).figures["beyond_limit"] <= 1


@pytest.mark.parametrize("proper", [False, True, "bootstrap"])
@pytest.mark.parametrize("method", ["cart", "parametric", {"M": "sample", "C1": "norm", "C2": "lognorm"}])
def test_weights_that_are_all_the_same_give_the_file_that_no_weights_give(method, proper):
    rng = np.random.default_rng(18)
    people = pl.DataFrame(population("linear", 300, rng))
    synthesizer = Sequential(method=method, proper=proper)
    even = synthesizer.fit(Microdata(people.with_columns(w=pl.lit(7.5)), weight="w"), seed=1)
    plain = synthesizer.fit(Microdata(people), seed=1)
    assert even.sample(seed=2).frame.equals(plain.sample(seed=2).frame)
    assert even.combining_rule == plain.combining_rule


def test_synthetic_weights_that_are_not_above_zero_become_the_smallest_and_are_counted(tmp_path):
    rng = np.random.default_rng(19)
    x = rng.normal(size=500)
    frame = pl.DataFrame({"x": x, "y": x + rng.normal(size=500), "w": np.exp(2 * rng.normal(size=500))})
    survey = Microdata(frame, weight="w")
    fitted = Sequential(weights="synthesize", method={"w": "norm"}).fit(survey, seed=1)
    with pytest.warns(DiscreetWarning, match=r"of 500 synthetic weights in 'w' .* 'cart'"):
        made = fitted.sample(seed=1).frame["w"]
    assert made.min() == pytest.approx(frame["w"].min())
    again = load(fitted.save(tmp_path / "model.npz"))
    with pytest.warns(DiscreetWarning, match="smallest"):
        assert again.sample(seed=1).frame["w"].to_list() == made.to_list()


@pytest.mark.parametrize("use", ["use", "regenerate", "synthesize"])
@pytest.mark.parametrize("weight", [0.0, -1.0, None, float("nan"), float("inf")])
def test_weights_that_are_no_weights_are_refused(use, weight):
    frame = pl.DataFrame({"x": np.arange(50.0), "y": np.arange(50.0) ** 2, "w": [weight] + [1.5] * 49})
    with pytest.raises(
        ColumnError, match=r"'w' is missing, zero, negative or not finite in 1 record|infinite"
    ):
        Sequential(weights=use).fit(Microdata(frame, weight="w"))


def test_the_bootstrap_draws_whole_clusters_within_the_strata_of_the_design():
    units = SampledUnits(np.repeat(np.arange(6), 3), np.repeat([0, 1], 9))
    times = units.drawn_again(None, np.random.default_rng(1)).reshape(6, 3)
    assert (times == times[:, :1]).all()
    assert times[:3].sum() == times[3:].sum() == 9


@pytest.mark.slow
def test_copies_of_a_clustered_survey_vary_as_its_clusters_do():
    """All members of a cluster are alike, so that the mean of 400 records is as uncertain as that of 20."""
    rng = np.random.default_rng(20)
    value = np.repeat(rng.normal(size=20), 20)
    frame = pl.DataFrame(
        {
            "y": value,
            "z": rng.normal(size=400),
            "village": np.repeat(np.arange(20), 20),
            "w": rng.uniform(1, 2, 400),
        }
    )
    spread = {}
    for name, roles in (("records", {}), ("clusters", {"psu": "village"})):
        survey = Microdata(frame, weight="w", **roles)
        fitted = Sequential(proper="bootstrap", leave_out=["village"]).fit(survey, seed=1)
        means = [copy.frame["y"].mean() for copy in fitted.sample(copies=60, seed=1)]
        spread[name] = np.var(means, ddof=1)
    within = frame["y"].var() / 400
    assert spread["clusters"] - within == pytest.approx(frame["y"].var() / 20, rel=0.6)
    assert spread["clusters"] > 5 * spread["records"]


def test_one_resample_is_shared_by_all_columns_of_a_copy():
    """The sum of two columns that cancel out has no sampling error; models of separate resamples would give it one."""
    rng = np.random.default_rng(21)
    n = 400
    group = np.repeat(["a", "b"], n // 2)
    gain = rng.normal(size=n)
    frame = pl.DataFrame({"group": group, "gain": gain, "loss": -gain + 1e-3 * rng.normal(size=n)})
    fitted = Sequential(
        method={"group": "sample", "gain": "norm", "loss": "norm"},
        predictor_matrix={"gain": ["group"], "loss": ["group"]},
        proper="bootstrap",
    ).fit(Microdata(frame), seed=1)
    copies = fitted.sample(20_000, copies=25, seed=1)
    sums = [copy.frame["gain"].mean() + copy.frame["loss"].mean() for copy in copies]
    # Separate resamples would add 2 / 400 to the variance; what is left is the noise of 20,000 drawn records.
    assert np.var(sums, ddof=1) < 0.3 * 2 / n


def test_the_design_effect_is_in_the_plan_and_warned_of_when_large():
    rng = np.random.default_rng(14)
    survey = drawn(population("linear", 10_000, rng), 1000, rng)
    plan = Sequential().plan(survey)
    assert plan.settings["design_effect"] == pytest.approx(1.0, abs=0.01)
    assert not any("design effect" in note for note in plan.warnings)
    x = rng.normal(size=1000)
    uneven = Microdata(
        pl.DataFrame({"x": x, "y": x + 1, "w": np.exp(1.5 * rng.normal(size=1000))}), weight="w"
    )
    plan = Sequential().plan(uneven)
    w = uneven.frame["w"].to_numpy()
    assert plan.settings["design_effect"] == pytest.approx(1 + (w.std() / w.mean()) ** 2)
    assert any("design effect" in note and "bootstrap" in note for note in plan.warnings)
    assert "design_effect" not in Sequential(weights="ignore").plan(uneven).settings


def test_worked_examples_of_combining_survey_copies():
    five = [10.2, 9.8, 10.5, 9.9, 10.1], [0.04, 0.05, 0.045, 0.05, 0.04]
    normal = combine(*five, "pseudo-likelihood")
    assert (normal.estimate, normal.between, normal.within) == pytest.approx((10.1, 0.075, 0.045))
    assert normal.variance == pytest.approx(0.09)
    full = combine(*five, "bootstrap")
    assert (full.variance, full.df) == pytest.approx((0.045, 1.0))
    four = combine([4.1, 4.0, 4.2, 4.05], [0.02, 0.02, 0.025, 0.015], "bootstrap")
    assert four.between == pytest.approx(0.0072917, abs=5e-8)
    assert four.flagged
    with pytest.raises(ParameterError, match="does not belong"):
        combine(*five, "bootstrap", generation="none")


def test_the_rule_that_fits_is_told_by_the_model():
    rng = np.random.default_rng(15)
    survey = drawn(population("linear", 5000, rng), 500, rng)
    assert Sequential(method=METHODS).fit(survey, seed=1).combining_rule == "pseudo-likelihood"
    assert Sequential(method=METHODS, proper="bootstrap").fit(survey, seed=1).combining_rule == "bootstrap"


def test_the_model_that_drew_the_copies_chooses_the_rule_and_refuses_a_wrong_one():
    rng = np.random.default_rng(15)
    survey = drawn(population("linear", 5000, rng), 500, rng)
    five = [10.2, 9.8, 10.5, 9.9, 10.1], [0.04, 0.05, 0.045, 0.05, 0.04]
    fitted = Sequential(method=METHODS).fit(survey, seed=1)
    assert combine(*five, generation=fitted).rule == "pseudo-likelihood"
    for wrong in ("bootstrap", "proper", "simple"):
        with pytest.raises(ParameterError, match="Use 'pseudo-likelihood'"):
            combine(*five, wrong, generation=fitted)
    resampled = Sequential(method=METHODS, proper="bootstrap").fit(survey, seed=1)
    assert combine(*five, generation=resampled).variance == pytest.approx(0.045)
    plain = Sequential(weights="ignore").fit(survey, seed=1)
    assert combine(*five, generation=plain).rule == "simple"
    assert combine(*five).rule == "simple"


def test_mistakes_of_the_check_are_named():
    made = Microdata(pl.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ParameterError, match="no weight"):
        survey_check(made, made)
    survey = Microdata(pl.DataFrame({"x": [1.0, 2.0], "w": [1.0, 0.0]}), weight="w")
    with pytest.raises(ColumnError, match="positive"):
        survey_check(survey, made)
    with pytest.raises(ColumnError, match="'z'"):
        survey_check(survey, made, columns=["z"])
    with pytest.raises(ParameterError, match="at least one"):
        survey_check(survey, [])
    fine = Microdata(pl.DataFrame({"x": [1.0, 2.0], "w": [1.0, 3.0]}), weight="w")
    with pytest.raises(ColumnError, match="of a synthetic file"):
        survey_check(fine, survey)
    with pytest.raises(ColumnError, match="'x' is a number in one file") as told:
        survey_check(fine, Microdata(pl.DataFrame({"x": ["secret", "value"]})))
    assert "secret" not in str(told.value)
    with pytest.raises(ParameterError, match="limit"):
        survey_check(fine, made, limit="3")


def test_a_column_without_values_is_compared_by_its_gaps_alone():
    empty = pl.Series("z", [None] * 50, dtype=pl.Float64)
    frame = pl.DataFrame({"x": np.arange(50.0), "z": empty, "w": np.arange(1.0, 51.0)})
    found = survey_check(Microdata(frame, weight="w"), Microdata(frame.drop("w")))
    assert np.isfinite(found.value)
    assert found.detail["means"].filter(pl.col("column") == "z")["figure"].to_list() == ["share missing"]


def test_unequal_weights_are_told_whatever_the_limit():
    x = np.linspace(-3, 3, 400)
    survey = Microdata(pl.DataFrame({"x": x, "w": np.exp(2 * x)}), weight="w")
    assert "design effect" in survey_check(survey, Microdata(pl.DataFrame({"x": x})), limit=100).caveats[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "expected"), [("linear", (0.950, 0.954, 0.952)), ("nonlinear", (0.885, 0.885, 0.885))]
)
def test_coverage_of_combined_intervals_is_that_of_the_closed_form(kind, expected):
    """Coverage of 95 % intervals for M, C1, C2 without parameter draws, m = 10, n = 1000 (E6 and its rerun).

    n Var(Hajek mean of M) is 837.5 or 93,316 and n b is 833.3 or 53,333: in the nonlinear population b ignores the
    design effect, and intervals are too short. 400 runs give a standard error of 0.011 to 0.016; the tolerance is
    three of them.
    """
    rng = np.random.default_rng(16)
    people = population(kind, 10_000, rng)
    names = ["M", "C1", "C2"]
    truth = np.array([people[name].mean() for name in names])
    runs, hits = 400, np.zeros(3)
    synthesizer = Sequential(
        method={"M": "sample", "C1": "norm", "C2": "norm"}, predictor_matrix={"C2": ["C1"]}
    )
    for run in range(runs):
        survey = drawn({name: people[name] for name in names}, 1000, rng)
        copies = [file.frame for file in synthesizer.fit(survey, seed=run).sample(copies=10, seed=run)]
        means = np.array([copy.select(names).mean().row(0) for copy in copies])
        variances = np.array([copy.select(names).var().row(0) for copy in copies]) / 1000
        low, high = combine(means, variances, "pseudo-likelihood").interval()
        hits += (low <= truth) & (truth <= high)
    for share, wanted in zip(hits / runs, expected, strict=True):
        assert share == pytest.approx(wanted, abs=3 * np.sqrt(wanted * (1 - wanted) / runs))


@pytest.mark.slow
def test_parameter_draws_widen_the_intervals_of_later_columns_as_the_closed_form_says():
    """Coverage for M, C1, C2 with parameter draws in the linear population: 0.950, 0.968, 0.976 (E6).

    200 runs give a standard error of 0.011 to 0.015; the tolerance is three of them.
    """
    rng = np.random.default_rng(17)
    people = population("linear", 10_000, rng)
    names = ["M", "C1", "C2"]
    truth = np.array([people[name].mean() for name in names])
    runs, hits = 200, np.zeros(3)
    synthesizer = Sequential(
        method={"M": "sample", "C1": "norm", "C2": "norm"}, predictor_matrix={"C2": ["C1"]}, proper=True
    )
    for run in range(runs):
        survey = drawn({name: people[name] for name in names}, 1000, rng)
        copies = [file.frame for file in synthesizer.fit(survey, seed=run).sample(copies=10, seed=run)]
        means = np.array([copy.select(names).mean().row(0) for copy in copies])
        low, high = combine(means, np.ones((10, 3)), "pseudo-likelihood").interval()
        hits += (low <= truth) & (truth <= high)
    for share, wanted in zip(hits / runs, (0.950, 0.968, 0.976), strict=True):
        assert share == pytest.approx(wanted, abs=3 * np.sqrt(wanted * (1 - wanted) / runs))


@pytest.mark.slow
def test_the_bootstrap_rule_gives_the_variance_of_the_weighted_survey():
    """n Var(Hajek mean of M) is 93,316 in the nonlinear population (E6), and that of one copy given it is 53,333.

    So n b is 146,649, and of twenty copies 1.05 n b - n v is 100,648; the rule (1 + 1/m) b of copies that were not
    bootstrapped would give 56,000. Forty surveys give the mean to about 8 %; the tolerance is three times that.
    """
    rng = np.random.default_rng(22)
    people = population("nonlinear", 10_000, rng)
    found = []
    for run in range(40):
        survey = drawn({name: people[name] for name in ("M", "C1")}, 1000, rng)
        fitted = Sequential(method={"M": "sample", "C1": "norm"}, proper="bootstrap").fit(survey, seed=run)
        copies = [file.frame for file in fitted.sample(copies=20, seed=run)]
        means = np.array([copy.mean().row(0) for copy in copies])
        variances = np.array([copy.var().row(0) for copy in copies]) / 1000
        whole = combine(means, variances, generation=fitted)
        found.append(1.05 * whole.between - whole.within)
    assert 1000 * np.mean(found, axis=0)[0] == pytest.approx(100_648, rel=0.25)
    # C1 is 0.8 M and noise of variance 225, so that its variance is 0.64 that of M and a little more.
    assert 1000 * np.mean(found, axis=0)[1] == pytest.approx(0.64 * 100_648 + 225 * 1.4, rel=0.25)
