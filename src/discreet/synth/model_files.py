"""A fitted model as one file: JSON for its structure, NumPy arrays and Arrow columns for its numbers.

Nothing in it is code, and nothing is unpickled when it is read. A model of donors holds values of real records:
it is as confidential as the data it was fitted to.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.errors import InputError
from discreet.io.atomic import replacing

_FORMAT = "discreet model 1"


def save_state(state: Mapping[str, Any], path: str | Path) -> Path:
    """Write a nested structure of numbers, texts, arrays and columns to one file."""
    place = Path(path)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    columns: dict[str, pl.Series] = {}
    document = {"format": _FORMAT, "model": _packed(state, arrays, columns)}
    with replacing(place) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as box:
        box.writestr(_entry("model.json"), json.dumps(document, ensure_ascii=False, allow_nan=True))
        for name, array in arrays.items():
            with box.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
        for name, series in columns.items():
            stream_of = io.BytesIO()
            series.to_frame("column").write_ipc(stream_of)
            box.writestr(_entry(f"{name}.arrow"), stream_of.getvalue())
    return place


def _entry(name: str) -> zipfile.ZipInfo:
    """Name a part of the file without the time of writing: the same model is the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load_state(path: str | Path) -> dict[str, Any]:
    """Read a structure that `save_state` has written."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"There is no model file '{place.name}'. Check the path.")
    try:
        with zipfile.ZipFile(place) as box:
            document = json.loads(box.read("model.json"))
            if document.get("format") != _FORMAT:
                raise InputError(
                    f"'{place.name}' was not written by this version of discreet. Fit the model again."
                )
            loaded: dict[str, Any] = _unpacked(document["model"], box)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"'{place.name}' is no model file, or it is damaged. Write one with fitted.save(path)."
        ) from error
    return loaded


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


def _unpacked(value: Any, box: zipfile.ZipFile) -> Any:
    if isinstance(value, dict):
        if _points_to(value, "$array"):
            with box.open(f"{value['$array']}.npy") as stream:
                return np.lib.format.read_array(stream, allow_pickle=False)
        if _points_to(value, "$column"):
            return pl.read_ipc(io.BytesIO(box.read(f"{value['$column']}.arrow")))["column"]
        return {key: _unpacked(item, box) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpacked(item, box) for item in value]
    return value
