"""A fitted model as one file: JSON for its structure, NumPy arrays and Arrow columns for its numbers.

Nothing in it is code, and nothing is unpickled when it is read. A model of donors holds values of real records:
it is as confidential as the data it was fitted to.

A manifest says the format, and of every part its length, its SHA-256 and what it holds (type and shape of an array,
type and length of a column). A file is loaded whole or not at all: a part that is missing, too many, cut off, changed
or of another type is refused before anything is made of it. That finds accidents and clumsy hands. Whoever can write
the whole file can write a manifest to it; what such a file can do is make a wrong model, never run code.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.core.errors import InputError, gave_up
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import check_archive, parsed_json
from discreet.io.naming import check_no_data
from discreet.synth.model_codec import Kind, Parts, decoded, encoded, name_in

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
    array: np.ndarray[Any, Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
