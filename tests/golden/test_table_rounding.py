"""Worked examples of the stochastic rounding spec (section 5) at table level, and of controlled rounding."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import DiscreetWarning
from discreet.protect.stochastic_rounding import round_small_counts
from discreet.tables import (
    ControlledRounding,
    SmallCountRounding,
    Table,
    equations,
    monte_carlo_summary,
)
from discreet.tables.simulation_products import repeated_by_chance


@pytest.fixture
def hundred_and_two():
    return Table.from_microdata(pl.DataFrame({"place": ["a"] * 100 + ["b"] * 2}), "place")


def test_recomputed_margins_are_100_or_103(hundred_and_two):
    seen = {
        tuple(SmallCountRounding(k=3, draws="seed").apply(hundred_and_two, seed=seed).table.values.tolist())
        for seed in range(40)
    }
    assert seen == {(100, 100, 0), (103, 100, 3)}


def test_an_exact_total_gives_the_small_cell_away_and_the_audit_says_so(hundred_and_two):
    protect = SmallCountRounding(k=3, margins="independent", draws="seed")
    with pytest.warns(DiscreetWarning, match="can be computed exactly"):
        result = protect.apply(hundred_and_two, seed=1)
    assert result.figures["pinned"] == 1
    assert result.table.values[0] == 102


@pytest.mark.slow
def test_the_mean_over_runs_has_the_variance_of_the_spec():
    runs, k = 4000, 3
    rng = np.random.default_rng(5)
    true = rng.poisson(1.0, runs)
    shown = round_small_counts(true, k, rng.random(runs))
    long = pl.DataFrame({"run": np.arange(runs), "cell": ["a"] * runs, "z": true, "f": shown})
    found = (
        monte_carlo_summary(long, run="run", cell="cell", value="f", true="z", k=k)
        .detail["cells"]
        .row(0, named=True)
    )
    assert found["standard_error"] == pytest.approx(math.sqrt(2.10364 / runs), rel=0.06)
    assert found["rounding_variance"] == pytest.approx(1.10364, rel=0.06)
    assert abs(found["mean"] - 1) < 4 * found["standard_error"]


def test_a_deterministic_simulator_gives_small_counts_away_and_is_warned_of():
    long = pl.DataFrame({"run": [1, 2, 3], "cell": ["a"] * 3, "z": [2, 2, 2], "f": [3, 0, 3]})
    with pytest.warns(DiscreetWarning, match="same count in every run"):
        monte_carlo_summary(long, run="run", cell="cell", value="f", true="z", k=3)


def test_a_cell_missing_in_a_run_counts_as_zero_and_one_run_has_no_standard_error():
    runs = [pl.DataFrame({"c": ["a", "b"], "n": [4, 6]}), pl.DataFrame({"c": ["b"], "n": [8]})]
    cells = monte_carlo_summary(runs, cell="c", value="n").detail["cells"]
    assert dict(cells.select("c", "mean").iter_rows()) == {"a": 2.0, "b": 7.0}
    once = monte_carlo_summary(runs[:1], cell="c", value="n")
    assert once.value is None
    assert once.caveats


def test_the_same_man_dies_in_ten_runs_with_six_in_a_million():
    assert repeated_by_chance(0.30, 10) == pytest.approx(5.9e-6, rel=0.01)


def test_deaths_of_a_simulated_town_are_right_on_average():
    ages, runs, k = np.arange(96), 400, 3
    people = np.maximum(1, (900 * np.exp(-((ages / 70) ** 4)))).astype(int)
    chance = np.minimum(0.3, 1e-4 * np.exp(0.085 * ages))
    rng = np.random.default_rng(11)
    deaths = rng.binomial(people, chance, (runs, len(ages)))
    shown = round_small_counts(deaths, k, rng.random(deaths.shape))
    assert not np.isin(shown, (1, 2)).any()
    error = np.sqrt(
        (
            people * chance * (1 - chance)
            + (deaths * (k - deaths) * ((deaths > 0) & (deaths < k))).mean(axis=0)
        )
        / runs
    )
    near = np.abs(shown.mean(axis=0) - people * chance) <= 4 * error
    assert near.mean() >= 0.99


def test_controlled_rounding_finds_the_smallest_deviation_of_a_small_table():
    cells = pl.DataFrame({"r": list("aabbcc"), "s": list("fmfmfm"), "n": [1, 4, 7, 2, 3, 8]})
    table = Table.from_microdata(cells, "r*s", count="n")
    result = ControlledRounding(base=5).apply(table)
    values = table.values.astype(float)
    sums = equations(table)
    best = min(
        np.abs(made - values).sum()
        for up in itertools.product((0, 5), repeat=6)
        if (made := _filled(table, up)) is not None and (np.abs(made - values) < 5).all()
    )
    assert result.figures["deviation"] == pytest.approx(best)
    assert np.abs(sums @ result.table.values).max() == 0
    assert result.figures["proved_optimal"]


def _filled(table, up):
    """All cells of the table when each inner cell goes down or up to a multiple of five."""
    inner = table.inner["count"].to_numpy() // 5 * 5 + np.array(up)
    return np.asarray(table.x.T @ inner, dtype=float)
