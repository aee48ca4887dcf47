"""How does a package show what it offers before any of it is imported?

The public names of a package stand once, in the stub beside its door: ``__init__.pyi`` imports each from where it is
defined. Type checkers and editors read the stub as it is; the door imports a name when somebody first asks for it::

    __all__, __getattr__, __dir__ = open_door(__name__)

A measure that has a card and no line in the stub is found by its card.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from discreet.core import index

Kind = TypeVar("Kind")


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
    if room not in index.MEASURING or name.startswith("_"):
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
    for module in index.new_modules(room) if room in index.METHODS else ():
        importlib.import_module(module)


class Registry(MutableMapping[str, Kind]):
    """Kinds by the names that plan files and models use, in the order of names.

    Whoever misses one, or lists all, has the whole package imported first.
    """

    def __init__(self, package: str) -> None:
        self._package, self._loaded = package, False
        self._kinds: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._kinds:
            self._load()
        return self._kinds[name]

    def __setitem__(self, name: str, kind: Kind) -> None:
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
