"""How a fitted model becomes a document of plain values, and a model again: by the declared fields of its classes.

A class takes part under a short name that stands in the file::

    @stored("tree-donors")
    @dataclass(frozen=True, eq=False)
    class TreeDonors(Conditional):
        tree: Tree
        values: Array

What is written and read are the fields, each by its annotation: plain values, texts of a `typing.Literal`, tuples,
lists, mappings, NumPy arrays, Polars columns, frames and types of columns, and other classes with a name. A document
says ``{"tree-donors": {...}}`` where such a class stands; arrays and columns stand beside it (`Parts`), and it points
to them. Caches are no fields, or fields that are not stored: ``field(default=None, metadata=unstored())``.

A file can make nothing but classes that take part, from the fields they declare, where a field of that class is
declared. What the values must be beside their types a class checks in its own ``__post_init__``.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError
from discreet.core.index import load

Kind = TypeVar("Kind")

_KINDS: dict[str, type] = {}
_NAMES: dict[type, str] = {}
_PLAIN = (bool, int, float, str)


class MisfitError(ValueError):
    """A document that does not hold what is declared."""


@dataclass(frozen=True)
class _OtherForm:
    """A class that is stored in another form than its fields."""

    form: Any
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_OTHER_FORMS: dict[type, _OtherForm] = {}


def stored(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Let a dataclass take part in model files under a short name, by its fields."""

    def named(kind: type[Kind]) -> type[Kind]:
        if _KINDS.setdefault(name, kind) is not kind:
            raise TypeError(f"Two classes are to be stored as '{name}'.")
        _NAMES[kind] = name
        return kind

    return named


def stored_as(
    name: str, kind: type[Kind], form: Any, write: Callable[[Kind], Any], read: Callable[[Any], Kind]
) -> None:
    """Let a class take part in another form than its fields; ``form`` is the annotation of that form."""
    stored(name)(kind)
    _OTHER_FORMS[kind] = _OtherForm(form, write, read)


def unstored(why: str = "") -> dict[str, Any]:
    """Return the metadata of a field that is not stored and has its default again after loading.

    With ``why`` a model in which it is something else than nothing cannot be saved, and that is what the user is told.
    """
    return {"stored": False, "why": why}


class Parts:
    """The arrays and columns that a document points to; each is there once, however often it is pointed to."""

    def __init__(self, content: Mapping[str, Array | pl.Series] | None = None) -> None:
        self.content: dict[str, Array | pl.Series] = dict(content or {})
        self._names: dict[int, str] = {}
        self._count = {"array": 0, "column": 0}
        self._used: set[str] = set()

    def add(self, part: Array | pl.Series) -> str:
        """Take in an array or a column and return the name of the part."""
        if id(part) not in self._names:
            word = "array" if isinstance(part, np.ndarray) else "column"
            name = f"{word}-{self._count[word]}"
            self._count[word] += 1
            self._names[id(part)], self.content[name] = name, part
        return self._names[id(part)]

    def get(self, name: Any, kind: type[Kind]) -> Kind:
        """Return the part of that name, which must be of that kind."""
        part = self.content.get(name) if isinstance(name, str) else None
        if not isinstance(part, kind):
            raise MisfitError("a part that is not there, or of another kind")
        self._used.add(name)
        return part

    def column(self, name: Any, title: Any) -> pl.Series:
        """Return the column of that name under its title, the same one however often it is pointed to."""
        column = self.get(name, pl.Series)
        if not isinstance(title, str):
            raise MisfitError("a column whose title is no text")
        if column.name != title:
            self.content[name] = column = column.rename(title)
        return column

    @property
    def unused(self) -> set[str]:
        """Parts that nothing points to."""
        return self.content.keys() - self._used


def encoded(value: Any, kind: Any, parts: Parts) -> Any:
    """Turn a value of the declared kind into plain values; arrays and columns go into the parts."""
    value = value.item() if isinstance(value, np.generic) else value
    for option in _options(kind):
        if _is_of(value, option):
            return _written(value, option, parts)
    raise TypeError(f"A model holds a {type(value).__name__} where it declares {kind}.")


def decoded(document: Any, kind: Any, parts: Parts) -> Any:
    """Make a value of the declared kind from plain values, or refuse them."""
    for option in _options(kind):
        try:
            return _read(document, option, parts)
        except MisfitError as error:
            misfit = error
    raise misfit


def name_in(document: Any, kind: type) -> str | None:
    """Say under which name a document holds a stored class of that kind; None where it holds none."""
    if isinstance(document, dict) and len(document) == 1:
        (name,) = document
        if name not in _KINDS:
            load("discreet.synth")
        if name in _KINDS and issubclass(_KINDS[name], kind):
            return str(name)
    return None


@functools.cache
def stored_fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a class that are stored, with their annotations."""
    found: dict[str, Any] = {}
    own = [one.name for one in fields(kind) if one.init and one.metadata.get("stored", True)]
    for parent in reversed(kind.__mro__):
        # These are our own annotations, never a text of a file. What a module imports for the type checker only, to
        # spare a circle, is a stored class itself.
        names = {one.__name__: one for one in _NAMES} | vars(sys.modules[parent.__module__])
        for name, annotation in inspect.get_annotations(parent).items():
            if name in own:
                found[name] = eval(annotation, names) if isinstance(annotation, str) else annotation
    return {name: found[name] for name in own}


def _written(value: Any, kind: Any, parts: Parts) -> Any:
    if kind is Any:
        return _plain(value)
    if isinstance(value, np.ndarray):
        _check_type(value, kind)
        return {"$array": parts.add(value)}
    if isinstance(value, pl.Series):
        return {"$column": parts.add(value), "name": value.name}
    if isinstance(value, pl.DataFrame):
        return {"$table": [_written(series, pl.Series, parts) for series in value.get_columns()]}
    if isinstance(value, pl.DataType):
        return {"$type": parts.add(pl.Series("type", [], dtype=value))}
    if isinstance(value, Mapping):
        key, item = get_args(kind)
        if key is str:
            return {name: encoded(own, item, parts) for name, own in value.items()}
        return [[encoded(name, key, parts), encoded(own, item, parts)] for name, own in value.items()]
    if isinstance(value, tuple | list):
        return [encoded(own, inside, parts) for own, inside in _pairs(value, kind)]
    return _written_fields(value, parts) if type(value) in _NAMES else value


def _written_fields(value: Any, parts: Parts) -> dict[str, Any]:
    kind: Any = type(value)
    name, other = _NAMES[kind], _OTHER_FORMS.get(kind)
    if other is not None:
        return {name: encoded(other.write(value), other.form, parts)}
    for one in fields(value):
        if one.metadata.get("why") and getattr(value, one.name) is not None:
            raise ParameterError(one.metadata["why"])
    own = stored_fields(kind)
    return {name: {one: encoded(getattr(value, one), inside, parts) for one, inside in own.items()}}


def _read(document: Any, kind: Any, parts: Parts) -> Any:
    origin = get_origin(kind) or kind
    if kind is Any:
        return document
    if origin is Literal or origin is type(None) or origin in _PLAIN:
        return document if _is_of(document, kind) else _refused(document)
    if origin is np.ndarray:
        array = parts.get(_pointed(document, "$array"), np.ndarray)
        _check_type(array, kind)
        return array
    if origin is pl.Series:
        return parts.column(_pointed(document, "$column", "name"), document["name"])
    if origin is pl.DataFrame:
        columns = [_read(own, pl.Series, parts) for own in _list(_pointed(document, "$table"))]
        return pl.DataFrame({own.name: own for own in columns})
    if origin is pl.DataType:
        return parts.get(_pointed(document, "$type"), pl.Series).dtype
    if issubclass(origin, Mapping):
        return _mapping(document, kind, parts)
    if issubclass(origin, tuple | list) or origin is Sequence:
        made = [decoded(own, inside, parts) for own, inside in _pairs(_list(document), kind)]
        return made if origin is list else tuple(made)
    return _read_fields(document, origin, parts)


def _read_fields(document: Any, kind: type, parts: Parts) -> Any:
    name = name_in(document, kind)
    if name is None:
        raise MisfitError("another class than what is declared")
    made, content = _KINDS[name], document[name]
    other = _OTHER_FORMS.get(made)
    if other is not None:
        return other.read(decoded(content, other.form, parts))
    own = stored_fields(made)
    if not isinstance(content, dict) or content.keys() != own.keys():
        raise MisfitError("other fields than those that are declared")
    return made(**{one: decoded(content[one], inside, parts) for one, inside in own.items()})


def _options(kind: Any) -> tuple[Any, ...]:
    """List the kinds a value may have, without what else is said of them."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(one for option in get_args(kind) for one in _options(option))
    return (kind,)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, as far as can be seen without looking into it."""
    origin = get_origin(kind) or kind
    if kind is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
    if isinstance(value, bool):
        return origin is bool
    if origin is float:
        return isinstance(value, float | int)
    return isinstance(value, type(None) if origin is None else origin)


def _pairs(values: Sequence[Any], kind: Any) -> list[tuple[Any, Any]]:
    """Put beside every entry of a list or tuple what it is declared to be."""
    inside = get_args(kind)
    if get_origin(kind) is not tuple or inside[-1] is Ellipsis:
        return [(own, inside[0]) for own in values]
    if len(values) != len(inside):
        raise MisfitError("more or fewer entries than are declared")
    return list(zip(values, inside, strict=True))


def _mapping(document: Any, kind: Any, parts: Parts) -> dict[Any, Any]:
    key, item = get_args(kind)
    if key is str:
        if not isinstance(document, dict):
            raise MisfitError("something else than a mapping")
        return {name: decoded(own, item, parts) for name, own in document.items()}
    made = {}
    for pair in _list(document):
        if len(_list(pair)) != 2:
            raise MisfitError("something else than a key and what it stands for")
        made[decoded(pair[0], key, parts)] = decoded(pair[1], item, parts)
    return made


def _check_type(array: Array, kind: Any) -> None:
    """Refuse an array that does not hold the kind of numbers that is declared."""
    wanted = get_args(get_args(kind)[1])[0]
    if wanted is not Any and array.dtype.kind not in _KINDS_OF_NUMBERS[np.dtype(wanted).kind]:
        raise MisfitError("an array of another type")


_KINDS_OF_NUMBERS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


def _pointed(document: Any, sign: str, *more: str) -> Any:
    """Return what stands under the sign of an array or a column: the name of a part."""
    if not isinstance(document, dict) or document.keys() != {sign, *more}:
        raise MisfitError("something else than an array or a column")
    return document[sign]


def _list(document: Any) -> list[Any]:
    return document if isinstance(document, list) else _refused(document)


def _refused(_: Any) -> Any:
    raise MisfitError("something else than what is declared")


def _plain(value: Any) -> Any:
    """Return a value of which nothing is declared, as a document has it: without arrays, columns and classes."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, _PLAIN):
        return value
    raise TypeError(f"A model holds a {type(value).__name__} where it must hold plain values.")
