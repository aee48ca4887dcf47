"""A ledger on disk: a TOML file that anybody can read, with a checksum over all that it says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.files.toml_files import read_toml

FORMAT = 1
_HEADER = ("format", "source", "fingerprint", "epsilon", "delta", "adjacency", "unit", "closed")


def read_ledger(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read what a ledger says; one whose checksum does not fit is refused."""
    content = read_toml(path, "ledger")
    header = {name: content.get(name) for name in _HEADER}
    entries = content.get("record", [])
    broken = InputError(
        f"The ledger '{path.name}' was changed by hand or damaged: its checksum does not fit. Restore it from a copy; "
        "until then nothing may be published from its source."
    )
    if header["format"] != FORMAT or not isinstance(entries, list):
        raise broken
    try:
        sealed = _seal(header, entries)
    except (TypeError, ValueError) as error:
        raise broken from error
    if content.get("checksum") != sealed:
        raise broken
    return header, entries


def as_toml(header: dict[str, Any], entries: Sequence[dict[str, Any]]) -> str:
    """Write what a ledger says."""
    lines = ["# The privacy budget of a data source. Do not edit: the checksum would no longer fit."]
    lines += [f"{name} = {_toml(header[name])}" for name in _HEADER]
    lines.append(f"checksum = {_toml(_seal(header, entries))}")
    for entry in entries:
        lines += ["", "[[record]]", *(f"{name} = {_toml(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def fingerprint(source: str | Path) -> str:
    """A checksum of the content of a file."""
    try:
        with Path(source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"The file '{Path(source).name}' cannot be read: {error.strerror}.") from error


def version(path: Path) -> tuple[int, int] | None:
    """Tell one file of that name from the next."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _seal(header: dict[str, Any], entries: Sequence[dict[str, Any]]) -> str:
    text = json.dumps([header, entries], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)
