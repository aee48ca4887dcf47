"""Teaching data from published results: what is met, what is refused, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.synth.from_outputs import (
    Codebook,
    CondMean,
    CondMedian,
    ConflictingTargetsError,
    Correlation,
    CrossTab,
    Frequencies,
    FromOutputs,
    LinearCoefs,
    LogitCoefs,
    Raking,
    Variable,
    attribution_beyond_holdout,
)
from discreet.synth.synthesizer import Synthesizer, load

SEX = Variable("SEX", levels=["m", "f"], label="Sex", labels={"m": "man", "f": "woman"})
CAR = Variable("CAR", levels=[0, 1])
REGION = Variable("REGION", levels=["n", "s", "w"])
AGE = Variable("AGE", "integer", range=(18, 80))
PAY = Variable("PAY", "numeric", range=(0, 200))
BOOK = Codebook([SEX, CAR, REGION, AGE, PAY])
TABLE = CrossTab(["SEX", "CAR"], [[20, 30], [35, 15]])


def made(targets, n=100, book=BOOK, seed=1, **options):
    return FromOutputs(book, targets, n, **options).fit(seed=seed)


def met(fitted) -> bool:
    return bool(fitted.targets["met"].all())


@pytest.fixture(scope="module")
def study():
    """Figures as a paper would print them, from people who exist nowhere else."""
    random = np.random.default_rng(7)
    n = 800
    sex, region = random.integers(0, 2, n), random.choice(3, n, p=[0.3, 0.5, 0.2])
    age = random.integers(18, 81, n)
    pay = np.clip(12 + 0.4 * age - 3 * sex + np.array([0, 1.5, -2])[region] + random.normal(0, 9, n), 0, 200)
    x = np.column_stack([np.ones(n), age, sex, region == 1, region == 2]).astype(float)
    beta = np.linalg.lstsq(x, pay, rcond=None)[0]
    rest = pay - x @ beta
    sd = np.sqrt(rest @ rest / (n - 5))
    se = sd * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
    return {"n": n, "sex": sex, "region": region, "age": age, "pay": pay, "beta": beta, "sd": sd, "se": se}


def test_tables_of_counts_are_met_to_the_record():
    fitted = made([TABLE, Frequencies("REGION", {"n": 10, "s": 60, "w": 30})])
    frame = fitted.sample().frame
    assert met(fitted)
    assert frame.group_by("SEX", "CAR").len().sort("SEX", "CAR")["len"].to_list() == [20, 30, 35, 15]
    assert frame["REGION"].dtype == pl.Enum(["n", "s", "w"])
    assert frame["AGE"].dtype == pl.Int64
    assert frame["AGE"].is_between(18, 80).all()


def test_same_inputs_and_seed_give_the_same_file_and_another_seed_another():
    one, two, other = made([TABLE], seed=1), made([TABLE], seed=1), made([TABLE], seed=2)
    assert one.sample().frame.equals(two.sample().frame)
    assert not one.sample().frame.equals(other.sample().frame)


def test_copies_are_independent_runs_and_each_meets_the_targets():
    fitted = made([TABLE])
    copies = fitted.sample(copies=3)
    assert not copies[0].frame.equals(copies[1].frame)
    assert copies[0].frame.equals(fitted.sample().frame)
    for copy in copies:
        assert copy.frame.filter(SEX="m", CAR=1).height == 30
    assert fitted.sample(seed=5).frame.equals(fitted.sample(seed=5).frame)


def test_the_number_of_records_is_part_of_the_targets():
    with pytest.raises(ParameterError, match="n=50"):
        made([TABLE]).sample(50)


def test_labels_travel_with_the_file():
    metadata = made([TABLE]).sample().metadata
    assert metadata.column_labels == {"SEX": "Sex"}
    assert metadata.value_labels == {"SEX": {"m": "man", "f": "woman"}}


def test_two_tables_with_different_margins_are_named_and_no_file_is_made():
    other = CrossTab(["REGION", "CAR"], [[10, 10], [20, 20], [20, 20]])
    with pytest.raises(ConflictingTargetsError, match="'SEX x CAR' and 'REGION x CAR'") as caught:
        made([Frequencies("SEX", {"m": 50, "f": 50}), TABLE, other])
    assert set(caught.value.conflicts["target"]) <= {"SEX x CAR", "REGION x CAR"}
    assert caught.value.conflicts["off_by"].sum() == pytest.approx(10, abs=1e-6)


def test_a_margin_of_the_codebook_that_does_not_fit_a_table_is_a_conflict():
    book = Codebook([replace(SEX, shares={"m": 0.7, "f": 0.3}), CAR])
    with pytest.raises(ConflictingTargetsError, match="codebook margin of SEX"):
        made([TABLE], book=book)


def test_differences_that_rounding_explains_are_no_conflict():
    book = Codebook([replace(SEX, shares={"m": 0.49, "f": 0.5}, unit=0.02), CAR])
    assert met(made([TABLE], book=book))


def test_counts_rounded_to_fives_leave_room():
    rounded = CrossTab(["SEX", "REGION"], [[10, 20, 20], [10, 20, 25]], unit=5)
    assert met(made([TABLE, rounded]))


def test_a_table_of_another_size_is_rescaled_with_notice():
    with pytest.warns(DiscreetWarning, match="rescaled"):
        fitted = made([CrossTab(["SEX", "CAR"], [[200, 300], [350, 150]])])
    assert met(fitted)
    assert fitted.targets["achieved"].to_list() == [20, 30, 35, 15]
    assert any("rescaled" in note for note in fitted.notes)


def test_too_few_records_for_the_printed_precision_are_said():
    thirds = CrossTab(
        ["REGION", "CAR"], [[0.1666, 0.1667], [0.1667, 0.1667], [0.1667, 0.1666]], "proportions"
    )
    fitted = made([thirds], n=50)
    assert not met(fitted)
    assert any("too few for the printed precision" in note for note in fitted.notes)
    assert fitted.targets["difference"].abs().max() < 0.015


def test_row_proportions_and_filters_speak_of_their_base():
    rates = CrossTab(["SEX", "CAR"], [[0.4, 0.6], [0.7, 0.3]], "row_proportions", unit=0.01)
    south = Frequencies(
        "CAR", {0: 0.25, 1: 0.75}, "proportions", where={"REGION": ["s"]}, unit=0.01, name="south"
    )
    size = Frequencies("REGION", {"s": 40})
    fitted = made([rates, south, size], n=200)
    frame = fitted.sample().frame
    assert met(fitted)
    assert frame.filter(REGION="s")["CAR"].mean() == pytest.approx(0.75, abs=0.005)
    assert frame.filter(SEX="f")["CAR"].mean() == pytest.approx(0.3, abs=0.005)


def test_cells_that_were_not_published_are_free():
    holes = CrossTab(["SEX", "REGION"], [[float("nan"), 10, 5], [3, float("nan"), 7]])
    assert met(made([holes]))


@pytest.mark.slow
def test_bands_of_a_number_are_met_by_the_search():
    bands = CrossTab(["AGE", "SEX"], [[30, 20], [10, 40]], bands={"AGE": [18, 40, 80]})
    fitted = made([bands], batches=2_000)
    frame = fitted.sample().frame
    assert met(fitted)
    assert frame.filter(pl.col("AGE") < 40, SEX="m").height == 30


def test_more_tables_than_a_joint_table_can_hold_are_built_one_after_the_other():
    wide = [Variable(f"X{i}", levels=list(range(9))) for i in range(6)]
    book = Codebook([CAR, *wide])
    random = np.random.default_rng(1)
    file = random.integers(0, 9, size=(500, 6))
    car = random.integers(0, 2, 500)
    tables = [
        CrossTab(
            [f"X{i}", "CAR"],
            [[int(((file[:, i] == a) & (car == y)).sum()) for y in (0, 1)] for a in range(9)],
        )
        for i in range(6)
    ]
    assert met(made(tables, n=500, book=book))


def test_tables_in_a_ring_that_cannot_be_built_are_searched_for():
    wide = [Variable(f"X{i}", levels=list(range(9))) for i in range(4)]
    random = np.random.default_rng(1)
    file = random.integers(0, 9, size=(400, 4))
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    tables = [
        CrossTab(
            [f"X{a}", f"X{b}"],
            [[int(((file[:, a] == i) & (file[:, b] == j)).sum()) for j in range(9)] for i in range(9)],
        )
        for a, b in pairs
    ]
    fitted = made(tables, n=400, book=Codebook(wide), batches=1_500)
    assert any("entangled" in note for note in fitted.notes)
    assert fitted.targets["difference"].abs().mean() < 0.2


@pytest.mark.slow
def test_a_linear_model_with_errors_fit_measures_means_and_medians_comes_out_within_a_printing_unit(study):
    age, pay, sex, region = study["age"], study["pay"], study["sex"], study["region"]
    terms = ["(Intercept)", "AGE", "SEX[f]", "REGION[s]", "REGION[w]"]
    model = LinearCoefs(
        "PAY",
        {term: round(float(value), 2) for term, value in zip(terms, study["beta"], strict=True)},
        reference={"SEX": "m", "REGION": "n"},
        se={term: round(float(value), 3) for term, value in zip(terms, study["se"], strict=True)},
        residual_sd=round(float(study["sd"]), 2),
        r2=round(1 - (study["sd"] ** 2 * (study["n"] - 5)) / float(((pay - pay.mean()) ** 2).sum()), 3),
        unit=0.01,
        se_unit=0.001,
    )
    counts = [[int(((sex == a) & (region == b)).sum()) for b in range(3)] for a in range(2)]
    targets = [
        CrossTab(["SEX", "REGION"], counts),
        model,
        CondMedian(
            "PAY",
            [round(float(np.median(pay[region == place])), 1) for place in range(3)],
            by="REGION",
            unit=0.1,
        ),
        CondMean("AGE", round(float(age[sex == 1].mean()), 1), where={"SEX": "f"}, unit=0.1),
        Correlation("AGE", "PAY", round(float(np.corrcoef(age, pay)[0, 1]), 3), unit=0.001),
    ]
    fitted = made(targets, n=study["n"], batches=3_000)
    assert (fitted.targets["difference"].abs() / fitted.targets["unit"]).max() < 1
    assert fitted.targets["met"].mean() > 0.75


def test_published_quantiles_stay_in_place():
    book = Codebook([SEX, replace(AGE, quantiles={0.25: 30, 0.5: 40, 0.75: 60}), PAY])
    fitted = made(
        [CondMean("AGE", {"m": 44.0, "f": 46.0}, by="SEX", unit=0.1)], n=400, book=book, batches=2_000
    )
    assert met(fitted)
    for share, value in ((0.25, 30), (0.5, 40), (0.75, 60)):
        assert abs(float(np.quantile(fitted.sample().frame["AGE"], share)) - value) <= 1


def logit(coefs=None, **options) -> LogitCoefs:
    coefs = coefs or {"(Intercept)": -0.5, "AGE": 0.02, "SEX[f]": -0.4}
    return LogitCoefs("CAR", coefs, reference={"SEX": "m"}, **options)


@pytest.mark.slow
def test_standard_errors_of_a_logit_come_out_too():
    fitted = made([logit(se={"SEX[f]": 0.21, "AGE": 0.006})], n=400, batches=3_000)
    assert met(fitted)


def test_a_constant_that_was_not_published_is_left_free():
    target = logit({"AGE": 0.02, "SEX[f]": -0.4}, unpublished=["(Intercept)"])
    fitted = made([target, Frequencies("CAR", {0: 320, 1: 80})], n=400, batches=3_000)
    assert met(fitted)
    assert fitted.targets.filter(pl.col("target") == "logit of CAR").height == 2


def test_products_powers_and_logarithms_are_terms():
    target = LinearCoefs(
        "log(PAY)",
        {"(Intercept)": 3.0, "AGE": 0.01, "AGE^2": -0.0001, "SEX[f]": -0.1, "AGE:SEX[f]": 0.002},
        reference={"SEX": "m"},
    )
    book = Codebook([SEX, AGE, replace(PAY, range=(1, 200))])
    assert target.formula == "log(PAY) ~ 1 + AGE + AGE^2 + SEX + AGE:SEX"
    fitted = made([target], n=300, book=book, batches=1_000)
    assert fitted.report.figures["largest_coefficient_error"] < 0.02


@pytest.mark.slow
def test_rare_levels_get_records_of_either_outcome():
    book = Codebook([replace(REGION, shares={"n": 0.02, "s": 0.5, "w": 0.48}), CAR])
    target = LogitCoefs(
        "CAR", {"(Intercept)": 3.0, "REGION[n]": -2.9, "REGION[w]": 0.1}, reference={"REGION": "s"}, unit=0.1
    )
    for seed in range(3):
        frame = made([target], n=300, book=book, batches=1_000, seed=seed).sample().frame
        assert frame.filter(REGION="n")["CAR"].n_unique() == 2


def test_a_table_that_leaves_no_records_behind_a_coefficient_is_said_and_does_not_crash():
    target = LogitCoefs(
        "CAR", {"(Intercept)": 0.1, "REGION[n]": 0.5, "REGION[w]": 0.1}, reference={"REGION": "s"}
    )
    table = CrossTab(["REGION", "CAR"], [[10, 0], [25, 25], [20, 20]])
    fitted = made([target, table], batches=500)
    assert fitted.targets.filter(pl.col("figure") == "REGION[n]")["achieved"].to_list() == [None]
    assert any("REGION[n]" in note for note in fitted.notes)


def test_the_report_says_what_is_met_and_claims_no_safety():
    report = made([TABLE]).report
    assert report.value == 1
    assert report.figures["met"] == 4
    assert "4 of 4" in report.meaning
    assert any("risk(original, holdout)" in caveat for caveat in report.caveats)
    assert report.guarantee is None
    assert report.detail["targets"].columns[:5] == ["target", "figure", "published", "achieved", "difference"]


def test_the_manifest_holds_the_inputs_and_nothing_else():
    fitted = made([TABLE])
    manifest = fitted.manifest
    assert manifest["original_data_used"] is False
    assert FromOutputs.from_dict(manifest["inputs"]).to_dict() == fitted.plan.to_dict()
    assert manifest["inputs_sha256"] == made([TABLE], seed=2).manifest["inputs_sha256"]


@pytest.mark.parametrize("scale", ["raw", "se", "precision"])
def test_the_evolutionary_engine_gets_closer_on_every_scale(scale):
    fitted = made(
        [logit(), TABLE],
        engine="ea",
        runs=2,
        generations=40,
        loss_scale=scale,
        crossover=0.8,
        init="marginal",
        mutation_schedule=[0.05, 0.01],
    )
    assert len(fitted.runs) == 2
    for run in fitted.runs:
        assert run.trace["loss"][-1] < run.trace["loss"][0]
        assert run.trace["loss"].is_sorted(descending=True)


def test_the_evolutionary_engine_charges_what_cannot_be_computed():
    target = LogitCoefs(
        "CAR", {"(Intercept)": 0.1, "REGION[n]": 0.5, "REGION[w]": 0.1}, reference={"REGION": "s"}
    )
    bound = target.bind(BOOK, 4)
    file = np.array([[0, 0, 1, 20, 1], [0, 1, 1, 20, 1], [0, 1, 2, 20, 1], [0, 0, 2, 20, 1]], dtype=float)
    achieved = bound.achieved(file)
    assert np.isnan(achieved).tolist() == [False, True, False]
    assert bound.loss(achieved, "raw", 300.0) >= 100


def test_the_evolutionary_engine_stops_when_all_is_met():
    wide = Frequencies("SEX", {"m": 0.5, "f": 0.5}, "proportions", unit=0.5)
    assert made([wide], engine="ea", runs=1, generations=50).trace.height < 50


def test_weights_reach_population_margins_and_stay_within_their_bounds():
    book = Codebook([SEX, CAR, REGION, Variable("w", "weight")])
    raking = Raking({"SEX": {"m": 4_000, "f": 6_000}, "REGION": {"n": 3_000, "s": 5_000, "w": 2_000}})
    fitted = made([TABLE], book=book, weights=raking)
    data = fitted.sample()
    assert data.roles.weight == "w"
    assert fitted.margins["difference"].abs().max() < 1e-6
    weighted = data.frame.group_by("SEX").agg(pl.col("w").sum()).sort("SEX")["w"].to_list()
    assert weighted == pytest.approx([4_000, 6_000])


def test_extreme_weights_are_clipped_and_the_margins_reached_are_reported():
    book = Codebook([replace(SEX, shares={"m": 0.02, "f": 0.98}), CAR, Variable("w", "weight")])
    fitted = made([Frequencies("CAR", {0: 50})], book=book, weights=Raking({"SEX": {"m": 500, "f": 500}}))
    weights = fitted.sample().frame["w"]
    assert weights.max() <= 3 * 10 + 1e-9
    assert fitted.margins.filter(level="m")["reached"].item() == pytest.approx(60)


def test_the_risk_report_compares_original_and_holdout():
    random = np.random.default_rng(3)
    n = 2_000
    sex, region = random.integers(0, 2, n), random.integers(0, 3, n)
    car = (random.random(n) < 0.3 + 0.4 * sex).astype(int)
    people = pl.DataFrame(
        {"SEX": np.array(["m", "f"])[sex], "CAR": car, "REGION": np.array(["n", "s", "w"])[region]}
    )
    original, holdout = Microdata(people.head(1_000)), Microdata(people.tail(1_000))
    counts = [[int(((sex[:1000] == a) & (car[:1000] == y)).sum()) for y in (0, 1)] for a in (0, 1)]
    fitted = made([CrossTab(["SEX", "CAR"], counts)], n=1_000, book=Codebook([SEX, CAR, REGION]))
    risk = fitted.risk(original, holdout)
    table = risk.detail["variables"]
    assert table["target"].to_list() == ["SEX", "CAR", "REGION"]
    assert {"tcap_conditional_original", "tcap_original", "tcap_original_calibrated"} <= set(table.columns)
    copied = attribution_beyond_holdout(original, original, holdout)
    assert copied.figures["targets"] == 3 or copied.value is None
    with pytest.raises(ColumnError, match="holdout"):
        fitted.risk(original, Microdata(people.drop("CAR")))


def test_a_description_survives_toml(tmp_path):
    book = Codebook(
        [
            replace(SEX, shares={"m": 0.5, "f": 0.5}),
            CAR,
            REGION,
            replace(AGE, quantiles={0.5: 44}),
            PAY,
            Variable("w", "weight"),
        ]
    )
    plan = FromOutputs(
        book,
        [
            TABLE,
            Frequencies(
                "REGION", {"n": 0.25, "s": 0.5}, "proportions", where={"AGE": {"from": 30, "to": 50}}
            ),
            logit(se={"AGE": 0.01}),
            LinearCoefs("PAY", {"(Intercept)": 10.0, "AGE": 0.2}, residual_sd=5.0, r2=0.2),
            CondMean("PAY", {"m": 20.0, "f": 18.0}, by="SEX"),
            CondMedian("PAY", 19.0),
            Correlation("AGE", "PAY", 0.2),
        ],
        n=100,
        engine="ea",
        mutation_schedule=[0.1, 0.01],
        weights=Raking({"SEX": {"m": 1, "f": 1}}),
    )
    back = FromOutputs.load(plan.save(tmp_path / "plan.toml"))
    assert back.to_dict() == plan.to_dict()
    assert Synthesizer.named("from-outputs", plan.to_dict()).to_dict() == plan.to_dict()
    with pytest.raises(InputError):
        FromOutputs.load(tmp_path / "other.toml")


def test_made_files_are_saved_and_loaded_without_running_again(tmp_path):
    fitted = made([TABLE])
    again = load(fitted.save(tmp_path / "made.model"))
    assert again.sample().frame.equals(fitted.sample().frame)
    assert again.targets.equals(fitted.targets)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (LogitCoefs("CAR", {"(Intercept)": 1.0, "SEX[f]": 0.1}), "reference level of 'SEX'"),
        (LogitCoefs("CAR", {"AGE": 1.0}), "no constant"),
        (LogitCoefs("REGION", {"(Intercept)": 1.0}), "two levels"),
        (LogitCoefs("SEX", {"(Intercept)": 1.0}), "event="),
        (
            LogitCoefs("CAR", {"(Intercept)": 1.0, "REGION[s]": 0.1}, reference={"REGION": "n"}),
            "neither a coefficient",
        ),
        (
            LogitCoefs("CAR", {"(Intercept)": 1.0, "SEX[m]": 0.1, "SEX[f]": 0.1}, reference={"SEX": "m"}),
            "has a coefficient too",
        ),
        (LogitCoefs("CAR", {"(Intercept)": 1.0, "CAR": 0.1}), "one of its predictors"),
        (LogitCoefs("CAR", {"(Intercept)": 1.0, "SEX": 0.1}), "not numbers"),
        (LogitCoefs("CAR", {"(Intercept)": 1.0, "AGEE": 0.1}), "Did you mean 'AGE'"),
        (LinearCoefs("log(PAY)", {"(Intercept)": 1.0}), "no logarithm"),
        (CrossTab(["SEX", "CAR"], [[1, 2]]), "asks for 2 x 2"),
        (CrossTab(["AGE", "CAR"], [[1, 2]]), "bands="),
        (CrossTab(["SEX", "CAR"], [[-1, 2], [1, 1]]), "negative"),
        (CrossTab(["SEX", "CAR"], [[40, 20], [20, 20]], "proportions"), "divide percentages"),
        (CondMean("AGE", 90.0), "outside the range"),
        (Correlation("AGE", "PAY", 1.2), "between -1 and 1"),
        (Frequencies("SEX", {"x": 3}), "There is no level 'x'"),
        (CondMean("AGE", 30.0, weight=-1), "weight"),
        (CondMean("AGE", 30.0, unit=0), "printing unit"),
        (CondMean("AGE", 30.0, where={"PAY": [1, 2]}), "is written"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused_by_name(target, words):
    with pytest.raises((ParameterError, ColumnError), match=words):
        made([target])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "swop"}, "swap"),
        ({"n": 1}, "n must be"),
        ({"targets": []}, "no targets"),
        ({"targets": [TABLE, TABLE], "n": 100}, "Two targets"),
        ({"loss_scale": "log"}, "loss_scale"),
        ({"weights": Raking({"SEX": {"m": 1, "f": 1}})}, "need a column"),
        ({"mutation_schedule": [2.0]}, "mutation_schedule"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(options, words):
    given_options = {"codebook": BOOK, "targets": [TABLE], "n": 100, **options}
    with pytest.raises(ParameterError, match=words):
        FromOutputs(**given_options).fit(seed=1)


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ({"name": "X"}, "two levels"),
        ({"name": "X", "levels": [1, 1]}, "twice"),
        ({"name": "X", "kind": "integer"}, "range"),
        ({"name": "X", "kind": "nominall", "levels": [1, 2]}, "nominal"),
        ({"name": "X", "levels": [1, 2], "shares": {1: 0.6, 2: 0.6}}, "add up"),
        ({"name": "X", "levels": [1, 2], "shares": {1: 60, 2: 40}}, "percentages"),
        ({"name": "X", "kind": "numeric", "range": (0, 1), "quantiles": {0.5: 3}}, "quantiles"),
    ],
)
def test_a_variable_that_makes_no_sense_is_refused_by_name(variable, words):
    with pytest.raises(ParameterError, match=words):
        Variable(**variable)


def test_data_is_not_taken():
    with pytest.raises(ParameterError, match="do not give it data"):
        FromOutputs(BOOK, [TABLE], 100).fit(Microdata(pl.DataFrame({"a": [1]})))


@settings(max_examples=examples(25), deadline=None)
@given(
    cells=st.lists(st.integers(0, 30), min_size=12, max_size=12).filter(lambda values: sum(values) > 1),
    seed=st.integers(0, 1000),
)
def test_every_pair_of_tables_of_one_file_is_rebuilt_exactly(cells, seed):
    joint = np.array(cells).reshape(2, 2, 3)
    targets = [
        CrossTab(["SEX", "CAR"], joint.sum(axis=2).tolist()),
        CrossTab(["CAR", "REGION"], joint.sum(axis=0).tolist()),
    ]
    fitted = FromOutputs(Codebook([SEX, CAR, REGION]), targets, int(joint.sum())).fit(seed=seed)
    assert met(fitted)
    assert fitted.sample().frame.height == joint.sum()


@pytest.mark.parametrize(
    "table",
    [
        Frequencies("SEX", {"m": 0.6, "f": 0.4}),
        Frequencies("CAR", {0: 0.3, 1: 0.7}, where={"SEX": "m"}),
        CrossTab(["SEX", "CAR"], [[20.5, 29.5], [35, 15]]),
    ],
)
def test_shares_are_not_taken_for_counts(table):
    with pytest.raises(ParameterError, match="counted='proportions'"):
        made([table])


def test_margins_of_the_weights_are_checked_before_anything_is_made():
    book = Codebook([SEX, CAR, Variable("w", "weight")])
    with pytest.raises(ColumnError, match="Did you mean 'SEX'"):
        made([TABLE], book=book, weights=Raking({"SX": {"m": 4, "f": 6}}))
    with pytest.raises(ParameterError, match="every level"):
        made([TABLE], book=book, weights=Raking({"SEX": {"m": 4}}))
    margins = Raking({"SEX": {"m": 400, "f": 600}, "CAR": {0: 450, 1: 450}})
    with pytest.warns(DiscreetWarning, match="between 900 and 1,000"):
        fitted = made([TABLE], book=book, weights=margins)
    assert fitted.sample().frame["w"].sum() == pytest.approx(1000)
