"""Every door that claims differential privacy pays first, whatever is asked in whatever order, wherever it crashes."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Microdata, dp, protect, synth, tables
from discreet.core.errors import ParameterError

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
try:
    AUDITED = importlib.import_module("dp_audit_doors").DOORS
finally:
    sys.path.pop(0)

LEVELS = {"x": ["a", "b"], "y": ["a", "b"]}
UNIT = {"x": (-1, 1), "y": (-1, 1)}
DELTA, MOST_DELTA = 1e-6, 0.1


def codes() -> Microdata:
    drawn = np.random.default_rng(1).choice(["a", "b"], (60, 2)).T
    return Microdata(
        pl.DataFrame(
            {name: pl.Series(own, dtype=pl.Enum(["a", "b"])) for name, own in zip("xy", drawn, strict=True)}
        ),
        keys=["x", "y"],
    )


def numbers() -> Microdata:
    drawn = np.random.default_rng(2).uniform(-1, 1, (30, 2))
    return Microdata(pl.DataFrame({"x": drawn[:, 0], "y": drawn[:, 1]}))


CODES, NUMBERS = codes(), numbers()
TABLE = tables.Table.from_microdata(
    pl.concat([CODES.frame] * 40), ["x"], hierarchies={"x": {"Total": ["a", "b"]}}, zeros="all"
)


def line(**asked):
    return {"y": "y", "x": "x", "x_bounds": {"x": (-1, 1)}, **asked}


def pram(epsilon):
    stay = math.exp(epsilon) / (1 + math.exp(epsilon))
    chances = {"a": {"a": stay, "b": 1 - stay}, "b": {"a": 1 - stay, "b": stay}}
    return protect.Pram(columns=["x"], matrix={"x": chances}, invariant=False)


def bounded(query):
    return lambda e, ledger: query(NUMBERS, "x", lower=-1, upper=1, epsilon=e, ledger=ledger)


# By module that claims something: one call a door, for an epsilon and a ledger.
DOORS = {
    "dp/queries.py": {
        "count": lambda e, ledger: dp.count(CODES, epsilon=e, ledger=ledger),
        "total": bounded(dp.total),
        "mean": bounded(dp.mean),
        "variance": bounded(dp.variance),
        "quantiles": bounded(dp.quantiles),
    },
    "dp/private_tables.py": {
        "histogram": lambda e, ledger: dp.histogram(CODES, "x", levels=["a", "b"], epsilon=e, ledger=ledger),
        "table": lambda e, ledger: dp.table(CODES, ["x", "y"], levels=LEVELS, epsilon=e, ledger=ledger),
        "table, unknown cells": lambda e, ledger: dp.table(CODES, "x", delta=DELTA, epsilon=e, ledger=ledger),
    },
    "dp/mechanisms.py": {
        "laplace": lambda e, ledger: dp.laplace(3, sensitivity=1, epsilon=e, ledger=ledger),
        "gaussian": lambda e, ledger: dp.gaussian(3.5, sensitivity=1, epsilon=e, delta=DELTA, ledger=ledger),
        "local laplace": lambda e, ledger: dp.local_laplace(
            [0.5], lower=0, upper=1, epsilon=e, ledger=ledger
        ),
    },
    "dp/selection.py": {
        "choose": lambda e, ledger: dp.choose([1, 2], sensitivity=1, epsilon=e, ledger=ledger),
        "sparse vector": lambda e, ledger: dp.SparseVector(3, sensitivity=1, epsilon=e, ledger=ledger),
    },
    "dp/linear_regression.py": {
        "k-norm": lambda e, ledger: dp.linear_regression(
            NUMBERS, **line(y_bounds=(-1, 1)), epsilon=e, ledger=ledger
        ),
        "functional": lambda e, ledger: dp.linear_regression(
            NUMBERS, **line(y_bounds=(-1, 1)), mechanism="functional", epsilon=e, ledger=ledger
        ),
    },
    "dp/quantile_regression.py": {
        "agd": lambda e, ledger: dp.quantile_regression(
            NUMBERS, **line(residual_bound=2), mechanism="agd", epsilon=e, delta=DELTA, ledger=ledger
        ),
        "sgd": lambda e, ledger: dp.quantile_regression(
            NUMBERS, **line(records=30, steps=2), mechanism="sgd", epsilon=e, delta=DELTA, ledger=ledger
        ),
        "kng": lambda e, ledger: dp.quantile_regression(
            NUMBERS, **line(intercept=False, theta_bound=4), mechanism="kng", epsilon=e, ledger=ledger
        ),
    },
    "protect/lapgraph.py": {
        "lapgraph": lambda e, ledger: protect.LapGraph(e).apply(
            np.zeros((3, 3), dtype=np.int64), ledger=ledger
        )
    },
    "protect/pram.py": {"pram": lambda e, ledger: pram(e).apply(CODES, ledger=ledger)},
    "protect/sample_and_anonymize.py": {
        "sample-and-anonymize": lambda e, ledger: protect.SampleAndAnonymize(epsilon=e, delta=1e-3).apply(
            CODES, ledger=ledger
        )
    },
    "synth/bayesian_network.py": {
        "bayesian-network": lambda e, ledger: synth.BayesianNetwork(epsilon=e, domain=LEVELS).fit(
            CODES, ledger=ledger
        )
    },
    "synth/pmse_mechanism.py": {
        "pmse-mechanism": lambda e, ledger: synth.PMSEMechanism(
            e, prior={"x": (-1, 1), "y": (-1, 1)}, depth=1, sampler="candidates", candidates=10
        ).fit(NUMBERS, ledger=ledger)
    },
    "synth/noisy_bayes.py": {
        "noisy-bayes": lambda e, ledger: synth.NoisyBayes(e, bounds=UNIT, n_datasets=1).fit(
            NUMBERS, ledger=ledger
        )
    },
    "synth/private_histograms.py": {
        "perturbed-histogram": lambda e, ledger: synth.PerturbedHistogram(2, e, domain=LEVELS).fit(
            CODES, ledger=ledger
        ),
        "smooth-histogram": lambda e, ledger: synth.SmoothHistogram(2, e, domain=LEVELS).fit(
            CODES, ledger=ledger
        ),
    },
    "synth/marginals_model.py": {
        "mst": lambda e, ledger: synth.MST(e, delta=DELTA, domain=LEVELS).fit(CODES, ledger=ledger),
        "aim": lambda e, ledger: synth.AIM(e, delta=DELTA, domain=LEVELS).fit(CODES, ledger=ledger),
        "dpgan": lambda e, ledger: synth.DPGAN(e, delta=DELTA, domain=LEVELS, steps=1).fit(
            CODES, ledger=ledger
        ),
        "pategan": lambda e, ledger: synth.PATEGAN(e, delta=DELTA, domain=LEVELS, steps=1).fit(
            CODES, ledger=ledger
        ),
    },
    "synth/sequential/sequential_model.py": {
        "catall": lambda e, ledger: synth.Sequential(
            method="catall", method_options={"catall": {"epsilon": e}}
        ).fit(CODES, ledger=ledger)
    },
    "tables/noisy_counts.py": {
        "noisy-counts": lambda e, ledger: tables.NoisyCounts(epsilon=e, domain="public").apply(
            TABLE, ledger=ledger
        )
    },
    "tables/count_synthesis.py": {
        "poisson-synthesis": lambda e, ledger: tables.PoissonSynthesis(
            alpha=40, epsilon=e, domain="public"
        ).apply(TABLE, ledger=ledger)
    },
}
ASKED = {name: ask for own in DOORS.values() for name, ask in own.items()}
NETWORKS = ("dpgan", "pategan")


def open_ledger(epsilon: float) -> dp.Ledger:
    # As much as a budget may have: Poisson cells cost a delta, more of it where a record is replaced.
    return dp.Ledger(epsilon, MOST_DELTA, adjacency="replace")


def test_every_module_that_claims_something_has_a_door_here():
    assert set(DOORS) == set(AUDITED)


@pytest.mark.parametrize("name", ASKED)
def test_a_crash_at_the_first_random_bit_has_paid_already(name, monkeypatch):
    if name in NETWORKS:
        pytest.importorskip("torch")

    def crash(*_):
        raise KeyboardInterrupt

    for module in [own for key, own in sys.modules.items() if key.startswith("discreet.")]:
        if "os_words" in vars(module):
            monkeypatch.setattr(module, "os_words", crash)
    ledger = open_ledger(100.0)
    with pytest.raises(KeyboardInterrupt):
        ASKED[name](2.0, ledger)
    entered = ledger.table().row(0, named=True)
    assert ledger.table().height == 1
    assert entered["rho"] > 0 if entered["definition"] == "zcdp" else entered["epsilon"] >= 2.0 * (1 - 1e-9)
    assert ledger.spent.epsilon > 0


@pytest.mark.parametrize("name", ASKED)
def test_a_release_beyond_the_budget_draws_nothing(name, monkeypatch):
    if name in NETWORKS:
        pytest.importorskip("torch")
    for module in [own for key, own in sys.modules.items() if key.startswith("discreet.")]:
        if "os_words" in vars(module):
            monkeypatch.setattr(module, "os_words", lambda *_: pytest.fail("bits were drawn"))
    ledger = open_ledger(0.125)
    with pytest.raises(ParameterError, match="does not allow"):
        ASKED[name](2.0, ledger)
    assert ledger.table().height == 0


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::discreet.core.errors.DiscreetWarning"
)  # so little a budget serves nobody
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from([n for n in ASKED if n not in NETWORKS]), st.floats(0.25, 3.0)),
        min_size=1,
        max_size=8,
    )
)
def test_no_sequence_of_calls_spends_more_than_the_ledger_holds(calls):
    ledger = open_ledger(8.0)
    taken = 0
    for name, epsilon in calls:
        before = ledger.spent
        try:
            ASKED[name](epsilon, ledger)
        except ParameterError:
            assert ledger.spent == before
        else:
            taken += 1
    assert ledger.spent.epsilon <= 8.0 * (1 + 1e-12)
    assert ledger.spent.delta <= MOST_DELTA * (1 + 1e-12)
    assert ledger.table().height == taken
