"""Neighbors of real files: UCI Adult and the releases of it that the tests make."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.risk.nearest_neighbors import neighbors

COLUMNS = ["age", "workclass", "education", "marital-status", "occupation", "sex", "hours-per-week", "income"]


def adult(folder, which, rows):
    table = pl.read_csv(folder / "adult" / f"adult_{which}.csv.gz", null_values="?")
    return table.select(COLUMNS)[:rows]


@pytest.fixture(scope="module")
def files(test_data):
    train = adult(test_data, "train", 6000)
    return train[:3000], adult(test_data, "test", 3000), train[3000:]


def test_other_people_are_as_close_to_the_test_file_as_to_the_training_file(files):
    """Adult's own halves: a share of 3,000 records, tolerance four standard errors (0.037)."""
    original, holdout, fresh = map(Microdata, files)
    found = neighbors(original, fresh, holdout=holdout, seed=1).figures
    assert found["dcr_share_closer_than_holdout"] == pytest.approx(0.5, abs=0.037)
    assert found["epsilon_excess_over_holdout"] == pytest.approx(0, abs=0.05)
    assert found["identical_share"] == pytest.approx(found["identical_share_holdout"], abs=0.04)


def test_swapping_a_third_of_the_cells_still_gives_the_training_file_away(files):
    original, holdout, _ = files
    rng = np.random.default_rng(3)
    columns = [
        pl.when(pl.Series(rng.random(original.height) < 1 / 3))
        .then(original[name].gather(rng.permutation(original.height)))
        .otherwise(pl.col(name))
        .alias(name)
        for name in COLUMNS
    ]
    release = original.with_columns(columns)
    found = neighbors(Microdata(original), Microdata(release), holdout=Microdata(holdout), seed=1).figures
    assert found["dcr_share_closer_than_holdout"] > 0.6


@pytest.mark.parametrize("distance", ["gower", "euclidean"])
def test_the_search_agrees_with_all_pairs_on_real_records_with_missing_values(files, distance):
    original, holdout, _ = files
    for rule in ("category", "ignore"):
        space = MixedSpace.fit(original, holdout, distance=distance, missing=rule)
        points, queries = space.place(original), space.place(holdout[:500])
        found = nearest(space, queries, points, k=3)
        truth = np.sort(space.matrix(queries, points), axis=1)[:, :3]
        np.testing.assert_array_equal(found.distance, truth)


@pytest.mark.slow
def test_a_hundred_thousand_against_a_hundred_thousand(test_data):
    table = pl.read_parquet(test_data / "tabular" / "acs_income_2018_holdout.parquet").select(
        pl.nth(range(12))
    )
    ours, theirs = table[:100_000], table[100_000:200_000]
    space = MixedSpace.fit(ours, theirs)
    points, queries = space.place(ours), space.place(theirs)
    found = nearest(space, queries, points, k=2)
    some = np.arange(0, 100_000, 2000)
    truth = np.sort(space.matrix(queries.take(some), points), axis=1)[:, :2]
    np.testing.assert_array_equal(found.distance[some], truth)
