"""Parquet and Arrow (Feather) files, read as lazy frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.calendar_range import check_calendar
from discreet.core.errors import InputError


def scan_columnar(path: Path, kind: str) -> tuple[pl.LazyFrame | pl.DataFrame, dict[str, Any]]:
    """Open a Parquet or Arrow file without loading it; also return how it was read."""
    try:
        frame = pl.scan_parquet(path, glob=False) if kind == "parquet" else _scan_arrow(path)
        rows = frame.lazy().select(pl.len()).collect().item()
        if rows:
            check_calendar(frame)
    except (pl.exceptions.PolarsError, OSError, ValueError):
        raise InputError(
            f"The file '{path.name}' cannot be read as {kind.capitalize()}: it is cut off, damaged or of "
            "another format. Copy or export it again."
        ) from None
    if rows == 0:
        raise InputError(f"The file '{path.name}' has columns but no records. Give a file with records.")
    return frame, {"format": kind, "rows": rows}


def _scan_arrow(path: Path) -> pl.LazyFrame | pl.DataFrame:
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return pl.scan_ipc(path, glob=False) if is_file else pl.read_ipc_stream(path)
