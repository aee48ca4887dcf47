"""Simple private generators on public bounds: what they keep, what they claim, what they refuse."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from discreet import Microdata, dp, synth
from discreet.core.errors import DiscreetError, DiscreetWarning, ParameterError
from discreet.synth.noisy_bayes import sensitivities
from discreet.synth.private_histograms import exact_weight, mixed_law

RNG = np.random.default_rng(3)
FRAME = pl.DataFrame(
    {
        "age": RNG.integers(0, 100, 3000),
        "job": RNG.choice(["a", "b"], 3000, p=[0.8, 0.2]),
        "pay": RNG.normal(50, 10, 3000),
    }
)
DOMAIN = {"age": (0, 99), "job": ["a", "b"], "pay": (0.0, 100.0)}
NEVER = ["age", "job", "pay"]
NUMBERS = FRAME.select("age", "pay")
BOUNDS = {"age": (0, 99), "pay": (0.0, 100.0)}
PLANS = {
    "smooth": synth.SmoothHistogram(3, 1.0, domain=DOMAIN, never_missing=NEVER),
    "perturbed": synth.PerturbedHistogram(5, 1.0, domain=DOMAIN, never_missing=NEVER),
    "bayes": synth.NoisyBayes(50.0, bounds=BOUNDS, n_datasets=2),
}


def file_of(name):
    return NUMBERS if name == "bayes" else FRAME


@settings(max_examples=60)
@given(
    arrays.arrays(np.int64, st.integers(2, 12), elements=st.integers(0, 9)).filter(lambda c: c.sum() > 0),
    st.sampled_from([0.1, 1.0, 5.0]),
    st.integers(1, 20),
)
def test_log_ratios_of_a_drawn_row_hold_on_all_neighbors(counts, epsilon, rows):
    n, cells = int(counts.sum()), len(counts)
    weight = float(exact_weight(cells, n, rows, epsilon))
    here = mixed_law(counts.astype(np.float64), weight)
    for gone in np.flatnonzero(counts):
        for new in range(cells):
            other = counts.astype(np.float64)
            other[gone] -= 1
            other[new] += 1
            ratios = np.abs(np.log(here / mixed_law(other, weight)))
            assert rows * ratios.max() <= epsilon * (1 + 1e-9) + 1e-12


@settings(max_examples=60)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(2, 8), st.just(2)), elements=st.floats(0, 1)),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_one_record_moves_means_and_covariances_by_no_more_than_their_sensitivities(values, other):
    mean, covariance = sensitivities(np.ones(2), len(values))
    after = values.copy()
    after[0] = other
    assert (np.abs(values.mean(0) - after.mean(0)) <= mean + 1e-12).all()
    moved = np.cov(values, rowvar=False) - np.cov(after, rowvar=False)
    assert (np.abs(moved) <= covariance + 1e-12).all()


@pytest.mark.parametrize("name", PLANS)
def test_types_files_and_plans_survive(name, tmp_path):
    frame, plan = file_of(name), PLANS[name]
    model = plan.fit(Microdata(frame), seed=1)
    made = model.sample(500, seed=2).frame
    # A normal model draws decimals, also of whole numbers: whether they are whole would be read off the data.
    assert made.schema == (dict.fromkeys(frame.columns, pl.Float64) if name == "bayes" else frame.schema)
    model.save(tmp_path / "model")
    again = synth.load(tmp_path / "model")
    assert again.sample(500, seed=2).frame.equals(made)
    assert again.guarantee is None
    synth.save_plan(plan, tmp_path / "plan.toml")
    same = synth.load_plan(tmp_path / "plan.toml").fit(Microdata(frame), seed=1)
    assert same.sample(500, seed=2).frame.equals(made)


@pytest.mark.parametrize("name", PLANS)
def test_a_claim_needs_the_operating_system_and_a_ledger_is_asked_first(name):
    data = Microdata(file_of(name))
    ledger = dp.Ledger(1.5 * PLANS[name].epsilon, adjacency="replace")
    model = PLANS[name].fit(data, ledger=ledger)
    assert "differential privacy against replacing one record" in model.guarantee
    assert [entry["mechanism"] for entry in ledger.table().to_dicts()] == [PLANS[name].name]
    with pytest.raises(ParameterError, match="does not allow"):
        PLANS[name].fit(data, ledger=ledger)
    with pytest.raises(ParameterError, match="seed"):
        PLANS[name].fit(data, ledger=ledger, seed=1)
    assert PLANS[name].fit(data, seed=1).guarantee is None


def test_a_perturbed_histogram_keeps_shares_and_a_smooth_one_hardly_does():
    made = {
        name: PLANS[name].fit(Microdata(FRAME), seed=1).sample(3000, seed=1).frame
        for name in ("smooth", "perturbed")
    }
    share = (FRAME["job"] == "a").mean()
    assert (made["perturbed"]["job"] == "a").mean() == pytest.approx(share, abs=0.03)
    assert (made["smooth"]["job"] == "a").mean() == pytest.approx(0.5, abs=0.06)  # 18 cells: 95 % even
    assert made["perturbed"]["pay"].mean() == pytest.approx(50, abs=2)


def test_rows_of_a_smooth_histogram_are_drawn_once_and_fewer_leave_more():
    model = PLANS["smooth"].fit(Microdata(FRAME), seed=1)
    with pytest.raises(ParameterError, match="n_rows"):
        model.sample(3001, seed=1)
    few = synth.SmoothHistogram(3, 1.0, domain=DOMAIN, never_missing=NEVER, n_rows=1)
    assert few.mixing_weight(3000) < 0.01 < PLANS["smooth"].mixing_weight(3000)
    assert few.fit(Microdata(FRAME), seed=1).sample(seed=1).frame.height == 1


def test_noisy_bayes_finds_moments_where_it_can_and_says_where_it_cannot():
    made = PLANS["bayes"].fit(Microdata(NUMBERS), seed=1).sample(5000, seed=1).frame
    assert made["pay"].mean() == pytest.approx(50, abs=2)
    assert made["pay"].std() == pytest.approx(10, abs=4)
    with pytest.warns(DiscreetWarning, match="noise on a variance"):
        poor = synth.NoisyBayes(0.01, bounds=BOUNDS).fit(Microdata(NUMBERS), seed=1)
    assert poor.repaired > 0


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (synth.SmoothHistogram, {"bins_per_dim": 3, "epsilon": 0}),
        (synth.SmoothHistogram, {"bins_per_dim": 0, "epsilon": 1.0}),
        (synth.SmoothHistogram, {"bins_per_dim": 3, "epsilon": 1.0, "n_rows": 0}),
        (synth.SmoothHistogram, {"bins_per_dim": 3, "epsilon": 1.0}),
        (synth.SmoothHistogram, {"bins_per_dim": 3, "epsilon": 1.0, "domain": DOMAIN | {"age": (9, 1)}}),
        (synth.PerturbedHistogram, {"bins_per_dim": 300_000, "epsilon": 1.0, "domain": DOMAIN}),
        (synth.PerturbedHistogram, {"bins_per_dim": 3, "epsilon": 1.0, "leave_out": "wage"}),
        (synth.NoisyBayes, {"epsilon": 1.0, "bounds": BOUNDS}),
        (synth.NoisyBayes, {"epsilon": 1.0, "bounds": {"age": (0, 99)}, "leave_out": "job"}),
        (synth.NoisyBayes, {"epsilon": 1.0, "bounds": BOUNDS | {"age": (9, 1)}, "leave_out": "job"}),
        (synth.NoisyBayes, {"epsilon": 1.0, "bounds": BOUNDS, "n_datasets": 0}),
        (synth.NoisyBayes, {"epsilon": 1e-6, "bounds": BOUNDS, "leave_out": "job"}),
    ],
)
def test_what_cannot_be_promised_is_refused_and_nothing_is_spent(kind, wrong):
    ledger = dp.Ledger(5.0, adjacency="replace")
    with pytest.raises(DiscreetError):
        kind(**wrong).fit(Microdata(FRAME), ledger=ledger)
    assert not ledger.table().height


def test_files_that_do_not_fit_are_refused():
    with pytest.raises(DiscreetError, match="person"):
        PLANS["smooth"].fit(Microdata(FRAME.with_columns(who=pl.lit(1)), person="who"))
    with pytest.raises(DiscreetError, match="records"):
        PLANS["bayes"].fit(Microdata(NUMBERS.head(2)))
    with pytest.raises(DiscreetError, match="no record"):
        PLANS["perturbed"].fit(Microdata(FRAME.head(0)))
    with pytest.raises(DiscreetError, match="missing"):
        PLANS["bayes"].fit(Microdata(NUMBERS.with_columns(pay=pl.when(pl.col("age") > 5).then("pay"))))
