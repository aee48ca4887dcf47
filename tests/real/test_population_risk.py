"""Population risk on real populations, of which the samples are drawn here: the truth is known."""

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.log_linear_risk import log_linear
from discreet.risk.superpopulation import known_population, population

KEYS = ["region", "hsize", "gender", "ecoStat", "citizenship", "ageband"]


@pytest.fixture(scope="module")
def austria(test_data):
    frame = pl.read_csv(test_data / "eusilcP.csv.gz", infer_schema_length=None, null_values="NA")
    return Microdata(frame.with_columns(ageband=pl.col("age") // 5), keys=KEYS)


def drawn(austria, fraction, seed=1):
    return Microdata(austria.frame.sample(fraction=fraction, seed=seed), keys=KEYS)


def test_log_linear_risk_is_near_the_truth_on_a_sample_of_austria_and_independence_is_not(austria):
    sample = drawn(austria, 0.05, seed=2)
    keys = [key for key in KEYS if key != "hsize"]
    truth = known_population(sample, austria, keys=keys).figures
    found = log_linear(sample, keys=keys, sampling_fraction=0.05, repeats=5, seed=1)
    assert found.figures["tau1_low"] <= truth["tau1"] <= found.figures["tau1_high"]
    assert found.figures["tau2"] == pytest.approx(truth["tau2"], rel=0.2)
    assert found.figures["tau2_low"] <= truth["tau2"] <= found.figures["tau2_high"]
    assert abs(found.figures["error_tau2"]) < 1.96
    assert found.detail["models"]["error_tau2"][0] > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.2])
def test_log_linear_risk_is_within_a_fifth_over_fractions_and_samples(austria, fraction, seed):
    sample = drawn(austria, fraction, seed)
    truth = known_population(sample, austria).figures
    found = log_linear(sample, sampling_fraction=fraction, repeats=5, seed=1).figures
    assert found["tau1"] == pytest.approx(truth["tau1"], rel=0.25)
    assert found["tau2"] == pytest.approx(truth["tau2"], rel=0.15)


@pytest.mark.parametrize("estimator", ["average", "pitman", "dankar"])
@pytest.mark.slow
def test_population_risk_of_austria_is_within_005(austria, estimator):
    sample = drawn(austria, 0.1)
    truth = known_population(sample, austria).figures["B"]
    found = population(sample, estimator=estimator, sampling_fraction=0.1, repeats=3, seed=1).figures["B"]
    assert abs(found - truth) < 0.05
