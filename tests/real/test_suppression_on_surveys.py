"""Local suppression on real files: no more cells than the field's tool needs, and the aim reached.

The counts to meet or beat are those of sdcMicro 5.8.1 (classical-methods, and the speed table of the project).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, engine
from discreet.protect.hiding.suppression import LocalSuppression

DWELLING = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def in_groups(frame: pl.DataFrame, groups: int) -> pl.DataFrame:
    """Cut age into groups of equal width over its range."""
    inner = np.linspace(frame["age"].min(), frame["age"].max(), groups + 1)[1:-1]
    return frame.with_columns(age=pl.Series(np.searchsorted(inner, frame["age"].to_numpy(), side="left")))


def treated(frame: pl.DataFrame, keys: list[str], **parameters) -> int:
    """Suppress, check the aim with the engine, and count the cells."""
    release = LocalSuppression(**parameters).apply(Microdata(frame, keys=keys))
    missing = parameters.get("missing", "wildcard")
    assert int(engine.class_table(release.data, keys, missing)["class_size"].min()) >= parameters["k"]
    return sum(release.log[0].suppressed_cells.values())


@pytest.mark.parametrize(("k", "cells"), [(2, 157), (3, 293)])
def test_testdata_needs_no_more_cells_than_the_check_counts(test_data: Path, k: int, cells: int):
    frame = pl.read_csv(test_data / "testdata.csv", null_values="NA", infer_schema_length=None)
    assert treated(frame, DWELLING, k=k) <= cells


def test_ghana_needs_no_more_cells_than_the_peer(test_data: Path):
    frame = in_groups(pl.read_csv(test_data / "ghanaS.csv.gz", infer_schema_length=None), 16)
    keys = ["region", "age", "sex", "relate", "ethnic", "religion"]
    assert treated(frame, keys, k=3) <= 9_188


def test_adult_needs_no_more_cells_than_the_peer(test_data: Path):
    frame = in_groups(pl.read_csv(test_data / "adult" / "adult_arx_30162.csv.gz", separator=";"), 12)
    keys = ["sex", "age", "race", "marital-status", "education"]
    assert treated(frame, keys, k=3) <= 1_906
    # Even with gaps as values, the stronger aim, it stays near the peer's count for the weaker one.
    assert treated(frame, keys, k=3, missing="category") <= 2_100


def test_household_variables_of_testdata_go_for_the_whole_household(test_data: Path):
    frame = pl.read_csv(test_data / "testdata.csv", null_values="NA", infer_schema_length=None)
    data = Microdata(frame, keys=DWELLING, household="ori_hid")
    shared = ["urbrur", "roof", "walls", "water", "electcon"]
    release = LocalSuppression(k=3, household_keys=shared).apply(data)
    for key in shared:
        lost = release.data.frame[key].is_null() & frame[key].is_not_null()
        kept = release.data.frame[key].is_not_null()
        by_household = pl.DataFrame({"h": frame["ori_hid"], "lost": lost, "kept": kept}).group_by("h")
        assert not by_household.agg((pl.col("lost").any() & pl.col("kept").any()).alias("torn"))["torn"].any()
    assert int(engine.class_table(release.data, DWELLING, "wildcard")["class_size"].min()) >= 3
