"""What a user sees without running anything: names, signatures, explanations, cards, settings and help texts.

Printed as a table of texts. `comparing.py` prints that of two trees and holds one against the other::

    PYTHONPATH=src python tests/repeatable/surface.py
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.resources
import importlib.util
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

_PLAIN = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}

ROOMS = (
    "attack",
    "datasets",
    "dp",
    "engine",
    "federated",
    "io",
    "outputs",
    "protect",
    "report",
    "risk",
    "synth",
    "tables",
    "utility",
)
_LIVES_AT = re.compile(r" at 0x[0-9a-f]+")
_HOUSE = re.compile(r"\bdiscreet(?:\.\w+)*\.(?=\w)")  # where a thing lives is not what it is


def surface() -> dict[str, str]:
    """Read every text of the house, by what it belongs to."""
    return dict([*_doors(), *_cards(), *_policies(), *_helps()])


def _doors() -> Iterator[tuple[str, str]]:
    for room in ("", *ROOMS):
        door = importlib.import_module(f"discreet.{room}".rstrip("."))
        for name in sorted(set(_shown_by(door)) - set(ROOMS)):
            thing = getattr(door, name)
            yield f"name {door.__name__}.{name}", _explained(thing)
            if isinstance(thing, type):
                for own, member in _members(thing):
                    yield f"name {door.__name__}.{name}.{own}", _explained(member)


def _shown_by(door: ModuleType) -> list[str]:
    return getattr(door, "__all__", None) or [
        name for name, thing in vars(door).items() if getattr(thing, "__module__", "") == door.__name__
    ]


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for own in sorted(dir(kind)):
        member = inspect.getattr_static(kind, own)
        if not own.startswith("_") and _is_ours(kind, own):
            yield own, member.fget if isinstance(member, property) else getattr(kind, own, member)


def _is_ours(kind: type, own: str) -> bool:
    return any(own in vars(base) and base.__module__.startswith("discreet") for base in kind.__mro__)


def _explained(thing: Any) -> str:
    if isinstance(thing, ModuleType):
        return f"module {inspect.getdoc(thing)}"
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = "" if callable(thing) else _plain(thing)
    fields = [f.name for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
    return _HOUSE.sub("", f"{type(thing).__name__} {signature} {fields} {inspect.getdoc(thing)}")


def _plain(thing: Any) -> str:
    if isinstance(thing, Callable):
        return getattr(thing, "__name__", type(thing).__name__)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return _plain({f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)})
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in thing.items()) + "}"
    if isinstance(thing, list | tuple):
        return "[" + ", ".join(map(_plain, thing)) + "]"
    return _LIVES_AT.sub("", repr(thing))


def _cards() -> Iterator[tuple[str, str]]:
    cards = importlib.import_module(_place_of("cards"))
    methods = importlib.import_module(_place_of("method_cards"))
    for card in sorted(cards.all_cards(), key=lambda one: one.name):
        yield f"card {card.room} {card.name}", _plain(card)
    for room in ("protect", "synth"):
        door = importlib.import_module(f"discreet.{room}")
        for name in sorted(door.__all__):
            thing = getattr(door, name)
            card = methods.method_card(thing) if isinstance(thing, type) else None
            if card is not None:
                yield f"card {room} {name}", f"{card.room} {card.summary} {_plain(card)}"


def _place_of(module: str) -> str:
    """The ground floor moved into a room of its own; earlier revisions have it beside the rooms."""
    for place in (f"discreet.core.{module}", f"discreet.{module}"):
        try:
            found = importlib.util.find_spec(place)
        except ModuleNotFoundError:
            found = None
        if found is not None:
            return place
    raise ModuleNotFoundError(module)


def _policies() -> Iterator[tuple[str, str]]:
    folder = importlib.resources.files("discreet") / "policies"
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".toml"):
            yield f"policy {file.name}", json.dumps(tomllib.loads(file.read_text(encoding="utf-8")))


def _helps() -> Iterator[tuple[str, str]]:
    import typer
    from typer.testing import CliRunner

    from discreet.cli import app

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        result = CliRunner().invoke(app, [*path, "--help"], env=_PLAIN)
        yield f"help {' '.join(path)}", f"{result.exit_code} {result.output}"
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    yield from walk(typer.main.get_command(app), ())


if __name__ == "__main__":
    print(json.dumps(surface()))
