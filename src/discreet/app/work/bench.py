"""The file on the bench: read once, held in memory, watched for changes on disk; its columns and its privacy budget."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet import engine
from discreet.app.jobs import caused_by
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.inputs import note_read
from discreet.dp import Ledger
from discreet.io import options_for, read, sidecar_path
from discreet.io.naming import is_address, parsed_address
from discreet.microdata import Microdata
from discreet.register import History
from discreet.workflow import inspect


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


def history_of(data: Microdata, *, synthetic: bool = False) -> History:
    """Ask what went out of a file before; the page enters what it writes where there is a register."""
    found = History.of(data, synthetic=synthetic, speaks=True)
    found.writes = found.register is not None
    return found


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


# Columns: how they were read, and which role each may have


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


# The privacy budget: what was spent on the file, what is left, and what that promises


def show_budget(bench: Bench, *, source: Mapping[str, Any]) -> dict[str, Any]:
    """Say what the ledger beside the file holds; nothing where there is none."""
    place = source["place"]
    if is_address(place) or not Ledger.place_beside(place).is_file():
        return {"there": False}
    with caused_by("ledger"):
        return _view(Ledger.load(Ledger.place_beside(place), source=place))


def open_budget(
    bench: Bench, *, source: Mapping[str, Any], epsilon: float | None, delta: float, unit: str
) -> dict[str, Any]:
    """Set the budget of a file, once; the ledger lies beside it."""
    with caused_by("epsilon"):
        if epsilon is None:
            raise ParameterError("Give epsilon: the budget of all releases together.")
        return _view(Ledger.beside(Path(source["place"]), float(epsilon), float(delta or 0.0), unit=unit))


def _view(ledger: Ledger) -> dict[str, Any]:
    epsilon, delta = ledger.budget
    spent = ledger.spent
    return {
        "there": True,
        "epsilon": epsilon,
        "delta": delta,
        "spent": spent.epsilon,
        "left": ledger.left,
        "meaning": ledger.meaning,
        "unproved": ledger.unproved,
        "closed": ledger.closed,
        "records": [
            {
                name: str(row[name])
                for name in ("release", "time", "mechanism", "epsilon", "purpose")
                if name in row
            }
            for row in ledger.table().iter_rows(named=True)
        ],
    }
