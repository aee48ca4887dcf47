"""Worked examples of population simulation (methods/complex-survey-generator-evaluation.md, section 5)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, synth, utility
from discreet.synth.household_surveys import SurveyHouseholds, cells_of, weighted_quantiles
from discreet.synth.member_laws import REFINED, Classing

SIZES = [1372248, 1059302, 579039, 451860, 159899, 59685, 14892, 4376]
ALONE = [30507, 205156, 434229, 94862, 190413, 192618, 74800, 98443, 51220]
FEW = {(6, "AT11"), (7, "AT12"), (7, "AT21"), (7, "AT34"), (8, "AT13"), (8, "AT33")}
BREAKS = [
    0, 1089.22, 4454.88, 8681.30, 14950.12, 25112.56, 35866.00, 60556.35, 85311.27, 103132.19, 172916.35, 742325.36,
]  # fmt: skip


@pytest.fixture(scope="module")
def silc(test_data):
    frame = pl.read_csv(test_data / "eusilc13puf.csv.gz", infer_schema_length=None)
    frame = frame.with_columns(pl.col("age").cast(pl.Int64))
    return Microdata(frame, household="db030", weight="rb050", strata="db040")


@pytest.fixture(scope="module")
def cells(silc):
    survey = SurveyHouseholds.of(silc)
    return survey, cells_of(survey, min_donors=3, method="direct", rng=np.random.default_rng(0))


def test_weighted_quantiles():
    found = weighted_quantiles(
        np.array([5.0, 1.0, 3.0]), np.array([2.0, 1.0, 1.0]), np.array([0.25, 0.5, 0.75])
    )
    assert found.tolist() == [1, 3, 5]


def test_households_are_expanded_by_size_and_region(cells):
    survey, found = cells
    by_size = [sum(cell.number for cell in found if cell.size == size) for size in range(1, 9)]
    assert by_size == SIZES
    assert sum(by_size) == 3_701_301
    assert sum(cell.number * cell.size for cell in found) == 8_332_266
    assert [cell.number for cell in found if cell.size == 1] == ALONE
    assert len(survey.size) == 5_977


def test_cells_with_too_few_families_are_caught(cells):
    survey, found = cells
    regions = survey.strata["db040"].to_list()
    merged = {(cell.size, regions[cell.stratum]) for cell in found if cell.merged}
    assert merged == FEW
    assert all(len(cell.donors) >= 3 for cell in found)


def test_one_family_would_be_copied_hundreds_of_times(cells):
    survey, found = cells
    regions = survey.strata["db040"].to_list()
    numbers = {(cell.size, regions[cell.stratum]): cell.number for cell in found}
    assert (numbers[8, "AT13"], numbers[8, "AT33"]) == (681, 604)


def test_mixed_households_by_the_weights(silc):
    def counted(adult_age):
        table = utility.household_rules(silc, age="age", sex="rb090", adult_age=adult_age)
        return dict(table.rows())

    of_16, of_18 = counted(16), counted(18)
    # The cells of the structure are rounded one by one, which makes one household more (3,701,301).
    assert round(of_16["households"]) == 3_701_300
    assert round(of_16["mixed"]) == 2_179_675
    assert round(of_18["mixed"]) == 2_168_429
    assert of_18["without an adult"] == 0


def test_income_is_cut_at_weighted_quantiles(silc):
    frame = silc.frame
    income = frame["pgrossIncome"].cast(pl.Float64, strict=False)
    assert income.null_count() == 2083
    assert int((income == 0).sum()) == 1114
    classing = Classing.of_number(income.rename("income"), frame["rb050"].to_numpy(), REFINED)
    assert np.allclose(classing.breaks, BREAKS, atol=0.006)
    zero = frame["rb050"].filter((income == 0).fill_null(False)).sum()
    there = frame["rb050"].filter(income.is_not_null()).sum()
    assert round(100 * zero / there, 2) == 9.68


@pytest.mark.slow
def test_a_population_of_eight_million(silc):
    plan = synth.Population(
        structure=["age", "rb090"], categorical=["pl031", "pb220a"], continuous=["pgrossIncome"]
    )
    fitted = plan.fit(silc, seed=1)
    people = fitted.sample(seed=1).frame
    assert people.height == 8_332_266
    homes = people.group_by("db030").agg(
        (pl.col("age") >= 16).any().alias("adult"),
        ((pl.col("age") >= 16) & (pl.col("rb090") == "male")).any().alias("man"),
        ((pl.col("age") >= 16) & (pl.col("rb090") == "female")).any().alias("woman"),
        pl.col("db040").n_unique().alias("regions"),
    )
    assert homes.height == 3_701_301
    assert homes["adult"].all()
    assert homes["regions"].max() == 1
    mixed = int((homes["man"] & homes["woman"]).sum())
    assert abs(mixed - 2_179_675) < 0.02 * 2_179_675
