"""Is a file that is read when it is needed still the one that was looked at first?

A treatment of a query reads its source several times: to learn from it, to count, to write. A file that is replaced in
between would be treated by what another one said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from discreet.errors import InputError
from discreet.microdata import Metadata


def fingerprint_of(path: Path) -> tuple[str, int, int]:
    """Place, size and time of the last change of a file."""
    state = path.stat()
    return str(path.absolute()), state.st_size, state.st_mtime_ns


def check_unchanged(metadata: Metadata, frame: Any) -> None:
    """Refuse a query whose file was changed since it was opened; a frame in memory is what it was."""
    if metadata.fingerprint is None or not isinstance(frame, pl.LazyFrame):
        return
    place = Path(metadata.fingerprint[0])
    if not place.exists() or fingerprint_of(place) != metadata.fingerprint:
        raise InputError(
            f"'{place.name}' was changed or removed since it was opened, so that parts of the work would be about "
            "another file. Nothing was written. Read it again, and let nobody write to it meanwhile."
        )
