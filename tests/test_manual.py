"""The manual must speak of everything that `discreet.risk` offers, and say when not to trust it."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

from discreet import risk
from discreet.report.chapters import CHAPTERS
from discreet.report.references import REFERENCES
from discreet.report.words import HEADLINES, QUESTIONS

DOCS = Path(__file__).parents[1] / "docs"
TREATMENTS = {"remove_replicated_uniques"}
MEASURES = sorted(set(risk.__all__) - TREATMENTS)


def section(name: str, heading: str) -> str:
    text = inspect.getdoc(getattr(risk, name)) or ""
    found = re.search(rf"^{heading}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("name", risk.__all__)
def test_every_risk_measure_is_listed_in_the_manual(name):
    listed = (DOCS / "methods" / "index.md").read_text(encoding="utf-8").split()
    assert listed.count(name) == 1


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
    assert QUESTIONS[name].endswith("?")
    assert name in HEADLINES or name == "neighbours"
    assert name in REFERENCES
    assert sum(name in chapter.measures for chapter in CHAPTERS) == 1


def test_every_page_of_the_manual_is_linked_from_its_front_page():
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).with_suffix("") for page in DOCS.glob("*/*.md")]
    assert [str(page) for page in sorted(pages) if page.as_posix() not in front] == []


@pytest.mark.parametrize(
    "page",
    [
        "howto/survey-samples",
        "howto/synthetic-data",
        "howto/successive-releases",
        "tutorials/is-this-file-safe",
    ],
)
def test_what_a_page_shows_is_what_its_code_prints(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code, shown in re.findall(
        r"```python\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?", text, re.DOTALL
    ):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        # The page breaks long lines; the words are the same.
        assert printed.getvalue().split() == shown.split()
