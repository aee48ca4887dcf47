"""The worked examples of the spectral anonymization specification (spectral-anonymization, sections 3 to 6)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.protect.spectral import (
    SpectralAnonymize,
    asymptotic_cov,
    expected_match_rate,
    relative_error,
    standard_error_inflation,
)
from discreet.protect.spectral_measures import match_measures

TILTED = np.array([[2.0, 1.0], [1.0, 1.0]])


def masked(matrix: np.ndarray, method: str, rng: np.random.Generator, **options) -> np.ndarray:
    return SpectralAnonymize(method=method, **options)._masked(matrix, rng)[0]


def test_a_diagonal_covariance_matrix_has_the_printed_limits():
    for large, small in ((2.0, 1.0), (5.0, 0.5)):
        sigma = np.diag([large, small])
        before = asymptotic_cov(sigma, 1, "original", "cov")
        cross = large * small
        expected = np.diag([2 * large**2, cross, cross, 2 * small**2])
        expected[1, 2] = expected[2, 1] = cross
        assert before == pytest.approx(expected)
        expected[1, 1] = expected[2, 2] = expected[1, 2] = expected[2, 1] = 2 * cross
        for method in "POJ":
            assert asymptotic_cov(sigma, 1, method, "cov") == pytest.approx(expected)
    assert asymptotic_cov(np.diag([2, 1]), 1, "original", "cov").diagonal() == pytest.approx([8, 2, 2, 2])
    assert asymptotic_cov(np.diag([2, 1]), 1, "O", "cov").diagonal() == pytest.approx([8, 4, 4, 2])


def test_a_tilted_covariance_matrix_has_the_corrected_limits_not_the_printed_ones():
    at = np.ix_([0, 1, 3], [0, 1, 3])
    assert asymptotic_cov(TILTED, 1, "original", "cov")[at].diagonal() == pytest.approx([8, 3, 2])
    found = asymptotic_cov(TILTED, 1, "O", "cov")[at]
    assert found == pytest.approx(np.array([[8.8, 3.6, 1.2], [3.6, 3.2, 2.4], [1.2, 2.4, 2.8]]))
    factors = standard_error_inflation(TILTED, "O", "cov")
    assert factors == pytest.approx(np.sqrt([[1.1, 3.2 / 3], [3.2 / 3, 1.4]]))


def test_means_lose_nothing_by_permutation_and_half_their_precision_otherwise():
    assert asymptotic_cov(TILTED, 50, "P", "mean") == pytest.approx(TILTED / 50)
    assert asymptotic_cov(TILTED, 50, "O", "mean") == pytest.approx(2 * TILTED / 50)
    assert standard_error_inflation(TILTED, "J") == pytest.approx([np.sqrt(2)] * 2)


@pytest.mark.parametrize("method", ["P", "J", "O"])
@pytest.mark.slow
def test_simulated_moments_agree_with_theory(method: str):
    rng = np.random.default_rng(20)
    n, sets = 400, 1_500
    root = np.linalg.cholesky(TILTED)
    means, products = np.empty((sets, 2)), np.empty((sets, 4))
    for at in range(sets):
        made = masked(rng.standard_normal((n, 2)) @ root.T, method, rng)
        means[at], products[at] = made.mean(axis=0), np.cov(made, rowvar=False).ravel()
    spread = n * np.cov(products, rowvar=False)
    printed = {"P": (8.56, 3.12, 2.74), "J": (9.11, 3.28, 2.82), "O": (8.70, 3.23, 2.83)}[method]
    assert spread[[0, 1, 3], [0, 1, 3]] == pytest.approx(printed, rel=0.15)
    assert relative_error(spread, asymptotic_cov(TILTED, 1, method, "cov")) < 0.12
    assert relative_error(n * np.cov(means, rowvar=False), asymptotic_cov(TILTED, 1, method)) < 0.12


@pytest.mark.parametrize(
    ("p", "n", "method", "share", "slack"),
    [
        (2, 25, "P", 0.041, 0.01),
        (2, 25, "J", 0.253, 0.02),
        (2, 25, "O", 0.0, 1e-12),
        (3, 25, "P", 0.0015, 0.0015),
        (3, 25, "J", 0.127, 0.015),
        (6, 100, "P", 0.0, 1e-9),
        (6, 100, "J", 0.0157, 0.004),
    ],
)
@pytest.mark.slow
def test_match_rates_are_the_published_ones_and_those_of_theory(p, n, method, share, slack):
    rng = np.random.default_rng(5)
    spread = np.sqrt(np.arange(p, 0, -1))
    rates = []
    for _ in range(300):
        matrix = 3 + rng.standard_normal((n, p)) * spread
        rates.append(match_measures(matrix, masked(matrix, method, rng))["matches"])
    assert np.mean(rates) == pytest.approx(share, abs=slack)
    assert expected_match_rate(method, n, p, p) == pytest.approx(share, abs=slack)


@pytest.mark.parametrize(
    ("p", "n", "printed"),
    [(2, 25, {"P": 0.370, "J": 0.338, "O": 0.468}), (6, 100, {"P": 2.314, "J": 2.200, "O": 2.345})],
)
@pytest.mark.slow
def test_distances_to_the_nearest_original_are_the_published_ones(p, n, printed):
    rng = np.random.default_rng(6)
    spread = np.sqrt(np.arange(p, 0, -1))
    found = {}
    for method in printed:
        distances = []
        for _ in range(200):
            matrix = 3 + rng.standard_normal((n, p)) * spread
            distances.append(match_measures(matrix, masked(matrix, method, rng))["euc"])
        found[method] = float(np.mean(distances))
    assert found == pytest.approx(printed, rel=0.06)
    assert found["O"] > found["P"] > found["J"]


def test_unperturbed_components_pin_a_record_so_fewer_of_them_match_than_printed():
    # The specification would have n^(1 - q) = 1 for one permuted vector of three; a record that keeps two of its
    # three components can only match itself, with chance 1 / n.
    rng = np.random.default_rng(7)
    rates = []
    for _ in range(300):
        matrix = rng.standard_normal((10, 3)) * [3, 2, 1]
        rates.append(match_measures(matrix, masked(matrix, "P", rng, components=1))["matches"])
    assert np.mean(rates) == pytest.approx(0.1, abs=0.02)
    assert expected_match_rate("P", 10, 1, 3) == pytest.approx(0.1)


@pytest.mark.parametrize("method", ["P", "J", "O"])
def test_the_trace_is_kept_exactly_and_permutation_keeps_means(method: str):
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 4)) + 10
    made = masked(matrix, method, rng)
    center = matrix.mean(axis=0)
    assert ((made - center) ** 2).sum() == pytest.approx(((matrix - center) ** 2).sum(), rel=1e-12)
    if method == "P":
        assert np.abs(made.mean(axis=0) - center).max() < 1e-10


def test_the_relative_error_of_the_mean_is_small_from_a_hundred_records_on():
    rng = np.random.default_rng(9)
    sigma = np.diag([2.0, 1.0])
    means = np.array(
        [masked(rng.standard_normal((100, 2)) * [np.sqrt(2), 1], "O", rng).mean(axis=0) for _ in range(4_000)]
    )
    assert relative_error(100 * np.cov(means, rowvar=False), asymptotic_cov(sigma, 1, "O")) < 0.05


def test_the_spherical_draw_is_a_haar_rotation_of_the_vector():
    from scipy.stats import ks_2samp, ortho_group

    rng = np.random.default_rng(10)
    vector = np.zeros(5)
    vector[0] = 1.0
    turned = (ortho_group.rvs(5, size=4_000, random_state=3) @ vector)[:, 1]
    drawn = rng.standard_normal((4_000, 5))
    drawn = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True))[:, 1]
    assert ks_2samp(turned, drawn).pvalue > 0.01


def test_equal_eigenvalues_are_warned_of():
    with pytest.warns(DiscreetWarning, match="equal"):
        asymptotic_cov(np.eye(2), 10, "O", "cov")


def test_signs_that_leave_records_unchanged_are_warned_of_loudly():
    frame = pl.DataFrame(np.random.default_rng(1).normal(size=(64, 3)), schema=list("abc"))
    with pytest.warns(DiscreetWarning, match="UNCHANGED"):
        release = SpectralAnonymize(list("abc"), method="J").apply(Microdata(frame), seed=1)
    assert any("about 8 records UNCHANGED" in note for note in release.log[0].notes)


@pytest.mark.parametrize("method", ["P", "J"])
def test_a_single_column_is_refused(method: str):
    with pytest.raises(ParameterError, match="single column"):
        SpectralAnonymize(["a"], method=method)
