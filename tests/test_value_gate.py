"""Values of the data do not pass the gate, whatever they look like; everything else does."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Union, get_args, get_origin

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.cards import all_cards
from discreet.core.constraints import FieldsOf, HoldsValues, OneOf, Public
from discreet.core.parameters import hints_of
from discreet.core.value_gate import (
    MARK,
    gated,
    holds_values,
    is_withheld,
    setting,
    settings_of,
    without_literals,
)
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.protect import Plan, Recode, Treatment
from discreet.protect.treatment import Change
from discreet.report.release_view import _step
from discreet.synth import Synthesizer
from discreet.tables.table_protection import TableProtection

VALUES = st.one_of(
    st.from_regex(r"zq[a-z]{3,8}", fullmatch=True), st.floats(7391.1, 7399.9).map(lambda x: round(x, 4))
)
CONTENT = st.recursive(
    VALUES, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(VALUES, inner, min_size=1)
)
KINDS = {
    **{("treatment", name): kind for name, kind in Treatment.known.items()},
    **{("treatment", name): kind for name, kind in TableProtection.known.items()},
    **{("synthesizer", name): kind for name, kind in Synthesizer.known.items()},
    **{("measure", card.name): card.function for card in all_cards()},
}


def says(annotation, what):
    """List what an annotation says of a kind, wherever it stands in it."""
    parts = [*getattr(annotation, "__metadata__", ()), *getattr(annotation, "__args__", ())]
    own = [part for part in parts if isinstance(part, what)]
    return own + [said for part in parts if hasattr(part, "__args__") for said in says(part, what)]


HELD = [
    (key, kind, name, held[0])
    for (key, kind), made in KINDS.items()
    for name, annotation in hints_of(made).items()
    if (held := says(annotation, HoldsValues)) and not says(annotation, Public)
]


@given(place=st.sampled_from(HELD), content=CONTENT)
def test_no_value_passes_in_a_setting_that_holds_values(place, content):
    key, kind, name, held = place
    if held.in_expressions:
        content = f"`my column 2` == {content!r}" if isinstance(content, str | float) else "a == 'zqa'"
    given_by_column = {"column": content} if held.by_column else content
    given = {name: given_by_column, "settled": True}
    document = {"name": kind, "parameters": given} if key == "measure" else {key: kind, **given}
    text = json.dumps(gated(document))
    assert "zq" not in text
    assert "739" not in text
    assert '"settled": true' in text
    assert is_withheld(gated(document))
    assert gated(document, show_values=True) == document


@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_no_value_passes_in_an_expression(values):
    expression = " or ".join(f"`my column 2` == {value!r}" for value in values)
    shown = gated({"synthesizer": "sequential", "constraints": [expression]})["constraints"][0]
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
    assert not holds_values({"step": [{"treatment": "band", "widths": {"age": 10}}]})


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


def is_said(annotation):
    """Whether an annotation says of all it lets in whether it may be shown."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(is_said(option) for option in inside)
    if origin is Annotated:
        said = any(isinstance(one, FieldsOf | HoldsValues | OneOf | Public) for one in inside[1:])
        return said or is_said(inside[0])
    if origin is Literal or annotation in (bool, int, float, types.NoneType):
        return True
    if inside:
        return all(is_said(part) for part in inside if part is not ...)
    # Things with settings of their own are shown by these.
    return hasattr(annotation, "to_dict")


@pytest.mark.parametrize(
    "kind",
    [*Treatment.known.values(), *TableProtection.known.values(), *Synthesizer.known.values()],
    ids=lambda kind: kind.__name__,
)
def test_every_setting_of_a_treatment_or_synthesizer_says_whether_it_may_be_shown(kind):
    assert {name for name, annotation in hints_of(kind).items() if not is_said(annotation)} == set()


def test_every_setting_of_a_measure_that_speaks_of_values_is_withheld():
    said = {
        name: says(annotation, HoldsValues)
        for card in all_cards()
        for name, annotation in hints_of(card.function).items()
        if ("value" in name or "code" in name or "hierarch" in name) and name != "show_values"
    }
    assert {name for name, held in said.items() if not held} <= {"value_safe_columns", "top_codes"}


@dataclass(frozen=True)
class _Secretive(Treatment):
    """A treatment that somebody wrote without a word on what its settings are."""

    secret: Mapping[str, str] = field(default_factory=dict)
    k: int = 3

    def treat(self, data: Microdata, stream: Stream) -> Change:
        return Change(parameters={"learned": {"zqulm": "zqhof"}, "rounds": 2})


@pytest.fixture
def secretive():
    Treatment.known["secretive"] = _Secretive
    yield _Secretive(secret={"zqtown": "zqulm"})
    del Treatment.known["secretive"]


def test_what_a_new_treatment_does_not_declare_is_withheld(secretive, monkeypatch):
    monkeypatch.setattr(_Secretive, "name", "secretive")
    release = secretive.apply(Microdata(pl.DataFrame({"town": ["zqulm", "zqhof"]})), seed=1)
    log = release.to_dict()
    assert "zq" not in json.dumps(log)
    assert log["steps"][0]["parameters"] == {
        "secret": {"withheld": 1},
        "learned": {"withheld": 1},
        "rounds": 2,
    }
    assert "zqtown" in json.dumps(release.to_dict(internal=True))
    assert "zq" not in str(Plan([secretive])) + Plan([secretive])._repr_html_()
    assert holds_values(Plan([secretive]).to_dict())
    shown = _step(1, release.log[0], frozenset({"town"}), show_values=False)
    assert "zq" not in json.dumps(shown.settings)


def test_all_settings_of_an_unknown_kind_are_withheld():
    given = {"k": 3, "columns": ["town"], "secret": {"zqtown": "zqulm"}}
    counted = {"k": {"withheld": 1}, "columns": {"withheld": 1}, "secret": {"withheld": 1}}
    assert gated({"treatment": "unheard-of", **given}) == {"treatment": "unheard-of", **counted}
    assert gated({"value": 2, "parameters": given}) == {"value": 2, "parameters": counted}
    assert settings_of("treatment", "unheard-of") is None
    assert setting(None, "columns", ["town"]) == {"withheld": 1}
