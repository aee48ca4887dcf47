"""Growth models from moments: methods/partitioned-covariance-models.md, section 5 (n = 244, p = 7)."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import fit_from_moments, fit_vs_saturated, latent_growth, likelihood_ratio

N = 244
TRUE = {"intercept_sd": 0.4470, "covariance": 0.0, "slope_sd": 0.0462, "residual_sd": 0.3646, "intercept_mean": 2.0722,
        "slope_mean": -0.0750}  # fmt: skip


@pytest.fixture(scope="module")
def moments():
    model = latent_growth(7)
    return model.implied(np.array([TRUE[name] for name in model.names]))


def test_the_implied_moments(moments):
    mean, covariance = moments
    np.testing.assert_allclose(mean, [2.0722, 1.9972, 1.9222, 1.8472, 1.7722, 1.6972, 1.6222])
    printed = [[0.332742, 0.199809, 0.199809], [0.199809, 0.334877, 0.204078], [0.199809, 0.204078, 0.341280]]
    np.testing.assert_allclose(covariance[:3, :3], printed, atol=5e-7)


@pytest.mark.parametrize("optimizer", ["scoring", "L-BFGS-B"])
def test_the_minimum_and_its_standard_errors(moments, optimizer):
    fit = fit_from_moments(N, *moments, latent_growth(7), optimizer=optimizer)
    assert fit.minus_two_ll == pytest.approx(2101.8345, abs=5e-5)
    assert fit.df == 29
    for name, value in TRUE.items():
        assert fit.estimates[name] == pytest.approx(value, abs=1e-5)
    printed = {"intercept_sd": 0.0266, "covariance": 0.0065, "slope_sd": 0.0071, "residual_sd": 0.0074,
               "intercept_mean": 0.0327, "slope_mean": 0.0053}  # fmt: skip
    assert {name: round(error, 4) for name, error in fit.standard_errors.items()} == printed
    assert fit.both_scales["variance of intercept_sd"] == pytest.approx(0.447**2, abs=1e-5)


def test_standard_errors_with_the_covariance_entry_fixed(moments):
    fit = fit_from_moments(N, *moments, latent_growth(7, cov_free=False))
    printed = {"intercept_sd": 0.0237, "slope_sd": 0.0062, "residual_sd": 0.0072, "intercept_mean": 0.0327,
               "slope_mean": 0.0053}  # fmt: skip
    assert {name: round(error, 4) for name, error in fit.standard_errors.items()} == printed


def test_the_test_of_the_slope(moments):
    def fits(**options):
        full = fit_from_moments(N, *moments, latent_growth(7, **options))
        return full, fit_from_moments(N, *moments, latent_growth(7, slope_mean=False, **options))

    fixed, free = fits(cov_free=False), fits()
    assert likelihood_ratio(*fixed).chi2 == pytest.approx(151.417, abs=5e-4)
    assert likelihood_ratio(*free).chi2 == pytest.approx(145.760, abs=5e-4)
    refit = {"intercept_sd": 0.4383, "slope_sd": 0.0836, "residual_sd": 0.3668, "intercept_mean": 1.9806}
    assert {name: round(value, 4) for name, value in fixed[1].estimates.items()} == pytest.approx(
        refit, abs=1e-4
    )


def test_the_wrong_parameter_gives_the_wrong_published_number(moments):
    """Fixing the mean of the intercept instead of the slope gives the pattern of the published columns."""
    full = latent_growth(7, cov_free=False)
    labels = {**full.labels, "M": np.where(full.labels["M"] == "intercept_mean", "", full.labels["M"])}
    from dataclasses import replace

    wrong = fit_from_moments(N, *moments, replace(full, labels=labels))
    ratio = likelihood_ratio(fit_from_moments(N, *moments, full), wrong)
    assert ratio.chi2 == pytest.approx(723.3, abs=0.1)
    assert wrong.estimates["intercept_sd"] == pytest.approx(2.107, abs=1e-3)
    assert wrong.estimates["slope_mean"] == pytest.approx(-0.068, abs=1e-3)


def test_a_model_that_fits_is_as_good_as_none(moments):
    fit = fit_from_moments(N, *moments, latent_growth(7))
    test = fit_vs_saturated(fit)
    assert test.df == 29
    assert test.chi2 == pytest.approx(0, abs=1e-6)
