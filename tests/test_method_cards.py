"""Every treatment and every generator has a card, and whatever lists methods reads it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from discreet.core.method_cards import AIMS, method_card, works_behind
from discreet.protect import Mondrian, Treatment
from discreet.synth import MultiTable, Relational, Synthesizer
from discreet.workflow.catalog import catalog

ROOT = Path(__file__).parents[1]
KINDS = {
    name: kind
    for family in (Treatment, Synthesizer)
    for name, kind in family.known.items()
    if name != "plan" and kind.__module__.startswith("discreet.")
}
SOURCE = ROOT / "src" / "discreet"
CENTRAL = sorted(
    path.relative_to(SOURCE).as_posix()
    for places in ("*.py", "core/**/*.py", "workflow/**/*.py", "report/**/*.py", "cli/**/*.py", "app/**/*.py")
    for path in SOURCE.glob(places)
)
"""All that serves every method: the ground, and the rooms above the methods."""
ORDINARY_WORDS = {"households", "population", "round"}
"""Methods whose names are files, functions and columns too."""
THE_USUAL_ONE = {"Sequential"}
CHOSEN = {
    # What suggested plans are made of, what the page has fields for, and which generators a benchmark tries.
    "workflow/usual_treatments.py": None,
    "app/forms.py": None,
    "workflow/evaluation/ready_studies.py": None,
    # How near synthetic records may come to those of people is a matter of the settings of the usual generator.
    "workflow/attacked_drafts.py": THE_USUAL_ONE,
    "workflow/synthesis_for_policy.py": THE_USUAL_ONE,
    "workflow/synthesis_within_risk.py": THE_USUAL_ONE,
    "workflow/evaluation/study_generators.py": THE_USUAL_ONE,
    "cli/synthesized_files.py": {*THE_USUAL_ONE, "MultiTable", "Relational", "relational"},
    # Releases of more than one table are no files, and are made and read otherwise.
    "workflow/evaluation/linked_releases.py": {"MultiTable", "Relational", "multi-table", "relational"},
    "cli/synthesize.py": {"multi-table"},
}
"""The places where methods are chosen, each with those it may name; None for any."""
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


@pytest.mark.parametrize("path", CENTRAL)
def test_what_serves_all_methods_knows_no_treatment_and_no_generator_by_name(path):
    allowed = CHOSEN.get(path, set())
    if allowed is None:
        return
    classes = {kind.__name__ for kind in (*KINDS.values(), MultiTable, Relational)}
    known = {*KINDS, "multi-table", "relational"} | classes
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    named = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    }
    named |= {
        one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if one.name in classes
    }
    assert named - ORDINARY_WORDS - allowed == set()


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
