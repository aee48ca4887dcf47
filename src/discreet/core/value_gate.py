"""The gate that values of the data do not pass: which settings may be shown, and what is said instead of the others.

Results, logs, findings and plans are documents of plain lists, numbers and texts. A document names the kind it was made
by (``treatment = "recode"``), and the annotations of this kind say which of its settings may be shown:

- true and false, single numbers, and what is one of declared choices or keeps a declared range;
- names of columns, and what else is declared `Public`;
- of what `HoldsValues`, how many values there are, for which columns, or which signs stand between them.

Everything else is withheld: a setting that nobody declared, and all settings of a kind that nobody knows. Two things do
not pass this gate: files of instructions (plans, saved models, internal logs), which are of no use without their values
and are kept as the data are kept, and what somebody asks for with ``show_values``.
"""

from __future__ import annotations

import importlib
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from discreet.core import index
from discreet.core.cards import card_of
from discreet.core.constraints import Above, AtLeast, Between, FieldsOf, HoldsValues, OneOf, Public
from discreet.core.method_cards import method_card
from discreet.core.parameters import fault, hints_of

MARK = "# This file holds values of the data: keep it as the data are kept.\n"
_WITHHELD = "withheld"
_LITERAL = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w`])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w`])"""
)
_QUOTED_NAME = re.compile(r"(`[^`]*`)")
_PUBLIC = Annotated[Any, Public()]
_OUTER = ("treatment", "synthesizer")
_NAMED: dict[str, list[Mapping[str, Any]]] = {}
_PARTS: dict[str, Any] = {}

Declared = Mapping[str, Any]
"""What the settings of one kind are declared to be, by name."""


def name_in_documents(key: str, kinds: Mapping[str, Any]) -> None:
    """Say that documents name one of these kinds under a key, as in ``treatment = "recode"``."""
    _NAMED.setdefault(key, []).append(kinds)


def keep_in_documents(key: str, kind: type) -> None:
    """Say that what stands in a document under a key is one or several of this kind, such as a finding."""
    _PARTS[key] = kind


def settings_of(key: str, name: str) -> Declared | None:
    """Return what the settings of a kind are declared to be; None where nobody knows the kind.

    Parameters
    ----------
    key
        How documents name it: ``"treatment"``, ``"synthesizer"``, ``"measure"``.
    name
        Its name.

    Examples
    --------
    >>> "keys" in settings_of("measure", "k_anonymity"), settings_of("measure", "shoe_size")
    (True, None)
    """
    for kinds in _NAMED.get(key, ()):
        kind = kinds.get(name)
        if kind is not None:
            return _declared_by(kind)
    card = card_of(name) if key == "measure" else None
    if card is not None:
        return {**hints_of(card.function), **dict.fromkeys(card.tells, _PUBLIC)}
    function = _public_function(name.replace("-", "_"))
    return None if function is None else hints_of(function)


def gated(document: Any, *, show_values: bool = False) -> Any:
    """Return a JSON-ready document without the values of the data; with ``show_values`` as it is.

    Examples
    --------
    >>> import discreet.protect
    >>> step = {"treatment": "recode", "mapping": {"town": {"Ulm": "South", "Hof": "North"}}, "other": "keep"}
    >>> gated({"value": 3, "step": [step]})
    {'value': 3, 'step': [{'treatment': 'recode', 'mapping': {'town': {'withheld': 2}}, 'other': 'keep'}]}
    >>> gated({"treatment": "unheard-of", "k": 3})
    {'treatment': 'unheard-of', 'k': {'withheld': 1}}
    """
    return document if show_values else _walked(document)


def setting(declared: Declared | None, name: str, value: Any, *, show_values: bool = False) -> Any:
    """Return one setting of a treatment or measure without the values of the data.

    Examples
    --------
    >>> codes = Annotated[Mapping[str, Any], HoldsValues(by_column=True)]
    >>> setting({"special_codes": codes}, "special_codes", {"pay": [-8, -9]})
    {'pay': {'withheld': 2}}
    """
    return value if show_values else _shown(value, _annotation(declared, name, value))


def countable(declared: Declared | None, name: str, value: Any) -> int | None:
    """Return how many values a setting holds, where nothing but their number is shown; else None."""
    found = setting(declared, name, value)
    return int(found[_WITHHELD]) if isinstance(found, Mapping) and set(found) == {_WITHHELD} else None


def holds_expressions(declared: Declared | None, name: str) -> bool:
    """Whether a setting holds values within expressions, which are shown without them."""
    return any(one.in_expressions for one in _held((declared or {}).get(name)))


def holds_values(document: Any) -> bool:
    """Whether a document has settings with values of the data, so that it is to be kept as the data are kept."""
    return bool(gated(document) != document)


def is_withheld(value: Any) -> bool:
    """Whether something stands where values were taken out."""
    if isinstance(value, Mapping):
        return set(value) == {_WITHHELD} or any(is_withheld(item) for item in value.values())
    if isinstance(value, str):
        return "…" in value
    return isinstance(value, list | tuple) and any(is_withheld(item) for item in value)


def without_literals(expression: str) -> str:
    """Write an expression with its columns and signs, but not the values in it.

    Examples
    --------
    >>> without_literals("`rent 2` in ['a', 'b'] or pay2 >= 7391.4471")
    '`rent 2` in […, …] or pay2 >= …'
    """
    parts = _QUOTED_NAME.split(expression)
    return "".join(part if at % 2 else _LITERAL.sub("…", part) for at, part in enumerate(parts))


def _declared_by(kind: Any) -> Declared:
    card = method_card(kind)
    return {**hints_of(kind), **dict.fromkeys(card.tells if card else (), _PUBLIC)}


def _public_function(name: str) -> Any:
    """Find a public function that has no card by its name."""
    for entry in index.entries().values():
        if entry.name.rpartition(".")[2] == name and entry.module:
            return getattr(importlib.import_module(entry.module), name, None)
    return None


# Documents.


def _walked(document: Any, called: str = "") -> Any:
    """Take the values out of a document, which stands in another one under a name."""
    if isinstance(document, list | tuple):
        return [_walked(item, called) for item in document]
    if not isinstance(document, Mapping):
        return document
    declared, named = _made_by(document, called)
    if called in _PARTS and not named:
        return _settings(document, hints_of(_PARTS[called]))
    if not isinstance(document.get("parameters"), Mapping):
        if not named:
            return {name: _walked(item, str(name)) for name, item in document.items()}
        return _settings(document, declared, but=(*_NAMED, "name"))
    return {
        name: _parameters(item, declared, named=named) if name == "parameters" else _walked(item, str(name))
        for name, item in document.items()
    }


def _made_by(document: Mapping[str, Any], called: str) -> tuple[Declared | None, bool]:
    """Find what declares the settings in a document, and whether the document names it."""
    for key in _OUTER:
        if isinstance(document.get(key), str):
            return settings_of(key, document[key]), True
    if isinstance(document.get("parameters"), Mapping):
        for key, name in (("measure", document.get("name")), ("synthesizer", called), ("measure", called)):
            found = settings_of(key, name) if isinstance(name, str) and name else None
            if found is not None:
                return found, False
    return None, False


def _parameters(given: Mapping[str, Any], declared: Declared | None, *, named: bool) -> Any:
    if declared is None and not named and given:
        # A policy has a table of settings for each measure.
        tables = {name: settings_of("measure", name) for name in given}
        if all(isinstance(item, Mapping) for item in given.values()) and all(tables.values()):
            return {name: _settings(item, tables[name]) for name, item in given.items()}
    return _settings(given, declared)


def _settings(
    given: Mapping[str, Any], declared: Declared | None, *, but: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        name: value if name in but else _shown(value, _annotation(declared, name, value))
        for name, value in given.items()
    }


def _annotation(declared: Declared | None, name: str, value: Any) -> Any:
    """Return what is declared of a setting; of one that was learned and is a single number, that it is one."""
    if declared is None:
        return object
    if name not in declared and name in _PARTS:
        return Annotated[Any, FieldsOf(_PARTS[name])]
    return declared.get(name, float if isinstance(value, int | float) else object)


# One value under its annotation.


def _shown(value: Any, annotation: Any) -> Any:
    """Return a value as its annotation lets it be shown."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if value is None or isinstance(value, bool):
        return value
    if origin in (Union, types.UnionType):
        # Whatever it may be taken for must let it be shown.
        options = [one for one in inside if fault(value, one, plain=True) is None] or inside
        made = [_shown(value, one) for one in options if one is not type(None)]
        return next((one for one in made if one != value), value)
    if origin is Annotated:
        return _under(value, inside[0], inside[1:])
    if origin is Literal:
        return value if value in inside else _count(value)
    if annotation in (int, float):
        return value if isinstance(value, int | float) else _count(value)
    kind = origin or annotation
    if isinstance(kind, type) and issubclass(kind, Mapping) and inside and isinstance(value, Mapping):
        return _table(value, inside)
    if isinstance(value, list | tuple) and len(inside) and kind is not type:
        return _list(value, kind, inside)
    if isinstance(value, str) and inside and isinstance(kind, type) and issubclass(kind, typing.Sequence):
        return _shown(value, inside[0])
    if isinstance(value, Mapping) and isinstance(kind, type):
        return _thing(value, kind)
    return _count(value)


def _under(value: Any, kind: Any, constraints: tuple[Any, ...]) -> Any:
    """Return a value as what is said of it, beside its type, lets it be shown."""
    for one in constraints:
        if isinstance(one, HoldsValues):
            return _withheld(value, one)
        if isinstance(one, Public):
            return value
        if isinstance(one, FieldsOf) and isinstance(value, Mapping):
            return _settings(value, hints_of(one.kind))
        if isinstance(one, OneOf):
            return value if one.holds(value) else _count(value)
        if isinstance(one, AtLeast | Above | Between) and isinstance(value, int | float):
            return value
    return _shown(value, kind)


def _table(value: Mapping[Any, Any], inside: tuple[Any, ...]) -> Any:
    """Show a table whose names may be shown, by entry."""
    if any(_shown(name, inside[0]) != name for name in value):
        return _count(value)
    return {name: _shown(item, inside[1]) for name, item in value.items()}


def _list(value: Any, kind: Any, inside: tuple[Any, ...]) -> Any:
    """Show a list all of whose entries may be shown; numbers in a row may be values, unless more is said of them."""
    places = inside if kind is tuple and inside[-1] is not Ellipsis else (inside[0],) * len(value)
    if len(places) != len(value) or set(places) & {int, float}:
        return _count(value)
    made = [_shown(item, place) for item, place in zip(value, places, strict=True)]
    return (
        _count(value) if any(isinstance(one, Mapping) and set(one) == {_WITHHELD} for one in made) else made
    )


def _thing(value: Mapping[str, Any], kind: type) -> Any:
    """Show the description of a thing that has settings of its own, such as a privacy model."""
    for key, registries in _NAMED.items():
        name = value.get(key)
        found = [kinds[name] for kinds in registries if isinstance(name, str) and name in kinds]
        if found and issubclass(found[0], kind):
            return _settings(value, _declared_by(found[0]), but=(key,))
    return _settings(value, hints_of(kind)) if is_dataclass(kind) else _count(value)


def _held(annotation: Any) -> list[HoldsValues]:
    """List where an annotation says that values are held."""
    own = [one for one in get_args(annotation) if isinstance(one, HoldsValues)]
    return own + [held for part in get_args(annotation) if get_origin(part) for held in _held(part)]


def _withheld(value: Any, how: HoldsValues) -> Any:
    if how.in_expressions:
        return _expressions(value)
    if how.by_column and isinstance(value, Mapping):
        return {column: _count(item) for column, item in value.items()}
    return _count(value)


def _count(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return {_WITHHELD: len(value) if isinstance(value, Mapping | list | tuple | set | frozenset) else 1}


def _expressions(value: Any) -> Any:
    if isinstance(value, str):
        return without_literals(value)
    if isinstance(value, Mapping):
        # A rule is a condition and the value that follows from it.
        return {name: _count(item) if name == "value" else _expressions(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_expressions(item) for item in value]
    return _count(value)
