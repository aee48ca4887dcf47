"""Information loss of treatments on real files: testdata, EIA and Adult."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from discreet import Microdata
from discreet.hierarchy import Hierarchy
from discreet.protect import Band, Generalize, LocalSuppression, Round, TopBottomCode
from discreet.utility import information_loss

DATA = os.environ.get("DISCREET_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="DISCREET_TEST_DATA names no folder with the test data")

HOUSEHOLD = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def folder():
    return Path(str(DATA))


@pytest.fixture(scope="module")
def survey():
    frame = pl.read_csv(folder() / "testdata.csv", null_values="NA")
    return Microdata(frame, keys=HOUSEHOLD, weight="sampling_weight")


@pytest.fixture(scope="module")
def power():
    frame = pl.read_csv(folder() / "EIA.csv")
    return Microdata(frame, identifiers="UTILNAME", keys=["STATE", "MONTH"])


@pytest.fixture(scope="module")
def adult():
    frame = pl.read_csv(
        folder() / "adult" / "adult_arx_30162.csv.gz", separator=";", infer_schema_length=None
    )
    keys = [name for name in frame.columns if name != "salary-class"]
    return Microdata(frame, keys=keys, sensitive="salary-class")


def test_testdata_loses_more_with_every_higher_k(survey):
    found = [
        information_loss(survey, LocalSuppression(k=k, missing="wildcard").apply(survey).data)
        for k in (2, 3, 5)
    ]
    losses = [measure.value for measure in found]
    assert losses == sorted(losses)
    assert losses[0] > 0
    for measure in found:
        suppressed = measure.figures["cells_suppressed"]
        cells = measure.figures["records"] * measure.figures["columns"]
        assert measure.figures["cells_changed"] == suppressed
        assert measure.value == pytest.approx(suppressed / cells)
    assert found[1].figures["cells_suppressed"] <= 293


def test_eia_rounded_and_top_coded_at_rising_strength(power):
    numbers = ["RESREVENUE", "RESSALES", "COMREVENUE", "TOTSALES"]
    rounded = [
        information_loss(power, Round(dict.fromkeys(numbers, base)).apply(power).data, columns=numbers)
        for base in (10, 100, 1000, 10_000)
    ]
    assert [m.value for m in rounded] == sorted(m.value for m in rounded)
    assert [m.figures["il1s_per_cell"] for m in rounded] == sorted(
        m.figures["il1s_per_cell"] for m in rounded
    )
    assert rounded[0].figures["share_means_in_interval"] == 1
    capped = [
        information_loss(power, TopBottomCode(top={"TOTSALES": top}).apply(power).data, columns=numbers)
        for top in (1_000_000, 100_000, 10_000)
    ]
    assert [m.value for m in capped] == sorted(m.value for m in capped)
    row = capped[-1].detail["variables"].filter(pl.col("column") == "TOTSALES").row(0, named=True)
    assert row["r2"] < 0.5
    assert not row["mean_inside"]


def test_eia_totals_make_the_relative_eigenvalue_loss_undefined_or_finite(power):
    figures = information_loss(power, Round({"TOTSALES": 1000}).apply(power).data).figures
    assert figures["eigenvalue_change"] < 1
    assert figures["eigenvalue_loss"] is None or figures["eigenvalue_loss"] < 100


@pytest.mark.slow
def test_adult_raised_level_by_level_through_the_arx_hierarchies(adult):
    names = ["age", "education", "native-country", "occupation"]
    hierarchies = {
        name: Hierarchy.from_csv(folder() / "adult" / f"arx_hierarchy_{name}.csv") for name in names
    }
    for name, hierarchy in hierarchies.items():
        losses, entropy, granularity, intensity = [], [], [], []
        for level in range(hierarchy.height + 1):
            released = Generalize({name: level}, {name: hierarchy}).apply(adult).data
            found = information_loss(
                adult, released, columns=name, keys=[name], hierarchies={name: hierarchy}, aligned=True
            )
            losses.append(found.value)
            entropy.append(found.figures["normalized_entropy"])
            granularity.append(found.figures["granularity"])
            intensity.append(found.figures["generalization_intensity"])
        for falling in (losses, entropy, granularity, intensity):
            assert falling == pytest.approx(sorted(falling))
        assert losses[0] == entropy[0] == intensity[0] == 0
        assert losses[-1] == pytest.approx(1)
        assert entropy[-1] == pytest.approx(1)


@pytest.mark.slow
def test_a_million_records_of_adult_are_measured(adult):
    big = adult.with_frame(pl.concat([adult.frame] * 34).head(1_000_000))
    released = Band(widths={"age": 10}).apply(big).data
    assert 0 < information_loss(big, released).value < 0.1
