"""Preflight of the NIST excerpts of the American Community Survey, whose incomes are texts because of one code."""

import polars as pl
import pytest

from discreet import Microdata, utility
from discreet.synth import Sequential, preflight


@pytest.fixture(scope="module")
def survey(test_data):
    return Microdata(pl.read_csv(test_data / "nist-dce" / "ma2019.csv", infer_schema_length=None))


@pytest.fixture(scope="module")
def found(survey):
    return preflight(survey, probe=False)


def test_incomes_and_poverty_ratios_are_numbers_with_the_code_n(found, survey):
    for name in ("PINCP", "POVPIP"):
        finding = found[f"number-as-text:{name}"]
        assert (finding.confidence, finding.parameters["codes"]) == ("high", ["N"])
        assert finding.evidence["records_with_code"] == (survey.frame[name] == "N").sum()
        assert "special_codes" in finding.action
    # Numbers of industries are labels; whether to order them is for the user to say.
    assert found["number-as-text:INDP"].confidence == "medium"
    assert found.synthesizer().special_codes == {"PINCP": ["N"], "POVPIP": ["N"]}


def test_cleaning_and_restoring_gives_every_text_back(found, survey):
    clean = found.apply(survey)
    assert clean.frame.schema["PINCP"].is_numeric()
    assert found.restore(clean).frame.equals(survey.frame)


@pytest.mark.slow
def test_incomes_taken_for_numbers_keep_pairs_better_than_thousands_of_levels(found, survey):
    as_levels = Sequential().fit(survey, seed=1)
    assert any("'PINCP' is text" in note for note in as_levels.plan.warnings)
    as_numbers = Sequential(special_codes={"PINCP": ["N"], "POVPIP": ["N"]}).fit(survey, seed=1)
    worst = {
        name: utility.tabular(survey, fitted.sample(seed=1), ways=2).value
        for name, fitted in (("levels", as_levels), ("numbers", as_numbers))
    }
    # 4.3 against 5.5; trees that weigh what a column gains by chance no longer fall for thousands of levels.
    assert worst["numbers"] < 0.9 * worst["levels"]
