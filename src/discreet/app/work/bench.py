"""The file on the bench: read once, held in memory, watched for changes on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet import engine
from discreet.app.jobs import caused_by
from discreet.core.errors import InputError
from discreet.core.files.inputs import note_read
from discreet.io import read, sidecar_path
from discreet.io.naming import is_address, parsed_address
from discreet.microdata import Microdata


@dataclass
class Bench:
    """The file that the process of a journey holds, and what was made of it."""

    _held: Microdata | None = None
    _source: dict[str, Any] = field(default_factory=dict)
    _stamp: list[int] | None = None
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether a file is held."""
        return self._held is not None

    def file(self, source: Mapping[str, Any], *, again: bool = False) -> Microdata:
        """Return the file without roles; it is read when it is first asked for, or when it is to be read otherwise."""
        note_source(source)
        asked = {name: value for name, value in source.items() if name != "stamp"}
        if not again and self._held is None and source.get("stamp") not in (None, stamp_of(asked["place"])):
            raise _changed(asked["place"])
        if again or self._held is None or asked != self._source:
            with caused_by("file"):
                stamp = stamp_of(asked["place"])
                data = read(
                    asked["place"],
                    roles={},
                    **({"query": asked["query"]} if asked.get("query") else {}),
                    **{name: value for name, value in (asked.get("reading") or {}).items() if value},
                )
                whole = Microdata(engine.whole_frame(data), metadata=data.metadata)
            self._held, self._source, self._stamp = whole, asked, stamp
            self.made.clear()
        elif stamp_of(asked["place"]) != self._stamp:
            raise _changed(asked["place"])
        return self._held

    def with_roles(self, source: Mapping[str, Any], roles: Mapping[str, Any]) -> Microdata:
        """Return the file with the roles of the page."""
        data = self.file(source)
        with caused_by("roles"):
            return Microdata(data.frame, metadata=data.metadata, **dict(roles))


def note_source(source: Mapping[str, Any]) -> None:
    """Note the file for the job that runs, also where an earlier one has read it, with what lies beside it."""
    place = source["place"]
    file = parsed_address(place).file if is_address(place) else Path(place)
    if file is not None:
        note_read(file)
        note_read(sidecar_path(file))


def _changed(place: str) -> InputError:
    error = InputError(
        f"'{Path(place).name}' was changed on disk after it was read. Read it again on the page File; roles and steps "
        "are kept."
    )
    with contextlib.suppress(InputError), caused_by("file"):
        raise error
    return error


def stamp_of(place: str) -> list[int] | None:
    """Return size and time of a file, to tell whether it was changed; None for a database."""
    if is_address(place):
        return None
    try:
        found = Path(place).stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]
