"""Worked examples of synthetic-generation-first-principles.md, with the mistakes of its source corrected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import gamma as gamma_function

from discreet.core.errors import ParameterError
from discreet.synth.distributions import (
    accept_reject,
    bootstrap,
    condition,
    conditional_inverse,
    discrete_inverse,
    discrete_inverse_unbounded,
    interpolate,
    inverse_transform,
    multivariate_normal,
    segment,
    smote,
    transform,
)

POINTS = np.array(
    [
        [0.49671, -0.13826],
        [0.64769, 0.77997],
        [-0.23415, -0.23414],
        [1.57921, 1.54256],
        [0.76743, 0.96940],
        [-0.46947, 0.54256],
        [-0.46342, -0.46573],
        [0.24196, -0.04535],
        [-1.91328, -1.72492],
        [0.56229, 1.31425],
    ]
)


def half_normal(x):
    return np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)


def exponential(rng, n):
    return rng.exponential(size=n)


def ks(values, cdf):
    return stats.kstest(values, cdf).statistic


@pytest.mark.parametrize(
    "how", [{"quantile": lambda u: -np.log1p(-u)}, {"cdf": lambda x: 1 - np.exp(-np.maximum(x, 0))}]
)
def test_exponential_quantiles(how):
    drawn = inverse_transform(**how, uniform=[0.1, 0.5, 0.9])
    assert drawn.values == pytest.approx([0.105361, 0.693147, 2.302585], abs=5e-7)


def test_the_quantile_of_a_half_of_a_coin_is_0_by_its_definition():
    drawn = discrete_inverse([0, 1], [0.5, 0.5], uniform=[0.0, 0.25, 0.5, 0.5 + 1e-12, 1.0])
    assert drawn.values.tolist() == [0, 0, 0, 1, 1]


def test_the_distribution_function_of_a_discrete_variable_is_not_uniform():
    drawn = discrete_inverse([0, 1], [0.5, 0.5], 1000, seed=1).values
    assert set(np.where(drawn == 0, 0.5, 1.0)) == {0.5, 1.0}


def test_three_values_by_linear_search():
    drawn = discrete_inverse([1, 2, 3], [0.2, 0.5, 0.3], uniform=[0.6], search="linear")
    assert (drawn.values.tolist(), drawn.diagnostics["comparisons"]) == ([2], 2)


@pytest.mark.parametrize(("search", "expected"), [("linear", [2, 4, 5]), ("binary", [3, 2, 3])])
def test_five_values_and_their_comparisons(search, expected):
    drawn = discrete_inverse(
        [1, 2, 3, 4, 5], [0.1, 0.2, 0.3, 0.2, 0.2], uniform=[0.15, 0.75, 0.95], search=search
    )
    assert drawn.values.tolist() == [2, 4, 5]
    assert drawn.diagnostics["comparisons_of_value"][drawn.values - 1].tolist() == expected
    assert drawn.diagnostics["comparisons"] == sum(expected)


def test_poisson_by_adding_up():
    drawn = discrete_inverse_unbounded(stats.poisson(3).pmf, uniform=[0.2, 0.65, 0.98])
    assert drawn.values.tolist() == [2, 4, 7]
    below = np.cumsum(stats.poisson(3).pmf(np.arange(8)))
    expected = [0.049787, 0.199148, 0.423190, 0.647232, 0.815263, 0.916082, 0.966491, 0.988095]
    assert below == pytest.approx(expected, abs=5e-7)


def test_conditional_quantiles_of_two_exponentials():
    drawn = conditional_inverse(
        [lambda u: -np.log1p(-u), lambda v, x: -np.log1p(-v) / (2 + 0.5 * x)], uniform=[[0.5, 0.5]]
    )
    assert drawn.values[0] == pytest.approx([0.693147, 0.295387], abs=5e-7)


def test_the_normal_by_rejection_from_an_exponential():
    drawn = accept_reject(
        half_normal,
        exponential,
        np.sqrt(2 * np.e / np.pi),
        200_000,
        proposal_density=lambda x: np.exp(-x),
        seed=1,
    )
    assert drawn.diagnostics["acceptance_rate"] == pytest.approx(0.7602, abs=0.003)
    assert drawn.diagnostics["expected_acceptance"] == pytest.approx(0.7602, abs=5e-5)
    signs = np.random.default_rng(2).choice([-1, 1], 200_000)
    normal = drawn.values * signs
    assert normal.var() == pytest.approx(1, abs=0.015)
    assert ks(normal, "norm") < 0.005


def test_the_bound_of_the_source_is_too_small_and_refused():
    with pytest.raises(ParameterError, match=r"bound is 1\.08"):
        accept_reject(
            half_normal,
            exponential,
            np.e / np.sqrt(2 * np.pi),
            1000,
            proposal_density=lambda x: np.exp(-x),
            seed=1,
        )


def test_chi_square_is_a_sum_of_squared_normals():
    drawn = transform(
        lambda rng, n: rng.standard_normal((n, 4)), lambda z: (z**2).sum(axis=1), 100_000, seed=1
    )
    assert ks(drawn.values, stats.chi2(4).cdf) < 0.006


@pytest.mark.parametrize(("a", "b", "rate"), [(0.5, 0.5, 0.785398), (1, 1, 0.5), (2, 3, 0.1)])
def test_johnks_beta(a, b, rate):
    powers = np.array([1 / a, 1 / b])
    kept = condition(
        lambda rng, n: rng.random((n, 2)) ** powers, lambda pair: pair.sum(axis=1) <= 1, 50_000, seed=1
    )
    assert rate == pytest.approx(
        gamma_function(a + 1) * gamma_function(b + 1) / gamma_function(a + b + 1), abs=5e-7
    )
    assert kept.diagnostics["acceptance_rate"] == pytest.approx(rate, abs=0.01)
    assert ks(kept.values[:, 0] / kept.values.sum(axis=1), stats.beta(a, b).cdf) < 0.01


def test_the_cholesky_root_and_the_mean_in_its_own_order():
    drawn = multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], standard=[[0.3, -0.2]])
    assert drawn.diagnostics["root"] == pytest.approx(np.array([[1, 0], [0.7, 0.714143]]), abs=5e-7)
    assert drawn.values[0] == pytest.approx([0.3, 0.7 * 0.3 + 0.714143 * -0.2 + 1], abs=5e-7)


def test_the_spectral_root_keeps_the_sign_of_the_correlation():
    drawn = multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], 200_000, method="spectral", seed=1)
    assert drawn.diagnostics["eigenvalues"] == pytest.approx([0.3, 1.7])
    first, second = (drawn.diagnostics["root"] / np.sqrt([0.3, 1.7])).T
    assert np.abs(first) == pytest.approx([np.sqrt(0.5)] * 2)
    assert first[0] == pytest.approx(-first[1])
    assert second[0] == pytest.approx(second[1])
    assert np.corrcoef(drawn.values.T)[0, 1] == pytest.approx(0.7, abs=0.005)


def test_the_point_of_the_smote_example():
    assert segment(POINTS[0], POINTS[4], 0.65) == pytest.approx([0.672678, 0.581719], abs=5e-6)


def test_without_classes_the_example_neighbor_is_not_among_the_two_nearest():
    drawn = smote(POINTS, percent=5000, k=2, standardize=False, seed=1)
    near = set(drawn.diagnostics["neighbor"][drawn.diagnostics["base"] == 0])
    assert near == {7, 2}
    assert 4 not in near


def test_a_bootstrap_draws_by_multiplicity():
    drawn = bootstrap(np.array(["a", "a", "b"]), 90_000, seed=1).values
    assert (drawn == "a").mean() == pytest.approx(2 / 3, abs=0.006)


def test_interpolated_records_of_a_bivariate_normal_keep_margins_and_correlation():
    data = multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 1000, seed=3).values
    drawn = interpolate(data, 100_000, seed=4).values
    for column in range(2):
        assert stats.ks_2samp(data[:, column], drawn[:, column]).statistic <= 0.01
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(np.corrcoef(data.T)[0, 1], abs=0.01)
