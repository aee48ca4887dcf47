"""Published state totals of US electric utilities, and the records behind them (EIA 1996)."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata
from discreet.synth.from_aggregates import MacroToMicro
from discreet.synth.record_rules import check_rules
from discreet.utility.row_novelty import new_rows
from discreet.utility.two_sample_tests import ks_two_sample

PARTS = ["RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"]
RULES = [f"TOTREVENUE == {' + '.join(PARTS)}", *(f"{name} >= 0" for name in PARTS)]


@pytest.fixture(scope="module")
def utilities(test_data):
    file = pl.read_csv(test_data / "EIA.csv").select("STATE", *PARTS, "TOTREVENUE")
    large = file.group_by("STATE").len().filter(pl.col("len") >= 30)["STATE"]
    return file.filter(pl.col("STATE").is_in(large.implode()))


@pytest.fixture(scope="module")
def table(utilities):
    return utilities.group_by("STATE", maintain_order=True).agg(
        pl.col(*PARTS).sum(),
        pl.col(*PARTS).std().name.suffix("_sd"),
        pl.col(*PARTS).eq(0).mean().name.suffix("_zeros"),
        pl.len().alias("records"),
    )


def test_the_real_file_keeps_its_sums_but_for_rounding(utilities):
    found = check_rules(Microdata(utilities), RULES, tolerance=0.01)
    assert found.figures["summation"] < 0.02


def test_the_tables_come_back_and_the_records_do_not(utilities, table):
    model = MacroToMicro(unit="STATE", scenario="internal", rules=RULES, whole=PARTS).fit(
        table, microdata=Microdata(utilities)
    )
    drawn = model.sample(seed=1)
    assert model.check(drawn).value == 0
    sums = drawn.frame.group_by("STATE", maintain_order=True).agg(
        pl.col(*PARTS).sum(), pl.len().alias("records")
    )
    assert sums.equals(table.select(sums.columns).cast(sums.schema))
    assert new_rows(Microdata(utilities), drawn, tolerance=0.01).value > 0.9
    for name in PARTS[:2]:
        assert 1 - ks_two_sample(utilities[name], drawn.frame[name])["ks"] > 0.6
