"""Worked examples of the simple private generators that others are compared with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import synth
from discreet.synth.private_histograms.noisy_bayes import sensitivities
from discreet.synth.private_histograms.smooth_histogram import exact_weight


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


def test_even_records_over_four_standard_deviations_are_told_apart_as_often_as_the_source_says():
    """Section 5: a uniform sample on the box against the test data has a tree pMSE of 0.12-0.13 (cp 0.01)."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(4)
    n = 5000
    first = rng.normal(2, 10, n)
    real = np.column_stack([first, rng.normal(-2.5 + 0.5 * first, 3)])
    middle, reach = np.array([2.0, -1.5]), 4 * np.array([10.0, math.hypot(5, 3)])
    even = rng.uniform(middle - reach, middle + reach, (n, 2))
    both, told = np.vstack([real, even]), np.repeat([0, 1], n)
    # cp 0.01 of the root's impurity, which is 1/2.
    tree = DecisionTreeClassifier(min_impurity_decrease=0.01 * 0.5, random_state=0).fit(both, told)
    found = float(((tree.predict_proba(both)[:, 1] - 0.5) ** 2).mean())
    assert 0.11 <= found <= 0.14
