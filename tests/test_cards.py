"""A measure is one module: what it says about itself is read at every door, and nowhere else."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import discreet
from discreet import Microdata, Policy, assess, compare, judge, risk, utility
from discreet.cli import app
from discreet.core import cards
from discreet.core.cards import all_cards, card_of, load_cards
from discreet.core.wording import heading_of, label_of, words_at
from discreet.report.page_words import CHAPTERS
from discreet.report.plots import charts_of
from discreet.workflow.catalog import catalog
from discreet.workflow.evaluation import Metric
from discreet.workflow.evaluation.study_metrics import measures_known, usual_metrics

SOURCE = Path(discreet.__file__).parent
CENTRAL = sorted(
    path.relative_to(SOURCE).as_posix()
    for places in ("*.py", "core/**/*.py", "workflow/**/*.py", "report/**/*.py", "cli/**/*.py", "app/**/*.py")
    for path in SOURCE.glob(places)
)
"""All that serves every measure: the ground, and the rooms above the methods."""
ORDINARY_WORDS = {"population"}
"""Measures whose names are parameters, roles and columns too."""
OTHERWISE = {
    # A chapter of the reports.
    "report/page_words.py": {"margins"},
    # Among how many people a policy wants everybody hidden.
    "workflow/earlier_releases.py": {"k_anonymity"},
    # What plans are weighed by unless a search is told otherwise.
    "workflow/trials.py": {"information_loss", "reidentification.prosecutor_mean"},
}
"""What else is written like a measure or one of its figures, and where."""

MADE_UP = '''
from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, OfPair, OfStudy, measure
from discreet.core.charts import Bars
from discreet.core.findings import Finding, Headline, OfAdvice, OfReleases, OfWorst
from discreet.microdata import Microdata
from discreet.core.results import Measure


@measure(
    room="risk",
    title="Left-handedness",
    question="How many people hold the pen in their left hand?",
    headline="of the people are left-handed",
    chapter="keys",
    place=99,
    references=("Nobody (2026). A measure that was made up.",),
    figures={
        "value": Figure(unit="share", better="lower", summary=True, words={"change": "Left hands before and after"}),
        "ink_blots": Figure("Blots of ink", better="lower", words={"rule": "blots on the page"}),
    },
    assess=OfFile(99, partition=False),
    key_numbers=KeyNumbers(99, lambda found: [KeyNumber("1 in 4", "left hands", "So it was made up.")]),
    advice=OfAdvice(99, lambda found, beside: ["Tie the left hands."]),
)
def left_hands(data: Microdata) -> Measure:
    """Which hand holds the pen?"""
    rows = engine.overview(data, ()).rows
    return Measure("left_hands", 0.25, {"ink_blots": rows}, "A quarter writes with the left hand.")


@measure(
    room="risk",
    headline="hands changed",
    chapter="joint",
    figures={"value": Figure(unit="share", better="lower", summary=True)},
    compare=OfPair(99, "risk"),
    study=OfStudy(99),
    worst=OfWorst(99, lambda found, beside: [Finding("hands", 2, "Half of the hands are others.")]),
    releases=OfReleases(99, {"share": "Hands"}, Headline("share", "other hands", "They write badly.")),
    pictures=lambda found, show_values: [Bars("Hands", ("left",), (0.5,), "Share", (True,))],
)
def changed_hands(original: Microdata, released: Microdata) -> Measure:
    """How many people changed hands?"""
    return Measure("changed_hands", 0.5, {"share": 0.5}, "Half of the people changed hands.")
'''
PEOPLE = pl.DataFrame({"sex": ["f", "f", "m", "m"] * 5, "age": list(range(10)) * 2})
POLICY = {
    "rules": {"left_hands": {"at_most": 0.1}, "left_hands.ink_blots": {"at_most": 100}},
    "comparison": {"changed_hands": {"at_most": 0.75}},
}


@pytest.fixture
def one_new_module(tmp_path):
    """Put one module into the room, as if somebody had added a file, and take it out again."""
    (tmp_path / "left_handedness.py").write_text(MADE_UP, encoding="utf-8")
    risk.__path__.append(str(tmp_path))
    forget = (load_cards, measures_known)
    for cached in forget:
        cached.cache_clear()
    importlib.invalidate_caches()
    yield
    risk.__path__.remove(str(tmp_path))
    sys.modules.pop("discreet.risk.left_handedness", None)
    vars(risk).pop("left_handedness", None)
    for name in ("left_hands", "changed_hands"):
        cards._CARDS.pop(name, None)
    for cached in forget:
        cached.cache_clear()


def test_a_measure_in_one_new_module_is_seen_at_every_door(one_new_module, tmp_path):
    data = Microdata(PEOPLE, keys=["sex"])
    assert "risk.left_hands" in {entry.name for entry in catalog()}
    assert risk.left_hands(data).title == "Left-handedness"

    found = assess(data, policy=Policy.from_dict(POLICY))
    assert found["left_hands"].figures["ink_blots"] == 20
    assert "Tie the left hands." in found.advice
    reasons = [check.reason for check in found.verdict.checks if check.measure == "left_hands"]
    assert reasons == [
        "Left-handedness is 25 % (policy: at most 10 %)",
        "Left-handedness (blots on the page) is 20 (policy: at most 100)",
    ]
    assert judge(data, Policy.from_dict(POLICY), data).meets is False

    page = found.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    for words in (
        "How many people hold the pen in their left hand?",
        "of the people are left-handed",
        "Blots of ink",
        "Nobody (2026). A measure that was made up.",
        "So it was made up.",
    ):
        assert words in page

    held = compare(data, Microdata(PEOPLE.reverse(), keys=["sex"]), measures=["changed_hands"])
    assert held.risk["changed_hands"].value == 0.5
    assert held.worst.sentences[0] == "Half of the hands are others."
    assert held.side_by_side == [{"release": "release", "changed_hands.share": 0.5}]
    assert [chart.title for chart in charts_of(held.risk["changed_hands"])] == ["Hands"]
    pair = held.to_html(tmp_path / "pair.html").read_text(encoding="utf-8")
    assert all(words in pair for words in ("hands changed", "other hands", "They write badly."))

    assert Metric("changed_hands").layer == "risk"
    assert Metric("changed_hands").headlines == {"value": "lower"}
    assert usual_metrics()[-1].name == "changed_hands"

    PEOPLE.write_csv(tmp_path / "people.csv")
    said = CliRunner().invoke(app, ["risk", "left_hands", str(tmp_path / "people.csv"), "--keys", "sex"])
    assert "A quarter writes with the left hand." in said.output
    assert "Which hand holds the pen?" in CliRunner().invoke(app, ["methods"]).output


def test_what_no_module_declares_is_no_measure():
    assert card_of("left_hands") is None
    with pytest.raises(AttributeError, match="left_hands"):
        _ = risk.left_hands
    with pytest.raises(AttributeError, match="pmse_logit"):
        _ = utility.pmse_logit


@pytest.mark.parametrize("path", CENTRAL)
def test_what_serves_all_measures_knows_none_by_name(path):
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    known = {card.name for card in all_cards()}
    named = {
        text for text in texts if text.partition(".")[0] in known and text.replace(".", "_").isidentifier()
    }
    assert named - ORDINARY_WORDS - OTHERWISE.get(path, set()) == set()


def test_every_card_has_a_question_a_chapter_and_figures_that_say_which_way_is_better():
    slugs = {chapter.slug for chapter in CHAPTERS}
    for card in all_cards():
        assert card.question.endswith("?"), card.name
        assert card.title, card.name
        assert card.chapter in slugs, card.name
        assert card.figures, card.name
        if card.name not in ("key_contributions", "neighbors"):
            # Which way these are better depends on what they are held against.
            assert card.figures["value"].better is not None, card.name


@pytest.mark.parametrize(
    "asked",
    [
        "assess",
        "compare",
        "study",
        "of_release",
        "benchmark",
        "key_numbers",
        "advice",
        "worst",
        "releases",
    ],
)
def test_no_two_measures_claim_one_place(asked):
    places = Counter(held.order for card in all_cards() if (held := getattr(card, asked)) is not None)
    assert set(places.values()) == {1}
    chapters = Counter((card.chapter, card.place) for card in all_cards())
    assert set(chapters.values()) == {1}


def test_a_figure_goes_by_the_words_of_its_own_measure():
    assert words_at("bars", "copied_share", measure="near_copies") == "Whole or almost"
    assert words_at("bars", "copied_share", measure="new_rows") is None
    assert label_of("tables", measure="tabular") == "Tables compared"
    assert heading_of("tables", measure="tabular") == "Tables"


def test_every_measure_says_what_must_be_in_memory():
    assert not [card.name for card in all_cards() if not card.work]
