"""Every result prints as something to read, and nothing that must stay in the house."""

import copy
import pickle
import re

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, Plan, assess, compare, risk
from discreet.core.errors import ColumnError
from discreet.core.results import Release, Step
from discreet.policy import Rule
from discreet.protect import AddNoise, Band, Draft, DropIdentifiers, Pram, ReorderRecords
from discreet.synth import Sequential
from discreet.workflow import document_plan

SECRET = "Zebedee"


def people(rows=60):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "name": [f"{SECRET} {i}" for i in range(rows)],
            "age": rng.integers(20, 70, rows),
            "town": rng.choice([f"{SECRET}ville", "Elsewhere"], rows),
            "pay": rng.normal(100, 10, rows),
            "shoe": rng.integers(36, 45, rows),
        },
        schema_overrides={"town": pl.Enum([f"{SECRET}ville", "Elsewhere"])},
    )
    return Microdata(frame, keys=["age", "town"], sensitive="pay", identifiers="name")


PLAN = Plan(
    [DropIdentifiers(), Pram(columns=["town"]), AddNoise(columns=["pay"]), ReorderRecords()], title="Ours"
)


def everything():
    data = people()
    release = PLAN.apply(data, seed=987654321)
    fitted = Sequential().fit(data, seed=987654321)
    report = document_plan(data, PLAN, "safe-setting", seed=987654321)
    return {
        "microdata": data,
        "plan": PLAN,
        "release": release,
        "step": release.log[1],
        "draft": Draft.of(data, seed=987654321).then(PLAN.steps[1]),
        "fitted": fitted,
        "report": report,
        "assessment": report.after,
        "comparison": compare(data, release, measures=["margins", "attribution"], policy="safe-setting"),
        "verdict": report.verdict,
    }


@pytest.fixture(scope="module")
def results():
    return everything()


NAMES = [
    "microdata",
    "plan",
    "release",
    "step",
    "draft",
    "fitted",
    "report",
    "assessment",
    "comparison",
    "verdict",
]


@pytest.mark.parametrize("name", NAMES)
def test_results_print_neither_seeds_nor_values_nor_addresses(results, name):
    thing = results[name]
    secrets = [str(step.internal["seed"]) for step in results["release"].log]
    shown = [repr(thing), str(thing), getattr(thing, "_repr_html_", str)()]
    for text in shown:
        assert not re.search(r"\bseed['\"]?[:=] ?\d", text)
        assert "987654321" not in text
        assert not any(secret in text for secret in secrets)
        assert SECRET not in text
        assert "object at 0x" not in text


@pytest.mark.parametrize("name", ["microdata", "plan", "release", "fitted", "assessment", "comparison"])
def test_results_have_a_face_in_a_notebook(results, name):
    assert results[name]._repr_html_().startswith("<")


def test_a_file_shows_columns_types_and_roles():
    text = repr(people())
    assert text.splitlines()[0] == "Microdata: 60 records, 5 columns (polars)"
    assert re.search(r"town +Enum +key", text)
    assert re.search(r"name +String +identifier", text)
    assert re.search(r"shoe +Int64 +–", text)


def test_a_query_is_not_run_to_be_shown():
    lazy = Microdata(people().frame.lazy(), keys="age")
    assert repr(lazy).splitlines()[0] == "Microdata: 5 columns (a query of polars, not run yet)"


def test_a_release_says_step_by_step_what_was_done(results):
    text = str(results["release"])
    assert text.startswith("Release of 60 records, 4 columns (polars)")
    assert "2. pram: " in text
    assert "Guarantee: none: " in text


@settings(max_examples=examples(30))
@given(secret=st.integers(10**9, 10**18), cells=st.integers(0, 50))
def test_what_is_internal_leaves_neither_by_printing_nor_by_pickling(secret, cells):
    step = Step("pram", {"columns": ["a"]}, {"a": cells}, internal={"seed": secret})
    release = Release(people(3), (step,))
    for text in (repr(step), str(release), release._repr_html_(), str(release.to_dict())):
        assert str(secret) not in text
    again = pickle.loads(pickle.dumps(step))
    assert again.internal == {}
    assert (again.treatment, again.changed_cells) == (step.treatment, step.changed_cells)
    assert copy.deepcopy(step).internal == {"seed": secret}


def test_errors_about_types_do_not_list_the_levels():
    with pytest.raises(ColumnError) as told:
        Band(widths={"town": 10}).apply(people())
    assert SECRET not in str(told.value)
    assert "Enum" in str(told.value)


def test_columns_without_a_role_are_named_everywhere(results):
    for name in ("report", "assessment", "comparison"):
        assert "1 column has no role: 'shoe'" in str(results[name])
    assert results["assessment"].to_dict()["about"]["without_role"] == ["shoe"]
    assert assess(people().with_roles(strata="shoe")).not_judged == ""


@pytest.mark.parametrize("name", ["replicated_uniques", "disclosure", "attribute_disclosure"])
def test_percentages_have_a_sign_and_fractions_have_none(name):
    data = people(200).with_roles(sensitive="shoe")
    released = Microdata(data.frame.sample(fraction=1, with_replacement=True, seed=3))
    more = ("shoe",) if name == "attribute_disclosure" else ()
    found = getattr(risk, name)(data, released, *more, keys=["town"])
    counts = {"uniques_original", "uniques_released", "unique_matches", "replicated", "replicated_by_chance",
              "targets", "flagged_targets",
              "denom_max", "denom_mean", "denom_mean_records", "one_way_flag", "two_way_pairs",
              "records_over_denom"}  # fmt: skip
    for line in str(found).splitlines()[1 : 1 + len(found.figures)]:
        figure, _, value = line.strip().partition("  ")
        assert value.endswith(" %") == (figure not in counts and "undefined" not in value), line
    assert set(found.to_dict()["in_percent"]) == {"value", *found.figures} - counts
    assert str(found).splitlines()[0].endswith(" %")
    assert not risk.uniqueness(data).to_dict()["in_percent"]


def test_disclosure_takes_the_sensitive_columns():
    data = people(200).with_roles(sensitive="shoe")
    released = Microdata(data.frame.drop("name"))
    assert risk.disclosure(data, released).detail["targets"]["target"].to_list() == ["shoe"]
    nothing_named = risk.disclosure(data.with_roles(sensitive=None), released)
    assert set(nothing_named.detail["targets"]["target"]) == {"pay", "shoe"}
    assert any("every column beside the keys is a target" in caveat for caveat in nothing_named.caveats)


def test_a_rule_on_a_percentage_says_so():
    assert Rule("replicated_uniques", "repU", at_most=2).limit == "at most 2 %"
    assert Rule("disclosure", "value", at_most=10).limit == "at most 10 %"
    assert Rule("attribution", "learned", at_most=0.2).limit == "at most 20 %"
