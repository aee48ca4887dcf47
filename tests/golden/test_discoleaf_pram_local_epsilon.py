"""Worked examples of the method note on federated discretization and PRAM, sections 3.5 and 5."""

import math

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.protect.pram import Pram
from discreet.protect.transition_matrices import local_epsilon, one_step_invariant, theta_for_epsilon


def test_counts_50_30_20():
    made = one_step_invariant([50, 30, 20], 0.3)
    assert np.allclose(made, [[0.88, 0.06, 0.06], [0.10, 0.80, 0.10], [0.15, 0.15, 0.70]])
    assert local_epsilon(made) == pytest.approx(2.590267, abs=5e-7)
    assert local_epsilon(one_step_invariant([50, 30, 20], 0.1)) == pytest.approx(3.843030, abs=5e-7)
    assert theta_for_epsilon([50, 30, 20], 3.0) == pytest.approx(0.213503, abs=5e-7)
    assert local_epsilon(one_step_invariant([50, 30, 20], 2 / 3)) == pytest.approx(1.427116, abs=5e-7)
    with pytest.raises(ParameterError, match=r"the least is 1\.4271"):
        theta_for_epsilon([50, 30, 20], 1.4)


def test_sex_in_adult():
    made = one_step_invariant([21790, 10771], 0.1)
    assert np.allclose(made, [[0.950569, 0.049431], [0.1, 0.9]], atol=5e-7)
    assert local_epsilon(made) == pytest.approx(2.901818, abs=5e-7)
    assert local_epsilon(one_step_invariant([21790, 10771], 0.2)) == pytest.approx(2.090888, abs=5e-7)


def test_equal_counts():
    assert local_epsilon(one_step_invariant([100] * 4, 0.3)) == pytest.approx(math.log(7))


def test_epsilon_is_right_where_the_closed_form_fails():
    assert local_epsilon(one_step_invariant([1000, 10, 10], 0.9)) == pytest.approx(math.log(100))
    assert math.isinf(local_epsilon(one_step_invariant([1000, 10, 10], 1.0)))


def test_pram_reports_epsilon_by_column_and_adds_it_up_for_the_record():
    frame = pl.DataFrame({"x": ["a"] * 50 + ["b"] * 30 + ["c"] * 20, "y": ["u", "v", "w", "z"] * 25})
    log = Pram(columns=["x", "y"], theta=0.3).apply(Microdata(frame), seed=1).log[0]
    assert log.internal["local_epsilon"] == pytest.approx({"x": 2.590267, "y": math.log(7)}, abs=5e-7)
    assert log.internal["local_epsilon_of_record"] == pytest.approx(2.590267 + math.log(7), abs=5e-7)
    asked = Pram(columns=["x"], epsilon=3.0).apply(Microdata(frame), seed=1).log[0]
    assert asked.internal["local_epsilon"]["x"] == pytest.approx(3.0)
