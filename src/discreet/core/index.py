"""Which methods are there, and where? Read from one file, so that nothing is imported to be listed.

``make index`` writes ``index.json`` from the cards of measures, treatments and generators and from the doors of the
rooms (`discreet.workflow.catalog.build_index`); a test holds it against them. A module that was added since is found by
looking into the folders of its room.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

Kind = Literal["measure", "treatment", "generator", "query", "other"]
MEASURING = ("risk", "utility", "attack")
METHODS = (*MEASURING, "protect", "synth", "tables")
PLACE = Path(__file__).with_name("index.json")


@dataclass(frozen=True)
class Entry:
    """What a list of methods says about one of them.

    Attributes
    ----------
    room, name
        Its room, and its full name without ``discreet``: ``risk.k_anonymity``.
    about
        What the room is for, in one line.
    question
        The question it answers, or what it does.
    work
        ``row-wise``, ``class-wise`` or ``whole-file``: what a figure or a new value depends on.
    references
        Where it comes from.
    title
        The name as a reader would write it.
    also_known_as
        Names under which others publish it.
    module
        Where it is defined.
    kind
        Measures, treatments and generators have cards.
    asked
        Which verbs ask a measure: ``assess``, ``compare``, ``study``.
    offered
        Whether the door of the room offers it under this name.
    """

    room: str
    about: str
    name: str
    question: str
    work: str = ""
    references: tuple[str, ...] = ()
    title: str = ""
    also_known_as: tuple[str, ...] = ()
    module: str = ""
    kind: Kind = "other"
    asked: tuple[str, ...] = ()
    offered: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return what a reader of a list needs, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name in _SHOWN}


_SHOWN = ("room", "about", "name", "question", "work", "references")


@cache
def entries() -> dict[str, Entry]:
    """Read all entries, by full name.

    Examples
    --------
    >>> entries()["risk.k_anonymity"].asked
    ('assess',)
    """
    found: dict[str, Entry] = {}
    for line in _document()["entries"]:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in line.items()
        }
        found[values["name"]] = Entry(**values)
    return found


def entry_of(name: str) -> Entry | None:
    """Find an entry by its full name."""
    return entries().get(name)


def figures() -> dict[str, dict[str, Any]]:
    """Give the words for figures and columns of tables by name, from the first card that speaks of them.

    Examples
    --------
    >>> figures()["pue"]["unit"]
    'share'
    """
    found: dict[str, dict[str, Any]] = _document()["figures"]
    return found


def new_modules(room: str) -> list[str]:
    """Name the modules of a room that the file does not know yet.

    Examples
    --------
    >>> new_modules("risk")
    []
    """
    known = set(_document()["modules"])
    package = import_module(f"discreet.{room}")
    return [
        found.name
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if found.name not in known and found.name not in sys.modules
    ]


@cache
def _document() -> dict[str, Any]:
    if not PLACE.exists():  # it is being written for the first time
        return {"entries": [], "figures": {}, "modules": []}
    document: dict[str, Any] = json.loads(PLACE.read_text(encoding="utf-8"))
    return document


def save_index(
    found: list[Entry], words: dict[str, dict[str, Any]], modules: list[str], place: Path = PLACE
) -> None:
    """Write the file; only what is not the usual is written."""
    usual = {field.name: field.default for field in fields(Entry)}
    lines = [{key: value for key, value in asdict(entry).items() if value != usual[key]} for entry in found]
    document = {"entries": lines, "figures": words, "modules": sorted(modules)}
    place.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
