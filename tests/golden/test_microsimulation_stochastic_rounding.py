"""Worked examples of the method note on stochastic rounding of small counts, section 5."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import poisson

from discreet import Microdata
from discreet.protect.stochastic_rounding import (
    StochasticRound,
    published_law,
    round_small_counts,
    rounding_variance,
)


@pytest.mark.parametrize(
    ("z", "k", "variance"), [(1, 3, 2), (2, 3, 2), (2, 5, 6), (4, 10, 24), (3, 3, 0), (0, 3, 0)]
)
def test_mean_and_variance_of_one_rounded_count(z, k, variance):
    assert rounding_variance([z], k)[0] == variance
    grid = (np.arange(30_000) + 0.5) / 30_000
    made = round_small_counts(np.full(30_000, z), k, grid)
    assert made.mean() == pytest.approx(z)
    assert made.var() == pytest.approx(variance, abs=1e-9)


def test_poisson_counts_rounded_to_three_and_five():
    prior = poisson.pmf(np.arange(80), 1)
    law = published_law(prior, 3)
    assert law.added_variance == pytest.approx(1.10364, abs=5e-6)
    assert (law.zero, law.least, law.true_zero) == pytest.approx((0.67445, 0.30657, 0.54545), abs=5e-6)
    assert law.behind_least.sum() == pytest.approx(1)
    assert np.sqrt((1 + law.added_variance) / 1000) == pytest.approx(0.04587, abs=5e-6)
    five = published_law(prior, 5)
    assert five.added_variance == pytest.approx(3.00435, abs=5e-6)
    assert np.sqrt((1 + five.added_variance) / 1000) == pytest.approx(0.06328, abs=5e-6)


def test_totals_added_up_from_rounded_cells_are_100_or_103(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")
    seen = set()
    for name in range(30):
        frame = pl.DataFrame({"cell": [f"a{name}", f"b{name}"], "n": [100, 2]})
        seen.add(StochasticRound(columns=["n"], cell=["cell"]).apply(Microdata(frame)).data.frame["n"].sum())
    assert seen == {100, 103}


def test_mean_over_runs_of_a_mortality_simulation_is_unbiased(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")
    rng, runs = np.random.default_rng(2019), 300
    people = rng.integers(50, 700, 192)
    chance = np.minimum(0.0003 * np.exp(0.07 * np.tile(np.arange(96), 2)), 0.3)
    deaths = rng.binomial(people, chance, size=(runs, 192))
    frame = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 192),
            "cell": np.tile(np.arange(192), runs),
            "deaths": deaths.ravel(),
        }
    )
    made = StochasticRound(columns=["deaths"], cell=["cell"], run="run").apply(Microdata(frame)).data.frame
    assert made.filter(pl.col("deaths").is_in([1, 2])).is_empty()
    mean = made.group_by("cell").agg(pl.col("deaths").mean()).sort("cell")["deaths"].to_numpy()
    total = people * chance * (1 - chance) + rounding_variance(deaths, 3).mean(axis=0)
    within = np.abs(mean - people * chance) <= 4 * np.sqrt(total / runs) + 1e-9
    assert within.mean() >= 0.99
