"""Worked examples of the simple private generators that others are compared with."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, synth
from discreet.synth.noisy_bayes import sensitivities
from discreet.synth.private_histograms import exact_weight


def weight(bins, epsilon):
    plan = synth.SmoothHistogram(bins, epsilon, domain={"x": (0, 1), "y": (0, 1)}, never_missing=["x", "y"])
    return plan.mixing_weight(5000)


def test_weights_of_the_even_part():
    assert weight(3, 1.0) == pytest.approx(0.89999, abs=5e-6)
    assert weight(10, 1.0) == pytest.approx(0.9901, abs=5e-5)
    assert weight(10, 4.0) == pytest.approx(0.9615, abs=5e-5)


def test_the_weight_is_never_below_the_formula():
    for cells, n, rows, epsilon in ((9, 5000, 5000, 1.0), (100, 50, 10, 0.1), (2, 10, 10, 8.0)):
        exact = cells / (cells + n * math.expm1(epsilon / rows))
        assert 0 <= float(exact_weight(cells, n, rows, epsilon)) - exact < 1e-9


def test_sensitivities_and_noise_of_noisy_bayes():
    mean, covariance = sensitivities(np.array([8.0, 8.0]), 5000)
    assert mean[0] == pytest.approx(0.0016)
    assert covariance[0, 0] == pytest.approx(0.0128)
    share = synth.NoisyBayes(1.0, bounds={"x": (-4, 4), "y": (-4, 4)}).share()
    assert share == pytest.approx(0.02)
    assert covariance[0, 0] / share == pytest.approx(0.64)


def _test_file(rng: np.random.Generator, n: int = 5000) -> np.ndarray:
    """The test setting of the source, with 10 and 3 as standard deviations."""
    first = rng.normal(2, 10, n)
    return np.column_stack([first, rng.normal(-2.5 + 0.5 * first, 3)])


def _told_apart(real: np.ndarray, other: np.ndarray, **grown: float) -> float:
    from sklearn.tree import DecisionTreeClassifier

    both, told = np.vstack([real, other]), np.repeat([0, 1], len(real))
    tree = DecisionTreeClassifier(random_state=0, **grown).fit(both, told)
    return float(((tree.predict_proba(both)[:, 1] - 0.5) ** 2).mean())


MIDDLE, REACH = np.array([2.0, -1.5]), 4 * np.array([10.0, math.hypot(5, 3)])


def test_even_records_over_four_standard_deviations_are_told_apart_as_often_as_the_source_says():
    """Section 5: a uniform sample on the box has a tree pMSE of 0.12-0.13 (cp 0.01) or 0.14-0.17 (cp 0.001)."""
    rng = np.random.default_rng(4)
    real = _test_file(rng)
    even = rng.uniform(MIDDLE - REACH, MIDDLE + REACH, real.shape)
    # cp 0.01 of the root's impurity, which is 1/2; a tenth of it lets the tree go on.
    assert 0.11 <= _told_apart(real, even, min_impurity_decrease=0.01 * 0.5) <= 0.14
    assert 0.135 <= _told_apart(real, even, min_impurity_decrease=0.001 * 0.5) < 0.175


@pytest.mark.parametrize(("epsilon", "published"), [(1.0, 0.03278), (4.0, 0.01129)])
def test_the_published_smooth_histogram_cannot_come_from_its_formula(epsilon, published):
    """Section 6: nine tenths of the records are even, so that a tree tells them apart by more than 0.1."""
    real = _test_file(np.random.default_rng(4))
    bounds = {name: (m - r, m + r) for name, m, r in zip("xy", MIDDLE, REACH, strict=True)}
    data = Microdata(pl.DataFrame({"x": real[:, 0], "y": real[:, 1]}))
    plan = synth.SmoothHistogram(10, epsilon, domain=bounds, never_missing=["x", "y"])
    made = plan.fit(data, seed=1).sample(5000, seed=1).frame.to_numpy()
    found = _told_apart(real, made, min_impurity_decrease=0.01 * 0.5)
    assert found > 0.1 > 3 * published


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@pytest.mark.parametrize(("epsilon", "published"), [(0.25, 0.20509), (0.5, 0.17876)])
def test_noisy_bayes_with_the_loosest_bounds_is_as_far_off_as_published(epsilon, published):
    """Section 6: ten files a fit, bounds of 10 standard deviations, a tree with cp 0.001.

    This is a fit and no confirmation. The source does not say which of its bounds (2, 4, 5, 10 SD) the table has; of
    the four, 10 SD were taken here because they come nearest, and with 4 SD ours are told apart far less. The test
    shows that one of the bounds it names gives its figures at the two smallest budgets, and holds ours to that. Four
    fits with fixed seeds have a standard error of about 0.008.
    """
    real = _test_file(np.random.default_rng(4))
    data = Microdata(pl.DataFrame({"x": real[:, 0], "y": real[:, 1]}))
    reach = REACH * 10 / 4
    bounds = {name: (m - r, m + r) for name, m, r in zip("xy", MIDDLE, reach, strict=True)}
    plan = synth.NoisyBayes(epsilon, bounds=bounds, n_datasets=10)
    found = [
        _told_apart(real, made.frame.to_numpy(), min_impurity_decrease=0.001 * 0.5)
        for seed in range(4)
        for made in plan.fit(data, seed=seed).sample(5000, seed=seed, copies=10)[:5]
    ]
    assert float(np.mean(found)) == pytest.approx(published, abs=0.04)


def test_the_functional_mechanism_draws_no_more_noise_than_the_bound_of_its_source():
    """Section 3.3: D = 2 (1 + d)^2. Ours counts the sums that a record enters, each within 1, and draws for those."""
    from discreet.dp.linear_regression import _Sums

    for d in range(1, 8):
        terms = SimpleNamespace(terms=[f"x{at}" for at in range(d)])
        for replaced in (False, True):
            sums = _Sums.planned(terms, "functional", 1.0, replaced=replaced)
            assert sums.moved / sums.fine == (d * (d + 1) / 2 + d) * (2 if replaced else 1)
            assert sums.moved / sums.fine <= 2 * (1 + d) ** 2
