"""Comparisons of real files: SD2011, Adult, and releases that others made of a census extract (NIST)."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.randomness import generator
from discreet.utility import densities, dependence, importance_shift, margins, tabular

RELEASES = ("cart_cf21", "sdv_ctgan_epochs1000", "aim_e_10_all", "pram_default")


@pytest.fixture(scope="module")
def sd2011(test_data):
    return pl.read_csv(test_data / "SD2011.csv", null_values="NA", infer_schema_length=None)


@pytest.fixture(scope="module")
def nist(test_data):
    folder = test_data / "nist-dce"
    original = pl.read_csv(folder / "national2019.csv", null_values="N", infer_schema_length=None)
    found = {}
    for name in RELEASES:
        path = folder / "crc-releases" / f"{name}.csv.gz"
        released = pl.read_csv(path, null_values="N", infer_schema_length=None)
        expected = json.loads((folder / "crc-releases" / f"{name}.expected.json").read_text())
        found[name] = Microdata(released), expected
    return Microdata(original), found


def redrawn(frame: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    """Draw a correct synthesis of a few categories: from the table of all of them."""
    return frame[random.integers(0, frame.height, frame.height).tolist()]


@pytest.mark.parametrize("ways", [2, 3, 4])
@pytest.mark.slow
def test_a_correct_synthesis_of_sd2011_categories_has_a_standardized_difference_of_one(sd2011, ways):
    names = ["sex", "placesize", "marital", "ls", "smoke", "edu"][: ways + 1]
    frame = sd2011.select(names)
    random = generator(1, "SD2011", str(ways))
    found = [
        tabular(Microdata(frame), Microdata(redrawn(frame, random)), ways=ways).figures["mean_S_pMSE"]
        for _ in range(25)
    ]
    assert 0.93 < np.mean(found) < 1.12


def test_sd2011_shows_the_column_that_was_shuffled(sd2011):
    frame = sd2011.select("sex", "age", "edu", "marital", "income", "smoke", "socprof", "height", "weight")
    broken = redrawn(frame, generator(2, "SD2011")).with_columns(pl.col("weight").shuffle(seed=1))
    ours, theirs = Microdata(frame), Microdata(broken)
    pairs = tabular(ours, theirs, special_codes={"income": [-8]})
    assert "weight" in pairs.detail["tables"]["variables"][0]
    assert pairs.detail["variables"]["column"][0] == "weight"
    assert pairs.value > 10
    assert tabular(ours, theirs, ways=1, special_codes={"income": [-8]}).value < 4
    groups = pairs.detail["groups"].filter(pl.col("column") == "income")["label"].to_list()
    assert groups[-2:] == ["-8", "missing"]
    assert margins(ours, theirs).value < 0.05
    worst = dependence(ours, theirs).detail["pairs"].row(0, named=True)
    assert "weight" in (worst["column"], worst["other"])
    assert importance_shift(ours, theirs, "sex", trees=40).detail["variables"]["shift"].abs().max() > 0.05
    assert densities(ours, theirs, ["height", "weight"]).figures["overlap"] < 0.95


def test_nist_releases_rank_by_tables_as_the_published_k_marginal_scores_do(nist):
    original, releases = nist
    columns = ["AGEP", "SEX", "MSP", "RAC1P", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET"]
    coded = [name for name in columns if name != "AGEP"]
    specks = {
        name: tabular(original, released, columns=columns, categorical=coded, ways=3).figures["mean_SPECKS"]
        for name, (released, _) in releases.items()
        if name != "pram_default"
    }
    published = {name: releases[name][1]["k_marginal"]["k_marginal_score"] for name in specks}
    assert sorted(specks, key=lambda name: specks[name]) == sorted(
        published, key=lambda name: -published[name]
    )


def test_nist_pram_changes_relations_more_than_margins(nist):
    original, releases = nist
    released, _ = releases["pram_default"]
    options = {
        "columns": ["SEX", "MSP", "RAC1P", "OWN_RENT", "EDU"],
        "categorical": ["SEX", "MSP", "RAC1P", "OWN_RENT", "EDU"],
    }
    assert margins(original, released, **options).value < 0.05
    assert dependence(original, released, **options).figures["largest_change"] > 0.02


def test_a_release_without_some_columns_is_compared_on_the_others_and_says_so(nist):
    original, releases = nist
    found = tabular(original, releases["cart_cf21"][0], ways=1)
    assert found.figures["columns"] == 21
    assert any("'DENSITY'" in caveat for caveat in found.caveats)


def test_of_all_pairs_of_adult_an_independent_half_has_a_ratio_of_two(test_data):
    adult = pl.read_csv(test_data / "adult" / "adult_train.csv.gz", null_values="?").drop("fnlwgt")
    order = generator(3, "Adult").permutation(adult.height)
    halves = [Microdata(adult[part.tolist()]) for part in np.array_split(order, 2)]
    found = tabular(*halves)
    assert found.figures["tables"] == len(list(itertools.combinations(adult.columns, 2))) == 91
    # Two samples of one population differ twice as much as a draw from one of them.
    assert 1.6 < found.figures["median_S_pMSE"] < 2.4
