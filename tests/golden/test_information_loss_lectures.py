"""Worked examples of the information-loss lectures (incomes, three groups, the noise example with R's seed 105)."""

from __future__ import annotations

from math import e
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstwobign

from discreet import Microdata
from discreet.utility import (
    critical_ks,
    information_loss,
    ks_one_sample,
    ks_two_sample,
    paired_t,
    rank_sum,
    table_distances,
)

BEFORE = [30_000, 35_000, 40_000, 45_000, 50_000, 60_000, 70_000, 80_000, 85_000, 90_000]
AFTER = [
    60257.33, 33786.17, 45652.61, 40345.76, 75937.89, 95796.99, 49990.02, 60031.50, 47308.36, 49256.03,
]  # fmt: skip


def incomes(**options):
    before = Microdata(pl.DataFrame({"income": [float(x) for x in BEFORE]}))
    return information_loss(before, Microdata(pl.DataFrame({"income": AFTER})), aligned=True, **options)


def cells(measure):
    return measure.detail["tables"].select("original", "released").rows()


@pytest.fixture(scope="module")
def noise():
    return pl.read_csv(Path(__file__).parent / "data" / "information-loss-seed105.csv")


def compared(noise, released, **options):
    before = noise.select(a="X1", b="X2")
    after = noise.select(a=released[0], b=released[1])
    return information_loss(Microdata(before), Microdata(after), aligned=True, **options)


def test_incomes_below_sixty_thousand_under_the_strict_rule():
    found = incomes(groups={"income": [60_000]}, closed="left")
    assert cells(found) == [(5.0, 6.0), (5.0, 4.0)]
    row = found.detail["distances"].row(0, named=True)
    assert row["pearson_protected"] == pytest.approx(0.416667, abs=1e-6)
    assert row["ks"] == pytest.approx(0.1)
    assert row["jsd"] == pytest.approx(0.00729916, abs=1e-8)
    assert table_distances([5, 5], [6, 4], log_base=e)["kl"] == pytest.approx(0.0204110, abs=1e-7)


def test_incomes_up_to_sixty_thousand_give_equal_tables():
    found = incomes(groups={"income": [60_000]})
    assert cells(found) == [(6.0, 6.0), (4.0, 4.0)]
    row = found.detail["distances"].row(0, named=True)
    assert (row["pearson_protected"], row["ks"], row["jsd"], row["kl"]) == (0, 0, 0, 0)


def test_incomes_as_the_slides_print_them():
    found = table_distances([6, 4], [5, 5])
    assert found["pearson_protected"] == pytest.approx(0.4)
    assert found["jsd"] == pytest.approx(0.00729916, abs=1e-8)
    assert found["ks"] == pytest.approx(0.1)
    assert table_distances([6, 4], [5, 5], log_base=e)["jsd"] == pytest.approx(0.00505939, abs=1e-8)


def test_three_groups_with_their_own_totals():
    found = table_distances([4, 10, 4], [8, 10, 2])
    assert found["pearson_protected"] == 4
    assert found["ks"] == pytest.approx(0.177778, abs=1e-6)
    assert found["jsd"] == pytest.approx(0.0367797, abs=1e-7)


def test_three_groups_from_the_listing():
    found = incomes(groups={"income": [40_000, 80_000]})
    assert cells(found) == [(3.0, 1.0), (5.0, 8.0), (2.0, 1.0)]
    assert found.detail["distances"]["pearson_protected"][0] == 6.125


def test_critical_values_of_two_independent_samples():
    assert critical_ks(10, 10) == pytest.approx(0.607361, abs=1e-6)
    assert critical_ks(100, 50) == pytest.approx(0.235230, abs=1e-6)
    assert ks_two_sample(BEFORE, AFTER)["ks"] == pytest.approx(0.2)
    assert ks_two_sample(BEFORE, AFTER)["critical"] is None
    assert incomes().detail["variables"]["ks"][0] == pytest.approx(0.2)


@pytest.mark.parametrize(("level", "quantile"), [(0.90, 1.22385), (0.95, 1.35810), (0.99, 1.62762)])
def test_the_limit_of_the_one_sample_statistic_is_a_brownian_bridge(level, quantile):
    found = ks_one_sample([0.5], lambda x: x, level=level)
    assert found["critical"] == pytest.approx(quantile, abs=1e-5)
    assert kstwobign.cdf(found["critical"]) == pytest.approx(level)


@pytest.mark.parametrize(
    ("released", "covariance", "correlation"),
    [
        (("X1", "X2"), 16.377696, 0.972633),
        (("Y1", "Y2"), 16.477061, 0.873688),
        (("U1", "U2"), 3.762412, 0.219556),
    ],
)
def test_covariance_and_correlation_of_the_noise_example(noise, released, covariance, correlation):
    row = compared(noise, released).detail["correlations"].row(0, named=True)
    assert row["covariance_before"] == pytest.approx(16.377696, abs=1e-5)
    assert row["covariance_after"] == pytest.approx(covariance, abs=1e-5)
    assert row["correlation_after"] == pytest.approx(correlation, abs=1e-6)


def test_the_slides_divide_by_n_and_so_can_we(noise):
    row = compared(noise, ("Y1", "Y2"), divisor="n").detail["correlations"].row(0, named=True)
    assert row["covariance_after"] == pytest.approx(16.477061 * 99 / 100, abs=1e-5)


def test_the_mean_of_noisy_values_lies_in_the_interval_and_the_paired_test_agrees(noise):
    found = compared(noise, ("Y1", "Y2"))
    row = found.detail["variables"].row(0, named=True)
    assert (row["mean_low"], row["mean_high"]) == pytest.approx((49.08243, 50.77603), abs=1e-5)
    assert row["mean_after"] == pytest.approx(49.93761, abs=1e-5)
    assert row["mean_inside"]
    assert paired_t(noise["X1"], noise["Y1"])["p_value"] == pytest.approx(0.9345, abs=1e-4)


def test_paired_errors_of_the_noise_example(noise):
    row = compared(noise, ("Y1", "Y2")).detail["variables"].row(0, named=True)
    x, y = noise["X1"].to_numpy(), noise["Y1"].to_numpy()
    assert row["mse"] == pytest.approx(((x - y) ** 2).mean())
    assert row["r2"] == pytest.approx(1 - ((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum())
    assert row["il1s"] == pytest.approx((np.abs(x - y) / (np.sqrt(2) * x.std(ddof=1))).sum())


def test_medians_are_not_additive():
    from scipy.stats import gamma

    assert gamma(2).median() == pytest.approx(1.678347, abs=1e-6)
    assert 2 * np.log(2) == pytest.approx(1.386294, abs=1e-6)


def test_wilcoxon_and_ks_of_two_sets_of_scores():
    before, after = [0.2, 0.4, 0.5, 0.5, 0.7], [0.3, 0.5, 0.6, 0.8]
    assert rank_sum(before, after) == 7
    assert ks_two_sample(before, after)["ks"] == pytest.approx(0.3)


def test_a_cell_empty_in_the_release_only_is_infinitely_far_and_counted():
    found = table_distances([3, 2, 0], [5, 0, 0])
    assert found["pearson_protected"] == float("inf")
    assert found["kl"] == float("inf")
    assert found["zero_cells"] == 1
    assert table_distances([3, 2, 0], [5, 0, 0], smoothing=0.5)["kl"] < 1
