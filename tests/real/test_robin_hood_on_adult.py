"""Robin Hood on Adult with the ARX hierarchies: what the paper says in words."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from discreet import Microdata
from discreet.hierarchy import Hierarchy
from discreet.protect.robin_hood import RobinHood
from discreet.utility.odds_of_groups import disparity

KEYS = ["sex", "age", "race", "marital-status", "education", "workclass"]


@pytest.fixture(scope="module")
def adult(test_data: Path) -> Microdata:
    frame = pl.read_csv(test_data / "adult" / "adult_arx_30162.csv.gz", separator=";")
    return Microdata(frame, keys=KEYS)


@pytest.fixture(scope="module")
def hierarchies(test_data: Path) -> dict[str, Hierarchy]:
    return {key: Hierarchy.from_csv(test_data / "adult" / f"arx_hierarchy_{key}.csv") for key in KEYS}


@pytest.mark.parametrize("k_target", [5, 20])
def test_every_class_is_as_hard_to_search_as_one_of_k_target(adult, hierarchies, k_target):
    treatment = RobinHood(
        "race", k_initial=3, k_target=k_target, hierarchies=hierarchies, on_infeasible="generalize"
    )
    step = treatment.apply(adult, seed=1).log[0]
    assert step.parameters["feasible"]
    assert min(step.internal["classes"]["effective_k"]) >= k_target - 1e-9
    assert max(step.internal["classes"]["single_attempt_risk"]) <= 1 / 3


def test_disparities_between_races_survive_when_race_itself_stays(adult, hierarchies):
    keys = ["sex", "age", "race", "education"]
    data = adult.with_roles(keys=keys)
    treatment = RobinHood(
        "race", k_target=20, hierarchies={key: hierarchies[key] for key in keys if key != "race"}
    )
    releases = [treatment.apply(data, seed=seed).data for seed in range(3)]
    found = disparity(data, releases, outcome="salary-class", fairness="race")
    assert found.figures["groups_lost"] == 0
    assert found.value < 0.5
