"""Successive releases of real files: records added, and hierarchies applied two ways."""

import polars as pl
import pytest

from discreet import Microdata
from discreet.hierarchy import Hierarchy
from discreet.risk.release_differencing import differencing

KEYS = ["age", "sex", "race"]


@pytest.fixture(scope="module")
def adult(test_data):
    table = pl.read_csv(test_data / "adult" / "adult_arx_30162.csv.gz", separator=";")
    return table.with_row_index("id").select("id", *KEYS)


def test_an_update_of_adult_exposes_the_few_who_joined_a_class(adult):
    old = adult.filter(pl.col("id") % 100 != 0)
    counted = differencing(Microdata(old, keys=KEYS), Microdata(adult), k=5)
    linked = differencing(Microdata(old, keys=KEYS, person="id"), Microdata(adult), k=5)
    sizes = adult.group_by(KEYS).agg(after=pl.len(), new=(pl.col("id") % 100 == 0).sum())
    small = sizes.filter((pl.col("after") - pl.col("new") >= 5) & pl.col("new").is_between(1, 4))
    assert counted.value == counted.figures["exposed_joined"] == small["new"].sum() > 0
    # Linking also sees the few newcomers of classes that were too small before.
    assert linked.figures["exposed_joined"] >= counted.value
    assert linked.figures["joined"] == adult.height - old.height


def test_a_coarse_and_a_fine_age_of_the_same_people_expose_nobody_and_crossed_codings_do(adult, test_data):
    age = Hierarchy.from_csv(test_data / "adult" / "arx_hierarchy_age.csv")
    race = Hierarchy.from_csv(test_data / "adult" / "arx_hierarchy_race.csv")
    text = adult.with_columns(pl.col("age").cast(pl.String))
    banded = text.with_columns(age=age.generalize(text["age"], 2).cast(pl.String))
    coarse = differencing(Microdata(banded, keys=KEYS), Microdata(text), k=3, recoding={"age": age})
    assert coarse.value == 0
    raceless = text.with_columns(race=race.generalize(text["race"], 1).cast(pl.String))
    linked = differencing(Microdata(banded, keys=KEYS, person="id"), Microdata(raceless), k=3)
    counted = differencing(
        Microdata(banded, keys=KEYS), Microdata(raceless), k=3, recoding={"age": age, "race": race}
    )
    fine = text.with_columns(n=pl.len().over(KEYS)).filter(pl.col("n") < 3)
    assert 0 < linked.value <= fine.height
    assert counted.value <= linked.value


def test_a_wave_of_eusilc_without_some_households_is_compared_by_person(test_data):
    people = pl.read_csv(test_data / "eusilcP.csv.gz", infer_schema_length=None).with_columns(
        person=pl.int_range(pl.len())
    )
    kept = people.filter(pl.col("hid") % 50 != 0)
    keys = ["region", "age", "gender", "citizenship"]
    found = differencing(Microdata(people, keys=keys, person="person"), Microdata(kept), k=3)
    assert found.figures["left"] == people.height - kept.height
    assert found.figures["exposed_joined"] == 0
    assert 0 < found.figures["exposed_left"] <= found.figures["left"]
    groups = found.detail["groups"].filter("exposed")
    assert groups.select(pl.min_horizontal("before", "after").min()).item() >= 3
    assert groups["together"].max() < 3


def test_two_states_of_nist_data_are_no_update_of_each_other(test_data):
    """Disjoint files still compare: every class differs by far more than k."""
    columns = ["SEX", "MSP"]
    one, two = (
        pl.read_csv(test_data / "nist-dce" / name, columns=columns, infer_schema_length=None)
        for name in ("ma2019.csv", "tx2019.csv")
    )
    found = differencing(Microdata(one, keys=columns), Microdata(two), k=3)
    assert found.figures["net_change"] == two.height - one.height
    assert found.value <= found.figures["groups_exposed"] * 2
