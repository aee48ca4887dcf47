"""Worked examples of the Poisson synthesis spec (section 5), recomputed there."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.tables import poisson


@pytest.mark.parametrize(
    ("alpha", "epsilon", "expected"),
    [
        (0.1, 3, 0.300971),
        (0.1, 1.5, 0.300971),
        (0.0893, 1.5, 0.6635),
        (1, 2, 0.052653),
        (0.5, 2, 0.191153),
        (1, 1.5, 0.142877),
        (1, 3, 0.016564),
        (2, 2, 0.011905),
        (5, 2, 1.7488e-4),
        (0.1, 6, 0.099584),
        (0.1, 6.2, 0.025742),
        (1, 0.5, 0.551916),
        (10, 0.5, 0.130124),
        (50, 0.5, 6.7997e-4),
        (5, 0.8, 0.101275),
    ],
)
def test_the_probabilistic_delta_is_that_of_the_spec(alpha, epsilon, expected):
    places = 4 if expected == 0.6635 else 6
    assert poisson.delta(alpha, epsilon) == pytest.approx(expected, abs=0.6 * 10**-places)


@pytest.mark.parametrize(
    ("alpha", "epsilon", "expected"),
    [(1, 2, 0.025610), (0.1, 3, 0.206994), (0.1, 1.5, 0.280002), (0.5, 2, 0.084842)],
)
def test_the_tight_delta_is_that_of_the_spec(alpha, epsilon, expected):
    assert poisson.delta(alpha, epsilon, guarantee="tight") == pytest.approx(expected, abs=1e-6)


def test_below_epsilon_one_a_count_of_two_can_be_the_worst():
    worst, found = poisson.worst_count(1, 0.5)
    assert worst == 2
    assert found == pytest.approx(0.551916, abs=1e-6)
    assert poisson._probabilistic(np.array([1.0]), 1.0, 0.5)[0] == pytest.approx(0.458659, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "target", "alpha", "delta"), [(2, 0.05, 0.895255, 0.043697), (3, 0.05, 0.357952, 0.049097)]
)
def test_the_smallest_alpha_is_the_start_of_a_tooth(epsilon, target, alpha, delta):
    found = poisson.calibrate(epsilon, target)
    assert found == pytest.approx(alpha, abs=1e-6)
    assert poisson.delta(found, epsilon) == pytest.approx(delta, abs=1e-6)


def test_a_larger_alpha_can_be_worse():
    assert poisson.delta(1, 2) > 0.05 > poisson.delta(poisson.calibrate(2, 0.05), 2)


def test_alpha_a_tenth_reaches_five_percent_only_beyond_epsilon_six():
    assert poisson.delta(0.1, 6.19) > 0.05 > poisson.delta(0.1, 6.2)


def test_a_synthetic_five_from_one_person_is_twelve_times_as_likely():
    assert poisson.likelihood_ratio(5, 1) == pytest.approx(11.772, abs=1e-3)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "expected"), [(2, 1, 0.052284), (3, 1, 0.003074), (1, 2, 0.073017)]
)
def test_the_gaussian_comparison_is_that_of_the_spec(sigma, epsilon, expected):
    assert poisson.gaussian_delta(sigma, epsilon) == pytest.approx(expected, abs=1e-6)


def test_the_multinomial_dirichlet_comparison_is_that_of_the_spec():
    assert poisson.dirichlet_alpha(1000, 1) == pytest.approx(581.977, abs=1e-3)


@pytest.mark.parametrize(
    ("smallest", "epsilon", "expected"), [(3, 1, 0.110674), (5, 1, 0.042621), (3, 2, 0.002840)]
)
def test_the_data_dependent_delta_is_that_of_the_spec(smallest, epsilon, expected):
    assert poisson.data_dependent_delta(smallest, epsilon) == pytest.approx(expected, abs=1e-6)


def test_the_tight_delta_never_exceeds_the_probabilistic_one():
    for alpha in (0.05, 0.3, 1, 4):
        for epsilon in (0.3, 0.9, 1.5, 4):
            tight = poisson.delta(alpha, epsilon, guarantee="tight")
            assert tight <= poisson.delta(alpha, epsilon) + 1e-12


def test_a_count_of_one_is_the_worst_for_the_tight_delta():
    counts = np.arange(1, 200, dtype=float)
    for alpha in (0.05, 1, 7):
        for epsilon in (0.2, 1, 3):
            assert np.argmax(poisson._tight(counts, alpha, epsilon)) == 0


def test_the_tight_delta_is_the_sum_of_its_definition():
    from scipy.stats import poisson as law

    b = np.arange(400)
    for alpha, epsilon in ((0.4, 0.7), (3.0, 1.2)):
        p, q = law.pmf(b, 1 + alpha), law.pmf(b, alpha)
        up = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        down = np.maximum(q - np.exp(epsilon) * p, 0).sum()
        assert poisson.delta(alpha, epsilon, guarantee="tight") == pytest.approx(max(up, down), abs=1e-12)


def test_an_epsilon_whose_exponential_is_no_number_is_refused():
    from discreet.core.errors import ParameterError
    from discreet.tables import poisson

    with pytest.raises(ParameterError, match="at most 700"):
        poisson.dirichlet_alpha(1000, 2**63)


def test_a_pseudocount_that_no_epsilon_fits_is_refused():
    from discreet.core.errors import ParameterError
    from discreet.tables import poisson

    with pytest.raises(ParameterError, match="alpha is too small"):
        poisson.epsilon(1e-242, 1e-6)
