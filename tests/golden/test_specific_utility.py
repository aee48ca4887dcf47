"""Worked examples of interval overlap, standardized differences and combining rules for synthetic copies."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.core.errors import ParameterError
from discreet.utility import ModelFit, combine, compare_fits, interval_overlap

FIVE = [10.2, 9.8, 10.5, 9.9, 10.1], [0.04, 0.05, 0.045, 0.05, 0.04]
FOUR = [4.1, 4.0, 4.2, 4.05], [0.02, 0.02, 0.025, 0.015]
PUBLISHED = [
    (0.737, 1.03), (0.906, 0.369), (0.834, 0.651), (0.822, 0.697),
    (0.670, 1.29), (0.797, 0.796), (0.695, 1.19), (0.675, 1.27),
    (0.630, 1.45), (0.270, 2.86), (0.587, 1.62), (0.487, 2.01),
    (0.357, 2.52), (0.564, 1.71), (0.68, 1.24),
    (0.621, 1.48), (0.778, 0.869), (0.476, 2.06),
    (0.560, 1.72), (0.844, 0.611), (-0.250, 4.90),
]  # fmt: skip


def one(coefficient, variance=1.0):
    return ModelFit(("x",), [coefficient], [[variance]])


def test_the_overlap_of_intervals():
    assert interval_overlap((1, 3), (2, 5)) == pytest.approx(0.416667, abs=5e-7)
    assert interval_overlap((0, 1), (2, 4)) == pytest.approx(-0.75)
    assert interval_overlap((0, 1), (0, 1)) == 1.0


def test_a_difference_of_one_standard_error_overlaps_by_three_quarters():
    found = compare_fits(one(0.0), one(1.0))
    assert found.value == pytest.approx(0.744898, abs=1e-5)
    assert found.figures["difference_mean"] == 1.0


@pytest.mark.parametrize(("overlap", "difference"), PUBLISHED)
def test_the_published_pairs_follow_from_intervals_of_one_width(overlap, difference):
    found = compare_fits(one(0.0), one(difference, 4.0), se_synthetic="original")
    assert found.value == pytest.approx(overlap, abs=0.006)


def test_normal_draws_of_survey_copies():
    found = combine(*FIVE, "pseudo-likelihood")
    assert found.estimate == pytest.approx(10.1)
    assert found.between == pytest.approx(0.075)
    assert found.within == pytest.approx(0.045)
    assert found.variance == pytest.approx(0.09)
    assert found.df == 4


def test_bootstrapped_survey_copies():
    found = combine(*FIVE, "bootstrap")
    assert found.variance == pytest.approx(0.045)
    assert found.df == pytest.approx(1.0)
    assert not found.flagged


def test_a_negative_variance_has_its_stand_in_and_a_flag():
    found = combine(*FOUR, "bootstrap", n=1000, n_syn=500)
    assert found.between == pytest.approx(0.0072917, abs=5e-8)
    assert (1 + 1 / 4) * found.between - found.within == pytest.approx(-0.0108854, abs=5e-8)
    assert found.variance == pytest.approx(0.5 * 0.02)
    assert found.df == 3
    assert found.flagged
    assert combine(*FOUR, "proper").variance == pytest.approx(0.02)


def test_the_rules_for_complete_and_partial_synthesis():
    assert combine(*FIVE, "simple").variance == pytest.approx(0.045 * 1.2)
    assert combine(*FIVE, "simple", n=1000, n_syn=500).variance == pytest.approx(0.045 * 0.7)
    assert combine([10.2], [0.04], "simple").variance == pytest.approx(0.08)
    assert combine(*FIVE, "partial").variance == pytest.approx(0.045 + 0.075 / 5)
    assert combine(*FIVE, "observed").variance == pytest.approx(0.045)
    assert combine(*FIVE, "proper").variance == pytest.approx(1.2 * 0.075 - 0.045)


def test_the_wrong_rule_for_the_way_copies_were_made_is_refused():
    for made in ("none", "plain", "normal"):
        with pytest.raises(ParameterError, match="does not belong"):
            combine(*FIVE, "bootstrap", generation=made)
    with pytest.raises(ParameterError, match="at least two copies"):
        combine([1.0], [0.1], "partial")
    assert np.isnan(combine([1.0], [0.1], "pseudo-likelihood").variance)


def test_without_parameter_draws_the_subtracting_rule_is_negative_half_of_the_time():
    rng = np.random.default_rng(1)
    turns = rng.normal(size=(4000, 10))
    negative = np.mean([combine(row, np.ones(10), "proper").flagged for row in turns])
    assert negative == pytest.approx(0.4841, abs=0.025)
