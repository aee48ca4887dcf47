"""Is a file that is read when it is needed still the one that was looked at first?

A treatment of a query reads its source several times: to learn from it, to count, to write. A file that is replaced in
between would be treated by what another one said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import InputError
from discreet.engine.spooling import is_query, scanned_files
from discreet.microdata import Metadata


def fingerprint_of(path: Path) -> tuple[str, int, int]:
    """Place, size and time of the last change of a file."""
    state = path.stat()
    return str(path.absolute()), state.st_size, state.st_mtime_ns


def watched(metadata: Metadata, frame: Any) -> Metadata:
    """Note the files that a query reads, where none were noted; to be asked before it is first run."""
    if metadata.fingerprints:
        return metadata
    return replace(metadata, fingerprints=tuple(map(fingerprint_of, scanned_files(frame))))


def check_unchanged(metadata: Metadata, frame: Any) -> None:
    """Refuse a query of which a file was changed since it was opened; a frame in memory is what it was."""
    if not isinstance(frame, pl.LazyFrame) and not is_query(frame):
        return
    for seen in metadata.fingerprints:
        place = Path(seen[0])
        if not place.exists() or fingerprint_of(place) != seen:
            raise InputError(
                f"'{place.name}' was changed or removed since it was opened, so that parts of the work would be about "
                "another file. Nothing was written. Read it again, and let nobody write to it meanwhile."
            )
