"""Propensity scores and fits on SD2011 and Adult."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.utility import compare_model, pmse, train_on_synthetic


@pytest.fixture(scope="module")
def survey(test_data):
    frame = pl.read_csv(test_data / "SD2011.csv", null_values=["NA"], infer_schema_length=None)
    return frame.select("sex", "age", "edu", "marital", "income", "ls", "wkabint", "smoke")


@pytest.fixture(scope="module")
def adult(test_data):
    path = test_data / "adult" / "adult_arx_30162.csv.gz"
    return pl.read_csv(path, separator=";", infer_schema_length=None)


@pytest.mark.slow
def test_a_bootstrap_is_close_and_shuffled_columns_are_not(survey):
    before = Microdata(survey)
    resampled = Microdata(survey.sample(fraction=1, with_replacement=True, seed=1))
    mixed = {
        name: survey[name].sample(fraction=1, shuffle=True, seed=at) for at, name in enumerate(survey.columns)
    }
    shuffled = Microdata(pl.DataFrame(mixed))
    # A bootstrap of the records is a draw from the best model of them: the ratio is about 1.
    assert pmse(before, resampled).figures["ratio"] == pytest.approx(1.0, abs=0.35)
    # Margins are kept, so only interactions and trees see that columns were shuffled.
    assert pmse(before, shuffled, interactions=0).figures["ratio"] < 1
    found = pmse(before, shuffled)
    assert found.figures["ratio"] > 5
    # A tree asks one question at a time and finds no first one where all margins are exactly the same.
    assert pmse(before, shuffled, model="cart", n_perm=2, seed=1).figures["leaves"] == 1
    drawn = {
        name: survey[name].sample(fraction=1, with_replacement=True, seed=at) for at, name in enumerate(mixed)
    }
    tree = pmse(before, Microdata(pl.DataFrame(drawn)), model="cart", n_perm=10, seed=1)
    assert tree.figures["ratio"] > 3
    assert tree.figures["share_null_without_split"] == 0


@pytest.mark.slow
def test_adult_is_told_apart_by_the_column_that_was_spoiled(adult):
    spoiled = adult.with_columns(pl.col("education").shuffle(seed=1), age=pl.col("age") + 3)
    found = pmse(Microdata(adult), Microdata(spoiled), interactions=0)
    assert found.detail["variables"]["variable"][0] == "age"
    tree = pmse(Microdata(adult), Microdata(spoiled), model="cart", n_perm=3, seed=1)
    assert tree.detail["variables"]["variable"].to_list()[:2].count("age") == 1
    assert tree.figures["auc"] > 0.55


@pytest.mark.slow
def test_adult_models_lose_what_was_shuffled(adult):
    frame = adult.rename({name: name.replace("-", "_") for name in adult.columns})
    spoiled = frame.with_columns(pl.col("age").shuffle(seed=1))
    models = {
        "class": ("salary_class ~ age + sex", "logistic"),
        "age": ("age ~ sex + race", "linear"),
    }
    found = compare_model(models, Microdata(frame), Microdata(spoiled))
    assert found.figures["overlap_min"] < 0
    same = compare_model(models, Microdata(frame), Microdata(frame))
    assert same.value == pytest.approx(1.0)


def test_adult_salary_can_be_learned_from_a_bootstrap(adult):
    half = np.arange(adult.height) % 2 == 0
    train, holdout = adult.filter(pl.Series(half)), adult.filter(pl.Series(~half))
    release = train.sample(fraction=1, with_replacement=True, seed=1)
    found = train_on_synthetic(
        Microdata(train),
        Microdata(release),
        "salary-class",
        holdout=Microdata(holdout),
        learners="linear",
        seed=1,
    )
    assert found.figures["linear_real"] > 0.85
    assert abs(found.value) < 0.02
