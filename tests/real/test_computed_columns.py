"""Columns that follow from others, found by preflight in real files and computed again in their synthetic copies."""

from __future__ import annotations

import pytest

import discreet
from discreet import Microdata, utility
from discreet.synth.preflighting import preflight


@pytest.fixture(scope="module")
def earnings(test_data):
    return Microdata(discreet.read(test_data / "laeken_ses.csv.gz").frame.collect())


def test_a_whole_weight_computed_from_two_others_is_rounded(earnings):
    # Cut instead of rounded, every second weight was one too small: S_pMSE of the column was above 600.
    found = preflight(earnings, probe=False)
    assert found["product:weightsEmployees"].parameters["expression"] == "weights / weightsEmployers"
    drawn = found.synthesizer().fit(earnings, seed=1).sample(seed=1)
    assert set(drawn.frame["weightsEmployees"]) == {1, 2, 10}
    tables = utility.tabular(earnings, drawn, ways=1).detail["tables"]
    own = dict(zip(tables["variables"], tables["S_pMSE"], strict=True))
    assert own["weightsEmployees"] < 4
