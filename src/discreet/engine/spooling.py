"""How is what DuckDB or Spark holds written without being brought into this process? It writes parts, which stream.

DuckDB and Spark write parts of their own into a folder beside the target; Polars reads them in turn. No more than a
batch is held at a time.
"""

from __future__ import annotations

import contextlib
import glob
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.errors import InputError
from discreet.core.files.staging import staging
from discreet.core.native_libraries import quiet_panics
from discreet.engine.frames import passing_query
from discreet.engine.rebuild import whole_frame
from discreet.microdata import Microdata

PARTS = "parts"
_ALL = 2**62


def is_query(frame: Any) -> bool:
    """Whether another engine than Polars holds the records, as a query that is not run yet."""
    wrapped = nw.from_native(frame)
    kind = wrapped.implementation
    return isinstance(wrapped, nw.LazyFrame) and (kind.is_duckdb() or kind.is_pyspark())


def writes_parquet(frame: Any) -> bool:
    """Whether the engine of a query writes one Parquet file itself."""
    return bool(nw.from_native(frame).implementation.is_duckdb())


def in_one_pass(frame: Any) -> pl.LazyFrame | None:
    """Give the Polars query that passes once over the records of a relation, where there is one beside it."""
    return passing_query(frame) if writes_parquet(frame) else None


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


def sink_parquet(frame: Any, path: Path) -> None:
    """Write a frame as Parquet, by its own engine where that keeps more of it."""
    kind = nw.from_native(frame).implementation
    if kind.is_pandas():
        import pyarrow as pa
        from pyarrow import parquet

        # Arrow's own writer notes the pandas types, so that pandas reads back what it wrote.
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, compression="zstd")
    elif kind.is_duckdb():
        frame.write_parquet(str(path), compression="zstd")
    else:
        as_query(frame).sink_parquet(path)


def as_query(frame: Any) -> pl.LazyFrame:
    """Give a frame as a Polars query."""
    return frame if isinstance(frame, pl.LazyFrame) else as_polars(frame).lazy()


def as_polars(frame: Any) -> pl.DataFrame:
    """Bring a frame into memory, as Polars."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect(engine="streaming")
    wrapped = nw.from_native(frame)
    if isinstance(wrapped, nw.LazyFrame):
        collected: pl.DataFrame = wrapped.collect(backend="polars").to_native()
        return collected
    if wrapped.implementation.is_pandas():
        return pl.from_pandas(frame, nan_to_null=True)
    return pl.DataFrame(pl.from_arrow(wrapped.to_arrow()))


def in_parts(data: Microdata, offset: int, rows: int) -> Iterator[pl.DataFrame]:
    """Hand the records over from one on, so many at a time."""
    frame = data.frame
    query = in_one_pass(frame)
    if query is None and data.wrapped.implementation.is_duckdb():
        reader = frame.limit(_ALL, offset).to_arrow_reader(rows)
        yield from _of_size((pl.DataFrame(pl.from_arrow(batch)) for batch in reader), rows)
        return
    lazy = frame if query is None else query
    whole = lazy if isinstance(lazy, pl.LazyFrame) else whole_frame(data).lazy()
    with quiet_panics():
        batches = whole.slice(offset).collect_batches(
            chunk_size=rows, maintain_order=True, lazy=True, engine="streaming"
        )
        yield from _of_size(iter(batches), rows)


def _of_size(batches: Iterator[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Cut batches of any size into parts of one size."""
    held: list[pl.DataFrame] = []
    many = 0
    for batch in batches:
        held.append(batch)
        many += batch.height
        while many >= rows:
            whole = pl.concat(held)
            yield whole.head(rows).rechunk()
            held, many = [whole.slice(rows)], many - rows
    if many:
        yield pl.concat(held).rechunk()


# Which files does a query read when it is run?
#
# DuckDB writes a relation back as SQL, in which files stand as quoted texts, and views by name, which are looked up.
# Polars names the file of a scan, the first one of several, where it explains a query.


_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_SCAN = re.compile(r"SCAN \[(.*?)(?:, \.\.\. \d+ other sources?)?\]")
_SEVERAL = re.compile(r"SCAN \[(.*?), \.\.\. \d+ other sources?\]")
_MOST_FILES = 10_000


def scanned_files(frame: Any) -> list[Path]:
    """List the files that a query of DuckDB or Polars reads, as far as it names them, in order.

    A text that is no file's name, nor a pattern of such names, is something else.
    """
    if isinstance(frame, pl.LazyFrame):
        texts = _SCAN.findall(frame.explain(optimized=False))
    elif nw.from_native(frame).implementation.is_duckdb():
        texts = [text.replace("''", "'") for sql in _queries(frame) for text in _QUOTED.findall(sql)]
    else:
        return []
    found = {Path(name).absolute() for text in texts for name in _named(text)}
    return sorted(found)[:_MOST_FILES]


def scanned_folders(frame: Any) -> list[Path]:
    """List the folders of data sets in several files that a query of Polars reads, which names the first file only."""
    if not isinstance(frame, pl.LazyFrame):
        return []
    found = {Path(text).absolute().parent for text in _SEVERAL.findall(frame.explain(optimized=False))}
    # Above the folders of parts, which are called column=value.
    return sorted(next(one for one in (folder, *folder.parents) if "=" not in one.name) for folder in found)


def _queries(relation: Any) -> list[str]:
    """Give the SQL of a relation, and that of the views in it."""
    sql: str = relation.sql_query()
    if "VIEW" not in _kinds(relation):
        return [sql]
    views = relation.query(
        "discreet_source", "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    read, todo = [], [sql]
    while todo:
        read.append(todo.pop())
        named = [view for view in views if re.search(rf"\b{re.escape(view[0])}\b", read[-1])]
        views = [view for view in views if view not in named]
        todo += [view[1] for view in named]
    return read


def _kinds(relation: Any) -> set[str]:
    found = relation.query(
        "discreet_source", "SELECT DISTINCT table_type FROM information_schema.tables"
    ).fetchall()
    return {row[0] for row in found}


def _named(text: str) -> list[str]:
    try:
        return [name for name in glob.glob(text, recursive=True) if Path(name).is_file()] if text else []
    except (OSError, ValueError):
        return []
