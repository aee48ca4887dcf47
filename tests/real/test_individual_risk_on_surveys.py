"""Individual risk on real surveys: published figures, weights below one, a known population, two levels."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.individual_risk import individual


def read(test_data, name, **types):
    return pl.read_csv(test_data / name, infer_schema_length=None, schema_overrides=types)


def test_the_textbook_example_of_capobianchi_polettini_and_lucarelli(test_data):
    table = read(test_data, "francdat.csv")
    found = individual(Microdata(table, keys=["Key1", "Key2", "Key3", "Key4"], weight="w"))
    records = found.detail["records"]
    assert records["class_size"].to_list() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert records["population_estimate"].to_list() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    published = [
        0.01714426,
        0.02204233,
        0.02204233,
        0.17707583,
        0.01165448,
        0.29706308,
        0.40235948,
        0.01714426,
    ]
    assert records["risk"].to_list() == pytest.approx(published, abs=5e-9)
    assert found.figures["expected_reidentifications"] == pytest.approx(sum(published), abs=4e-8)


def test_the_household_survey_of_the_main_reference_table(test_data):
    table = read(test_data, "testdata.csv")
    keys = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    found = individual(Microdata(table, keys=keys, weight="sampling_weight", household="ori_hid"))
    records = found.detail["records"]
    assert found.figures["households"] == table["ori_hid"].n_unique()
    by_home = (
        table.select("ori_hid")
        .with_columns(records["risk"], records["household_risk"])
        .group_by("ori_hid")
        .agg(together=1 - (1 - pl.col("risk")).product(), given=pl.col("household_risk").unique())
    )
    assert by_home["given"].list.len().max() == 1
    assert np.allclose(by_home["given"].explode(), by_home["together"], rtol=1e-9)
    assert found.figures["household_global_risk"] > found.figures["global_risk"]


@pytest.mark.parametrize("missing", ["category", "wildcard", "drop"])
def test_weights_below_one_never_lift_a_risk_above_one(test_data, missing):
    table = read(test_data, "ghanaS.csv.gz")
    assert (table["weight"] < 1).any()
    keys = ["region", "age", "sex", "relate", "ethnic", "religion"]
    found = individual(Microdata(table, keys=keys, weight="weight", household="hhid"), missing=missing)
    records = found.detail["records"]
    for column in ("risk", "household_risk"):
        assert records[column].is_between(0, 1).all()
    assert (records["household_risk"] >= records["risk"] - 1e-12).all()
    assert (records["risk"] * records["class_size"] <= 1 + 1e-12).all()
    assert any("fully observed" in caveat for caveat in found.caveats)


def test_missing_as_wildcard_only_lowers_the_risk_of_equal_weights(test_data):
    table = read(test_data, "eusilcP.csv.gz", ecoStat=pl.String, hsize=pl.String)
    sample = table.sample(6000, seed=1).with_columns(w=pl.lit(table.height / 6000))
    data = Microdata(sample, keys=["region", "gender", "ecoStat", "citizenship", "hsize"], weight="w")
    own, wild = (individual(data, missing=way).detail["records"]["risk"] for way in ("category", "wildcard"))
    assert (wild <= own + 1e-12).all()


@pytest.mark.parametrize(
    ("keys", "fraction", "low", "high"),
    [
        (["region", "hsize", "gender", "ecoStat", "citizenship"], 0.1, 0.85, 1.15),
        (["region", "hsize", "gender", "ecoStat", "citizenship"], 0.5, 0.95, 1.05),
        (["region", "hsize", "gender", "age"], 0.1, 0.9, 1.3),
        (["region", "age", "gender"], 0.1, 1.1, 1.6),
        (["region", "hsize", "gender", "age"], 0.01, 0.3, 0.6),
    ],
)
@pytest.mark.slow
def test_the_sum_of_the_risks_against_the_truth_of_a_known_population(test_data, keys, fraction, low, high):
    """The estimate is good for large sampling fractions and off by half for small ones; the bounds record that."""
    population = read(test_data, "eusilcP.csv.gz", ecoStat=pl.String, hsize=pl.String)
    people = population.group_by(keys).agg(people=pl.len())
    ratios = []
    for seed in range(3):
        sample = population.sample(fraction=fraction, seed=seed).with_columns(w=pl.lit(1 / fraction))
        found = individual(Microdata(sample, keys=keys, weight="w"))
        truth = sample.join(people, on=keys, nulls_equal=True).select((1 / pl.col("people")).sum()).item()
        ratios.append(found.figures["expected_reidentifications"] / truth)
    assert low < np.mean(ratios) < high


def test_employers_and_employees_of_the_structure_of_earnings_survey(test_data):
    table = read(test_data, "laeken_ses.csv.gz")
    keys = ["location", "NACE1", "size", "sex", "age", "education", "occupation"]
    data = Microdata(table, keys=keys, weight="weights", employer="IDunit")
    found = individual(data, employer_weight="weightsEmployers")
    assert found.parameters["employer_keys"] == ["location", "NACE1", "size"]
    assert found.figures["employers"] == table["IDunit"].n_unique()
    records = found.detail["records"]
    for column in ("employer_risk", "within_risk", "two_level_risk"):
        assert records[column].is_between(0, 1).all()
    product = records["employer_risk"] * records["within_risk"]
    assert np.allclose(records["two_level_risk"], product)
    assert found.figures["two_level_expected_reidentifications"] == pytest.approx(product.sum())
    per_employer = table.select("IDunit").with_columns(records["employer_risk"]).group_by("IDunit")
    assert per_employer.agg(pl.col("employer_risk").n_unique())["employer_risk"].max() == 1


def test_the_nist_excerpt_with_its_person_weights(test_data):
    table = read(test_data, "nist-dce/national2019.csv")
    keys = ["PUMA", "AGEP", "SEX", "MSP", "RAC1P", "EDU", "OWN_RENT"]
    found = individual(Microdata(table, keys=keys, weight="PWGTP"), target_share=0.01)
    risk, threshold = found.detail["records"]["risk"].to_numpy(), found.figures["target_threshold"]
    assert np.minimum(risk, threshold).mean() == pytest.approx(0.01)
    assert found.figures["population_estimate"] == table["PWGTP"].sum()
