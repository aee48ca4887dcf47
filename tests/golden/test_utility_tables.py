"""Worked examples of the table measures: counts U3 to U5 and U7 of the utility spec, the synthcity study, Destatis."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.randomness import generator
from discreet.utility import cells, critical_ks, ks_two_sample, stands_in, tabular
from discreet.utility.measure_agreement import fisher_interval

BEFORE = [30_000, 35_000, 40_000, 45_000, 50_000, 60_000, 70_000, 80_000, 85_000, 90_000]
AFTER = [
    60257.33, 33786.17, 45652.61, 40345.76, 75937.89, 95796.99, 49990.02, 60031.50, 47308.36, 49256.03,
]  # fmt: skip
DISTANCES = (
    "VW",
    "FT",
    "JSD",
    "MabsDD",
    "WMabsDD",
    "dBhatt",
    "G",
    "pMSE",
    "SPECKS",
    "PO50",
    "pearson_syn",
    "KL",
)


def incomes(breaks, **options):
    before, after = (
        Microdata(pl.DataFrame({"income": [float(x) for x in file]})) for file in (BEFORE, AFTER)
    )
    return tabular(before, after, ways=1, breaks={"income": breaks}, **options)


def test_u3_counts_as_printed():
    found = cells([6, 4], [5, 5]).figures
    expected = {
        "pearson_syn": 0.4, "VW": 0.404040, "pMSE": 0.00252525, "JSD": 0.00729916, "FT": 0.405108, "SPECKS": 0.1,
        "MabsDD": 0.2, "dBhatt": 0.0711607,
    }  # fmt: skip
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=2e-6), name


def test_u3_income_cut_at_sixty_thousand_gives_equal_tables():
    found = incomes([60_000])
    assert found.detail["cells"].sort("cell", descending=True).select("original", "released").rows() == [
        (6.0, 6.0),
        (4.0, 4.0),
    ]
    row = found.detail["tables"].row(0, named=True)
    assert all(row[name] == 0 for name in DISTANCES)


def test_u3_strict_rule_of_the_lectures():
    row = incomes([60_000], closed="left").detail["tables"].row(0, named=True)
    assert row["pearson_syn"] == pytest.approx(0.416667, abs=1e-6)
    assert row["JSD"] == pytest.approx(0.00729916, abs=1e-8)
    assert row["KS"] == pytest.approx(0.1)


def test_u4_equal_counts_give_zero_everywhere():
    found = cells([6, 4], [6, 4])
    assert all(found.figures[name] == 0 for name in DISTANCES)
    assert (found.value, found.figures["AUC"], found.figures["ROC"]) == (0, 0.5, 1)


def test_u5_three_groups_with_their_own_totals():
    assert cells([4, 10, 4], [8, 10, 2]).figures["pearson_syn"] == 4
    assert cells([4, 10, 4], [8, 10, 2]).figures["KS"] == pytest.approx(0.177778, abs=1e-6)
    assert cells([4, 10, 4], [8, 10, 2]).figures["JSD"] == pytest.approx(0.0367797, abs=1e-7)


def test_u5_three_groups_of_the_listing():
    found = incomes([40_000, 80_000]).detail["tables"].row(0, named=True)
    assert found["pearson_syn"] == 6.125
    assert found["VW"] == pytest.approx(4.051282, abs=1e-6)
    assert found["S_pMSE"] == pytest.approx(2.025641, abs=1e-6)
    assert found["pMSE"] == pytest.approx(0.0253205, abs=1e-7)
    assert found["SPECKS"] == pytest.approx(0.3)
    grouped = incomes([40_000, 80_000], specks_order="group").detail["tables"].row(0, named=True)
    assert grouped["SPECKS"] == pytest.approx(0.2)


def test_u7_a_dependent_release_is_closer_than_independent_samples_and_the_test_never_rejects():
    random = generator(7, "U7")
    n, repeats = 1000, 400
    dependent, apart = [], []
    for _ in range(repeats):
        x = random.normal(size=n)
        dependent.append(ks_two_sample(x, 0.8 * x + 0.6 * random.normal(size=n))["ks"])
        apart.append(ks_two_sample(x, random.normal(size=n))["ks"])
    assert np.mean(dependent) == pytest.approx(0.0299, abs=0.0012)
    assert np.quantile(dependent, 0.95) == pytest.approx(0.043, abs=0.003)
    assert np.mean(apart) == pytest.approx(0.0385, abs=0.002)
    assert np.quantile(apart, 0.95) == pytest.approx(0.061, abs=0.005)
    assert np.mean(np.array(dependent) >= critical_ks(n, n)) < 0.01


def test_table_of_the_synthcity_study():
    found = cells([40, 10, 20, 30], [35, 15, 25, 25]).figures
    assert found["VW"] == pytest.approx(4.686869, abs=1e-6)
    assert (found["df"], found["PO50"]) == (3, pytest.approx(5))
    assert found["S_pMSE"] == pytest.approx(1.562290, abs=1e-6)
    assert found["pMSE"] == pytest.approx(0.002929293, abs=1e-9)
    assert found["JSD"] == pytest.approx(0.008483892, abs=1e-9)
    assert (found["SPECKS"], found["MabsDD"]) == (pytest.approx(0.1), pytest.approx(0.2))


def test_saturated_pmse_and_hellinger_of_the_destatis_paper():
    found = cells([40, 60], [50, 50]).figures
    assert found["pMSE"] == pytest.approx(0.00252525, abs=1e-8)
    assert found["Hellinger"] == pytest.approx(0.0711607, abs=1e-7)


def test_hellinger_of_the_tabula_paper():
    assert cells([5, 3, 2], [4, 4, 2]).figures["Hellinger"] == pytest.approx(0.079851, abs=1e-6)
    assert cells([5, 0], [0, 5]).figures["Hellinger"] == pytest.approx(1)


def test_the_destatis_paper_has_52_tables_with_a_synthesized_variable():
    random = generator(1, "tables")
    frame = pl.DataFrame({f"v{i}": random.integers(0, 2, 50) for i in range(6)})
    data = Microdata(frame)
    found = tabular(data, data, ways=[2, 3, 4, 5], synthesized=["v3", "v4", "v5"])
    ways = found.detail["tables"]["ways"].value_counts().sort("ways")["count"].to_list()
    assert (ways, found.figures["tables"]) == ([12, 19, 15, 6], 52)


def test_pmse_of_a_table_is_that_of_a_saturated_propensity_model():
    random = generator(2, "saturated")
    o, s = random.integers(1, 50, 8), random.integers(1, 90, 8)
    total, c = o.sum() + s.sum(), s.sum() / (o.sum() + s.sum())
    saturated = ((o + s) * (s / (o + s) - c) ** 2).sum() / total
    assert cells(o, s).figures["pMSE"] == pytest.approx(saturated, rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(20_000, 20_000), (20_000, 5_000), (5_000, 40_000)])
def test_standardized_measures_are_about_one_for_a_correct_synthesis_of_any_size(n, m):
    random = generator(3, "null", str(m))
    shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    found = []
    for _ in range(400):
        o = random.multinomial(n, shares)
        found.append(cells(o, random.multinomial(m, o / n)).figures)
    for name in ("S_pMSE", "S_FT", "S_JSD"):
        assert np.mean([figures[name] for figures in found]) == pytest.approx(1, abs=0.08), name
    assert np.mean([figures["S_WMabsDD"] for figures in found]) == pytest.approx(1, abs=0.12)


def test_counts_drawn_one_by_one_have_as_many_degrees_of_freedom_as_cells():
    random = generator(4, "poisson")
    o = np.array([400, 300, 200, 100])
    found = [cells(o, random.poisson(o), k_syn=True) for _ in range(600)]
    assert {measure.figures["df"] for measure in found} == {4}
    assert np.mean([measure.value for measure in found]) == pytest.approx(1, abs=0.08)


def test_fisher_interval_of_the_destatis_paper():
    assert fisher_interval(0.9, 21) == (pytest.approx(0.7659, abs=5e-5), pytest.approx(0.9591, abs=5e-5))


def test_a_measure_that_runs_the_other_way_agrees_all_the_same():
    found = stands_in([1, 2, 3, 5], [-1, -2, -3, -5], same_direction=False)
    assert (found.value, found.figures["r_low"], found.figures["best_improvement"]) == (1, 1, 0.8)
