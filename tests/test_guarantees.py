"""What is claimed, when, and what stands beside the claim."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet import Microdata, synth
from discreet.core.errors import DiscreetError
from discreet.core.guarantees import in_plain_words, rounded_up
from discreet.dp import seeded_words
from discreet.protect import Plan, Pram, Round, SampleAndAnonymize
from discreet.protect.treatment import Treatment
from discreet.synth import BayesianNetwork, Sequential
from discreet.tables import (
    MultinomialDirichletSynthesis,
    NegativeBinomialSynthesis,
    NoisyCounts,
    PoissonSynthesis,
    Table,
    TableProtection,
)

MATRIX = {"job": {a: {b: 0.7 if a == b else 0.15 for b in "xyz"} for a in "xyz"}}
TREATMENTS = [
    Pram(columns=["job"], invariant=False, matrix=MATRIX),
    SampleAndAnonymize(epsilon=3.0, delta=1e-3, sampling_rate=0.5, keys=["job", "sex"]),
]
TABLES = [
    NoisyCounts(epsilon=0.7, domain="public"),
    NoisyCounts(epsilon=0.7, mechanism="laplace", margins="independent", domain="public"),
    PoissonSynthesis(alpha=0.5, epsilon=2, domain="public", copies=2),
]
CODES = {"job": {"All": ["x", "y", "z"]}, "sex": {"All": ["f", "m"]}}
LEVELS = {"job": pl.Enum(["x", "y", "z"]), "sex": pl.Enum(["f", "m"])}


def people(seed=0, rows=200):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"job": rng.choice(list("xyz"), rows), "sex": rng.choice(["f", "m"], rows)})


def table_of(frame):
    return Table.from_microdata(frame, "job*sex", hierarchies=CODES, zeros="all")


def public_log(method, frame, monkeypatch):
    """The public log with the operating system's bits replaced by ones that come again."""
    monkeypatch.setattr("discreet.dp.entropy.os_words", seeded_words(np.random.default_rng(5)))
    made = method.apply(Microdata(frame) if isinstance(method, Treatment) else table_of(frame))
    assert "differential privacy" in made.guarantee
    told = made.to_dict()
    for name in getattr(method, "drawn_privately", ()):
        told["steps"][0]["parameters"].pop(name)
    return json.dumps(told, sort_keys=True)


@pytest.mark.parametrize("method", [*TREATMENTS, *TABLES], ids=lambda method: method.name)
@settings(
    max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    change=st.tuples(st.integers(0, 199), st.sampled_from("xyz"), st.sampled_from("fm")), gone=st.booleans()
)
@pytest.mark.filterwarnings("ignore")
def test_the_public_log_of_neighboring_files_is_the_same_beside_a_guarantee(
    method, change, gone, monkeypatch
):
    frame = people()
    at, job, sex = change
    other = frame.filter(pl.int_range(pl.len()) != at) if gone else frame.clone()
    if not gone:
        other[at, "job"], other[at, "sex"] = job, sex
    assert public_log(method, frame, monkeypatch) == public_log(method, other, monkeypatch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [*TREATMENTS, *TABLES], ids=lambda method: method.name)
def test_every_figure_beside_a_guarantee_is_on_the_list_and_counts_stay_in_the_house(method):
    made = method.apply(Microdata(people()) if isinstance(method, Treatment) else table_of(people()))
    step = made.log[0]
    listed = method.follow_from_parameters | getattr(method, "drawn_privately", frozenset())
    assert set(step.parameters) <= set(type(method).__dataclass_fields__) | listed
    assert set(getattr(made, "figures", {})) <= listed
    assert (dict(step.changed_cells), dict(step.suppressed_cells), step.removed_records) == ({}, {}, 0)
    assert step.seconds == 0
    assert "changed_cells" in step.internal
    assert "internal log" in str(step)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [*TREATMENTS, *TABLES], ids=lambda method: method.name)
@pytest.mark.parametrize("seed", [0, 1, np.random.default_rng(3)], ids=["0", "1", "generator"])
def test_what_is_drawn_from_a_seed_has_no_guarantee_and_says_why(method, seed):
    made = method.apply(
        Microdata(people()) if isinstance(method, Treatment) else table_of(people()), seed=seed
    )
    assert made.guarantee is None
    assert "drawn from a seed" in made.why_none
    assert made.to_dict()["why_none"] == made.why_none


@pytest.mark.filterwarnings("ignore")
def test_a_plan_of_one_step_keeps_its_guarantee_and_one_of_several_has_none():
    data = Microdata(people().with_columns(pay=pl.int_range(pl.len())))
    assert Plan([TREATMENTS[0]]).apply(data).guarantee
    assert Plan([TREATMENTS[0]]).apply(data, seed=1).guarantee is None
    both = Plan([TREATMENTS[0], Round({"pay": 10})]).apply(data)
    assert both.guarantee is None


@pytest.mark.parametrize("believed", [{}, {"zeros": "all"}, {"hierarchies": CODES}])
def test_a_table_of_observed_codes_is_not_public_because_somebody_says_so(believed):
    table = Table.from_microdata(people(), "job*sex", **believed)
    for method in TABLES:
        made = method.apply(table)
        assert made.guarantee is None
        assert "read from the data" in made.why_none


def test_where_a_row_stands_for_many_the_claim_is_about_one_of_them():
    rows = people().group_by("job", "sex", maintain_order=True).len("many")
    table = Table.from_microdata(rows, "job*sex", count="many", hierarchies=CODES, zeros="all")
    for method in TABLES:
        assert "one of the units that 'many' counts" in method.apply(table).guarantee


def test_a_missing_code_is_read_from_the_data():
    frame = people().with_columns(job=pl.when(pl.int_range(pl.len()) > 0).then("job"))
    assert TABLES[0].apply(table_of(frame)).guarantee is None
    dropped = Table.from_microdata(frame, "job*sex", hierarchies=CODES, zeros="all", missing="drop")
    assert TABLES[0].apply(dropped).guarantee


def test_laws_drawn_in_floating_point_claim_nothing():
    for method in (
        NegativeBinomialSynthesis(alpha=1, epsilon=2, domain="public"),
        MultinomialDirichletSynthesis(epsilon=3, domain="public"),
    ):
        made = method.apply(table_of(people()))
        assert made.guarantee is None
        assert "floating point" in made.why_none


@pytest.mark.parametrize("epsilon", [1e-20, 1e-19, 1e-12, 0.0, -1.0, 1e5, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: NoisyCounts(epsilon=e),
        lambda e: NoisyCounts(epsilon=e, mechanism="laplace"),
        lambda e: SampleAndAnonymize(epsilon=e, keys=["job"]),
        lambda e: BayesianNetwork(epsilon=e or -1.0),
        lambda e: Sequential(method="catall", method_options={"catall": {"epsilon": e}}).fit(
            Microdata(people().cast(LEVELS))
        ),
    ],
    ids=["geometric", "laplace", "sample-and-anonymize", "bayesian-network", "catall"],
)
def test_an_epsilon_outside_the_exact_range_is_refused(make, epsilon):
    with pytest.raises(DiscreetError, match="epsilon"):
        make(epsilon)


def test_a_budget_shared_too_thinly_is_refused_and_not_published_exactly():
    with pytest.raises(DiscreetError, match="shared by"):
        NoisyCounts(epsilon=2**-30, margins="independent").apply(table_of(people()))
    made = NoisyCounts(epsilon=2**-29, nonnegative=False).apply(table_of(people()))
    assert (made.table.cells["count"] != table_of(people()).cells["count"]).all()


@pytest.mark.parametrize(
    "maker",
    [
        BayesianNetwork(epsilon=1.0, domain={"job": ["x", "y", "z"], "sex": ["f", "m"]}),
        Sequential(method="catall", method_options={"catall": {"epsilon": 1.0}}),
    ],
    ids=["bayesian-network", "catall"],
)
def test_a_model_file_is_not_believed_whatever_it_says(maker, tmp_path):
    data = Microdata(people().cast(LEVELS))
    fitted = maker.fit(data)
    assert "1-differential privacy" in fitted.guarantee
    fitted.guarantee = "0-differential privacy, honestly"
    loaded = synth.load(fitted.save(tmp_path / "model.discreet"))
    assert loaded.guarantee is None
    assert "read from a file" in loaded.why_none
    assert "honestly" not in repr(loaded)
    assert maker.fit(data, seed=1).guarantee is None


@given(st.floats(1e-12, 1e3), st.integers(1, 6))
def test_bounds_are_never_rounded_down(bound, digits):
    assert float(rounded_up(bound, digits)) >= bound * (1 - 1e-15)


def test_no_method_with_a_claim_draws_floating_point_noise():
    """The list of methods with a claim is the list of public figures; none of them has other noise than `dp`'s."""
    known = {**Treatment.known, **TableProtection.known}
    listed = {name for name, kind in known.items() if kind.follow_from_parameters}
    assert listed == {"noisy-counts", "poisson-synthesis", "pram", "sample-and-anonymize"}
    claims = [
        path
        for path in Path(discreet.__file__).parent.rglob("*.py")
        if "DifferentialPrivacy(" in path.read_text() and path.name != "guarantees.py"
    ]
    assert len(claims) >= 6
    for path in claims:
        without_ours = re.sub(r"\bdp\.\w+\(", "", path.read_text())
        assert not re.search(r"\.(laplace|gumbel|geometric|normal|poisson)\(", without_ours)


def _private_results(ledger):
    """One of each kind of result that may carry a promise."""
    frame = people()
    coded = frame.with_columns(pl.col(name).cast(kind) for name, kind in LEVELS.items())
    return {
        "release": TREATMENTS[1].apply(Microdata(frame), ledger=ledger),
        "table": TABLES[0].apply(table_of(frame), ledger=ledger),
        "model": synth.MST(epsilon=0.5, delta=1e-6).fit(Microdata(coded), ledger=ledger),
    }


def test_a_guarantee_travels_as_a_value_with_its_meaning_and_the_ledger():
    ledger = discreet.dp.Ledger(10.0, 1e-2)
    made = _private_results(ledger)
    for place, (kind, result) in enumerate(made.items(), start=1):
        claim = result.private
        assert claim.told == result.guarantee, kind
        assert (claim.adjacency, claim.unit) == ("add-remove", "record")
        assert rounded_up(np.exp(float(claim.epsilon)), 3) in claim.in_plain_words
        assert claim.not_covered
        assert len(result.spending.rows) == place
    told = made["release"].to_dict()
    assert told["private"]["epsilon"] == float(made["release"].private.epsilon)
    assert len(told["spending"]["releases"]) == 1
    assert json.dumps(told)
    assert made["model"].private.in_plain_words in repr(made["model"])


def test_what_comes_from_a_seed_or_a_file_carries_no_value(tmp_path):
    coded = people().with_columns(pl.col(name).cast(kind) for name, kind in LEVELS.items())
    plan = synth.MST(epsilon=0.5)
    assert plan.fit(Microdata(coded), seed=1).private is None
    fitted = plan.fit(Microdata(coded))
    assert fitted.private is not None
    assert synth.load(fitted.save(tmp_path / "model.discreet")).private is None
    assert TABLES[0].apply(table_of(people()), seed=1).private is None
    assert TREATMENTS[0].apply(Microdata(people()), seed=1).private is None


def test_reports_say_the_promise_in_plain_words_and_show_the_ledger(tmp_path):
    from discreet.workflow import document_release

    ledger = discreet.dp.Ledger(10.0, 1e-2)
    made = _private_results(ledger)
    data = Microdata(people(), keys=["job", "sex"])
    document_release(data, made["release"]).to_html(tmp_path / "release.html")
    made["table"].to_html(tmp_path / "table.html")
    for kind in ("release", "table"):
        page = (tmp_path / f"{kind}.html").read_text()
        assert "this changes the odds by a factor of" in page
        assert made[kind].private.not_covered[0] in page
        assert made[kind].log[-1].treatment in page.split("The privacy budget of the source")[1]


@given(
    st.floats(0.001, 9.9), st.sampled_from(["add-remove", "replace"]), st.sampled_from(["record", "person"])
)
def test_plain_words_never_promise_more_than_is_proved(epsilon, adjacency, unit):
    words = in_plain_words(epsilon, 1e-6, unit=unit, adjacency=adjacency)
    factors = [
        float(number.replace(",", "")) for number in re.findall(r"factor of ([0-9.,]+) at most", words)
    ]
    wanted = [epsilon] if adjacency == "replace" or epsilon > 5 else [epsilon, 2 * epsilon]
    assert len(factors) == len(wanted)
    assert all(told >= np.exp(own) for told, own in zip(factors, wanted, strict=True))
    assert float(re.search(r"chance of ([0-9.e-]+)\.$", words)[1]) >= 1e-6
