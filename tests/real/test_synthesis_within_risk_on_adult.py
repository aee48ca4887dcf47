"""Steps that close a synthesis of UCI Adult to attackers, and what they cost; the test file is the control."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, attack, utility
from discreet.synth import Sequential
from discreet.workflow.synthesis_within_risk import synthesize_within_risk


@pytest.fixture(scope="module")
def files(test_data):
    def read(which):
        table = pl.read_csv(test_data / "adult" / f"adult_{which}.csv.gz", null_values="?")
        return Microdata(table.with_columns(pl.col("income").str.strip_chars(".")))

    return read("train"), read("test")


@pytest.mark.slow
def test_sharing_and_numbers_between_close_singling_out_at_a_hundredth_of_the_tables(files):
    train, test = files
    closed = Sequential(smoothing="between", method_options={"cart": {"min_leaf": 60, "shared_by": 10}})
    risks, prices = [], []
    for synthesizer in (Sequential(), closed):
        made = synthesizer.fit(train, seed=1).sample(seed=2)
        found = attack.singling_out(train, made, holdout=test, attacks=2000, seed=11)
        risks.append(found.detail["searches"])
        prices.append(utility.tabular(train, made).figures["mean_SPECKS"])
    before, after = (dict(zip(table["search"], table["risk"], strict=True)) for table in risks)
    assert before["univariate"] > 0.6
    assert before["greedy"] > 0.1
    assert after["univariate"] < 0.05
    assert after["greedy"] < 0.1
    assert prices[0] < prices[1] < 0.02


@pytest.mark.slow
def test_the_limit_is_reached_on_people_of_adult_by_what_was_found(files):
    train, test = files
    some = train.with_frame(train.frame.sample(8000, shuffle=True, seed=1))
    found = synthesize_within_risk(
        some, 0.1, control=test, secrets=["income", "marital-status", "age"], attacks=2000, seed=1
    )
    assert found.frontier["risk"][0] > 0.5
    assert found.gains.worst <= 0.1
    # Blurring everything cost 0.054 here before.
    assert found.frontier.filter(pl.col("chosen"))["distance"][0] < 0.04
