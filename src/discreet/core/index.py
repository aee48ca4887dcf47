"""Which methods are there, and where? Read from one file, so that nothing is imported to be listed.

``make index`` writes ``index.json`` from the cards of measures, treatments and generators and from the doors of the
rooms (`discreet.workflow.catalog.build_index`); a test holds it against them. A module that was added since is found by
looking into the folders of its room.

The public names of a package stand once, in the stub beside its door: ``__init__.pyi`` imports each from where it is
defined. Type checkers and editors read the stub as it is; the door imports a name when somebody first asks for it::

    __all__, __getattr__, __dir__ = open_door(__name__)

A measure that has a card and no line in the stub is found by its card.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

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
        Names under which others publish it, from its docstring.
    figures
        The figures of a measure.
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
    figures: tuple[str, ...] = ()
    module: str = ""
    kind: Kind = "other"
    asked: tuple[str, ...] = ()
    offered: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return what a reader of a list needs, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name in _SHOWN}

    def called(self, wanted: str) -> int | None:
        """Say how well it answers to a name: 0 for its own or a published one, more for less; None where it does not.

        Case, spaces and hyphens do not matter. Several words must all be met.

        Examples
        --------
        >>> entries()["risk.k_anonymity"].called("K-Anonymity"), entries()["risk.k_anonymity"].called("giraffe")
        (0, None)
        """
        own = (self.name, self.name.rpartition(".")[2], self.title, *self.also_known_as)
        ranks = (own, self.figures, (*own, *self.figures), (self.question, *self.references))
        name = _letters(wanted)
        for rank, names in enumerate(ranks[:2]):
            if name in map(_letters, names):
                return rank
        words = _words(wanted)
        for rank, names in enumerate(ranks[2:], 2):
            if words and any(_within(words, _words(text)) for text in names):
                return rank
        if len(name) > 2 and any(name in _letters(text) for text in own):
            return 4
        everything = _words(" ".join([*own, *self.figures, self.question, *self.references]))
        return 5 if words and all(_begins_one(word, everything) for word in words) else None


_SHOWN = ("room", "about", "name", "question", "work", "references", "also_known_as")


def _letters(text: str) -> str:
    """Fold a name to its letters and digits."""
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss")).lower()
    return "".join(sign for sign in plain if sign.isalnum())


def _words(text: str) -> list[str]:
    return [_letters(word) for word in re.split(r"[\s_.,;:()\-/]+", text) if _letters(word)]


def _begins_one(word: str, others: list[str]) -> bool:
    return len(word) > 3 and any(other.startswith(word) for other in others)


def _within(words: list[str], others: list[str]) -> bool:
    """Whether the words stand one after the other among the others."""
    return any(others[at : at + len(words)] == words for at in range(len(others) - len(words) + 1))


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


# Doors of packages


Registered = TypeVar("Registered")


class Package(ModuleType):
    """A package whose public names stay what they are when a module of the same name is imported.

    Whoever imports ``discreet.risk.k_anonymity`` makes Python hang that module into ``discreet.risk``, where the
    function of that name belongs.
    """

    __homes__: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a name, but for a module in place of what is public under its name."""
        if not (isinstance(value, ModuleType) and self.__homes__.get(name, self.__name__) != self.__name__):
            super().__setattr__(name, value)


def open_door(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` of a package from the stub beside it.

    Examples
    --------
    >>> names, get, _ = open_door("discreet.risk")
    >>> "k_anonymity" in names, get("k_anonymity").__name__
    (True, 'k_anonymity')
    """
    module = sys.modules[package]
    homes = _homes(Path(str(module.__file__)).with_name("__init__.pyi"))
    names = sorted(homes)
    module.__class__ = Package
    vars(module)["__homes__"] = homes

    def get(name: str) -> Any:
        home = homes.get(name) or _indexed(package, name)
        if home is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = (
            importlib.import_module(f"{package}.{name}")
            if home == package
            else getattr(importlib.import_module(home), name)
        )
        if name in homes:
            vars(module)[name] = found
        return found

    return names, get, lambda: names


def _homes(stub: Path) -> dict[str, str]:
    """Read which name is imported from which module."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        one.asname or one.name: str(line.module)
        for line in tree.body
        if isinstance(line, ast.ImportFrom)
        for one in line.names
    }


def _indexed(package: str, name: str) -> str | None:
    """Find a measure that has a card and no line in the stub: its module may be newer than the index."""
    room = package.rpartition(".")[2]
    if room not in MEASURING or name.startswith("_"):
        return None
    from discreet.core.cards import card_of

    card = card_of(name)
    return None if card is None or card.room != room or card.is_second_name else card.function.__module__


def load(package: str) -> None:
    """Import everything that a package offers, and its modules that are newer than the index."""
    door = importlib.import_module(package)
    for name in door.__all__:
        getattr(door, name)
    room = package.removeprefix("discreet.")
    for module in new_modules(room) if room in METHODS else ():
        importlib.import_module(module)


class Registry(MutableMapping[str, Registered]):
    """Kinds by the names that plan files and models use, in the order of names.

    Whoever misses one, or lists all, has the whole package imported first.
    """

    def __init__(self, package: str) -> None:
        self._package, self._loaded = package, False
        self._kinds: dict[str, Registered] = {}

    def __getitem__(self, name: str) -> Registered:
        if name not in self._kinds:
            self._load()
        return self._kinds[name]

    def __setitem__(self, name: str, kind: Registered) -> None:
        self._kinds[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._kinds))

    def __len__(self) -> int:
        self._load()
        return len(self._kinds)

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            load(self._package)
