"""How is what DuckDB or Spark holds written without being brought into this process? It writes parts, which stream.

DuckDB and Spark write parts of their own into a folder beside the target; Polars reads them in turn. No more than a
batch is held at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from discreet.errors import InputError
from discreet.files.staging import staging

PARTS = "parts"


def is_query(frame: Any) -> bool:
    """Whether another engine than Polars holds the records, as a query that is not run yet."""
    wrapped = nw.from_native(frame)
    kind = wrapped.implementation
    return isinstance(wrapped, nw.LazyFrame) and (kind.is_duckdb() or kind.is_pyspark())


@contextlib.contextmanager
def spooled(frame: Any, beside: Path) -> Iterator[pl.LazyFrame]:
    """Let the engine write the records into a folder inside ``beside``, and give them as a Polars query.

    The folder is gone when the block ends.
    """
    wrapped: Any = nw.from_native(frame)
    # Parquet of Spark knows fewer types of time than what Spark hands over itself.
    types = wrapped.head(0).collect(backend="polars").to_native().schema
    with staging(beside) as folder:
        place = folder / PARTS
        if wrapped.implementation.is_duckdb():
            place.mkdir()
            frame.write_parquet(str(place / "part-0.parquet"), compression="zstd")
        else:
            frame.write.parquet(place.absolute().as_uri())
        files = sorted(place.glob("part-*.parquet")) if place.is_dir() else []
        if not files and not (place / "_SUCCESS").exists():
            raise InputError(
                "The executors of Spark wrote where this process cannot read. Name a place that all of them share, or "
                "let Spark write: release.data.frame.write.parquet('s3://…')."
            )
        read = pl.scan_parquet(files) if files else pl.LazyFrame(schema=types)
        yield read.select(pl.col(name).cast(kind) for name, kind in types.items())
