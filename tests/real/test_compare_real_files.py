"""Whole comparisons of real files: SD2011, Adult, and releases that others made of a census extract (NIST)."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import Microdata
from discreet.synth import Bootstrap, Sequential
from discreet.workflow.comparison import compare

RELEASES = ("cart_cf21", "sdv_ctgan_epochs1000", "aim_e_10_all", "pram_default")


@pytest.mark.slow
def test_a_synthesis_of_sd2011_by_trees_is_better_than_shuffled_columns(test_data):
    columns = ["sex", "age", "edu", "placesize", "region", "marital", "income", "ls", "smoke"]
    frame = pl.read_csv(test_data / "SD2011.csv", null_values="NA", infer_schema_length=None).select(columns)
    original = Microdata(frame, keys=["sex", "age", "region"], sensitive=["income", "smoke"])
    trees = Sequential().fit(original, seed=1).sample(copies=2, seed=2)
    rng = np.random.default_rng(3)
    shuffled = frame.select(frame[name].gather(rng.permutation(frame.height)) for name in columns)
    found = compare(original, {"trees": trees, "shuffled": Microdata(shuffled)}, policy="scientific-use-file")
    good, bad = (found.releases[name] for name in ("trees", "shuffled"))
    assert good.utility["tabular"].figures["mean_S_pMSE"] < 3 < bad.utility["tabular"].figures["mean_S_pMSE"]
    assert good.utility["dependence"].value < bad.utility["dependence"].value / 3
    assert not good.alignment.linked
    assert "weakened" in " ".join(bad.worst.sentences)
    assert found.plot().axes


@pytest.mark.slow
def test_the_template_for_synthetic_files_refuses_people_drawn_again():
    adult = discreet.datasets.adult()
    blurred = (
        Sequential(visit_sequence="auto", smoothing={"fnlwgt": "density"}).fit(adult, seed=1).sample(seed=1)
    )
    again = Bootstrap().fit(adult, seed=1).sample(seed=1)
    measures = ["replicated_uniques", "new_rows", "attribution", "information_loss", "dependence"]
    found = compare(
        adult, {"synthetic": blurred, "drawn again": again}, policy="synthetic-file", measures=measures
    )
    assert found.releases["synthetic"].verdict.meets
    assert not found.releases["drawn again"].verdict.meets
    assert found.releases["drawn again"].risk["new_rows"].figures["copied_share"] > 0.6


@pytest.mark.slow
def test_releases_of_the_nist_excerpt_are_put_side_by_side(test_data, tmp_path):
    folder = test_data / "nist-dce"
    frame = pl.read_csv(folder / "national2019.csv", null_values="N", infer_schema_length=None)
    releases = {
        name: Microdata(
            pl.read_csv(folder / "crc-releases" / f"{name}.csv.gz", null_values="N", infer_schema_length=None)
        )
        for name in RELEASES
    }
    original = Microdata(frame, keys=["AGEP", "SEX", "RAC1P", "PUMA"], sensitive="DVET")
    found = compare(original, releases)
    margins = {name: release.figure("margins", "mean_distance") for name, release in found.releases.items()}
    assert margins["cart_cf21"] < margins["sdv_ctgan_epochs1000"]
    for release in found.releases.values():
        assert release.alignment.only_original or len(release.alignment.columns) == frame.width
        assert release.worst.sentences or release.worst.clear
        assert "new_rows" in release.risk
    page = found.to_html(tmp_path / "nist.html").read_text(encoding="utf-8")
    assert all(name in page for name in RELEASES)
    json.loads(found.to_json())


@pytest.mark.slow
def test_adult_as_synthesized_is_compared_and_meets_the_policy(test_data):
    adult = discreet.datasets.adult(keys=["age", "sex", "race", "education"], sensitive="income")
    released = Sequential().fit(adult, seed=1).sample(seed=2)
    found = compare(adult, released, policy="synthetic-file")
    assert found.utility["margins"].value < 0.02
    assert found.verdict.meets


def test_past_memory_other_people_of_adult_raise_no_alarm_and_a_hundred_copies_do():
    people = discreet.datasets.adult().frame.sample(20_000, shuffle=True, seed=1)
    ours, others = people[:10_000], people[10_000:]
    leaky = pl.concat([others.head(9_900), ours.sample(100, seed=5)])
    clean, leaked = (
        compare(Microdata(ours.lazy()), Microdata(held.lazy()), rows=3000, measures="new_rows", aligned=False)
        for held in (others, leaky)
    )
    assert clean.risk["new_rows"].figures["copied_beyond_chance"] == 0
    # That some come back, as chance would have it, is said last, and nothing before it.
    assert len(clean.worst.sentences) == 1
    assert clean.worst.clear == "What the release costs was not asked."
    found = leaked.risk["new_rows"].figures
    assert found["copied_beyond_chance"] > 0
    assert "come back in the release whole" in leaked.worst.sentences[0]
    near = discreet.risk.near_copies(Microdata(ours), Microdata(leaky)).figures
    assert found["copied"] == near["whole"]
