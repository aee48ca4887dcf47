"""Values of the data do not pass the gate, whatever they look like; everything else does."""

from __future__ import annotations

import dataclasses
import inspect
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import risk, utility
from discreet.core.value_gate import (
    BY_COLUMN,
    EXPRESSIONS,
    MARK,
    OF_FINDINGS,
    WHEN_LISTED,
    WHOLE,
    gated,
    holds_values,
    is_withheld,
    without_literals,
)
from discreet.microdata import Microdata
from discreet.protect import Plan, Recode, Treatment
from discreet.synth import Synthesizer

VALUES = st.one_of(
    st.from_regex(r"zq[a-z]{3,8}", fullmatch=True), st.floats(7391.1, 7399.9).map(lambda x: round(x, 4))
)
CONTENT = st.recursive(
    VALUES, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(VALUES, inner, min_size=1)
)


@given(name=st.sampled_from(sorted(WHOLE | BY_COLUMN | OF_FINDINGS - {"keys"})), content=CONTENT)
def test_no_value_passes_in_a_field_that_may_hold_values(name, content):
    is_mapping = name in BY_COLUMN and isinstance(content, dict)
    held = {"column": content} if is_mapping else content
    within = "plan" if name in WHOLE | BY_COLUMN else "finding"
    text = json.dumps(gated({name: held, "k": 3}, within=within))
    assert "zq" not in text
    assert "739" not in text
    assert '"k": 3' in text
    assert is_withheld(gated({name: held}, within=within))
    assert gated({name: held}, within=within, show_values=True) == {name: held}


@given(name=st.sampled_from(sorted(EXPRESSIONS)), values=st.lists(VALUES, min_size=1, max_size=5))
def test_no_value_passes_in_an_expression(name, values):
    expression = " or ".join(f"`my column 2` == {value!r}" for value in values)
    shown = gated({name: [expression]}, within="plan")[name][0]
    assert "zq" not in shown
    assert "739" not in shown
    assert shown.count("`my column 2`") == len(values)


def test_columns_and_signs_of_an_expression_stay():
    assert (
        without_literals('pay2 > 3 and age <= 1.5e3 or town == "x\'s"')
        == "pay2 > … and age <= … or town == …"
    )
    assert without_literals("`2nd job` is missing") == "`2nd job` is missing"


def test_results_pass_as_they_are():
    document = {"value": 3, "figures": {"values": 2, "k": 3}, "meaning": "1 of 3", "records": [1, 2]}
    assert gated(document) == document
    assert not holds_values({"step": [{"treatment": "band", "widths": {"age": 10}}]}, "plan")


def test_the_public_log_counts_what_is_recoded_and_the_internal_log_keeps_it():
    data = Microdata(pl.DataFrame({"town": ["zqulm", "zqhof"] * 5}))
    release = Recode({"town": {"zqulm": "south", "zqhof": "north"}}).apply(data, seed=1)
    assert "zq" not in json.dumps(release.to_dict())
    assert release.to_dict()["steps"][0]["parameters"]["mapping"] == {"town": {"withheld": 2}}
    assert "zqulm" in json.dumps(release.to_dict(internal=True))


def test_a_plan_is_printed_without_values_and_its_file_says_that_it_holds_them(tmp_path):
    plan = Plan([Recode({"town": {"zqulm": "south"}})])
    assert "zq" not in str(plan)
    assert "zq" not in plan._repr_html_()
    path = plan.save(tmp_path / "plan.toml")
    assert path.read_text().startswith(MARK)
    assert Plan.load(path) == plan


# Settings that are names of columns, numbers a plan sets, or words of a list: nothing of anybody.
PLAIN = {
    "adaptive", "at_risk", "axis", "base", "bottom", "bottom_share", "breaks", "by", "carry", "cell", "cells",
    "closed", "columns", "components", "contributor", "correlation", "covariance", "defaults",
    "denominators", "dependence",
    "domain", "engine", "epsilon", "events", "exclude", "families", "geography", "given", "groups", "household",
    "household_keys", "importance", "joint", "keys", "labels", "leave_out", "location", "loss", "marginals",
    "margins", "match", "matching", "method", "method_options", "methods", "models", "mutation_schedule",
    "never_missing", "noise", "number_groups", "order", "outliers", "pair_copulas", "predictor_matrix",
    "scenario", "smoothing",
    "steps", "strata", "subsets", "target", "theta", "top", "top_share", "unit", "variables", "visit_sequence",
    "weight", "weighted", "weights", "whole", "widths", "within",
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [*Treatment.known.values(), *Synthesizer.known.values()], ids=lambda k: k.__name__
)
def test_every_setting_of_a_treatment_or_synthesizer_is_known_to_the_gate(kind):
    """A new setting that takes a list or a mapping is either named here as plain, or in the gate."""
    for item in dataclasses.fields(kind):
        takes_many = any(word in str(item.type) for word in ("Mapping", "Sequence", "Any", "Matrix"))
        if takes_many:
            assert item.name in PLAIN | BY_COLUMN | WHOLE | WHEN_LISTED | EXPRESSIONS, item.name


def test_every_setting_of_a_measure_that_speaks_of_values_is_known_to_the_gate():
    measures = [getattr(room, name) for room in (risk, utility) for name in room.__all__]
    names = {
        name
        for measure in measures
        if callable(measure) and not inspect.isclass(measure)
        for name in inspect.signature(measure).parameters
    }
    speaking = {name for name in names if "value" in name or "code" in name or "hierarch" in name}
    assert speaking - {"show_values"} <= BY_COLUMN | WHOLE
