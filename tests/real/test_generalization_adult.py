"""Adult with the ARX hierarchies: the node that ARX chose with its loss metric, and what else must hold."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, risk
from discreet.hierarchy import Hierarchy
from discreet.protect.mondrian import Mondrian
from discreet.protect.optimal_generalization import OptimalGeneralization
from discreet.protect.privacy_models import KAnonymity, LDiversity, TCloseness

ARX_LEVELS = {
    "sex": 0,
    "age": 3,
    "race": 0,
    "marital-status": 0,
    "education": 2,
    "native-country": 1,
    "workclass": 1,
    "occupation": 2,
    "salary-class": 0,
}
KEYS = list(ARX_LEVELS)


@pytest.fixture(scope="module")
def adult(test_data):
    return pl.read_csv(test_data / "adult" / "adult_arx_30162.csv.gz", separator=";")


@pytest.fixture(scope="module")
def hierarchies(test_data):
    return {key: Hierarchy.from_csv(test_data / "adult" / f"arx_hierarchy_{key}.csv") for key in KEYS}


def test_the_optimum_on_adult_is_proved_and_is_the_node_arx_chose(adult, hierarchies):
    release = OptimalGeneralization([KAnonymity(5)], hierarchies, suppression_limit=0.05).apply(
        Microdata(adult, keys=KEYS), seed=1
    )
    found = release.log[0].parameters
    assert found["proven"]
    assert found["nodes"]["lattice"] == 12_960
    assert found["nodes"]["evaluated"] < 2_000
    assert found["levels"] == ARX_LEVELS
    assert found["suppressed_records"] == 1_346
    after = release.data.frame
    gone = after.select(pl.all_horizontal(pl.col(KEYS).is_null())).to_series()
    assert int(gone.sum()) == 1_346
    assert after.filter(~gone).group_by(KEYS).len()["len"].min() >= 5


def test_sensitive_models_hold_on_the_released_adult(adult, hierarchies):
    keys = ["sex", "age", "race", "education", "workclass"]
    release = OptimalGeneralization(
        [KAnonymity(5), LDiversity("salary-class", 2), TCloseness("occupation", 0.4)],
        {key: hierarchies[key] for key in keys},
        suppression_limit=0.02,
        loss="normalized-entropy",
    ).apply(Microdata(adult, keys=keys), seed=1)
    assert release.log[0].parameters["proven"]
    gone = pl.all_horizontal(pl.col(keys).is_null())
    kept = Microdata(release.data.frame.filter(~gone), keys=keys)
    assert risk.k_anonymity(kept).value >= 5
    assert risk.l_diversity(kept, sensitive="salary-class").value >= 2


def test_mondrian_keeps_smaller_groups_than_full_domain_generalization(adult, hierarchies):
    data = Microdata(adult, keys=KEYS)
    local = Mondrian(5).apply(data, seed=1)
    assert risk.k_anonymity(local.data).value >= 5
    everywhere = OptimalGeneralization([KAnonymity(5)], hierarchies, 0.05).apply(data, seed=1)
    sizes = everywhere.data.frame.group_by(KEYS).len().height
    assert local.log[0].parameters["groups"] > sizes


def test_mondrian_cuts_along_the_arx_hierarchies(adult, hierarchies):
    release = Mondrian(5, hierarchies=hierarchies).apply(Microdata(adult, keys=KEYS), seed=1)
    assert release.data.frame.group_by(KEYS).len()["len"].min() >= 5
