"""Worked examples of the pMSE mechanism (Snoke and Slavković 2018; the tight bound and tail check are ours)."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import dp, synth
from discreet.synth.pmse_mechanism.drawing import SURE_ODDS, chances, log_odds
from discreet.synth.pmse_mechanism.trees import tree_pmse

NUMBERS = np.arange(1.0, 11.0)[:, None]
SHIFTS = (0.5, 3, 6, 20)
QUALITIES = [0.01315789, 0.04411765, 0.10714286, 0.25]


def test_one_optimal_split_between_ten_numbers_and_their_shifts():
    found = [tree_pmse(NUMBERS, NUMBERS + shift) for shift in SHIFTS]
    assert found == pytest.approx(QUALITIES, abs=5e-9)
    assert [20 * (0.25 - u) for u in found] == pytest.approx([4.736842, 4.117647, 2.857143, 0], abs=5e-7)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "wanted"),
    [
        (1, 1 / 10, [0.358728, 0.307282, 0.224223, 0.109766]),
        (1, 1 / 22, [0.467094, 0.332278, 0.166117, 0.034511]),
        (5, 1 / 10, [0.641332, 0.295761, 0.061186, 0.001720]),
    ],
)
def test_chances_of_four_candidates_under_the_exponential_mechanism(epsilon, sensitivity, wanted):
    assert chances(np.array(QUALITIES), epsilon, sensitivity) == pytest.approx(wanted, abs=1e-6)


def test_sensitivities_published_and_tight():
    assert dp.pmse_sensitivity(10) == 1 / 10
    assert dp.pmse_sensitivity(10, kind="tight") == 1 / 22


def test_temperatures_of_the_published_setting():
    found = [synth.PMSEMechanism(e, n_datasets=10).temperature(5000) for e in (0.25, 0.5, 1, 2, 4)]
    assert found == pytest.approx([62.5, 125, 250, 500, 1000])


def test_the_smallest_published_budget_lies_in_the_tail_of_its_prior():
    # Widths of the mode in the published setting at T = 62.5, against a normal prior of variance 100,000.
    widths = np.array([1.6, 0.14, 0.5, 0.05, 0.14])
    prior = np.sqrt(1e5)
    assert log_odds(62.5, 0.0023, widths, prior) < -5
    assert log_odds(62.5 * 5000 / 2500, 0.0023, widths / np.sqrt(2), prior) < log_odds(
        1000, 0.0023, widths / 4, prior
    )
    assert log_odds(1000, 0.0023, widths / 4, prior) > SURE_ODDS
