"""Weighted synthesis of EU-SILC and of the Ghana living standards survey: no bias of the design is left."""

import polars as pl
import pytest

from discreet import Microdata
from discreet.synth import Sequential, preflight, survey_check
from discreet.utility import compare_model

FILES = {
    "eusilcS": ("rb050", ["db030"]),
    "laeken_eusilc": ("rb050", ["db030", "rb030"]),
    "ghanaS": ("weight", ["hhid"]),
}


@pytest.fixture(
    scope="module",
    params=["eusilcS", *(pytest.param(name, marks=pytest.mark.slow) for name in ("laeken_eusilc", "ghanaS"))],
)
def survey(request, test_data):
    weight, identifiers = FILES[request.param]
    path = test_data / f"{request.param}.csv.gz"
    frame = pl.read_csv(path, infer_schema_length=None, null_values=["NA", ""])
    return Microdata(frame.drop(identifiers), weight=weight)


@pytest.mark.slow
def test_means_and_shares_are_those_of_the_population_whatever_becomes_of_the_weight(survey):
    for use in ("use", "regenerate", "synthesize"):
        copies = Sequential(weights=use, visit_sequence="auto").fit(survey, seed=1).sample(copies=2, seed=1)
        found = survey_check(survey, copies)
        assert found.figures["beyond_limit"] == 0
        # Ignoring the weights would have been wrong in many columns.
        assert found.figures["unweighted_beyond_limit"] >= 15
        assert (survey.roles.weight in copies[0].columns) == (use != "use")
    total = survey.frame[survey.roles.weight].sum()
    regenerated = Sequential(weights="regenerate").fit(survey, seed=1).sample(seed=1)
    assert regenerated.frame[survey.roles.weight].sum() == pytest.approx(total)


def test_the_design_effect_is_in_the_plan_and_in_the_check(survey):
    weights = survey.frame[survey.roles.weight].to_numpy()
    wanted = 1 + weights.var() / weights.mean() ** 2
    fitted = Sequential().fit(survey, seed=1)
    assert fitted.plan.settings["design_effect"] == pytest.approx(wanted)
    assert survey_check(survey, fitted.sample(seed=1)).figures["design_effect"] == pytest.approx(wanted)


def test_a_weighted_model_of_the_survey_agrees_with_that_of_its_synthetic_population(test_data):
    frame = pl.read_csv(test_data / "eusilcS.csv.gz", infer_schema_length=None, null_values=["NA", ""])
    adults = frame.drop_nulls("netIncome").with_columns(net=pl.col("netIncome") / 1000)
    survey = Microdata(adults.select("net", "age", "rb090", "hsize", "rb050"), weight="rb050")
    copies = Sequential(visit_sequence="auto").fit(survey, seed=1).sample(copies=5, seed=1)
    found = compare_model("net ~ age + rb090 + hsize", survey, copies)
    assert found.parameters["weight"] == "rb050"
    assert found.figures["share_same_conclusion"] == 1.0
    assert found.figures["overlap_min"] > 0.3


def test_the_parts_of_an_income_are_found_and_no_benefit_is_lost(test_data):
    frame = pl.read_csv(test_data / "eusilcS.csv.gz", infer_schema_length=None, null_values=["NA", ""])
    survey = Microdata(frame.drop("db030"), weight="rb050")
    found = preflight(survey, probe=False)
    parts = [name for name in frame.columns if name.startswith("py")]
    assert set(found["sum:netIncome"].columns[1:]) == set(parts)
    assert found["sum:netIncome"].evidence["broken"] == 0
    assert {f.column for f in found.of("spikes")} >= set(parts)
    made = found.synthesizer().fit(survey, seed=1).sample(seed=1).frame.drop_nulls(["netIncome"])
    assert (made["netIncome"] - made.select(pl.sum_horizontal(parts)).to_series()).abs().max() < 0.006
