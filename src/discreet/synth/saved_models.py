"""A fitted model as one file: JSON for its structure, NumPy arrays and Arrow columns for its numbers.

Nothing in it is code, and nothing is unpickled when it is read. A model of donors holds values of real records:
it is as confidential as the data it was fitted to.

A manifest says the format, and of every part its length, its SHA-256 and what it holds (type and shape of an array,
type and length of a column). A file is loaded whole or not at all: a part that is missing, too many, cut off, changed
or of another type is refused before anything is made of it. That finds accidents and clumsy hands. Whoever can write
the whole file can write a manifest to it; what such a file can do is make a wrong model, never run code.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.core.errors import InputError, gave_up
from discreet.core.files.archives import check_archive
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.texts import parsed_json
from discreet.io.naming import check_no_data

_FORMAT = "discreet model 2"
_MANIFEST = "manifest.json"
_STRUCTURE = "model.json"
_MOST_MANIFEST = 1 << 28


def save_state(state: Mapping[str, Any], path: str | Path) -> Path:
    """Write a nested structure of numbers, texts, arrays and columns to one file."""
    place = Path(path)
    check_no_data(place, "a model")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    columns: dict[str, pl.Series] = {}
    structure = json.dumps(_packed(state, arrays, columns), ensure_ascii=False, allow_nan=True)
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
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=False)
            put(f"{name}.npy", stream.getvalue(), type=array.dtype.str, shape=list(array.shape))
        for name, series in columns.items():
            stream = io.BytesIO()
            series.to_frame("column").write_ipc(stream)
            put(f"{name}.arrow", stream.getvalue(), type=str(series.dtype.base_type()), length=len(series))
        box.writestr(_entry(_MANIFEST), json.dumps({"format": _FORMAT, "parts": parts}))
    return place


def _entry(name: str) -> zipfile.ZipInfo:
    """Name a part of the file without the time of writing: the same model is the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load_state(path: str | Path) -> dict[str, Any]:
    """Read a structure that `save_state` has written, whole or not at all."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"There is no model file '{place.name}'. Check the path.")
    note_read(place)
    try:
        check_archive(place)
        with zipfile.ZipFile(place) as box:
            parts = _verified(box, place.name)
        document = _unpacked(parsed_json(parts.pop(_STRUCTURE)), parts)
        if parts:
            raise ValueError("parts that belong to nothing")
    except InputError:
        raise
    except BaseException as error:
        # A damaged archive makes its readers give up in many ways; none of them is news to the user.
        if not gave_up(error):
            raise
        raise damaged(place.name) from None
    if not isinstance(document, dict):
        raise damaged(place.name)
    return document


def damaged(name: str) -> InputError:
    """Word the refusal of a file that does not hold a whole model."""
    return InputError(
        f"'{name}' is no model file, or it is damaged or was changed: nothing was loaded from it. Fit the model again, "
        "or copy the file anew; models are written with fitted.save(path)."
    )


def _verified(box: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """Read all parts, each of which must be as the manifest says; arrays and columns are opened."""
    there = {item.filename: item for item in box.infolist()}
    if _MANIFEST not in there and _STRUCTURE in there:
        raise InputError(f"'{name}' was written by another version of discreet. Fit the model again.")
    if len(there) != len(box.infolist()) or there[_MANIFEST].file_size > _MOST_MANIFEST:
        raise ValueError("two parts of one name, or an endless manifest")
    manifest = parsed_json(box.read(_MANIFEST))
    if manifest.get("format") != _FORMAT:
        raise InputError(f"'{name}' was written by another version of discreet. Fit the model again.")
    listed = manifest["parts"]
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
    array: np.ndarray[Any, Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _packed(value: Any, arrays: dict[str, np.ndarray[Any, Any]], columns: dict[str, pl.Series]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"array-{len(arrays)}"
        arrays[name] = value
        return {"$array": name}
    if isinstance(value, pl.Series):
        name = f"column-{len(columns)}"
        columns[name] = value
        return {"$column": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _packed(item, arrays, columns) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_packed(item, arrays, columns) for item in value]
    return value


def _points_to(value: Mapping[str, Any], kind: str) -> bool:
    """Whether a mapping stands for an array or a column, and is not one whose key a user named so."""
    return value.keys() == {kind} and isinstance(value[kind], str)


def _unpacked(value: Any, parts: dict[str, Any]) -> Any:
    """Put arrays and columns, each of them once, where the structure points to them."""
    if isinstance(value, dict):
        if _points_to(value, "$array"):
            return parts.pop(f"{value['$array']}.npy")
        if _points_to(value, "$column"):
            return parts.pop(f"{value['$column']}.arrow")
        return {key: _unpacked(item, parts) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpacked(item, parts) for item in value]
    return value
