"""What is claimed fits who the neighbors are and how many records a person has, in every mechanism and generator."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, dp, protect, synth, tables
from discreet.core.errors import ParameterError
from discreet.core.guarantees import SEVERAL_RECORDS

pytestmark = pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
LEVELS = {"x": ["a", "b"], "y": ["a", "b"]}
FILE = pl.DataFrame({"x": ["a", "b"] * 60, "y": ["a", "a", "b"] * 40, "who": [i // 3 for i in range(120)]})
CODED = FILE.with_columns(pl.col("x", "y").cast(pl.Enum(["a", "b"])))


def test_scores_that_move_one_way_are_refused_under_replacement():
    with pytest.raises(ParameterError, match="replaced record can lower"):
        dp.choose([1, 2], sensitivity=1, epsilon=1, monotone=True, adjacency="replace")
    with pytest.raises(ParameterError, match="replaced record can lower"):
        dp.SparseVector(3, sensitivity=1, epsilon=1, monotone=True, adjacency="replace")
    ledger = dp.Ledger(2.0, adjacency="replace")
    dp.choose([1, 2], sensitivity=1, epsilon=1, monotone=True, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(2.0)
    refused = dp.Ledger(2.0, adjacency="replace")
    with pytest.raises(ParameterError):
        dp.choose([1, 2], sensitivity=1, epsilon=1, monotone=True, adjacency="replace", ledger=refused)
    assert refused.spent.epsilon == 0


@pytest.mark.parametrize("method", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize(
    ("adjacency", "monotone"), [("add-remove", True), ("add-remove", False), ("replace", False)]
)
def test_a_choice_keeps_its_epsilon_for_its_neighbors(method, adjacency, monotone):
    """The worst neighbors there are: a record more in every score, or one score down and the other up."""
    epsilon, runs = 1.0, 4_000
    scores = [5, 5]
    other = [6, 5] if adjacency == "add-remove" else [6, 4]
    asked = {
        "sensitivity": 1,
        "epsilon": epsilon,
        "method": method,
        "adjacency": adjacency,
        "monotone": monotone,
    }
    chances = [
        np.mean([dp.choose(own, seed=seed, **asked).place == 0 for seed in range(runs)])
        for own in (scores, other)
    ]
    for one, two in (chances, [1 - chance for chance in chances]):
        error = 5 * math.sqrt(0.25 / runs) * (1 + math.e**epsilon)
        assert max(one - math.e**epsilon * two, two - math.e**epsilon * one) <= error


REFUSING = {
    "bayesian-network": lambda d: synth.BayesianNetwork(epsilon=1.0, domain=LEVELS).fit(d),
    "perturbed-histogram": lambda d: synth.PerturbedHistogram(2, 1.0, domain=LEVELS).fit(d),
    "smooth-histogram": lambda d: synth.SmoothHistogram(2, 1.0, domain=LEVELS).fit(d),
    "pmse-mechanism": lambda d: synth.PMSEMechanism(1.0, domain=LEVELS).fit(d),
    "catall": lambda d: synth.Sequential(
        method="catall", leave_out="who", method_options={"catall": {"epsilon": 1.0}}
    ).fit(d),
    "sample-and-anonymize": lambda d: protect.SampleAndAnonymize(epsilon=2.0, keys=["x"]).apply(d),
}


@pytest.mark.parametrize("role", ["person", "contributor"])
@pytest.mark.parametrize("name", REFUSING)
def test_a_promise_for_records_is_refused_where_people_have_several(name, role):
    with pytest.raises(ParameterError, match="one for records"):
        REFUSING[name](Microdata(CODED, **{role: "who"}))


@pytest.mark.parametrize("kind", [synth.MST, synth.AIM])
def test_what_bounds_people_says_so(kind):
    model = kind(1.0, domain=LEVELS).fit(Microdata(FILE, person="who"))
    assert "one person with all their records" in model.guarantee
    assert model.private.unit == "person"


@pytest.mark.parametrize(
    "protection",
    [
        tables.NoisyCounts(epsilon=1.0, domain="public"),
        tables.PoissonSynthesis(alpha=60, epsilon=1.0, domain="public"),
    ],
)
def test_a_table_of_people_with_several_records_claims_nothing_and_says_why(protection):
    codes = {"x": {"Total": ["a", "b"]}}
    several, one = (
        tables.Table.from_microdata(Microdata(FILE, **roles), "x", hierarchies=codes, zeros="all")
        for roles in ({"person": "who"}, {})
    )
    assert protection.apply(one).guarantee
    made = protection.apply(several)
    assert made.guarantee is None
    assert made.why_none == SEVERAL_RECORDS
    with pytest.raises(ParameterError, match="a person may have several"):
        protection.apply(several, ledger=dp.Ledger(5.0, 1e-3))


def test_a_private_network_without_epsilon_takes_people_as_before():
    assert synth.BayesianNetwork().fit(Microdata(FILE, person="who"), seed=1).guarantee is None
