"""A fitted model as one file: JSON for its structure, NumPy arrays and Arrow columns for its numbers.

Nothing in it is code, and nothing is unpickled when it is read. A model of donors holds values of real records:
it is as confidential as the data it was fitted to.

A manifest says the format, and of every part its length, its SHA-256 and what it holds (type and shape of an array,
type and length of a column). A file is loaded whole or not at all: a part that is missing, too many, cut off, changed
or of another type is refused before anything is made of it. That finds accidents and clumsy hands. Whoever can write
the whole file can write a manifest to it; what such a file can do is make a wrong model, never run code.

A class takes part in the structure under a short name that stands in the file::

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

import contextlib
import functools
import hashlib
import inspect
import io
import json
import math
import sys
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import InputError, ParameterError, gave_up
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import check_archive, parsed_json
from discreet.core.index import load
from discreet.io.naming import check_no_data

_FORMAT = "discreet model 3"
_MANIFEST = "manifest.json"
_STRUCTURE = "model.json"
_MOST_MANIFEST = 1 << 28


def save_model(model: Any, path: str | Path) -> Path:
    """Write a model of a stored class to one file."""
    place = Path(path)
    check_no_data(place, "a model")
    beside = Parts()
    structure = json.dumps(encoded(model, type(model), beside), ensure_ascii=False, allow_nan=True)
    parts: dict[str, dict[str, Any]] = {}
    # Donors are values of real people: a model is for whoever fitted it, until they hand it on.
    with (
        replacing(place, private=True) as draft,
        zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as box,
    ):

        def put(name: str, content: bytes, **about: Any) -> None:
            box.writestr(_entry(name), content)
            parts[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **about}

        put(_STRUCTURE, structure.encode("utf-8", "backslashreplace"))
        for name, part in beside.content.items():
            stream = io.BytesIO()
            if isinstance(part, np.ndarray):
                np.lib.format.write_array(stream, part, allow_pickle=False)
                put(f"{name}.npy", stream.getvalue(), type=part.dtype.str, shape=list(part.shape))
            else:
                part.to_frame("column").write_ipc(stream)
                about = {"type": str(part.dtype.base_type()), "length": len(part)}
                put(f"{name}.arrow", stream.getvalue(), **about)
        box.writestr(_entry(_MANIFEST), json.dumps({"format": _FORMAT, "parts": parts}))
    return place


def _entry(name: str) -> zipfile.ZipInfo:
    """Name a part of the file without the time of writing: the same model is the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load_model(path: str | Path, kind: type[Kind]) -> Kind:
    """Read a model of some kind that `save_model` has written, whole or not at all."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"There is no model file '{place.name}'. Check the path.")
    note_read(place)
    with _whole(place.name, InputError):
        check_archive(place)
        with zipfile.ZipFile(place) as box:
            _check_version(box, place.name)
            content = _verified(box)
        document = parsed_json(content.pop(_STRUCTURE))
    if isinstance(document, dict) and name_in(document, kind) is None:
        raise InputError(f"'{place.name}' holds a model of another kind, or of another version of discreet.")
    with _whole(place.name):
        beside = Parts({name.rpartition(".")[0]: part for name, part in content.items()})
        model: Kind = decoded(document, kind, beside)
        if beside.unused:
            raise ValueError("parts that belong to nothing")
    return model


@contextlib.contextmanager
def _whole(name: str, *worded: type[InputError]) -> Iterator[None]:
    """Refuse a model file as a whole, whatever of its content does not fit together and is not worded already."""
    try:
        yield
    except BaseException as error:
        # A damaged archive makes its readers give up in many ways; none of them is news to the user.
        if not gave_up(error) or isinstance(error, worded):
            raise
        raise damaged(name) from error


def damaged(name: str) -> InputError:
    """Word the refusal of a file that does not hold a whole model."""
    return InputError(
        f"'{name}' is no model file, or it is damaged or was changed: nothing was loaded from it. Fit the model again, "
        "or copy the file anew; models are written with fitted.save(path)."
    )


def _check_version(box: zipfile.ZipFile, name: str) -> None:
    sizes = {item.filename: item.file_size for item in box.infolist()}
    if _MANIFEST in sizes and sizes[_MANIFEST] > _MOST_MANIFEST:
        raise ValueError("an endless manifest")
    manifest = parsed_json(box.read(_MANIFEST)) if _MANIFEST in sizes else {}
    if _STRUCTURE in sizes and manifest.get("format") != _FORMAT:
        raise InputError(f"'{name}' was written by another version of discreet. Fit the model again.")


def _verified(box: zipfile.ZipFile) -> dict[str, Any]:
    """Read all parts, each of which must be as the manifest says; arrays and columns are opened."""
    there = {item.filename: item for item in box.infolist()}
    if len(there) != len(box.infolist()):
        raise ValueError("two parts of one name")
    listed = parsed_json(box.read(_MANIFEST))["parts"]
    if {_MANIFEST, *listed} != set(there):
        raise ValueError("parts that are not listed, or listed and not there")
    found: dict[str, Any] = {}
    for part, about in listed.items():
        if there[part].file_size != about["bytes"]:
            raise ValueError("a part of another length")
        content = box.read(part)
        if hashlib.sha256(content).hexdigest() != about["sha256"]:
            raise ValueError("a part that was changed")
        found[part] = _opened(part, content, about)
    return found


def _opened(part: str, content: bytes, about: Mapping[str, Any]) -> Any:
    if part.endswith(".npy"):
        return _array(content, about)
    if part.endswith(".arrow"):
        series = pl.read_ipc(io.BytesIO(content))["column"]
        if str(series.dtype.base_type()) != about["type"] or len(series) != about["length"]:
            raise ValueError("a column of another type or length")
        return series
    if part != _STRUCTURE:
        raise ValueError("a part of an unknown kind")
    return content


def _array(content: bytes, about: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Open an array; room is made for it only when the bytes to fill it are there."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, kind = read_header(stream)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(content) - stream.tell():
        raise ValueError("an array of objects, or with more or fewer numbers than it says")
    if kind.str != about["type"] or list(shape) != about["shape"]:
        raise ValueError("an array of another type or shape")
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


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
