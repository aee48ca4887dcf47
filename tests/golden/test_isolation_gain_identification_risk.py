"""The recomputed figures of the spec ``isolation-gain-identification-risk``, sections 5 and 6.

Source: the position paper behind that spec; its Figure 1 (n = 5) is reproduced exactly.
"""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import dlaplace

from discreet import Microdata
from discreet.risk.isolation import IDENTIFYING, isolation_of_counts
from discreet.risk.overlapping_tables import overlapping_tables
from discreet.risk.singling_out import (
    blind_isolations,
    guesses_needed,
    isolation_chance,
    partition_bound,
    population_unique,
    posterior,
)


def test_figure_1_the_expected_isolations_of_five_records():
    curve = {1: 0.4096, 3: 1.2288, 5: 2.048, 6: 2.41127, 10: 3.2805, 20: 4.07253, 100: 4.80298}
    assert {k: round(blind_isolations(5, k), 5) for k in curve} == curve


def test_the_best_single_guess_falls_towards_one_over_e():
    best = {2: 0.5, 10: 0.387420, 100: 0.369730, 1_000_000: 0.3678796}
    for n, chance in best.items():
        assert blind_isolations(n) == pytest.approx(chance, abs=5e-7)


def test_half_or_twice_the_best_weight_costs_little():
    half, twice = isolation_chance([0.5e-6, 2e-6], 1_000_000)
    assert (round(half, 4), round(twice, 4)) == (0.3033, 0.2707)


def test_the_guesses_that_isolate_nearly_everybody():
    assert guesses_needed(10_000, 0.95) == pytest.approx(194_938.26, abs=0.01)
    n = 10_000_000
    assert guesses_needed(n, 0.95) / n == pytest.approx(19.4957, abs=1e-4)
    assert guesses_needed(n, 0.99) / n == pytest.approx(99.4992, abs=1e-4)


def test_the_bound_of_appendix_a_at_a_quarter():
    assert partition_bound(0.25 / 100, 100, 100) / 100 == pytest.approx(0.228305, abs=1e-6)
    assert partition_bound(0.25 / 1000, 1000, 1000) / 1000 == pytest.approx(0.227534, abs=1e-6)
    n = 10**8
    assert partition_bound(0.25 / n, n, n) / n == pytest.approx(3 / 8 * math.exp(-0.5), abs=1e-6)


def test_a_microdata_record_of_a_one_percent_sample_of_a_million():
    found = isolation_of_counts([1], [1e-8], records=10_000, population_size=1_000_000)
    row = found.detail["cells"].row(0, named=True)
    assert row["pr_population_unique"] == pytest.approx(0.9901488, abs=1e-7)
    assert row["pr_isolate_baseline"] == pytest.approx(9.9990e-5, abs=1e-9)
    assert row["gain"] == pytest.approx(10_000.99995, abs=1e-4)
    assert row["flag"] == IDENTIFYING


def test_the_gains_of_cells_of_average_probability():
    expected = {2: (0.5, 1.648659), 3: (0.444444, 1.860765), 5: (0.4096, 2.501388), 8: (0.392696, 3.559820)}
    found = isolation_of_counts(list(expected), [1e-4] * 4, records=10_000).detail["cells"]
    np.testing.assert_allclose(
        found.select("pr_isolate_given_release", "gain").to_numpy(), list(expected.values()), atol=5e-7
    )


def test_a_guess_of_weight_one_over_n_is_hardly_ever_unique_in_the_population():
    assert population_unique(1e-4, 1_000_000 - 10_000).item() == pytest.approx(1.0e-43, rel=0.02)


def test_the_posterior_of_a_noisy_count():
    counts, chances = posterior([1], [0.001], 1000, dlaplace(1))
    assert counts[0, :4].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(chances[0, :4], [0.23316, 0.63443, 0.11670, 0.01430], atol=5e-6)


TEN = pl.DataFrame(
    [
        ("M", "single", "n", "N", "0"),
        ("M", "single", "n", "S", "0"),
        ("M", "married", "y", "N", "2"),
        ("M", "married", "n", "N", "2"),
        ("M", "widowed", "y", "S", "0"),
        ("F", "single", "n", "N", "0"),
        ("F", "single", "n", "N", "0"),
        ("F", "married", "n", "S", "2"),
        ("F", "married", "n", "S", "1"),
        ("F", "widowed", "n", "N", "1"),
    ],
    schema=["sex", "status", "veteran", "region", "children"],
    orient="row",
)


@pytest.mark.parametrize(("order", "cells", "records"), [(2, 0, 0), (3, 19, 6), (4, 63, 8)])
def test_the_bootstrapping_attack_on_ten_records(order, cells, records):
    found = overlapping_tables(Microdata(TEN, keys=TEN.columns), max_order=order)
    assert (found.figures["isolating_cells"], found.figures["records_recovered"]) == (cells, records)


def test_the_six_records_that_three_way_tables_give_away():
    found = overlapping_tables(Microdata(TEN, keys=TEN.columns), max_order=3).detail["records"]
    rebuilt = {" ".join(row) for row in found.select(TEN.columns).iter_rows()}
    assert rebuilt == {
        "M single n S 0",
        "M married y N 2",
        "M widowed y S 0",
        "F married n S 2",
        "F married n S 1",
        "F widowed n N 1",
    }
