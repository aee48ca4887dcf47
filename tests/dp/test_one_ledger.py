"""Everything that carries a guarantee enters it into a ledger, before any noise is drawn."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import Microdata, dp, protect, synth, tables
from discreet.core.errors import ParameterError
from discreet.synth.bayesian_network_model import Informations, sensitivity

ROOT = Path(discreet.__file__).parent


LEVELS = {"sex": ["f", "m"], "place": ["a", "b", "c"]}


def people(n: int = 400) -> Microdata:
    rng = np.random.default_rng(2)
    columns = {name: pl.Series(rng.choice(own, n), dtype=pl.Enum(own)) for name, own in LEVELS.items()}
    return Microdata(pl.DataFrame(columns), keys=["sex", "place"])


def table() -> tables.Table:
    return tables.Table.from_microdata(
        people().frame,
        ["sex", "place"],
        hierarchies={name: {"Total": own} for name, own in LEVELS.items()},
        zeros="all",
    )


def chances(levels: list[str]) -> dict[str, dict[str, float]]:
    return {
        own: {other: 0.8 if own == other else 0.2 / (len(levels) - 1) for other in levels} for own in levels
    }


# One line for every place that claims an epsilon outside the room of differential privacy; `name` stands in the record.
RELEASES = {
    "pram": lambda ledger: protect.Pram(
        columns=["sex", "place"], matrix={name: chances(own) for name, own in LEVELS.items()}, invariant=False
    ).apply(people(), ledger=ledger),
    "sample-and-anonymize": lambda ledger: protect.SampleAndAnonymize(epsilon=1.0, delta=1e-3).apply(
        people(), ledger=ledger
    ),
    "noisy-counts": lambda ledger: tables.NoisyCounts(epsilon=1.0, domain="public").apply(
        table(), ledger=ledger
    ),
    "poisson-synthesis": lambda ledger: tables.PoissonSynthesis(alpha=3, epsilon=2.0, domain="public").apply(
        table(), ledger=ledger
    ),
    "bayesian-network": lambda ledger: synth.BayesianNetwork(epsilon=1.0, domain=LEVELS).fit(
        people(), ledger=ledger
    ),
    "sequential": lambda ledger: synth.Sequential(
        method="catall", method_options={"catall": {"epsilon": 1.0}}
    ).fit(people(), ledger=ledger),
    "mst": lambda ledger: synth.MST(epsilon=1.0, domain=LEVELS).fit(people(), ledger=ledger),
    "dpgan": lambda ledger: synth.DPGAN(epsilon=1.0, domain=LEVELS, steps=2).fit(people(), ledger=ledger),
    "pategan": lambda ledger: synth.PATEGAN(epsilon=1.0, domain=LEVELS, steps=2).fit(people(), ledger=ledger),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_with_a_guarantee_enters_its_price(name):
    ledger = dp.Ledger(epsilon=100, delta=0.1, adjacency="replace")
    release = RELEASES[name](ledger)
    assert release.guarantee is not None
    assert ledger.table()["mechanism"].to_list() == [name]
    assert ledger.spent.epsilon > 0


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_beyond_the_budget_is_refused_before_any_noise_is_drawn(name, monkeypatch):
    def drawn(size):
        raise AssertionError("bits were drawn")

    monkeypatch.setattr("discreet.dp.entropy.os_words", drawn)
    for module in ("samplers", "mechanisms", "queries"):
        monkeypatch.setattr(f"discreet.dp.{module}.os_words", drawn, raising=False)
    ledger = dp.Ledger(epsilon=1e-3, adjacency="replace")
    with pytest.raises(ParameterError, match="does not allow"):
        RELEASES[name](ledger)
    assert ledger.table().height == 0


def test_what_claims_nothing_is_refused_with_a_ledger():
    ledger = dp.Ledger(epsilon=10, adjacency="replace")
    for refused in (
        lambda: protect.Pram(columns=["sex"]).apply(people(), ledger=ledger),
        lambda: protect.LocalSuppression(k=2).apply(people(), ledger=ledger),
        lambda: tables.NoisyCounts(epsilon=1.0).apply(table(), ledger=ledger),
        lambda: synth.Sequential().fit(people(), ledger=ledger),
        lambda: synth.BayesianNetwork().fit(people(), ledger=ledger),
        lambda: protect.Plan([protect.Pram(columns=["sex"]), protect.Pram(columns=["place"])]).apply(
            people(), ledger=ledger
        ),
    ):
        with pytest.raises(ParameterError, match="A ledger takes releases with a guarantee"):
            refused()
    with pytest.raises(ParameterError, match="seed voids it"):
        tables.NoisyCounts(epsilon=1.0, domain="public").apply(table(), ledger=ledger, seed=1)
    assert ledger.table().height == 0


def test_everything_that_makes_a_claim_takes_a_ledger():
    """Whoever writes a new claim of differential privacy is reminded here that it has a price."""
    claiming = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if re.search("DifferentialPrivacy|Spend", text := path.read_text(encoding="utf-8"))
        if any(
            isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"DifferentialPrivacy", "Spend"}
            for node in ast.walk(ast.parse(text))
        )
    }
    claiming -= {"dp/costs.py", "dp/entropy.py"}  # what a budget claims, and the account that enters it
    doors = {
        "dp/queries.py": (dp.count, dp.total, dp.mean, dp.variance, dp.quantiles),
        "dp/private_tables.py": (dp.table, dp.histogram),
        "dp/mechanisms.py": (dp.laplace, dp.gaussian, dp.local_laplace),
        "dp/selection.py": (dp.choose, dp.SparseVector),
        "dp/linear_regression.py": (dp.linear_regression,),
        "dp/quantile_regression.py": (dp.quantile_regression,),
        "protect/lapgraph.py": (protect.LapGraph.apply,),
        "protect/pram.py": (protect.Pram.apply,),
        "protect/sample_and_anonymize.py": (protect.SampleAndAnonymize.apply,),
        "synth/bayesian_network.py": (synth.BayesianNetwork.fit,),
        "synth/marginals_model.py": (synth.AIM.fit, synth.MST.fit),
        "synth/noisy_bayes.py": (synth.NoisyBayes.fit,),
        "synth/pmse_mechanism.py": (synth.PMSEMechanism.fit,),
        "synth/private_histograms.py": (synth.PerturbedHistogram.fit, synth.SmoothHistogram.fit),
        "synth/sequential/sequential_model.py": (synth.Sequential.fit,),
        "tables/noisy_counts.py": (tables.NoisyCounts.apply,),
        "tables/count_synthesis.py": (tables.PoissonSynthesis.apply,),
    }
    assert claiming <= set(doors), "name the door of a new claim, and let it take a ledger"
    for door in [door for own in doors.values() for door in own]:
        assert "ledger" in inspect.signature(door).parameters, door


@given(st.lists(st.integers(0, 5), min_size=2, max_size=9), st.integers(0, 5), st.booleans())
@settings(max_examples=150, deadline=None)
def test_one_replaced_record_moves_mutual_information_by_its_sensitivity_at_most(cells, new, binary):
    """The proof in `sensitivity`, tried on all kinds of small files."""
    columns = 2 if binary else 3
    n = len(cells)
    for place in range(n):
        other = [*cells[:place], new, *cells[place + 1 :]]
        found = [
            Informations(
                [np.array([cell % columns for cell in own]), np.array([cell // columns for cell in own])],
                [columns, 6],
            ).of(0, (1,))
            for own in (cells, other)
        ]
        assert abs(found[0] - found[1]) <= sensitivity(n, binary=binary) + 1e-12


def test_the_sensitivity_of_mutual_information_is_reached():
    """Half of the records in one row, half in one column, and the one where they cross is replaced."""
    n = 9
    half = (n - 1) // 2
    x = np.array([0] * (half + 1) + list(range(1, half + 1)))
    y = np.array([0] + list(range(1, half + 1)) + [0] * half)
    before = Informations([x, y], [64, 64]).of(0, (1,))
    x[0], y[0] = 60, 60
    after = Informations([x, y], [64, 64]).of(0, (1,))
    assert abs(after - before) == pytest.approx(sensitivity(n, binary=False))


def test_ledgers_of_records_and_adjacency_are_not_mixed():
    ledger = dp.Ledger(epsilon=100)
    with pytest.raises(ParameterError, match="adjacency='replace'"):
        RELEASES["bayesian-network"](ledger)
    assert ledger.table().height == 0
