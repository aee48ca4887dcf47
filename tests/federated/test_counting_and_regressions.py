"""Counts and regressions over sites are those of the pooled file."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, risk
from discreet.core.errors import ColumnError, ParameterError
from discreet.federated import (
    RAMModel,
    assess,
    factor_model,
    fit_from_moments,
    full_information_likelihood,
    horizontal,
    latent_growth,
    likelihood_ratio,
    marginal_imputation,
    pca_from_cov,
    pool_imputations,
    regression_from_moments,
    regression_over_sites,
    robust_standard_errors,
    saturated,
    weighted_moments,
)

rows = st.lists(st.tuples(st.sampled_from(["f", "m", None]), st.integers(1, 3)), min_size=1, max_size=30)


@settings(max_examples=examples(40))
@given(rows, rows, rows)
def test_joint_classes_are_those_of_the_pooled_file(one, two, three):
    frames = [
        pl.DataFrame(part, schema={"sex": pl.String, "age": pl.Int64}, orient="row")
        for part in (one, two, three)
    ]
    found = assess(frames, {"sex": ["f", "m"], "age": [1, 2, 3]})
    pooled = pl.concat(frames)
    complete = pooled.drop_nulls()
    assert found.records == pooled.height
    assert found.undeclared == pooled.height - complete.height
    if complete.height:
        assert found.k == risk.k_anonymity(Microdata(complete, keys=["sex", "age"])).value
        table = {row[0]: row[1] for row in found.table("sex").iter_rows()}
        assert table == {row[0]: row[1] for row in complete["sex"].value_counts().iter_rows()}


def test_bad_levels_are_refused():
    frames = [pl.DataFrame({"sex": ["f", "m"]})] * 2
    with pytest.raises(ParameterError, match="each once"):
        assess(frames, {"sex": ["f", "f"]})
    with pytest.raises(ColumnError, match="no column 'age'"):
        assess(frames, {"age": [1]})
    with pytest.raises(ParameterError, match="at least 3 parties"):
        assess(frames[:1], {"sex": ["f", "m"]})


def table(n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    return pl.DataFrame({
        "a": a, "b": b, "y": (rng.random(n) < 1 / (1 + np.exp(-a + 0.5 * b))).astype(int),
        "c": rng.poisson(np.exp(0.2 + 0.3 * b)),
    })  # fmt: skip


@pytest.mark.parametrize(("family", "target"), [("logistic", "y"), ("poisson", "c")])
def test_a_regression_over_sites_is_the_pooled_one(family, target):
    sm = pytest.importorskip("statsmodels.api")
    sites = [table(n, seed) for seed, n in enumerate((80, 200, 31))]
    fit = regression_over_sites(sites, target, ["a", "b"], family=family)
    pooled = pl.concat(sites)
    kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
    design = sm.add_constant(pooled.select("a", "b").to_numpy())
    other = sm.GLM(pooled[target].to_numpy(), design, family=kind).fit(tol=1e-12)
    np.testing.assert_allclose(list(fit.coefficients.values()), other.params, atol=1e-8)
    np.testing.assert_allclose(list(fit.standard_errors.values()), other.bse, rtol=1e-6)
    assert fit.log_likelihood == pytest.approx(other.llf, abs=1e-7)
    assert fit.converged


def test_bad_regressions_are_refused():
    sites = [table(30, 1), table(30, 2), table(30, 3)]
    with pytest.raises(ColumnError, match="must be 0 or 1"):
        regression_over_sites(sites, "c", ["a"])
    with pytest.raises(ColumnError, match="must hold counts"):
        regression_over_sites(sites, "a", ["b"], family="poisson")
    with pytest.raises(ParameterError, match="follow from each other"):
        regression_over_sites([site.with_columns(z=2 * pl.col("a")) for site in sites], "y", ["a", "z"])
    with pytest.raises(ParameterError, match="at least 3 parties"):
        regression_over_sites(horizontal(sites[:1]), "y", ["a"])


def test_regression_and_components_from_moments_are_those_of_the_rows():
    frame = table(500, 5)
    n, mean, covariance = weighted_moments(frame, ["a", "b", "c"])
    found = regression_from_moments(mean, covariance, "c", ["a", "b"], n=n, names=["a", "b", "c"])
    design = np.column_stack([np.ones(500), frame["a"], frame["b"]])
    slopes = np.linalg.lstsq(design, frame["c"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose([found.intercept, *found.coefficients.values()], slopes)
    parts = pca_from_cov(covariance)
    np.testing.assert_allclose(
        parts.loadings @ np.diag(parts.variances) @ parts.loadings.T, covariance, atol=1e-12
    )
    assert (parts.loadings[np.abs(parts.loadings).argmax(axis=0), range(3)] > 0).all()
    with pytest.raises(ParameterError, match="none of them y"):
        regression_from_moments(mean, covariance, 0, [0])


def test_a_model_that_is_not_identified_names_its_parameters():
    with pytest.raises(ParameterError, match="loading"):
        fit_from_moments(100, np.zeros(2), np.eye(2), factor_model([[1], [1]]))


def test_models_that_are_not_nested_are_not_compared():
    moments = latent_growth(4).implied(np.array([0.4, 0.5, 0.05, 0.1, 2.0, -0.1]))
    growth = fit_from_moments(100, *moments, latent_growth(4))
    factors = fit_from_moments(100, *moments, factor_model([[1], [1], [1], [1]]))
    with pytest.raises(ParameterError, match="not the full one with parameters fixed"):
        likelihood_ratio(factors, growth)
    with pytest.raises(ParameterError, match="fewer free parameters"):
        likelihood_ratio(growth, growth)
    other_times = fit_from_moments(100, *moments, latent_growth(4, [0, 1, 2, 9], slope_mean=False))
    with pytest.raises(ParameterError, match="not the full one"):
        likelihood_ratio(growth, other_times)


def test_a_parameter_on_its_bound_has_no_standard_error_and_is_flagged():
    model = latent_growth(3)
    mean, covariance = model.implied(np.array([0.4, 0.5, 0.0, 0.0, 2.0, -0.1]))
    fit = fit_from_moments(
        100, mean, covariance - 0.01 * np.outer([0, 1, 2], [0, 1, 2]), latent_growth(3, cov_free=False)
    )
    assert "slope_sd" in fit.boundary
    assert np.isnan(fit.standard_errors["slope_sd"])
    assert all(np.isfinite(one) for name, one in fit.standard_errors.items() if name not in fit.boundary)
    assert "On a bound" in str(fit)


def test_no_model_needs_more_rows_than_variables():
    with pytest.raises(ParameterError, match="not more rows than variables"):
        fit_from_moments(3, np.zeros(3), np.eye(3), saturated(3))


def test_full_information_equals_the_moments_where_nothing_is_missing():
    model = latent_growth(3)
    rng = np.random.default_rng(2)
    x = rng.multivariate_normal(*model.implied(np.array([0.4, 0.5, 0.05, 0.2, 2.0, -0.1])), 80)
    frame = pl.DataFrame({f"w{at}": x[:, at] for at in range(3)})
    pooled = fit_from_moments(80, x.mean(axis=0), np.cov(x.T, bias=True), model)
    whole = full_information_likelihood(frame, frame.columns, model)
    assert list(whole.estimates.values()) == pytest.approx(list(pooled.estimates.values()), abs=1e-5)
    gaps = frame.with_columns(w2=pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise("w2"))
    fit = full_information_likelihood(gaps, frame.columns, model)
    assert fit.standard_errors["slope_mean"] > pooled.standard_errors["slope_mean"]
    filled, share = marginal_imputation(gaps, frame.columns, seed=1)
    assert filled["w2"].null_count() == 0
    assert share["w2"] == pytest.approx(1 / 3, abs=0.02)
    assert filled.filter(pl.int_range(pl.len()) % 3 != 0)["w2"].equals(
        frame.filter(pl.int_range(pl.len()) % 3 != 0)["w2"]
    )


def test_a_path_model_of_ones_own():
    model = RAMModel(
        A=[[0.0, 0.0], [0.5, 0.0]], S=[[1.0, 0.0], [0.0, 1.0]], F=[0, 1], M=[0.0, 0.0],
        labels={"A": [["", ""], ["effect", ""]], "S": [["vx", ""], ["", "vy"]], "M": ["mx", "my"]},
    )  # fmt: skip
    fit = fit_from_moments(50, [1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]], model)
    assert fit.estimates == pytest.approx(
        {"effect": 0.5, "vx": 2.0, "vy": 2.5, "mx": 1.0, "my": 1.5}, abs=1e-6
    )
    assert fit.df == 0


def test_robust_errors_are_the_sandwich_of_the_rows_at_one_place_and_over_sites():
    rng = np.random.default_rng(8)
    x = rng.exponential(size=(400, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    model = RAMModel(A=np.zeros((2, 2)), S=np.eye(2), F=[0, 1], M=[0.0, 0.0], parametrization="covariance",
                     labels={"S": [["va", "cov"], ["cov", "vb"]], "M": ["ma", "mb"]})  # fmt: skip
    fit = fit_from_moments(*weighted_moments(frame, ["a", "b"]), model)
    found = robust_standard_errors(fit, frame)
    off = x - x.mean(axis=0)
    # Of means the sandwich is the usual one; of variances it has the fourth moment (White 1982).
    assert found["ma"] == pytest.approx(off[:, 0].std() / 20, rel=1e-4)
    fourth = ((off[:, 0] ** 2 - off[:, 0].var()) ** 2).mean()
    assert found["va"] == pytest.approx(np.sqrt(fourth / 400), rel=1e-3)
    assert found["va"] > 1.3 * fit.standard_errors["va"]
    crossed = off[:, 0] * off[:, 1]
    assert found["cov"] == pytest.approx(crossed.std() / 20, rel=1e-3)
    sites = horizontal([frame[:100], frame[100:250], frame[250:]])
    over = robust_standard_errors(fit, sites)
    assert list(over.values()) == pytest.approx(list(found.values()), rel=1e-8)
    with pytest.raises(ParameterError, match="cannot be had"):
        robust_standard_errors(fit, [frame.select("a"), frame.select("b")])


def test_weights_of_one_are_no_weights_and_doubled_rows_are_not_more_people():
    frame = table(200, 3).select("a", "b").with_columns(w=pl.lit(2.0))
    plain = fit_from_moments(*weighted_moments(frame, ["a", "b"]), saturated(2))
    weighted = fit_from_moments(*weighted_moments(frame, ["a", "b"], weight="w"), saturated(2))
    one = robust_standard_errors(plain, frame.select("a", "b"))
    other = robust_standard_errors(weighted, frame, weight="w")
    assert list(one.values()) == pytest.approx(list(other.values()))


def test_pooled_imputations_follow_rubins_rules():
    frame = table(300, 4).select("a", "b")
    gaps = frame.with_columns(b=pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise("b"))
    fits = []
    for seed in range(5):
        filled, _ = marginal_imputation(gaps, ["a", "b"], seed=seed)
        fits.append(fit_from_moments(*weighted_moments(filled, ["a", "b"]), saturated(2)))
    pooled = pool_imputations(fits)
    for name in pooled.estimates:
        values = np.array([fit.estimates[name] for fit in fits])
        errors = np.array([fit.standard_errors[name] for fit in fits])
        total = (errors**2).mean() + 1.2 * values.var(ddof=1)
        assert pooled.standard_errors[name] == pytest.approx(np.sqrt(total))
        assert 0 <= pooled.missing_information[name] < 1
        assert pooled.standard_errors[name] >= np.sqrt((errors**2).mean())
    assert "5 imputed copies" in str(pooled)
    with pytest.raises(ParameterError, match="two or more"):
        pool_imputations(fits[:1])
