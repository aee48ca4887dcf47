"""Tables and households against a known truth, and the k-marginal score."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata, synth, utility
from discreet.core.errors import ColumnError, ParameterError

ESTIMATE, TRUTH = [110, 190, 280, 420], [100, 200, 300, 400]


def test_the_worked_example_of_the_distances():
    """methods/complex-survey-generator-evaluation.md, section 5."""
    found = utility.table_accuracy(ESTIMATE, TRUTH)
    assert found["mae"] == 15
    assert found["rmse"] == pytest.approx(15.8114, abs=1e-4)
    assert found["mape"] == pytest.approx(6.6667, abs=1e-4)
    assert utility.aitchison(ESTIMATE, TRUTH) == pytest.approx(0.136798, abs=1e-6)


@given(st.lists(st.integers(0, 500), min_size=2, max_size=12).filter(any), st.floats(0.1, 20))
def test_the_aitchison_distance_does_not_see_the_total(counts, factor):
    assert utility.aitchison(counts, counts) == 0
    if all(counts):
        assert utility.aitchison([factor * own for own in counts], counts) == pytest.approx(0, abs=1e-9)


def test_zeros_are_replaced_and_counted():
    found = utility.table_accuracy([0, 5, 5], [5, 0, 5])
    assert found["replaced"] == 2
    assert found["empty_truth"] == 1
    assert np.isfinite(found["aitchison"])
    for wrong in ([-1, 2], [0, 0]):
        with pytest.raises(ParameterError):
            utility.aitchison(wrong, [1, 2])


def test_rules_of_households_are_counted_by_weight():
    people = pl.DataFrame(
        {
            "home": [1, 1, 2, 3, 3],
            "age": [40, 38, 12, 50, 9],
            "sex": ["f", "m", "f", "m", "m"],
            "size": [2, 2, 1, 3, 3],
            "area": ["n", "n", "s", "n", "s"],
            "w": [10.0, 10.0, 5.0, 2.0, 2.0],
        }
    )
    data = Microdata(people, household="home", weight="w", strata="area")
    found = dict(utility.household_rules(data, sex="sex", size="size").rows())
    assert found == {
        "households": 17.0,
        "without an adult": 5.0,
        "mixed": 10.0,
        "size that is not its number of members": 2.0,
        "more than one stratum": 2.0,
    }
    beside = utility.household_rules(data, truth=data)
    assert (beside["difference"] == 0).all()
    with pytest.raises(ColumnError):
        utility.household_rules(data, age="years")
    with pytest.raises(ColumnError, match="'sex' is String"):
        utility.household_rules(data, age="sex")


def people(rows=2000, seed=1):
    rng = np.random.default_rng(seed)
    area = rng.choice(["a", "b", "c"], rows)
    return Microdata(
        pl.DataFrame(
            {
                "area": area,
                "sex": rng.choice(["f", "m"], rows),
                "age": rng.integers(18, 80, rows) + 10 * (area == "a"),
                "job": rng.choice(["x", "y", "z"], rows),
            }
        )
    )


def test_the_score_is_a_thousand_for_the_same_file_and_falls_with_the_subsample():
    data = people()
    assert utility.k_marginal(data, data, group="area", sampling=False).value == 1000
    floats = data.with_frame(data.frame.with_columns(pl.col("age").cast(pl.Float64)))
    assert utility.k_marginal(data, floats, group="area", sampling=False).value == 1000
    part = data.with_frame(data.frame.sample(800, seed=1))
    found = utility.k_marginal(data, part, group="area", seed=1)
    assert 800 < found.value < 1000
    assert abs(found.figures["sampling_equivalent"] - 0.4) <= 0.1
    assert found.figures["tables"] == 3


def test_many_tables_score_better_than_a_wide_one():
    data = people()
    wide = synth.Independent().fit(data, seed=1).sample(seed=1)
    release = synth.MultiTable(
        columns=[["area", "sex", "age"], ["area", "sex", "job"], ["area", "age", "job"]]
    ).release(data, seed=1)
    many = utility.k_marginal(data, release, group="area", sampling=False).value
    assert many > 850
    assert many > utility.k_marginal(data, wide, group="area", sampling=False).value - 50
    with pytest.raises(ColumnError):
        utility.k_marginal(data, wide, group="region")
    with pytest.raises(ParameterError):
        utility.k_marginal(data, wide, group="area", columns=["sex"])
