"""Copulas and order-free regressions on SD2011 and Adult, between the baselines and trees."""

import polars as pl
import pytest

import discreet
from discreet import Microdata, utility
from discreet.synth import Sequential
from discreet.synth.all_others import AllOthers
from discreet.synth.baselines import Bootstrap, Independent
from discreet.synth.gaussian_copula import GaussianCopula
from discreet.synth.vine_copula import VineCopula

COLUMNS = ["sex", "age", "edu", "marital", "income", "ls", "nofriend", "height"]
CODES = {"income": [-8], "nofriend": [-8]}


@pytest.fixture(scope="module")
def survey(test_data):
    table = pl.read_csv(test_data / "SD2011.csv", infer_schema_length=None, null_values=["NA"])
    return Microdata(table.select(COLUMNS))


def quality(data, synthesizer):
    released = synthesizer.fit(data, seed=1).sample(seed=2)
    assert released.frame.schema == data.frame.schema
    return utility.tabular(data, released, special_codes=CODES).figures["mean_S_pMSE"]


@pytest.mark.slow
def test_copulas_lie_between_independence_and_trees_on_a_survey(survey):
    nothing = quality(survey, Independent())
    found = {
        "latent": quality(survey, GaussianCopula(special_codes=CODES)),
        "information": quality(survey, GaussianCopula(dependence="mutual-information", special_codes=CODES)),
        "r-vine": quality(
            survey,
            VineCopula("r-vine", pair_copulas="gaussian", special_codes=CODES, max_records=2000),
        ),
    }
    assert max(found.values()) < 0.6 * nothing
    assert found["latent"] < 8
    assert quality(survey, Sequential()) < min(found.values())
    assert quality(survey, Bootstrap()) < 1.3


def test_levels_in_the_order_that_goes_best_help_a_survey(survey):
    given = quality(survey, GaussianCopula(special_codes=CODES, level_order="given"))
    assert quality(survey, GaussianCopula(special_codes=CODES)) < 0.75 * given


@pytest.mark.slow
def test_divided_categories_more_than_halve_what_the_tables_of_adult_lose():
    columns = ["age", "marital-status", "occupation", "relationship", "sex", "hours-per-week", "income"]
    people = Microdata(discreet.datasets.adult().frame.select(columns))
    figures = {}
    for splits in (False, True):
        released = GaussianCopula(splits=splits).fit(people, seed=1).sample(seed=2)
        figures[splits] = utility.tabular(people, released, ways=2).figures
    assert figures[True]["mean_S_pMSE"] < 0.5 * figures[False]["mean_S_pMSE"]
    assert figures[True]["max_S_pMSE"] < 0.4 * figures[False]["max_S_pMSE"]
    assert figures[True]["median_S_pMSE"] < 0.6 * figures[False]["median_S_pMSE"]


@pytest.mark.slow
def test_sweeps_bring_relations_between_numbers_of_a_survey_back(survey):
    changes = {}
    for sweeps in (0, 10):
        model = AllOthers(special_codes=CODES, sweeps=sweeps).fit(survey, seed=1)
        table = model.diagnose(seed=1).detail["correlations"]
        changes[sweeps] = (table["original"] - table["synthetic"]).abs().max()
    assert changes[10] < 0.08
    assert changes[10] < 0.7 * changes[0]


@pytest.mark.slow
def test_a_gaussian_copula_of_a_census_file_keeps_margins_and_much_of_the_relations(test_data):
    people = discreet.datasets.adult()
    codes = {"capital-gain": [0], "capital-loss": [0]}
    released = GaussianCopula(special_codes=codes).fit(people, seed=1).sample(seed=2)
    one_way = utility.tabular(people, released, ways=1).figures["max_S_pMSE"]
    both = utility.tabular(people, released, ways=2).figures["median_S_pMSE"]
    apart = utility.tabular(people, Independent().fit(people).sample(seed=2), ways=2).figures["median_S_pMSE"]
    assert one_way < 4
    assert both < 0.5 * apart
