"""Joint analyses of real files, split into sites, against the pooled files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, risk
from discreet.federated import (
    Discoleaf,
    SecureMLE,
    assess,
    dirichlet_split,
    fit_from_moments,
    regression_over_sites,
    saturated,
    weighted_moments,
)


@pytest.mark.parametrize("mode", ["secure", "sufficient"])
def test_the_moments_of_a_census_file_over_three_holders(test_data, mode):
    frame = pl.read_csv(test_data / "CASCrefmicrodata.csv", infer_schema_length=None)
    names = frame.columns[:4]
    logged = frame.select(pl.col(names).cast(pl.Float64).abs().log1p())
    holders = [logged.select(names[:1]), logged.select(names[1:3]), logged.select(names[3:])]
    secure = SecureMLE(holders, mode=mode)
    rows, mean, covariance = weighted_moments(logged, list(secure.variables))
    pooled = fit_from_moments(rows, mean, covariance, saturated(4))
    assert secure.log_likelihood(mean, covariance) == pytest.approx(pooled.minus_two_ll, abs=1e-4)
    if mode == "sufficient":
        np.testing.assert_allclose(secure.moments()[2], covariance, rtol=1e-9, atol=1e-12)


def test_joint_classes_of_a_survey_over_regions(test_data):
    frame = pl.read_csv(test_data / "testdata.csv", infer_schema_length=None).drop_nulls(
        ["urbrur", "sex", "relat"]
    )
    keys = ["urbrur", "sex", "relat"]
    sites = [frame[:1000], frame[1000:2500], frame[2500:]]
    found = assess(sites, {name: frame[name].unique().sort().to_list() for name in keys})
    assert found.records == frame.height
    assert found.k == risk.k_anonymity(Microdata(frame, keys=keys)).value


def test_a_logistic_regression_on_adult_over_unlike_sites(test_data):
    sm = pytest.importorskip("statsmodels.api")
    frame = pl.read_csv(
        test_data / "adult" / "adult_arx_30162.csv.gz", separator=";", infer_schema_length=None
    )
    table = frame.select("age", rich=(pl.col("salary-class") == ">50K").cast(pl.Int64))
    sites = dirichlet_split(table, "rich", 4, alpha=0.5, seed=1)
    fit = regression_over_sites(sites, "rich", ["age"])
    pooled = sm.GLM(
        table["rich"].to_numpy(), sm.add_constant(table["age"].to_numpy()), family=sm.families.Binomial()
    ).fit(tol=1e-12)
    np.testing.assert_allclose(list(fit.coefficients.values()), pooled.params, atol=1e-8)


def test_trees_over_sites_of_adult_keep_the_published_orderings(test_data):
    """More levels and less theta give a larger epsilon; a little noise leaves a tree that is better than guessing."""
    frame = pl.read_csv(
        test_data / "adult" / "adult_arx_30162.csv.gz", separator=";", infer_schema_length=None
    )
    sites = [frame[at::6][:2500] for at in range(5)]
    rest = frame[5::6]

    def fitted(theta):
        return Discoleaf(
            "salary-class",
            continuous=["age"],
            categorical=["education", "marital-status", "sex"],
            theta=theta,
        ).fit(sites, seed=1)

    weak, strong = fitted(0.02), fitted(0.3)
    share = rest["salary-class"].value_counts()["count"].max() / rest.height
    assert weak.quality(rest)["accuracy"] > share
    assert weak.quality(rest)["accuracy"] >= strong.quality(rest)["accuracy"]
    assert weak.epsilon_of_record > strong.epsilon_of_record
    assert weak.sites[0].epsilons["education"] > weak.sites[0].epsilons["sex"]
    assert weak.predict(rest) == weak.vote(rest)
