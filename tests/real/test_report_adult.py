from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import discreet

DATA = os.environ.get("DISCREET_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="DISCREET_TEST_DATA names no folder with the test data")

KEYS = ["age", "sex", "race", "marital-status", "native-country"]


@pytest.fixture(scope="module")
def adult():
    return pl.read_csv(Path(str(DATA)) / "adult" / "adult_train.csv.gz", null_values="?")


def report(frame, folder, **options):
    data = discreet.Microdata(frame, keys=KEYS, sensitive="income")
    found = discreet.assess(data, policy="scientific-use-file", **options)
    return found.to_html(folder / "report.html").read_text(encoding="utf-8")


def test_the_report_of_adult_names_no_value_of_a_key_or_of_income(adult, tmp_path):
    page = report(adult, tmp_path)
    assert "Does not meet policy" in page
    for column in ("native-country", "marital-status", "income"):
        for value in adult[column].drop_nulls().unique():
            escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            assert f">{escaped}<" not in page
            assert len(value) < 5 or escaped not in page


@pytest.mark.slow
def test_the_report_of_adult_shows_values_when_asked(adult, tmp_path):
    assert "Never-married" in report(adult, tmp_path, show_values=True)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pandas", "pyarrow"])
def test_the_report_of_adult_reads_the_same_on_another_engine(adult, tmp_path, engine):
    def findings(page):
        return page[page.index('id="numbers"') : page.index('id="methods"')]

    other = adult.to_pandas() if engine == "pandas" else adult.to_arrow()
    assert findings(report(other, tmp_path)) == findings(report(adult, tmp_path))
