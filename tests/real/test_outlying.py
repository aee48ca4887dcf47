"""The attack on outliers, on the Adult file: income is not there, capital gains and hours stand in."""

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.outliers import outliers

COLUMNS = ["age", "capital-gain", "hours-per-week", "sex", "marital-status"]


@pytest.fixture(scope="module")
def files(test_data):
    train, test = (
        pl.read_csv(test_data / "adult" / f"adult_{which}.csv.gz", null_values="?").select(COLUMNS)
        for which in ("train", "test")
    )
    return train, test


def test_outliers_of_adult_follow_the_rule_and_a_copy_gives_all_of_them_away(files):
    train, test = files
    z = pl.col("age", "capital-gain", "hours-per-week")
    expected = train.filter(pl.any_horizontal(((z - z.mean()) / z.std(ddof=0)).abs() > 3)).height
    found = outliers(Microdata(train), Microdata(train), holdout=Microdata(test), offset=0.0)
    assert found.figures["outliers"] == expected
    assert found.figures["matched_share"] == 1
    assert found.figures["matched_share_holdout"] < 1


def test_people_who_were_not_used_are_matched_as_often_as_the_outliers_themselves(files):
    """Two random parts of Adult against a third: the excess is chance (about 1,000 outliers, tolerance 0.06)."""
    train, _ = files
    shuffled = train.sample(fraction=1, shuffle=True, seed=4)
    parts = [Microdata(shuffled[start : start + 10_000]) for start in (0, 10_000, 20_000)]
    found = outliers(parts[0], parts[1], holdout=parts[2])
    assert found.figures["matched_share_excess"] == pytest.approx(0, abs=0.06)
