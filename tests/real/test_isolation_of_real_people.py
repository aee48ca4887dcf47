"""Isolation on real files: Adult as its own population, and the tables of a NIST extract."""

from itertools import combinations

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.isolation import isolation
from discreet.risk.overlapping_tables import overlapping_tables

KEYS = ["age", "sex", "race", "education", "marital-status"]


@pytest.fixture(scope="module")
def adult(test_data):
    return pl.read_csv(test_data / "adult" / "adult_arx_30162.csv.gz", separator=";")


def test_a_sample_of_adult_gains_over_guessing_and_the_rarest_cells_are_flagged(adult):
    sample = adult.sample(1500, seed=1)
    found = isolation(Microdata(sample, keys=KEYS), population=Microdata(adult), population_size=10**6)
    cells = found.detail["cells"]
    assert found.figures["population_size"] == 10**6
    assert cells["P_A"].sum() <= 1
    # Cells are sorted by gain, and a rare cell with one record gains most: about 1/(n P).
    top = cells.row(0, named=True)
    assert top["m"] >= 1
    assert found.figures["max_gain"] == pytest.approx(top["gain"])
    assert found.figures["expected_isolations"] > found.figures["expected_isolations_blind"]
    assert found.figures["flagged_cells_at_half"] >= found.figures["flagged_cells"]


def test_a_population_file_gives_less_alarming_gains_than_independence_does_for_common_cells(adult):
    sample = Microdata(adult.sample(3000, seed=2), keys=KEYS)
    counted = isolation(sample, population=Microdata(adult))
    modeled = isolation(sample, population_size=adult.height)
    assert modeled.figures["max_gain"] > counted.figures["max_gain"]
    assert any("independent" in caveat for caveat in modeled.caveats)


def test_the_records_rebuilt_from_nist_tables_are_exactly_its_low_order_uniques(test_data):
    columns = ["PUMA", "AGEP", "SEX", "MSP", "RAC1P", "EDU"]
    people = pl.read_csv(test_data / "nist-dce" / "ma2019.csv", columns=columns, infer_schema_length=None)
    found = overlapping_tables(Microdata(people, keys=columns), max_order=3)
    pairs = [pl.len().over(list(pair)) == 1 for order in (1, 2) for pair in combinations(columns, order)]
    assert found.figures["records_recovered"] == people.filter(pl.any_horizontal(pairs)).height > 0
    assert found.detail["records"]["order"].max() <= 2


def test_more_tables_never_rebuild_fewer_records(test_data):
    people = pl.read_csv(test_data / "eusilc13puf.csv.gz", infer_schema_length=None)
    keys = [name for name in people.columns if 2 <= people[name].n_unique() <= 60][:6]
    data = Microdata(people, keys=keys)
    shares = [overlapping_tables(data, max_order=order).value for order in range(1, 6)]
    assert shares == sorted(shares)
