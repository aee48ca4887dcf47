from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from discreet.hierarchy import Hierarchy

DATA = os.environ.get("DISCREET_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="DISCREET_TEST_DATA names no folder with the test data")

HEIGHTS = {
    "age": 4,
    "education": 3,
    "marital-status": 2,
    "native-country": 2,
    "occupation": 2,
    "race": 1,
    "salary-class": 1,
    "sex": 1,
    "workclass": 2,
}


def arx(column: str) -> Hierarchy:
    return Hierarchy.from_csv(Path(str(DATA)) / "adult" / f"arx_hierarchy_{column}.csv")


@pytest.fixture(scope="module")
def adult() -> pl.DataFrame:
    return pl.read_csv(Path(str(DATA)) / "adult" / "adult_arx_30162.csv.gz", separator=";")


@pytest.mark.parametrize("column", sorted(HEIGHTS))
def test_every_arx_hierarchy_covers_its_adult_column_and_nests(adult, column):
    hierarchy = arx(column)
    assert hierarchy.height == HEIGHTS[column]
    hierarchy.check(adult[column], column=column)
    counts = [hierarchy.generalize(adult[column], level).n_unique() for level in range(hierarchy.height + 1)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    matrix = hierarchy.levels_matrix()
    assert matrix.shape == (len(hierarchy.labels(0)), hierarchy.height + 1)


def test_integer_ages_find_their_text_in_the_file(adult):
    assert adult["age"].dtype.is_integer()
    assert arx("age").generalize(pl.Series([17, 100]), 1).to_list() == ["15-19", "95-99"]


def test_an_arx_file_survives_writing_and_reading(tmp_path):
    arx("education").to_csv(tmp_path / "education.csv")
    assert Hierarchy.from_csv(tmp_path / "education.csv") == arx("education")


def test_the_lattice_of_the_adult_hierarchies_has_the_size_arx_reports():
    nodes = 1
    for column in HEIGHTS:
        nodes *= arx(column).height + 1
    assert nodes == 12_960
