"""The order in which a reader meets the measures: by the question behind them, not by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.core.cards import card_of


@dataclass(frozen=True)
class Chapter:
    """One plain question; which measures answer it, and in which order, is said on their cards."""

    slug: str
    question: str
    introduction: str


CHAPTERS = (
    Chapter(
        "margins",
        "Is each column still what it was?",
        "A column that is wrong by itself is wrong in every table and every model, so columns come first.",
    ),
    Chapter(
        "pairs",
        "Do columns still hang together?",
        "Two columns can each be right and yet have lost each other. Look for a column that is bad with all others: it "
        "went wrong by itself.",
    ),
    Chapter(
        "joint",
        "Can the files be told apart as a whole?",
        "A model tries to tell released records from real ones. The harder that is, the more the release says what the "
        "original says, also where no table of two columns looks.",
    ),
    Chapter(
        "specific",
        "Would analyses come to the same answers?",
        "A release is good or bad for something. These are the analyses that were named.",
    ),
    Chapter(
        "found",
        "Can someone be found?",
        "Someone who knows the keys of a person looks for the record that fits. The fewer records fit, the surer "
        "the find.",
    ),
    Chapter(
        "learned",
        "Can something be learned without finding them?",
        "A person need not be found to be harmed: where everyone who looks like them has the same value, the value "
        "is known.",
    ),
    Chapter(
        "attackers",
        "What three attackers could do",
        "The European opinion on anonymization asks three questions: can somebody be singled out, can records of one "
        "person be linked, and can something be inferred about somebody? Here each is tried, by a program that has the "
        "release and what an attacker might know, against the people in the file and against others who are not in it. "
        "What succeeds against those, too, is general knowledge; only what goes beyond is risk.",
    ),
    Chapter(
        "population",
        "What about the population?",
        "The file may hold only some of the people it could be about. Whoever is alone in it need not be alone among "
        "all of them.",
    ),
    Chapter(
        "keys",
        "Which keys drive it?",
        "Keys do not weigh the same. Those that stand on top are the ones to make coarser first.",
    ),
    Chapter(
        "rebuilt",
        "What could be rebuilt from what is shown?",
        "Tables, explanations of predictions and answers of a service are made from records, and a program can try to "
        "go back. What it finds is held against what it would find without the person it looks for.",
    ),
)

OTHER = Chapter("other", "What else was found?", "Measures that fit under none of the questions above.")


def chapters_of(names: Iterable[str]) -> list[tuple[Chapter, tuple[str, ...]]]:
    """Sort measures into chapters, each in the order of its chapter; unknown ones come last.

    Examples
    --------
    >>> [(chapter.slug, names) for chapter, names in chapters_of(["new", "t_closeness", "l_diversity"])]
    [('learned', ('l_diversity', 't_closeness')), ('other', ('new',))]
    """
    held: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        card = card_of(name)
        held.setdefault(card.chapter if card and card.chapter else OTHER.slug, []).append(name)
    return [
        (chapter, tuple(sorted(held[chapter.slug], key=_place)))
        for chapter in (*CHAPTERS, OTHER)
        if chapter.slug in held
    ]


def leading_of(names: Sequence[str]) -> list[str]:
    """Choose the measures of a chapter that are shown with their pictures at once: the first where none leads."""
    return [name for name in names if (card := card_of(name)) and card.leading] or list(names[:1])


def _place(name: str) -> int:
    card = card_of(name)
    return card.place if card else 0
