"""Worked examples and simulated null laws of the propensity score mean squared error (Snoke et al. 2018, synthpop)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.utility import pmse, pmse_null

NAMES = [f"v{place}" for place in range(10)]
AGES = [22, 25, 28, 30, 35, 40, 45, 50, 55, 60]
INCOMES = [30e3, 35e3, 40e3, 45e3, 50e3, 60e3, 70e3, 80e3, 85e3, 90e3]
SYNTHETIC = pl.DataFrame(
    {
        "age": [40, 22, 30, 30, 50, 60, 30, 40, 28, 35],
        "income": [
            60257.33, 33786.17, 45652.61, 40345.76, 75937.89, 95796.99, 49990.02, 60031.50, 47308.36, 49256.03,
        ],
        "sex": list("FMMMFFMFMM"),
    }
)  # fmt: skip
ORIGINAL = pl.DataFrame({"age": AGES, "income": INCOMES, "sex": ["M", "F"] * 5})


def scores(measure, file):
    table = measure.detail["scores"]
    return table.filter(pl.col("file") == file)["score"].to_numpy()


def normal(rng, mean, covariance, n):
    return Microdata(pl.DataFrame(rng.multivariate_normal(mean, covariance, n), schema=NAMES[: len(mean)]))


def equicorrelated(r, size=10):
    covariance = np.full((size, size), r)
    np.fill_diagonal(covariance, 1)
    return covariance


@pytest.mark.parametrize(
    ("k", "n", "k_star", "mean", "sd"),
    [
        (56, 5000, None, 0.0006875, 0.00013110),
        (56, 5000, 20, 0.0002375, 0.000077055),
        (46, 8721, None, 0.000322497, 0.0000679884),
        (964, 8721, None, 0.00690144, 0.000314515),
    ],
)
def test_the_theory_gives_the_published_expectations(k, n, k_star, mean, sd):
    found = pmse_null(k, n, n, k_star=k_star)
    assert found == pytest.approx((mean, sd), rel=2e-5)


@pytest.mark.parametrize(
    ("k", "value", "ratio", "standardized"),
    [
        (46, 0.000384, 1.19, None),
        (46, 0.000327, 1.01, None),
        (46, 0.000420, 1.30, None),
        (964, 0.00726, 1.05, 1.14),
        (964, 0.0144, 2.09, 23.8),
        (964, 0.1277, 18.5, 384),
    ],
)
def test_the_health_survey_ratios_are_reproduced(k, value, ratio, standardized):
    mean, sd = pmse_null(k, 8721, 8721)
    assert value / mean == pytest.approx(ratio, rel=5e-3)
    if standardized:
        assert (value - mean) / sd == pytest.approx(standardized, rel=5e-3)


def test_six_against_six_numbers():
    before = Microdata(pl.DataFrame({"x": [1, 2, 3, 4, 5, 6]}))
    after = Microdata(pl.DataFrame({"x": [2, 3, 4, 5, 6, 9]}))
    found = pmse(before, after)
    assert scores(found, "original") == pytest.approx(
        [0.26165, 0.33067, 0.40783, 0.48982, 0.57237, 0.65107], abs=5e-6
    )
    assert found.value == pytest.approx(0.0249667, abs=5e-8)
    assert found.figures["ratio"] == pytest.approx(2.3968, abs=5e-5)
    assert found.figures["p_value"] == pytest.approx(0.1216, abs=5e-5)
    assert pmse(before, after, model="linear").value == pytest.approx(0.0248447, abs=5e-8)


def test_ten_people_of_the_lecture():
    found = pmse(Microdata(ORIGINAL), Microdata(SYNTHETIC), interactions=0)
    assert scores(found, "released") == pytest.approx(
        [0.4384, 0.6838, 0.6064, 0.3405, 0.3782, 0.5286, 0.7902, 0.4270, 0.8130, 0.3623], abs=5e-5
    )
    assert scores(found, "original") == pytest.approx(
        [0.4978, 0.4424, 0.4909, 0.5222, 0.3984, 0.4254, 0.5569, 0.5842, 0.4598, 0.2535], abs=5e-5
    )
    assert found.value == pytest.approx(0.019446, abs=5e-7)


@pytest.mark.parametrize("model", ["logit", "linear", "cart", "boosting"])
def test_identical_files_have_exactly_nothing_between_them(model):
    options = {"max_iter": 5} if model == "boosting" else {}
    file = Microdata(ORIGINAL)
    found = pmse(file, file, model=model, interactions=0, tree=options, n_perm=2, seed=1)
    assert found.value == 0.0
    assert found.figures["specks"] == 0.0
    assert found.figures["auc"] == 0.5
    assert found.figures["po50"] == 0.0


def test_one_mislabelled_record_gives_the_number_that_the_lecture_took_for_identical_files():
    found = pmse(Microdata(pl.concat([ORIGINAL, ORIGINAL[9:]])), Microdata(ORIGINAL[:9]), interactions=0)
    listed = [0.5906, 0.4523, 0.5546, 0.5346, 0.4002, 0.3638, 0.5634, 0.5252, 0.3911, 0.1241]
    everyone = np.concatenate([scores(found, "original"), scores(found, "released")])
    assert scores(found, "original")[:10] == pytest.approx(listed, abs=5e-5)
    assert np.mean((everyone - 0.5) ** 2) == pytest.approx(0.020099, abs=1e-6)


def test_two_of_ten_columns_synthesized_count_nineteen_coefficients():
    rng = np.random.default_rng(1)
    before = rng.normal(size=(400, 10))
    after = before.copy()
    after[:, :2] = rng.normal(size=(400, 2))
    files = [Microdata(pl.DataFrame(table, schema=NAMES)) for table in (before, after)]
    found = pmse(*files, unsynthesized=NAMES[2:])
    assert found.figures["k"] == 56
    assert found.figures["k_star"] == 20
    assert found.figures["null_mean"] == pytest.approx(19 / (8 * 800))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("r", "correct", "incorrect"),
    [(0.0, 0.000687, 0.00124), (0.1, 0.000687, 0.01428), (0.5, 0.000687, 0.07202), (0.9, 0.000687, 0.10830)],
)
def test_simulated_logit_of_ten_normal_variables(r, correct, incorrect):
    rng = np.random.default_rng(7)
    covariance = equicorrelated(r)
    found = {"correct": [], "incorrect": []}
    for _ in range(200):
        real = rng.multivariate_normal(np.zeros(10), covariance, 5000)
        before = Microdata(pl.DataFrame(real, schema=NAMES))
        mean, fitted = real.mean(axis=0), np.cov(real.T)
        for kind, drawn in (("correct", fitted), ("incorrect", np.diag(np.diag(fitted)))):
            found[kind].append(pmse(before, normal(rng, mean, drawn, 5000)).figures)
    means = {kind: np.mean([one["pmse"] for one in figures]) for kind, figures in found.items()}
    # The tolerance that the source states for 200 runs.
    assert means["correct"] == pytest.approx(correct, rel=0.03)
    assert means["incorrect"] == pytest.approx(incorrect, rel=0.03)
    spread = np.std([one["standardized"] for one in found["correct"]], ddof=1)
    assert spread == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "theory", "shuffled", "paired"),
    [(1500, 750, 6.58e-4, 9.88e-4, 1.667e-3), (750, 1500, 3.29e-4, 9.88e-4, 8.33e-4)],
)
def test_permutation_and_pairs_are_scaled_to_the_theory_for_unequal_sizes(n, m, theory, shuffled, paired):
    rng = np.random.default_rng(5)
    observed, permuted, pairs = [], [], []
    for turn in range(25):
        real = rng.normal(size=(n, 10))
        before = Microdata(pl.DataFrame(real, schema=NAMES))
        copies = [normal(rng, real.mean(axis=0), np.cov(real.T), m) for _ in range(3)]
        options = {"interactions": 0, "seed": turn, "n_perm": 10}
        observed.append(pmse(before, copies, **options).value)
        permuted.append(pmse(before, copies, null="permutation", **options).figures)
        pairs.append(pmse(before, copies, null="pairs", **options).figures)
    assert pmse_null(11, n, m)[0] == pytest.approx(theory, rel=1e-3)
    assert np.mean(observed) == pytest.approx(theory, rel=0.12)
    for figures, bare in ((permuted, shuffled), (pairs, paired)):
        mean = np.mean([one["null_mean"] for one in figures])
        assert mean == pytest.approx(theory, rel=0.1)
        assert mean / figures[0]["null_factor"] == pytest.approx(bare, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("r", "correct", "incorrect", "permutation"),
    [(0.0, 0.0224, 0.0214, 0.0227), (0.5, 0.0223, 0.0881, 0.0217), (0.9, 0.0183, 0.2049, 0.0197)],
)
def test_simulated_trees_of_ten_normal_variables(r, correct, incorrect, permutation):
    rng = np.random.default_rng(3)
    covariance = equicorrelated(r)
    right, wrong, null, leaves = [], [], [], []
    for turn in range(25):
        real = rng.multivariate_normal(np.zeros(10), covariance, 5000)
        before = Microdata(pl.DataFrame(real, schema=NAMES))
        mean, fitted = real.mean(axis=0), np.cov(real.T)
        good = pmse(before, normal(rng, mean, fitted, 5000), model="cart", n_perm=2, seed=turn)
        bad = pmse(
            before, normal(rng, mean, np.diag(np.diag(fitted)), 5000), model="cart", n_perm=2, seed=turn
        )
        right.append(good.value)
        wrong.append(bad.value)
        null.append(good.figures["null_mean"])
        leaves.append(good.figures["null_leaves"])
        assert good.figures["null_factor"] == 1.0
    # Single trees vary by a fifth, so that the mean of 25 is known to a tenth.
    assert np.mean(right) == pytest.approx(correct, rel=0.12)
    assert np.mean(wrong) == pytest.approx(incorrect, rel=0.12)
    assert np.mean(null) == pytest.approx(permutation, rel=0.12)
    assert np.mean(leaves) == pytest.approx(114, rel=0.12)
    assert np.mean(right) / np.mean(null) == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_trees_of_three_binary_variables_take_half_of_the_permutation_null():
    rng = np.random.default_rng(11)
    chances = np.array([0.5, 0.3, 0.6])
    observed, null = [], []
    for turn in range(60):
        real = rng.random((2000, 3)) < chances
        cells, counts = np.unique(real, axis=0, return_counts=True)
        drawn = cells[rng.choice(len(cells), size=2000, p=counts / counts.sum())]
        files = [
            Microdata(pl.DataFrame(table.astype(str), schema=["a", "b", "c"])) for table in (real, drawn)
        ]
        found = pmse(*files, model="cart", n_perm=20, seed=turn).figures
        assert found["null_factor"] == pytest.approx(0.5)
        observed.append(found["pmse"])
        null.append(found["null_mean"])
    assert np.mean(observed) == pytest.approx(0.000187, rel=0.2)
    assert np.mean(null) == pytest.approx(0.00018, rel=0.15)
