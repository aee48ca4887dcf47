"""Worked examples of sequential synthesis: Nowok, Raab and Dibben (2016), with corrected figures."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.synth import Sequential

RNG = np.random.default_rng(1)
FOUR = Microdata(pl.DataFrame({f"X{i}": RNG.normal(size=300) for i in range(1, 5)}))
ASKED = [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_the_predictor_matrix_is_used_as_given_where_the_order_allows_it():
    plan = Sequential(visit_sequence=["X3", "X4", "X2", "X1"], predictor_matrix=ASKED).fit(FOUR, seed=1).plan
    assert plan.predictor_matrix.tolist() == ASKED
    assert plan.methods == {"X1": "cart", "X2": "cart", "X3": "sample", "X4": "cart"}


def test_predictors_that_come_later_are_taken_out():
    plan = Sequential(visit_sequence=["X4", "X3", "X1", "X2"], predictor_matrix=ASKED).fit(FOUR, seed=1).plan
    assert plan.predictor_matrix.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert plan.methods["X4"] == "sample"


def test_a_category_with_four_of_ten_missing_stays_so():
    education = ["low", None, "high", None, "low", "high", None, "low", "high", None]
    frame = pl.DataFrame({"age": range(10), "education": education})
    drawn = Sequential().fit(Microdata(frame), seed=1).sample(10_000, seed=1).frame
    assert drawn["education"].null_count() / 10_000 == pytest.approx(0.40, abs=0.015)
