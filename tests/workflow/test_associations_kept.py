"""What analysts would miss: associations that a release weakens, whatever the way."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.workflow.associations_kept import Associations, price_of_strain

DRAW = np.random.default_rng(5)
AGE = DRAW.integers(20, 80, 2_000)
FILE = pl.DataFrame(
    {
        "age": AGE,
        "cost": 100.0 * AGE + DRAW.normal(0, 1_500, 2_000),
        "ward": np.where(AGE + DRAW.normal(0, 10, 2_000) > 55, "old", "young"),
        "luck": DRAW.integers(0, 5, 2_000),
    }
)


@pytest.fixture(scope="module")
def held():
    return Associations.of(FILE, FILE.columns)


def lost(held, released):
    return {(one.column, one.other): one for one in held.kept(released)}


def test_what_is_left_alone_loses_nothing(held):
    assert set(held.strong) == {("age", "cost"), ("age", "ward"), ("cost", "ward")}
    assert max(one.lost for one in held.kept(FILE)) == 0


def test_coarser_bands_keep_an_association_and_swaps_do_not(held):
    banded = FILE.with_columns(pl.col("age") // 20)
    assert lost(held, banded)["age", "cost"].lost < 1 / 3
    mixed = FILE.with_columns(pl.col("cost").shuffle(seed=1))
    assert lost(held, mixed)["age", "cost"].lost > 0.9
    assert "hardly follows" in lost(held, mixed)["age", "cost"].sentence


def test_a_sign_that_turned_is_a_loss_of_all(held):
    turned = FILE.with_columns(-pl.col("cost"))
    one = lost(held, turned)["age", "cost"]
    assert one.turned
    assert one.lost == 1
    assert "the other way" in one.sentence


def test_the_strain_of_a_coding_is_what_the_column_would_lose(held):
    fine = (FILE["age"] // 10).to_numpy()
    useless = np.arange(2_000) % 2 + 1
    assert held.strain("age", fine) < 0.1
    assert held.strain("age", useless) > 0.8


def test_a_halved_association_costs_more_than_anything_else():
    assert price_of_strain(0.51) > 1 > price_of_strain(0.49) > price_of_strain(0.3)
