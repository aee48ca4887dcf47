"""What is in this file? How it was read, and which role each column may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.app.work.bench import Bench, stamp_of
from discreet.io import options_for, sidecar_path
from discreet.io.naming import is_address
from discreet.workflow import inspect


def open_file(bench: Bench, *, source: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file and propose roles; no value of the data is in the answer."""
    data = bench.file(source, again=True)
    found = inspect(data)
    return {
        "name": data.metadata.source,
        "rows": found.rows,
        "checksum": data.metadata.checksum,
        "stamp": stamp_of(source["place"]),
        "reading": _plainly(data.metadata.reading),
        "options": list(options_for(source["place"])),
        "columns": found.to_dict()["columns"],
        "proposal": found.proposal.to_dict(),
        "about_keys": found._about_keys() if found.key_distinction is not None else "",
        "codes": {name: list(codes) for name, codes in found.codes.items()},
        "labels": dict(data.metadata.column_labels),
        "saved_roles": _saved_roles(source["place"]),
    }


def _plainly(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what can be said about the reading in a word; texts that mark missing values are settings, not data."""
    return {
        name: list(value) if isinstance(value, tuple | set | frozenset) else value
        for name, value in reading.items()
        if isinstance(value, str | int | float | bool | list | tuple | dict)
    }


def _saved_roles(place: str) -> dict[str, Any] | None:
    """Return the roles somebody has saved beside the file, if they did."""
    from pathlib import Path

    from discreet.core.errors import DiscreetError
    from discreet.io import load_roles

    if is_address(place) or not (path := sidecar_path(Path(place))).is_file():
        return None
    try:
        return load_roles(path).to_dict()
    except DiscreetError:
        return None
