import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.log_linear_risk import (
    fitted_means,
    fitted_model,
    independence,
    log_linear,
    mean_reciprocal_poisson,
    risk_errors,
    search,
)

KEYS = ["age", "job", "size", "area"]


def population_of(people, rng):
    """Four keys of which each depends on the first; no pair of them is sparse."""
    age = rng.binomial(12, 0.4, people)
    job = np.minimum(age // 2 + rng.geometric(0.5, people), 12)
    size = np.minimum(rng.geometric(np.where(age > 5, 0.7, 0.3)), 8)
    area = np.minimum(rng.geometric(0.35, people), 10)
    return pl.DataFrame({"age": age, "job": job, "size": size, "area": area})


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(1)
    everybody = population_of(30_000, rng)
    return everybody, everybody.sample(fraction=0.1, seed=2)


def truth(everybody, sample, keys):
    counted = sample.group_by(keys).len("f").join(everybody.group_by(keys).len("F"), on=keys)
    alone = counted.filter(pl.col("f") == 1)
    return (alone["F"] == 1).sum(), (1 / alone["F"]).sum()


def test_the_taus_are_near_the_truth_of_a_simulated_population(drawn):
    everybody, sample = drawn
    keys = KEYS
    tau1, tau2 = truth(everybody, sample, keys)
    found = log_linear(Microdata(sample, keys=keys), population_size=30_000, seed=1)
    assert found.figures["tau1_low"] <= tau1 <= found.figures["tau1_high"]
    assert found.figures["tau2_low"] <= tau2 <= found.figures["tau2_high"]
    assert found.figures["tau2"] == pytest.approx(tau2, rel=0.2)
    assert "age * job" in found.parameters["model"]


def test_independence_shows_a_positive_error_that_the_true_model_has_not(drawn):
    _, sample = drawn
    way = log_linear(Microdata(sample, keys=KEYS), population_size=30_000, seed=1).detail["models"]
    assert way["error_tau2"][0] > 5
    assert abs(way.filter("chosen")["error_tau2"][0]) < 1.96
    assert way["chosen"].sum() == 1


def test_a_model_that_no_choice_makes_right_says_so_and_its_interval_holds_the_truth():
    rng = np.random.default_rng(1)
    age = np.minimum(rng.geometric(0.08, 30_000), 60)
    everybody = pl.DataFrame({"age": age, "job": age // 2 + rng.geometric(0.4, 30_000)})
    sample = everybody.sample(fraction=0.1, seed=2)
    tau1, tau2 = truth(everybody, sample, ["age", "job"])
    found = log_linear(Microdata(sample, keys=["age", "job"]), population_size=30_000, seed=1)
    assert any("standard errors off" in caveat for caveat in found.caveats)
    assert found.figures["tau1_low"] <= tau1 <= found.figures["tau1_high"]
    assert found.figures["tau2_low"] <= tau2 <= found.figures["tau2_high"]


def test_records_carry_their_own_risk(drawn):
    _, sample = drawn
    found = log_linear(Microdata(sample, keys=KEYS), population_size=30_000, seed=1)
    records = found.detail["records"]
    assert records.height == sample.height
    assert records["risk"].mean() == pytest.approx(found.figures["B"])
    alone = records.filter(pl.col("class_size") == 1)
    assert alone["risk"].sum() == pytest.approx(found.figures["tau2"])


def test_a_file_that_is_its_population_keeps_all_its_uniques():
    people = pl.DataFrame({"a": [1, 1, 2, 3], "b": [1, 1, 2, 1]})
    found = log_linear(Microdata(people, keys=["a", "b"]), population_size=4, seed=1).figures
    assert found["tau1"] == found["tau2"] == found["sample_uniques"] == 2


def test_a_file_without_uniques_says_so():
    people = pl.DataFrame({"a": [1, 1, 2, 2], "b": [1, 1, 1, 1]})
    found = log_linear(Microdata(people, keys=["a", "b"]), population_size=40, seed=1)
    assert found.value == 0
    assert found.figures["tau1_share"] is None
    assert "No record is unique" in found.meaning


def test_one_key_is_not_estimable():
    found = log_linear(Microdata(pl.DataFrame({"a": [1, 1, 2]}), keys="a"), population_size=40, seed=1)
    assert found.value is None
    assert "one key" in found.meaning


def test_a_table_too_large_is_not_estimable_and_not_zero():
    rng = np.random.default_rng(1)
    wide = pl.DataFrame({f"c{i}": rng.integers(20, size=300) for i in range(6)})
    found = log_linear(Microdata(wide, keys=wide.columns), sampling_fraction=0.1)
    assert found.value is None
    assert any("Not estimable" in caveat for caveat in found.caveats)


def test_the_seed_changes_only_the_interval(drawn):
    data = Microdata(drawn[1], keys=KEYS)
    first, second = (log_linear(data, population_size=30_000, seed=seed).figures for seed in (1, 2))
    assert first["tau1"] == second["tau1"]
    assert first["tau1_low"] != second["tau1_low"]


def test_bad_input_is_refused(drawn):
    data = Microdata(drawn[1], keys=KEYS)
    for bad in (
        {},
        {"population_size": 10},
        {"sampling_fraction": 0.0},
        {"sampling_fraction": 0.1, "population_size": 30_000},
        {"sampling_fraction": 0.1, "missing": "wildcard"},
        {"sampling_fraction": 0.1, "repeats": 1},
    ):
        with pytest.raises(ParameterError):
            log_linear(data, **bad)


def test_the_error_of_tau1_is_the_published_formula():
    rng = np.random.default_rng(2)
    counts, means, fraction = rng.poisson(0.5, (6, 7)).astype(float), rng.random((6, 7)), 0.2
    lam, residual = means / fraction, counts - means
    inner = residual + (1 - fraction) * (residual**2 - counts) / (2 * fraction)
    wanted = (lam * np.exp(-lam) * (1 - fraction) * inner).sum()
    assert risk_errors(counts, means, fraction)[0][0] == pytest.approx(wanted)


def test_the_standardized_error_of_the_true_means_is_standard_normal():
    rng = np.random.default_rng(3)
    means = rng.gamma(0.5, 0.4, (20, 20, 5))
    scores = np.array([risk_errors(rng.poisson(means).astype(float), means, 0.1)[1] for _ in range(400)])
    assert np.abs(scores.mean(axis=0)).max() < 0.2
    assert scores.std(axis=0) == pytest.approx(1.0, abs=0.15)


def test_the_reciprocal_of_a_shifted_poisson_count():
    f, m = np.array([1.0, 2, 5, 3, 200, 1, 120]), np.array([0.3, 4.0, 0.0, 120.0, 30.0, 1e-9, 29.0])
    j = np.arange(2000)
    from scipy.stats import poisson

    wanted = [(poisson.pmf(j, mean) / (size + j)).sum() for size, mean in zip(f, m, strict=True)]
    assert mean_reciprocal_poisson(f, m) == pytest.approx(wanted, rel=1e-4)
    assert mean_reciprocal_poisson(f[:1], m[:1])[0] == pytest.approx((1 - np.exp(-0.3)) / 0.3)


def test_the_search_keeps_to_independence_where_keys_are_independent():
    rng = np.random.default_rng(4)
    shares = [rng.dirichlet(np.ones(k) * 0.5) for k in (12, 10, 6)]
    means = 2000 * np.einsum("a,b,c->abc", *shares)
    models = list(search(rng.poisson(means).astype(float), 0.1))
    assert min(models, key=lambda model: model.wrongness).wrongness < 3
    assert len(models) <= 3


@settings(deadline=None, max_examples=examples(40))
@given(arrays(float, (3, 4, 2), elements=st.integers(0, 9).map(float)).filter(lambda table: table.sum() > 0))
def test_fitted_margins_are_those_of_the_counts(counts):
    means = fitted_means(counts, [(0, 1), (1, 2)], independence(counts), tolerance=1e-9, rounds=500)
    assert means.sum(axis=2) == pytest.approx(counts.sum(axis=2), abs=1e-6)
    assert means.sum(axis=0) == pytest.approx(counts.sum(axis=0), abs=1e-6)
    assert (means >= 0).all()


def test_a_model_may_be_given_as_a_formula(drawn):
    people = Microdata(drawn[1], keys=KEYS)
    found = log_linear(people, population_size=20_000, model="age*job + size*area", seed=1)
    assert found.parameters["model"] == ["age * job", "size * area"]
    named = log_linear(people, population_size=20_000, model="age*job", seed=1)
    assert named.parameters["model"] == ["age * job"]
    assert named.figures["tau2"] != found.figures["tau2"]
    with pytest.raises(ColumnError, match=r"'jobs'.*model"):
        log_linear(people, population_size=20_000, model="age*jobs")
    with pytest.raises(ParameterError, match="repeats the table"):
        log_linear(people, population_size=20_000, model="*".join(KEYS))


def test_the_model_of_all_single_keys_is_independence():
    counts = np.random.default_rng(1).poisson(3.0, (3, 4, 2)).astype(float)
    assert fitted_model(counts, ((0,), (1,), (2,)), 0.1).means == pytest.approx(independence(counts))
