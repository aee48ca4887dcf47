"""What the package can do: read from the index, and written into it off the rooms themselves."""

from __future__ import annotations

import importlib
import inspect as python_inspect
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from discreet.core.cards import Card, all_cards, card_of, new_cards
from discreet.core.errors import ParameterError, near_misses
from discreet.core.index import METHODS, PLACE, Entry, Kind, entries, save_index
from discreet.core.method_cards import method_card

_ROOMS = ("risk", "protect", "synth", "utility", "tables", "attack", "outputs", "dp", "federated")
_QUERIES = (
    "count", "total", "mean", "variance", "quantiles", "histogram", "table", "linear_regression", "quantile_regression",
)  # fmt: skip
_MACHINERY = ("Change", "Draft", "Treatment")
_METHODS: dict[str, Kind] = {"protect": "treatment", "synth": "generator"}
_WORDS = ("label", "unit", "words")
KNOWN = "Also known as: "
"""How the paragraph of a docstring begins that names what others call the thing; a semicolon between names."""
_VERBS = ("assess", "compare", "study", "of_release", "benchmark")


def catalog() -> list[Entry]:
    """List everything the rooms offer, room by room.

    Examples
    --------
    >>> next(entry.question for entry in catalog() if entry.name == "risk.k_anonymity")
    'How many people share the rarest combination of key values?'
    """
    listed = [entry for entry in entries().values() if entry.offered]
    new = [_of_card(card, "") for card in new_cards()]
    abouts = {entry.room: entry.about for entry in listed}
    places = {room: number for number, room in enumerate(abouts)}
    new = [replace(entry, about=abouts[entry.room]) for entry in new if entry.offered]
    return sorted([*listed, *new], key=lambda entry: (places[entry.room], entry.kind != "query", entry.name))


def methods_called(wanted: str) -> list[Entry]:
    """List what answers to a name, best first: its own, a published one, a figure, an author or a word of the question.

    Examples
    --------
    >>> [entry.name for entry in methods_called("PrivBayes")]
    ['synth.BayesianNetwork']
    """
    ranked = [(rank, entry) for entry in catalog() if (rank := entry.called(wanted)) is not None]
    if not ranked:
        names = {
            name
            for entry in catalog()
            for name in (entry.name.partition(".")[2], *entry.also_known_as, *entry.figures)
        }
        close = near_misses(wanted, sorted(names))
        raise ParameterError(
            f"Nothing is called '{wanted}'. "
            + (
                f"Did you mean {' or '.join(map(repr, close))}?"
                if close
                else "'discreet methods' lists everything."
            )
        )
    best = min(rank for rank, _ in ranked)
    return [entry for rank, entry in sorted(ranked, key=lambda one: one[0]) if best > 0 or rank < 3]


def build_index(place: Path = PLACE) -> None:
    """Write the index off the cards and the doors; everything is imported for it."""
    source = Path(python_inspect.getfile(importlib.import_module("discreet"))).parent
    modules = [
        ".".join(["discreet", *path.relative_to(source).with_suffix("").parts]).removesuffix(".__init__")
        for room in METHODS
        for path in (source / room).rglob("*.py")
    ]
    found = [entry for room in _ROOMS for entry in _of_room(room)]
    found += _mechanisms(next(entry for entry in found if entry.name == "dp.quantile_regression"))
    words: dict[str, dict[str, Any]] = {}
    for card in sorted(all_cards(), key=lambda card: (_ROOMS.index(card.room), card.name)):
        for name, figure in {**card.columns, **card.figures}.items():
            words.setdefault(
                name, {key: value for key, value in asdict(figure).items() if key in _WORDS and value}
            )
    save_index(found, dict(sorted(words.items())), modules, place)


def _of_room(room: str) -> list[Entry]:
    module = importlib.import_module(f"discreet.{room}")
    about = _first_line(module)
    cards = {card.name: card for card in all_cards(room)}
    things = {name: getattr(module, name) for name in module.__all__ if name not in _MACHINERY}
    for door, inside in [item for item in things.items() if hasattr(item[1], "__all__")]:
        things |= {f"{door}.{name}": getattr(inside, name) for name in inside.__all__}
    found = {name: _of_thing(room, about, name, thing) for name, thing in things.items()}
    found |= {name: _of_card(card, about) for name, card in cards.items()}
    return [found[name] for name in sorted(found)]


def _of_card(card: Card, about: str) -> Entry:
    return Entry(
        room=card.room,
        about=about,
        name=f"{card.room}.{card.name}",
        question=_first_line(card.function),
        work=card.work,
        references=card.references,
        title=card.title,
        also_known_as=_published_names(card.function),
        figures=tuple(card.figures),
        module=card.function.__module__,
        kind="measure",
        asked=tuple(verb for verb in _VERBS if getattr(card, verb) is not None),
        offered=not card.is_second_name,
    )


def _of_thing(room: str, about: str, name: str, thing: Any) -> Entry:
    module = thing.__name__ if python_inspect.ismodule(thing) else getattr(thing, "__module__", "")
    entry = Entry(
        room,
        about,
        f"{room}.{name}",
        _first_line(thing),
        also_known_as=_published_names(thing),
        references=_cited(thing),
        module=module,
        kind="query" if room == "dp" and name in _QUERIES else "other",
    )
    card = method_card(thing) if isinstance(thing, type) else card_of(getattr(thing, "__name__", ""))
    if card is None:
        return entry
    return replace(entry, work=card.work, references=card.references, kind=_METHODS.get(room, "other"))


def _mechanisms(home: Entry) -> list[Entry]:
    """List the mechanisms of the private query that leaves the choice to its user, each with what it is for."""
    from discreet.dp.quantile_regression import ADVICE, NAMES

    return [
        replace(
            home,
            name=f"{home.name}, {name}",
            question=advice,
            also_known_as=(f"DP-{name.upper()}", name, NAMES[name]),
        )
        for name, advice in ADVICE.items()
    ]


def _first_line(thing: object) -> str:
    return (python_inspect.getdoc(thing) or "").partition("\n")[0]


def _published_names(thing: object) -> tuple[str, ...]:
    """Read the paragraph of a docstring that says under which names others publish the thing."""
    for paragraph in (python_inspect.getdoc(thing) or "").split("\n\n"):
        if paragraph.startswith(KNOWN):
            names = paragraph.removeprefix(KNOWN).replace("\n", " ").strip().removesuffix(".")
            return tuple(name.strip() for name in names.split(";"))
    return ()


def _cited(thing: object) -> tuple[str, ...]:
    """Read the works that a docstring names, where there is no card to name them."""
    _, _, section = (python_inspect.getdoc(thing) or "").partition("\nReferences\n----------\n")
    text = section.partition("\n\n")[0].replace("\n", " ").strip()
    return (text,) if text else ()
