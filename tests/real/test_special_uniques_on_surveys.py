"""Special uniques and unsafe combinations on real files."""

import math
from itertools import combinations

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.suda import special_uniques
from discreet.risk.unsafe_combinations import unsafe_combinations

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def by_the_book(table, keys):
    """SUDA scores by counting every set of keys over the records, without any pruning."""
    alone = {
        chosen: table.select(pl.len().over(chosen) == 1).to_series()
        for size in range(1, len(keys) + 1)
        for chosen in combinations(keys, size)
    }
    score = pl.Series([0.0] * table.height)
    for chosen, flags in alone.items():
        parts = [alone[part] for size in range(1, len(chosen)) for part in combinations(chosen, size)]
        minimal = flags
        for part in parts:
            minimal = minimal & ~part
        score = score + minimal.cast(pl.Float64) * math.factorial(len(keys) - len(chosen))
    return score


@pytest.mark.parametrize("name", ["testdata.csv", "testdata2.csv"])
def test_scores_of_the_reference_tables_against_an_unpruned_count(test_data, name):
    table = pl.read_csv(test_data / name)
    found = special_uniques(Microdata(table, keys=KEYS))
    assert found.detail["records"]["suda"].to_list() == by_the_book(table.select(KEYS), KEYS).to_list()


def test_the_first_record_of_the_small_extract_scores_180(test_data):
    """As the tests of sdcMicro expect it on the original scale (test_suda2.R; quoted, not run here)."""
    table = pl.read_csv(test_data / "testdata2.csv")
    assert special_uniques(Microdata(table, keys=KEYS)).detail["records"]["suda"][0] == 180


def test_the_nist_excerpt_with_not_applicable_as_missing(test_data):
    table = pl.read_csv(test_data / "nist-dce" / "national2019.csv", infer_schema_length=None)
    table = table.with_columns(pl.col(pl.String).replace("N", None))
    keys = ["PUMA", "AGEP", "SEX", "MSP", "RAC1P", "EDU"]
    data = Microdata(table, keys=keys, weight="PWGTP")
    own, wild = special_uniques(data), special_uniques(data, missing="wildcard")
    assert own.detail["records"]["suda"].to_list() == by_the_book(table.select(keys), keys).to_list()
    assert wild.figures["unique_records"] <= own.figures["unique_records"]
    assert own.figures["sampling_fraction"] == pytest.approx(table.height / table["PWGTP"].sum())


def test_unsafe_combinations_agree_with_a_group_by_for_every_set(test_data):
    table = pl.read_csv(test_data / "testdata.csv")
    found = unsafe_combinations(Microdata(table, keys=KEYS), max_size=3, threshold=3)
    counted = dict(found.detail["sets"].select("keys", "unsafe_combinations").rows())
    for size in (1, 2, 3):
        for chosen in combinations(KEYS, size):
            counts = table.group_by(chosen).len()
            assert counted[", ".join(chosen)] == counts.filter(pl.col("len") < 3).height
