import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import multivariate_normal

from discreet.core.errors import ParameterError
from discreet.numerics.copula import EmpiricalMargin, fit_d_vine, fit_gaussian
from discreet.numerics.correlation import correlation_of_vine, nearest_correlation, root_of
from discreet.numerics.mutual_information import (
    bivariate_normal_cdf,
    conditional_information,
    cut_table,
    dense,
    entropy,
    match_pairs,
    match_table,
    match_within,
    mutual_information,
)


def normal_columns(correlation, n, seed, cuts=(-1, 0, 1)):
    drawn = np.random.default_rng(seed).multivariate_normal(np.zeros(len(correlation)), correlation, n)
    return [np.searchsorted(np.array(cuts), column) for column in drawn.T]


@pytest.mark.parametrize("correlation", [-0.9999, -0.5, 0.0, 0.3, 0.95, 0.9999])
def test_the_bivariate_normal_agrees_with_scipy(correlation):
    h, k = np.array([0.3, 0.0, -1.2, 0.0, 2.5]), np.array([0.5, 0.0, 0.7, -2.0, 2.5])
    cov = [[1, correlation], [correlation, 1]]
    wanted = [multivariate_normal.cdf([x, y], cov=cov) for x, y in zip(h, k, strict=True)]
    assert bivariate_normal_cdf(h, k, correlation) == pytest.approx(wanted, abs=1e-12)


def test_a_cut_table_keeps_its_margins_whatever_the_correlation():
    x, y = np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])
    table = cut_table(x, y, 0.97)
    assert table.sum(axis=1) == pytest.approx(x)
    assert table.sum(axis=0) == pytest.approx(y)


def test_exact_and_drawn_matching_agree_on_a_dense_table():
    x, y = normal_columns([[1, 0.6], [0.6, 1]], 40_000, seed=1)
    exact = fit_gaussian([x, y], matching="exact").correlation[0, 1]
    drawn = fit_gaussian([x, y], matching="montecarlo", seed=1).correlation[0, 1]
    assert exact == pytest.approx(0.6, abs=0.02)
    assert drawn == pytest.approx(exact, abs=0.02)


def test_drawn_matching_does_not_take_the_noise_of_a_sparse_table_for_dependence():
    rng = np.random.default_rng(3)
    x, y = rng.integers(60, size=1500), rng.integers(60, size=1500)
    exact = abs(fit_gaussian([x, y], matching="exact").correlation[0, 1])
    auto = abs(fit_gaussian([x, y], seed=3).correlation[0, 1])
    assert exact > 0.7
    assert auto < 0.35


def test_ordered_columns_that_fall_together_get_a_negative_correlation():
    x, y = normal_columns([[1, -0.7], [-0.7, 1]], 5000, seed=2)
    assert fit_gaussian([x, y]).correlation[0, 1] == pytest.approx(-0.7, abs=0.04)
    assert fit_gaussian([x, y], ordered=[True, False]).correlation[0, 1] > 0


def test_weights_shape_margins_and_information():
    x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    weights = np.array([40.0, 10, 10, 40])
    assert mutual_information(x, y, weights) == pytest.approx(0.192745, abs=1e-6)
    copula = fit_gaussian([x, y], weights=weights, matching="exact")
    assert copula.correlation[0, 1] == pytest.approx(0.809017, abs=1e-5)


def test_a_pair_with_more_information_than_a_gaussian_copula_can_give_is_named():
    x = np.tile([0, 1, 2, 3], 500)
    y = np.array([0, 3, 1, 2])[x] // 1
    z = np.where(x % 2 == 0, 0, 1)
    fitted = fit_gaussian([x, y, z], matching="exact")
    assert (0, 2) in fitted.unreached


def test_conditional_information_is_the_mean_over_cells():
    rng = np.random.default_rng(1)
    cells = rng.integers(3, size=900)
    x, y = rng.integers(4, size=900), rng.integers(2, size=900)
    wanted = sum((cells == c).mean() * mutual_information(x[cells == c], y[cells == c]) for c in range(3))
    assert conditional_information(x, y, cells) == pytest.approx(wanted)


def test_sparse_and_dense_counting_give_one_entropy():
    codes = np.random.default_rng(1).integers(50, size=500)
    assert entropy(codes, 10**9) == pytest.approx(entropy(codes, 50))
    weights = np.ones(500)
    assert entropy(codes, 10**9, weights) == pytest.approx(entropy(codes, 50, weights))


def test_matching_within_cells_finds_a_partial_correlation():
    correlation = correlation_of_vine(np.array([[0, 0.6, 0.5], [0, 0, 0.4], [0, 0, 0]]))
    x, between, y = normal_columns(correlation, 30_000, seed=4, cuts=np.linspace(-2, 2, 9))
    match = match_within(x, y, dense(between), rng=np.random.default_rng(1))
    assert match.correlation == pytest.approx(0.5, abs=0.05)


def test_a_d_vine_recovers_the_correlations_of_normal_columns():
    correlation = np.array([[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]])
    fitted = fit_d_vine(normal_columns(correlation, 30_000, seed=5), seed=5)
    assert fitted.kind == "d-vine"
    assert fitted.correlation == pytest.approx(correlation, abs=0.06)


def test_the_path_of_a_vine_can_be_given_or_greedy():
    rng = np.random.default_rng(6)
    a = rng.integers(4, size=3000)
    b, c = rng.integers(4, size=3000), (a + (rng.random(3000) < 0.2)) % 4
    greedy = fit_d_vine([a, b, c], order="greedy", seed=1)
    assert abs(greedy.path.index(0) - greedy.path.index(2)) == 1
    given_path = fit_d_vine([a, b, c], order=[1, 0, 2], seed=1)
    assert given_path.path == (1, 0, 2)
    truncated = fit_d_vine([a, b, c], truncate=1, seed=1)
    assert truncated.partial[0, 2] == 0


def test_sampled_columns_have_the_values_and_the_margins_of_the_originals():
    x = np.repeat(["a", "b", "c"], [100, 300, 600])
    y = np.repeat([1.5, 2.5], [500, 500])
    columns = fit_gaussian([x, y], ordered=[True, True]).sample(20_000, np.random.default_rng(1))
    assert set(columns[0]) == {"a", "b", "c"}
    assert set(columns[1]) == {1.5, 2.5}
    assert (columns[0] == "c").mean() == pytest.approx(0.6, abs=0.015)


def test_a_smooth_margin_gives_values_between_those_observed():
    margin, _ = EmpiricalMargin.of(np.array([0.0, 10.0]), smooth=True)
    assert margin.quantile(np.array([0.25, 0.5, 0.75])).tolist() == [0.0, 5.0, 10.0]
    with pytest.raises(ParameterError, match="numbers"):
        EmpiricalMargin.of(np.array(["a"]), smooth=True)


def test_a_continuous_column_is_matched_on_quantile_groups():
    rng = np.random.default_rng(8)
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 20_000)
    fitted = fit_gaussian([z[:, 0], np.exp(z[:, 1])], seed=1)
    assert fitted.correlation[0, 1] == pytest.approx(0.8, abs=0.03)
    assert len(np.unique(fitted.sample(500, rng)[0])) > 400


def test_the_same_seed_gives_the_same_records():
    columns = normal_columns([[1, 0.4], [0.4, 1]], 300, seed=1, cuts=np.linspace(-2, 2, 20))
    first, second = (fit_gaussian(columns, seed=9).sample(50, np.random.default_rng(1)) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda: fit_gaussian([]),
        lambda: fit_gaussian([np.array([1, 2]), np.array([1])]),
        lambda: fit_gaussian([np.array([1, 2])], ordered=[True, False]),
        lambda: fit_gaussian([np.array([1, 2]), np.array([1, 2])], matching="guess"),
        lambda: fit_gaussian([np.arange(900), np.arange(900)], ordered=[False] * 2, matching="exact"),
        lambda: fit_d_vine([np.array([1, 2]), np.array([1, 2])], order=[0, 0]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ParameterError):
        call()


def test_matches_report_what_they_reached():
    shares = np.array([0.5, 0.5])
    match = match_table(shares, shares, 0.1)
    assert match.reached == pytest.approx(0.1, abs=1e-6)
    assert not match.at_bound
    assert match_table(shares, shares, 0.0).correlation == 0.0
    drawn = match_pairs(shares, shares, 5.0, draws=100, rng=np.random.default_rng(1))
    assert drawn.at_bound


symmetric = arrays(float, (4, 4), elements=st.floats(-1, 1)).map(lambda m: (m + m.T) / 2)


@settings(deadline=None)
@given(symmetric)
def test_the_nearest_correlation_matrix_is_one(matrix):
    found = nearest_correlation(matrix)
    assert np.diag(found) == pytest.approx(np.ones(4))
    assert np.linalg.eigvalsh(found)[0] > -1e-6
    assert np.abs(found).max() <= 1 + 1e-12


@settings(deadline=None)
@given(arrays(float, (5, 5), elements=st.floats(-0.9999, 0.9999)))
def test_any_edges_of_a_vine_make_a_correlation_matrix(edges):
    found = correlation_of_vine(edges)
    assert np.linalg.eigvalsh(found)[0] > -1e-6
    root = root_of(found)
    assert root @ root.T == pytest.approx(found, abs=1e-6)


@settings(deadline=None)
@given(arrays(np.int64, 60, elements=st.integers(0, 4)), arrays(np.int64, 60, elements=st.integers(0, 3)))
def test_information_is_symmetric_and_at_most_the_smaller_entropy(x, y):
    shared = mutual_information(x, y)
    assert shared == pytest.approx(mutual_information(y, x), abs=1e-12)
    assert -1e-12 <= shared <= min(entropy(x, 5), entropy(y, 4)) + 1e-9


@settings(deadline=None)
@given(symmetric, arrays(float, (4, 4), elements=st.floats(0, 1)).map(lambda m: (m + m.T) / 2))
def test_the_nearest_correlation_matrix_by_weights_is_one(matrix, weights):
    found = nearest_correlation(matrix, weights=weights)
    assert np.diag(found) == pytest.approx(np.ones(4))
    assert np.linalg.eigvalsh(found)[0] > -1e-6
    assert np.abs(found).max() <= 1 + 1e-12


def test_a_free_correlation_becomes_what_the_others_imply():
    torn = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    weights = np.ones((3, 3))
    weights[0, 2] = weights[2, 0] = 0.0
    found = nearest_correlation(torn, weights=weights)
    assert found[0, 1] == pytest.approx(0.9, abs=1e-3)
    assert found[1, 2] == pytest.approx(0.9, abs=1e-3)
    # No less than 2 · 0.9² - 1 goes with two correlations of 0.9.
    assert 0.61 < found[0, 2] <= 1


def test_a_correlation_that_weighs_more_moves_less():
    torn = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    weights = np.full((3, 3), 0.1) + 0.9 * np.eye(3)
    weights[0, 1] = weights[1, 0] = 1.0
    found = nearest_correlation(torn, weights=weights)
    # Without weights each of the three moves by 0.4.
    assert abs(found[0, 1] - 0.9) < 0.2
    assert abs(found[1, 2] - 0.9) > 0.4
