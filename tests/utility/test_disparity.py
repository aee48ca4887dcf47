"""Odds ratios of groups before and after protection, with the simulation of the Robin Hood paper."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect.robin_hood import RobinHood
from discreet.utility.odds_of_groups import disparity


def simulated(n: int, seed: int = 1) -> Microdata:
    """Race shares 0.9 / 0.09 / 0.01 with outcome rates 0.1 / 0.2 / 0.5, as published."""
    random = np.random.default_rng(seed)
    race = random.choice(3, n, p=[0.9, 0.09, 0.01])
    frame = pl.DataFrame(
        {
            "race": np.array(["majority", "minority", "super-minority"])[race],
            "sex": random.choice(["f", "m"], n),
            "age": random.integers(17, 91, n),
            "ill": (random.random(n) < np.array([0.1, 0.2, 0.5])[race]).astype(int),
        }
    )
    return Microdata(frame, keys=["race", "sex", "age"])


def test_the_true_odds_ratio_of_the_minority_is_two_and_a_quarter():
    found = disparity(*[simulated(100_000)] * 2, outcome="ill", fairness="race")
    ratios = dict(found.detail["groups"].select("group", "original").rows())
    # The standard error of the log odds ratio is 0.03 for the minority and 0.07 for the super-minority.
    assert np.log(ratios["minority"]) == pytest.approx(np.log(2.25), abs=0.1)
    assert np.log(ratios["super-minority"]) == pytest.approx(np.log(9), abs=0.25)
    assert found.value == pytest.approx(0, abs=1e-6)


def test_the_estimate_stays_flat_in_k_target():
    data = simulated(20_000)
    ages = {"age": Hierarchy.intervals([5, 10, 20, 40], lower=0, upper=100)}
    for k_target in (5, 15, 30):
        treatment = RobinHood("race", k_target=k_target, hierarchies=ages)
        releases = [treatment.apply(data, seed=seed) for seed in range(3)]
        assert all(release.log[0].parameters["feasible"] for release in releases)
        found = disparity(data, [release.data for release in releases], outcome="ill", fairness="race")
        assert found.figures["groups_lost"] == 0
        # Of some 200 super-minority records up to half are masked: a standard error of about 0.2 a file.
        assert found.value < 0.4


def test_a_merged_group_gets_the_odds_ratio_of_the_merged_one_and_a_lost_group_one():
    data = simulated(5_000)
    merged = data.frame.with_columns(
        race=pl.when(pl.col("race") == "majority").then(pl.lit("majority")).otherwise(pl.lit("other"))
    )
    table = disparity(data, Microdata(merged), outcome="ill", fairness="race").detail["groups"]
    assert table["released"][1] == table["released"][2] != 1.0
    hidden = data.frame.with_columns(race=pl.col("race").replace({"super-minority": "?"}))
    found = disparity(data, Microdata(hidden), outcome="ill", fairness="race")
    assert found.figures["groups_lost"] == 1
    assert found.detail["groups"]["released"][2] == 1.0


def test_what_does_not_fit_is_refused():
    data = simulated(200)
    with pytest.raises(ColumnError, match="exactly two values"):
        disparity(data, data, outcome="age", fairness="race")
    with pytest.raises(ColumnError, match="must be a key"):
        disparity(data, data, outcome="ill", fairness="ill")
    with pytest.raises(ParameterError, match="same records"):
        disparity(data, Microdata(data.frame.head(5)), outcome="ill", fairness="race")
    with pytest.raises(ParameterError, match="one of the groups"):
        disparity(data, data, outcome="ill", fairness="race", reference="nobody")
