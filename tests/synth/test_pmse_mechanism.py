"""Parameters drawn privately by how hard their files are to tell from the original."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, dp, synth
from discreet.core.errors import ColumnError, DiscreetError, DiscreetWarning, ParameterError
from discreet.synth.pmse_mechanism import tree_pmse
from discreet.synth.pmse_model import by_walking, chances, exactly

RNG = np.random.default_rng(7)
SIZE = pl.DataFrame({"height": RNG.normal(170, 8, 400), "works": RNG.random(400) < 0.7})
QUICK = {"prior": {"height": (160, 20)}, "depth": 1, "thresholds": 8, "candidates": 300, "particles": 30}
small = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=n, max_size=n),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=n, max_size=n),
        st.integers(0, n - 1),
        st.tuples(st.integers(-1, 4), st.integers(-1, 4)),
    )
)


def best_by_hand(original, synthetic, depth):
    """Try every tree over all thresholds, one by one."""

    def gi(rows, depth):
        b = sum(file == 0 for file, _ in rows)
        a = len(rows) - b
        best = a * b / len(rows) if rows else 0.0
        if depth:
            for j in range(2):
                for cut in {row[j] for _, row in rows}:
                    low = [each for each in rows if each[1][j] < cut]
                    high = [each for each in rows if each[1][j] >= cut]
                    best = min(best, gi(low, depth - 1) + gi(high, depth - 1))
        return best

    rows = [(0, tuple(row)) for row in original] + [(1, tuple(row)) for row in synthetic]
    return 0.25 - gi(rows, depth) / (2 * len(original))


@settings(max_examples=60, deadline=None)
@given(small, st.integers(1, 3))
@pytest.mark.slow
def test_one_record_moves_the_best_tree_by_no_more_than_the_tight_bound(case, depth):
    original, synthetic, place, other = case
    before = np.array(original, dtype=np.float64)
    after = before.copy()
    after[place] = other
    made = np.array(synthetic, dtype=np.float64)
    moved = tree_pmse(before, made, depth=depth) - tree_pmse(after, made, depth=depth)
    assert abs(moved) <= dp.pmse_sensitivity(len(before), kind="tight") + 1e-12


@settings(max_examples=40, deadline=None)
@given(small, st.integers(1, 3))
def test_the_best_tree_is_no_worse_than_any_tree_over_values_of_the_synthetic_file(case, depth):
    original, synthetic, _, _ = case
    x, s = np.array(original, dtype=np.float64), np.array(synthetic, dtype=np.float64)
    # Thresholds at synthetic values and above all: the same as letting the original take only those codes.
    coded = np.column_stack(
        [
            np.searchsorted(np.append(np.unique(s[:, j]), s[:, j].max() + 0.5), x[:, j], side="right")
            for j in (0, 1)
        ]
    )
    codes = np.column_stack([np.searchsorted(np.unique(s[:, j]), s[:, j], side="right") for j in (0, 1)])
    assert tree_pmse(x, s, depth=depth) == pytest.approx(best_by_hand(coded, codes, depth), abs=1e-12)


def test_the_tight_bound_is_attained():
    n = 6
    original, synthetic = np.ones((n, 1)), np.zeros((n, 1))
    moved = original.copy()
    moved[0] = 0
    gap = tree_pmse(original, synthetic) - tree_pmse(moved, synthetic)
    assert gap == pytest.approx(dp.pmse_sensitivity(n, kind="tight"), abs=1e-12)


@pytest.mark.parametrize("kind", ["published", "tight"])
def test_log_ratios_of_chances_hold_on_a_grid_of_neighbors(kind):
    candidates = [np.arange(5.0)[:, None] + shift for shift in (-1.0, 0.0, 0.5, 2.0, 6.0)]
    worst = 0.0
    for values in itertools.product((0.0, 2.0, 5.0), repeat=3):
        here = np.array([0.0, 1.0, *values])[:, None]
        for new in (0.0, 1.5, 9.0):
            there = here.copy()
            there[-1] = new
            logs = [
                np.log(
                    chances(
                        np.array([tree_pmse(file, made, depth=2) for made in candidates]),
                        1.0,
                        dp.pmse_sensitivity(5, kind=kind),
                    )
                )
                for file in (here, there)
            ]
            worst = max(worst, float(np.abs(logs[0] - logs[1]).max()))
    assert worst <= 1.0 + 1e-9
    assert worst > 0.1


def test_an_exact_draw_has_the_chances_it_should_have():
    qualities, candidates = np.array([0.0, 0.05, 0.2]), np.arange(3.0)[:, None]
    from fractions import Fraction

    drawn = exactly(
        qualities, candidates, epsilon=Fraction(2), sensitivity=0.1, draws=1500, words=dp.os_words
    ).ravel()
    seen = np.bincount(drawn.astype(int), minlength=3) / 1500
    assert seen == pytest.approx(chances(qualities, 2.0, 0.1), abs=0.06)


def test_an_exact_draw_is_claimed_and_a_sampler_that_approaches_is_not():
    data = Microdata(SIZE)
    exact = synth.PMSEMechanism(4.0, **QUICK, sampler="candidates", never_missing="works").fit(data)
    assert exact.guarantee.startswith("4-differential privacy against replacing one record")
    smc = synth.PMSEMechanism(4.0, **QUICK).fit(data)
    assert smc.guarantee is None
    assert "approaches" in smc.why_none
    assert smc.diagnosis.r_hat < 2
    greedy = synth.PMSEMechanism(4.0, **QUICK, sampler="candidates", quality="greedy-tree").fit(data)
    assert greedy.guarantee is None
    assert "split by split" in greedy.why_none
    seeded = synth.PMSEMechanism(4.0, **QUICK, sampler="candidates").fit(data, seed=1)
    assert "seed" in seeded.why_none


@pytest.mark.parametrize("quality", ["optimal-tree", "fixed-partition"])
@pytest.mark.slow
def test_a_large_budget_finds_the_parameters(quality):
    plan = synth.PMSEMechanism(
        60.0, **(QUICK | {"particles": 60, "depth": 2}), quality=quality, never_missing="works"
    )
    made = plan.fit(Microdata(SIZE), seed=2).sample(4000, seed=1).frame
    assert made.schema == SIZE.schema
    assert made["height"].mean() == pytest.approx(170, abs=4)
    assert made["height"].std() == pytest.approx(8, rel=0.4)
    assert made["works"].mean() == pytest.approx(0.7, abs=0.12)


def test_a_small_budget_is_warned_about_and_the_model_survives_a_file(tmp_path):
    plan = synth.PMSEMechanism(0.05, **QUICK, n_datasets=3, sampler="candidates")
    with pytest.warns(DiscreetWarning, match="too small for this prior"):
        model = plan.fit(Microdata(SIZE), seed=1)
    assert model.thetas.shape[0] == 3
    model.save(tmp_path / "model")
    again = synth.load(tmp_path / "model")
    assert again.sample(50, seed=2).frame.equals(model.sample(50, seed=2).frame)
    assert again.guarantee is None
    synth.save_plan(plan, tmp_path / "plan.toml")
    assert synth.load_plan(tmp_path / "plan.toml").to_dict() == plan.to_dict()


def test_the_ledger_knows_which_draws_are_exact():
    ledger = dp.Ledger(2.0, adjacency="replace")
    data = Microdata(SIZE)
    with pytest.raises(ParameterError, match="split by split"):
        synth.PMSEMechanism(1.0, **QUICK, quality="greedy-tree").fit(data, ledger=ledger)
    approached = dp.Ledger(2.0, adjacency="replace")
    synth.PMSEMechanism(1.0, **QUICK).fit(data, ledger=approached)
    assert approached.unproved == 1
    assert not ledger.unproved
    synth.PMSEMechanism(1.5, **QUICK, sampler="candidates").fit(data, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(1.5)
    with pytest.raises(ParameterError, match="does not allow"):
        synth.PMSEMechanism(1.5, **QUICK, sampler="candidates").fit(data, ledger=ledger)
    with pytest.raises(ParameterError, match="adding"):
        synth.PMSEMechanism(0.5, **QUICK, sampler="candidates").fit(data, ledger=dp.Ledger(2.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"depth": 4},
        {"n_datasets": 0},
        {"width": 0.0},
        {"prior": {}},
        {"prior": {"height": (160, 0)}},
        {"prior": {"height": (160, 20), "works": (0, 1)}},
        {"prior": {"heights": (160, 20)}},
        {"domain": {"works": []}},
        {"quality": "forest"},
        {"leave_out": ["height", "works"], "prior": {}},
    ],
)
def test_what_cannot_be_promised_is_refused(wrong):
    with pytest.raises(DiscreetError):
        synth.PMSEMechanism(**{"epsilon": 1.0, **QUICK, **wrong}).fit(Microdata(SIZE), seed=1)


def test_files_that_do_not_fit_are_refused():
    gaps = SIZE.with_columns(height=pl.when(pl.col("works")).then("height"))
    with pytest.raises(DiscreetError, match="missing"):
        synth.PMSEMechanism(1.0, **QUICK).fit(Microdata(gaps), seed=1)
    with pytest.raises(DiscreetError, match="two records"):
        synth.PMSEMechanism(1.0, **QUICK).fit(Microdata(SIZE.head(1)), seed=1)
    with pytest.raises(DiscreetError, match="person"):
        synth.PMSEMechanism(1.0, **QUICK).fit(
            Microdata(SIZE.with_columns(who=pl.lit(1)), person="who"), seed=1
        )


def test_beside_a_claim_a_warning_depends_on_no_record():
    rng = np.random.default_rng(3)
    near, far = (Microdata(pl.DataFrame({"x": center + rng.standard_normal(60)})) for center in (0.0, 1e6))
    plan = synth.PMSEMechanism(0.1, prior={"x": (0, 1)}, depth=1, sampler="candidates", candidates=20)
    for data in (near, far):
        with pytest.warns(DiscreetWarning, match="too small"):
            plan.fit(data)
    rich = synth.PMSEMechanism(5.0, prior={"x": (0, 1)}, depth=1, sampler="candidates", candidates=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (near, far):
            rich.fit(data)


@pytest.mark.slow
def test_numbers_that_may_be_missing_are_drawn_with_gaps(tmp_path):
    gaps = SIZE.with_columns(height=pl.when(pl.int_range(SIZE.height) % 4 > 0).then("height"))
    plan = synth.PMSEMechanism(
        80.0, **(QUICK | {"particles": 60, "depth": 1}), gaps="height", never_missing="works"
    )
    fitted = plan.fit(Microdata(gaps), seed=3)
    made = fitted.sample(4000, seed=1).frame
    assert made.schema == gaps.schema
    assert made["height"].null_count() / 4000 == pytest.approx(0.25, abs=0.15)
    assert made["height"].mean() == pytest.approx(170, abs=6)
    again = synth.load(fitted.save(tmp_path / "model"))
    assert again.sample(50, seed=2).frame.equals(fitted.sample(50, seed=2).frame)
    exact = synth.PMSEMechanism(4.0, **QUICK, sampler="candidates", gaps="height").fit(Microdata(gaps))
    assert exact.guarantee is not None
    with pytest.raises(DiscreetError, match="gaps"):
        synth.PMSEMechanism(1.0, **QUICK, gaps="works").fit(Microdata(SIZE))


@pytest.mark.slow
def test_walks_at_a_ladder_of_temperatures_find_the_parameters_too():
    plan = synth.PMSEMechanism(
        60.0, **QUICK, sampler="metropolis", steps=300, n_quality_draws=2, never_missing="works"
    )
    fitted = plan.fit(Microdata(SIZE), seed=4)
    assert fitted.guarantee is None
    assert "approaches" in fitted.why_none
    assert fitted.sample(4000, seed=1).frame["height"].mean() == pytest.approx(170, abs=6)


def test_a_walk_comes_to_the_law_of_prior_times_quality():
    """One parameter, whose law is known: a normal prior times exp(-T u) with u a step at 1."""

    def quality(theta):
        return 0.0 if theta[0] > 1 else 0.25

    made = by_walking(quality, 1, width=1.0, temperature=8.0, many=12_000, rng=np.random.default_rng(1))
    above = 0.158655
    wanted = above / (above + (1 - above) * np.exp(-2.0))
    assert (made.thetas > 1).mean() == pytest.approx(wanted, abs=0.04)


@settings(max_examples=25, deadline=None)
@given(small, st.integers(1, 3))
def test_the_mean_of_several_files_moves_no_more_than_one(case, draws):
    """Every file moves by the tight bound at most, and so does their mean."""
    original, made, row, new = case
    records, synthetic = (np.array(part, dtype=np.float64) for part in (original, made))
    moved = records.copy()
    moved[row] = new
    rng = np.random.default_rng(draws)
    files = [synthetic[rng.permutation(len(synthetic))] + rng.integers(0, 2) for _ in range(draws)]
    before, after = (np.mean([tree_pmse(own, made) for made in files]) for own in (records, moved))
    assert abs(before - after) <= dp.pmse_sensitivity(len(records), kind="tight") + 1e-12


@pytest.mark.parametrize("domain", [5, "abc", ["n", "a"]])
def test_a_domain_that_no_column_has_is_refused_by_its_column(domain):
    people = Microdata(pl.DataFrame({"age": [20, 30] * 20}))
    with pytest.raises(ColumnError, match="'age'"):
        synth.PMSEMechanism(epsilon=1.0, domain={"age": domain}).fit(people)
