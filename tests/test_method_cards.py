"""Every treatment and every generator has a card, and whatever lists methods reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from discreet.core.method_cards import AIMS, method_card, works_behind
from discreet.protect import Mondrian, Treatment
from discreet.synth import Synthesizer
from discreet.workflow.catalog import catalog

ROOT = Path(__file__).parents[1]
KINDS = {
    name: kind
    for family in (Treatment, Synthesizer)
    for name, kind in family.known.items()
    if name != "plan" and kind.__module__.startswith("discreet.")
}
CITED = re.compile(r"^[A-ZØa-z][\w’'.-]+.*\((19|20)\d\d\)\. .+\.?")


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_treatment_and_every_generator_has_a_card(name):
    card = method_card(KINDS[name])
    assert card is not None
    assert card.aim in AIMS
    assert card.room in ("protect", "synth")
    assert card.work or card.aim == "published results"
    assert card.summary
    assert all(CITED.match(text) for text in card.references)


def test_the_docstrings_leave_the_references_to_the_card():
    assert not [name for name, kind in KINDS.items() if "References\n" in (kind.__doc__ or "")]


def test_the_list_of_methods_reads_the_card():
    listed = {entry.name: entry for entry in catalog()}
    card = method_card(Mondrian)
    assert listed["protect.Mondrian"].work == card.work == "class-wise"
    assert listed["protect.Mondrian"].references == card.references
    assert listed["risk.k_anonymity"].references


def test_the_manual_offers_every_treatment_for_its_aim():
    page = (ROOT / "docs" / "methods" / "protect.md").read_text(encoding="utf-8")
    offered = {
        aim.strip(): set(re.findall(r"`(\w+)`", names))
        for aim, names in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    }
    for kind in Treatment.known.values():
        card = method_card(kind)
        if card is not None and kind.__module__.startswith("discreet."):
            assert kind.__name__ in offered[AIMS[card.aim]]


def test_the_papers_of_a_release_name_the_works_behind_its_steps():
    import polars as pl

    from discreet import Microdata
    from discreet.report import render_release
    from discreet.workflow import document_release

    data = Microdata(pl.DataFrame({"age": [30, 31, 45, 46] * 3}), keys="age")
    page = render_release(document_release(data, Mondrian(k=3).apply(data, seed=1)))
    assert "Mondrian multidimensional k-anonymity" in page
    assert works_behind([Mondrian])["Mondrian"] == method_card(Mondrian).references
