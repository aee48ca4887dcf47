"""What the package can do: read from the index, and written into it off the rooms themselves."""

from __future__ import annotations

import importlib
import inspect as python_inspect
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from discreet.core.cards import Card, all_cards, card_of, new_cards
from discreet.core.index import METHODS, PLACE, Entry, Kind, entries, save_index
from discreet.core.method_cards import method_card

_ROOMS = ("risk", "protect", "synth", "utility", "tables", "attack", "outputs")
_QUERIES = (
    "count", "total", "mean", "variance", "quantiles", "histogram", "table", "linear_regression", "quantile_regression",
)  # fmt: skip
_MACHINERY = ("Change", "Draft", "Treatment")
_METHODS: dict[str, Kind] = {"protect": "treatment", "synth": "generator"}
_WORDS = ("label", "unit", "words")
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
    return sorted([*listed, *new], key=lambda entry: (places[entry.room], entry.room != "dp" and entry.name))


def build_index(place: Path = PLACE) -> None:
    """Write the index off the cards and the doors; everything is imported for it."""
    source = Path(python_inspect.getfile(importlib.import_module("discreet"))).parent
    modules = [
        ".".join(["discreet", *path.relative_to(source).with_suffix("").parts]).removesuffix(".__init__")
        for room in METHODS
        for path in (source / room).rglob("*.py")
    ]
    found = [entry for room in _ROOMS for entry in _of_room(room)] + _private()
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
        module=card.function.__module__,
        kind="measure",
        asked=tuple(verb for verb in _VERBS if getattr(card, verb) is not None),
        offered=not card.is_second_name,
    )


def _of_thing(room: str, about: str, name: str, thing: Any) -> Entry:
    module = thing.__name__ if python_inspect.ismodule(thing) else getattr(thing, "__module__", "")
    entry = Entry(room, about, f"{room}.{name}", _first_line(thing), module=module)
    card = method_card(thing) if isinstance(thing, type) else card_of(getattr(thing, "__name__", ""))
    if card is None:
        return entry
    return replace(entry, work=card.work, references=card.references, kind=_METHODS.get(room, "other"))


def _private() -> list[Entry]:
    """List the private queries and, where one of several mechanisms is chosen, which of them is for what."""
    from discreet import dp
    from discreet.dp.quantile_regression import ADVICE

    about = "Questions answered under a privacy budget (discreet dp)."
    queries = {name: getattr(dp, name) for name in _QUERIES}
    listed = [
        Entry("dp", about, f"dp.{name}", _first_line(query), module=query.__module__, kind="query")
        for name, query in queries.items()
    ]
    return listed + [
        Entry("dp", about, f"dp.quantile_regression, {name}", advice, kind="query")
        for name, advice in ADVICE.items()
    ]


def _first_line(thing: object) -> str:
    return (python_inspect.getdoc(thing) or "").partition("\n")[0]
