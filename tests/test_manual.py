"""The manual must speak of everything that the rooms offer, and say when not to trust or use it."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import discreet
from discreet import protect, risk, synth, utility
from discreet.cli import main
from discreet.core.cards import card_of
from discreet.protect import Plan, Treatment
from discreet.report.page_words import CHAPTERS

DOCS = Path(__file__).parents[1] / "docs"
TREATMENTS = {"remove_replicated_uniques"}
CLASSES = sorted({kind.__name__ for kind in Treatment.known.values()} & set(protect.__all__))
# Pages whose files and commands are played too, in the order in which they stand.
PLAYED = ("tutorials/a-synthetic-population-of-households", "tutorials/linked-tables")
MEASURES = sorted(set(risk.__all__) - TREATMENTS)


def section(name: str, heading: str, room=risk) -> str:
    text = inspect.getdoc(getattr(room, name)) or ""
    found = re.search(rf"^{heading}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("name", risk.__all__)
def test_every_risk_measure_is_listed_in_the_manual(name):
    listed = (DOCS / "methods" / "index.md").read_text(encoding="utf-8").split()
    assert listed.count(name) == 1


@pytest.mark.parametrize(("room", "page"), [(protect, "protect"), (synth, "synth"), (utility, "utility")])
def test_every_treatment_and_every_comparison_is_listed_in_the_manual(room, page):
    text = (DOCS / "methods" / f"{page}.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(room.__all__)


@pytest.mark.parametrize("name", CLASSES)
def test_every_treatment_says_what_it_protects_against_what_it_costs_and_when_not_to_use_it(name):
    text = inspect.getdoc(getattr(protect, name)) or ""
    assert "protects against" in " ".join(text.partition("\n\n")[2].partition("\n\n")[0].split())
    assert section(name, "What it costs", protect)
    assert section(name, "When not to use it", protect).startswith("Do not ")
    headings = ("What it costs\n-", "When not to use it\n-", "Examples\n-")
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)


def plan_examples():
    page = (DOCS / "howto" / "write-a-plan.md").read_text(encoding="utf-8").partition("every-treatment")[2]
    return [
        step
        for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        for step in tomllib.loads(block)["step"]
    ]


def test_the_plan_page_has_a_working_example_of_every_treatment():
    steps = plan_examples()
    assert sorted(step["treatment"] for step in steps) == sorted(set(Treatment.known) - {"plan"})
    for step in steps:
        plan = Plan.from_dict({"step": [step]})
        assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("heading", ["How to read it", "When not to trust it"])
@pytest.mark.parametrize("name", risk.__all__)
def test_every_risk_measure_says_how_to_read_it_and_when_not_to_trust_it(name, heading):
    sentences = re.findall(r"[.?!](?=\s|$)", section(name, heading))
    assert len(sentences) >= 3


@pytest.mark.parametrize("name", risk.__all__)
def test_the_sections_stand_between_what_is_returned_and_the_example(name):
    text = inspect.getdoc(getattr(risk, name)) or ""
    places = [
        text.index(f"{heading}\n-")
        for heading in ("Returns", "How to read it", "When not to trust it", "Examples")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("name", MEASURES)
def test_the_report_has_words_a_place_and_a_reference_for_every_measure(name):
    card = card_of(name)
    assert card.question.endswith("?")
    assert card.headline
    assert card.references
    assert card.chapter in {chapter.slug for chapter in CHAPTERS}


def test_every_page_of_the_manual_is_linked_from_its_front_page():
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    front += (DOCS / "coming-from" / "index.md").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).with_suffix("") for page in DOCS.glob("*/*.md")]
    linked = [page for page in pages if page.as_posix() in front or f"({page.name}.md)" in front]
    assert sorted(set(pages) - set(linked)) == []


@pytest.mark.parametrize("page", sorted(path.stem for path in (DOCS / "coming-from").glob("*.md")))
def test_every_name_given_to_users_of_other_tools_exists(page):
    text = (DOCS / "coming-from" / f"{page}.md").read_text(encoding="utf-8")
    ours = re.sub(
        r"^\| .*? \|", "|", text, flags=re.MULTILINE
    )  # the first cell of a row speaks of the other tool
    for room, name in re.findall(r"`(risk|protect|synth|utility|tables|discreet)\.(\w+)", ours):
        home = discreet if room == "discreet" else getattr(discreet, room)
        assert name in home.__all__ or hasattr(home, name), f"{room}.{name}"
    for name in re.findall(r"`Hierarchy\.(\w+)", ours):
        assert hasattr(discreet.Hierarchy, name), name
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, {})


def test_every_test_named_in_the_list_of_corrections_exists():
    text = (DOCS / "about" / "what-the-literature-gets-wrong.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named <= {path.stem for path in Path(__file__).parent.glob("golden/*.py")}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("howto/answer-your-data-protection-officer", marks=pytest.mark.slow),
        pytest.param("howto/copula-synthesis", marks=pytest.mark.slow),
        pytest.param("howto/evaluate-generators", marks=pytest.mark.slow),
        pytest.param("howto/find-the-least-costly-plan", marks=pytest.mark.slow),
        "howto/mask-locations",
        "howto/reach-k-anonymity",
        pytest.param("howto/read-a-comparison", marks=pytest.mark.slow),
        "howto/roles",
        "howto/survey-samples",
        pytest.param("howto/choose-a-method-and-an-order", marks=pytest.mark.slow),
        "howto/synthetic-data",
        "howto/successive-releases",
        pytest.param("howto/suggest-a-plan", marks=pytest.mark.slow),
        "howto/write-a-plan",
        "methods/attack",
        pytest.param("methods/dp", marks=pytest.mark.slow),
        "howto/microdata-from-published-tables",
        "howto/sample-from-first-principles",
        "howto/synthesis-missing-codes",
        "howto/synthesis-rules",
        "howto/synthesize-weighted-surveys",
        pytest.param("howto/teaching-data-from-published-results", marks=pytest.mark.slow),
        "tutorials/is-this-file-safe",
        pytest.param("tutorials/public-use-file", marks=pytest.mark.slow),
        "tutorials/publish-a-hierarchical-table",
        "tutorials/a-synthetic-population-of-households",
        "tutorials/linked-tables",
        "tutorials/safe-output-session",
        "tutorials/synthetic-survey-in-ten-minutes",
        "tutorials/three-hospitals",
    ],
)
def test_what_a_page_shows_is_what_its_code_prints(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for kind, code, shown in re.findall(
        r"```(python|toml|bash)\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?", text, re.DOTALL
    ):
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            # The page breaks long lines; the words are the same.
            assert printed.getvalue().split() == shown.split()
        elif page in PLAYED:
            play(kind, code, monkeypatch, capsys)


def play(kind, code, monkeypatch, capsys):
    """Write the file that a block shows, under the name in its first line, or run the commands of a block."""
    if kind == "toml":
        name = re.match(r"# (\S+\.toml)\n", code)[1]
        Path(name).write_text(code, encoding="utf-8")
        return
    for line in code.replace("\\\n", " ").splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        assert sys.argv[0] == "discreet"
        code_of_end = 0
        try:
            main()
        except SystemExit as end:
            code_of_end = end.code or 0
        said = capsys.readouterr()
        assert code_of_end == 0, (line, said.out, said.err)
