"""Which files does a query read when it is run?

DuckDB writes a relation back as SQL, in which files stand as quoted texts, and views by name, which are looked up.
Polars names the file of a scan, the first one of several, where it explains a query.
"""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

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
