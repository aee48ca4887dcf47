"""Individual risk and special uniques, where the references give a number that can be worked out by hand.

Source: the closed forms of Benedetti and Franconi (1998) and Polettini (2003) in ``classical-methods``; the
score of Elliot, Manning and Ford (2002) and the estimator of Skinner and Elliot (2002).
"""

import math

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.negative_binomial_risk import mean_reciprocal
from discreet.risk.suda import special_uniques


@pytest.mark.parametrize("p", [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_closed_forms_for_one_two_and_three_records(p):
    q = 1 - p
    assert mean_reciprocal(1, 1 / p) == pytest.approx(p / q * math.log(1 / p), rel=1e-12)
    assert mean_reciprocal(2, 2 / p) == pytest.approx(p / q**2 * (p * math.log(p) + q), rel=1e-11)
    third = p / (2 * q**3) * (q * (3 * q - 2) - 2 * p**2 * math.log(p))
    assert mean_reciprocal(3, 3 / p) == pytest.approx(third, rel=1e-9)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.6, 0.95])
def test_large_classes_approach_p_over_f_less_the_unsampled_share(p):
    assert mean_reciprocal(5000, 5000 / p) == pytest.approx(p / (5000 - (1 - p)), rel=1e-6)


@pytest.mark.parametrize("f", [1, 2, 7, 3000])
def test_a_class_that_is_fully_observed_has_risk_one_over_its_size(f):
    assert mean_reciprocal(f, f) == pytest.approx(1 / f, rel=1e-15)
    assert mean_reciprocal(f, f / 2) == pytest.approx(1 / f, rel=1e-15)


def test_three_records_and_three_keys_scored_by_hand():
    # (2, 0, 0) is alone by a; (1, 3, 6) by b and by c; (1, 0, 0) only by a with b, and a with c.
    table = pl.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
    found = special_uniques(Microdata(table, keys=["a", "b", "c"]), sampling_fraction=0.1)
    assert found.detail["records"]["suda"].to_list() == [2, 4, 2]
    assert found.detail["records"]["suda_normalized"].to_list() == pytest.approx([1 / 3, 2 / 3, 1 / 3])
    contributions = dict(found.detail["variables"].select("key", "contribution").rows())
    assert contributions == pytest.approx({"a": 0.5, "b": 0.375, "c": 0.375})


def test_data_intrusion_simulation_by_uniques_and_pairs():
    # Six records alone, two pairs, one group of three; one in ten of the population was drawn.
    table = pl.DataFrame({"a": [1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 9, 9, 9]})
    found = special_uniques(Microdata(table, keys=["a"]), sampling_fraction=0.1)
    assert found.figures["dis_file"] == pytest.approx(0.1 * 6 / (0.1 * 6 + 0.9 * 2 * 2))
