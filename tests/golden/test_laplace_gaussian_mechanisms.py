"""Worked examples of the Laplace and Gaussian mechanisms (thesis by Qu, section 2.5; Balle and Wang 2018)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import dp
from discreet.core.guarantees import in_plain_words


def test_a_count_of_100_under_epsilon_one_half():
    answer = dp.laplace(100, sensitivity=1, epsilon=0.5)
    assert answer.scale == 2
    assert math.sqrt(2) * answer.scale == pytest.approx(2.828, abs=5e-4)
    assert answer.margin() == pytest.approx(5.99, abs=0.005)
    assert isinstance(answer.value, int)


def test_ages_that_are_handed_over_one_by_one_are_useless_and_their_mean_is_not():
    told = dp.local_laplace(np.full(10_000, 40.0), lower=0, upper=100, epsilon=1, seed=1)
    assert told.scale == pytest.approx(100, rel=2e-3)
    # Five standard errors: a Laplace law has a kurtosis of 6.
    assert np.std(told.value) == pytest.approx(141.4, rel=5 * math.sqrt(5 / 4 / 10_000))
    assert np.mean(told.value) == pytest.approx(40, abs=5 * 1.414)


@pytest.mark.parametrize(
    ("epsilon", "delta", "calibration", "sigma"),
    [
        (1, 1e-5, "analytic", 3.7306),
        (0.1, 1e-6, "analytic", 36.305),
        (0.1, 1e-6, "classical", 52.988),
    ],
)
def test_the_spread_of_gaussian_noise(epsilon, delta, calibration, sigma):
    found = dp.gaussian_sigma(1, epsilon, delta, calibration=calibration)
    assert found == pytest.approx(sigma, rel=2e-5)


def test_the_classical_spread_at_epsilon_one_is_refused_where_it_is_not_proved():
    assert math.sqrt(2 * math.log(1.25 / 1e-5)) == pytest.approx(4.8448, rel=1e-5)
    with pytest.raises(dp.calibration.ParameterError, match="analytic"):
        dp.gaussian_sigma(1, 1, 1e-5, calibration="classical")


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"), [(1, 1e-8, 0.01321536), (0.5, 1e-8, 0.00334764), (1, 1e-6, 0.01746890)]
)
def test_rho_and_back(epsilon, delta, rho):
    assert dp.zcdp_from(epsilon, delta) == pytest.approx(rho, abs=5e-9)
    assert dp.epsilon_from_zcdp(dp.zcdp_from(epsilon, delta), delta, tight=False) == pytest.approx(
        epsilon, rel=1e-12
    )


def test_the_log_ratio_of_two_neighboring_answers_never_passes_epsilon():
    # Chances of discrete Laplace noise around 0 and around 1, in closed form.
    epsilon = 0.7
    places = np.arange(-40, 42)
    ratio = epsilon * (np.abs(places - 1) - np.abs(places))
    assert np.abs(ratio).max() == pytest.approx(epsilon)
    assert set(np.round(np.abs(ratio), 12)) == {epsilon}


def test_factors_of_the_odds_that_reports_tell():
    """Section 5: the table of e^epsilon; reports round up."""
    for epsilon, factor in ((0.01, 1.0101), (0.1, 1.1052), (1, 2.7183), (4.2, 66.69)):
        assert math.exp(epsilon) == pytest.approx(factor, rel=1e-4)
        told = in_plain_words(epsilon, adjacency="replace").split("factor of ")[1].split(" at")[0]
        assert factor <= float(told) + 5e-5
        assert float(told) < 1.01 * factor


def test_the_ratio_of_continuous_densities_is_epsilon_outside_and_less_within():
    """Section 5: f(D) = 0, f(D') = 1, scale 1/epsilon."""
    epsilon = 0.7
    x = np.linspace(-5, 6, 2201)
    ratio = epsilon * (np.abs(x - 1) - np.abs(x))
    assert np.abs(ratio).max() <= epsilon * (1 + 1e-12)
    assert ratio[x <= 0] == pytest.approx(epsilon)
    assert ratio[x >= 1] == pytest.approx(-epsilon)


def test_the_proof_step_of_the_source_is_false():
    """Section 3: P(Z >= sqrt(2 ln(1.25 / delta)) / 2) is no bound by delta; the analytic curve is the one to trust."""
    from scipy.stats import norm

    assert norm.sf(math.sqrt(2 * math.log(1.25 / 1e-5)) / 2) == pytest.approx(0.0077, abs=5e-5)
    assert dp.gaussian_delta(3.7306, 1.0, 1.0) == pytest.approx(1e-5, rel=1e-3)
