"""Delimited text: CSV and TSV, plain or gzipped, read as a lazy frame.

The file is looked at once, in a streaming pass that never holds it whole, to tell the type of every column
and to find broken lines; after that it is a Polars query like any other. Only a file that is not UTF-8 is
read into memory, because the engine reads UTF-8 alone.
"""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, unknown_name
from discreet.io.column_types import TYPES, kinds_of, typed
from discreet.io.dates import Wanted, dates_of, parsed, question_of_order, wanted_dates
from discreet.io.dialect import Dialect, detect, opened, records, wrong_encoding

_PARSED_BY_SCANNER = ("whole", "number")


def scan_delimited(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | Sequence[str] | None = None,
    text: str | Sequence[str] = (),
    dates: str | Sequence[str] | Mapping[str, str] | None = None,
) -> tuple[pl.LazyFrame | pl.DataFrame, dict[str, Any]]:
    """Read a delimited file; also return how it was read.

    Parameters
    ----------
    path
        The file.
    separator, decimal, encoding
        Detected from the head of the file unless given.
    missing
        Fields that count as missing; the empty field always does.
    text
        Columns to keep as text though they look like numbers or dates.
    dates
        How dates are written, where it is in doubt: an order (``"dmy"``, ``"mdy"``, ``"ymd"``), formats by column
        (``{"born": "%d/%m/%Y"}`` or ``"born=%d/%m/%Y"``), or ``"text"`` to leave them as texts. Detected unless given.
    """
    dialect, names = detect(path, separator=separator, decimal=decimal, encoding=encoding, missing=missing)
    if not names:
        raise InputError(
            f"The first line of '{path.name}' has no names of columns. Give a file with a header, and its encoding and "
            "separator where they are unusual."
        )
    kept = {text} if isinstance(text, str) else set(text)
    wanted = wanted_dates(dates)
    for option, columns in (("text", kept), ("dates", set(wanted.formats))):
        for column in sorted(columns - set(names)):
            raise ColumnError(f"{unknown_name(column, names)} It was named under '{option}'.")
    source: Path | bytes = path if dialect.is_utf8 else _transcoded(path, dialect)
    try:
        frame, found = _typed_scan(source, dialect, names, path, kept=kept, wanted=wanted)
        result = frame if dialect.is_utf8 else frame.collect()
    except (pl.exceptions.PolarsError, OSError):
        raise _explained(path, dialect, len(names)) from None
    if found["rows"] == 0:
        raise InputError(f"The file '{path.name}' has a header but no records. Give a file with records.")
    if found.get("ambiguous_dates"):
        warnings.warn(question_of_order(found["ambiguous_dates"]), DiscreetWarning, stacklevel=2)
    return result, {**dialect.to_dict(), **found}


def _typed_scan(
    source: Path | bytes, dialect: Dialect, names: list[str], path: Path, *, kept: set[str], wanted: Wanted
) -> tuple[pl.LazyFrame, dict[str, Any]]:
    # Neutral names until the end: a column may be called "*" or "^a$", which the engine would take for a pattern.
    places = [f"c{place}" for place in range(len(names))]
    texts = _texts(source, dialect, places)
    called = dict(zip(places, names, strict=True))
    judged = [place for place, name in called.items() if name not in kept and name not in wanted.formats]
    also = {"rows": pl.len(), "no_last": pl.col(places[-1]).null_count()}
    kinds, found = kinds_of(texts, judged, decimal=dialect.decimal, also=also)
    blank = 0
    # The engine fills short lines up with missing values and takes a blank line for a record without any.
    if found["no_last"] and len(names) > 1:
        blank = found["rows"] - _strict_count(source, dialect, names, path)
    by_scanner = () if dialect.padded else _PARSED_BY_SCANNER
    by_engine = {place: TYPES[kind] for place, kind in kinds.items() if kind in by_scanner}
    rest = {place: kind for place, kind in kinds.items() if kind not in (*by_scanner, "text")}
    open_to_dates = {place: name for place, name in called.items() if kinds.get(place, "text") == "text"}
    formats, doubtful = dates_of(
        texts, {place: name for place, name in open_to_dates.items() if name not in kept}, wanted
    )
    frame = _texts(source, dialect, places, schema_overrides=by_engine)
    if blank:
        _check_blank(texts, blank, path)
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if rest:
        frame = frame.with_columns(
            typed(place, kind, decimal=dialect.decimal) for place, kind in rest.items()
        )
    frame = frame.with_columns(parsed(pl.col(place), form) for place, form in formats.items())
    about = {
        "rows": found["rows"] - blank,
        "blank_lines": blank,
        "dates": {called[place]: form for place, form in formats.items()},
        "ambiguous_dates": [called[place] for place in doubtful],
    }
    return frame.rename(called), {name: value for name, value in about.items() if value or name == "rows"}


def _texts(source: Path | bytes, dialect: Dialect, places: list[str], **types: Any) -> pl.LazyFrame:
    """Scan the fields as texts with missing ones as null; columns with a type of their own come in it."""
    frame = pl.scan_csv(
        source,
        separator=dialect.separator,
        null_values=None if dialect.padded else list(dialect.missing),
        decimal_comma=dialect.decimal == ",",
        infer_schema=False,
        new_columns=places,
        skip_lines=dialect.lines_first,
        glob=False,
        **types,
    )
    if not dialect.padded:
        return frame
    bare = pl.all().str.strip_chars()
    return frame.with_columns(pl.when(~bare.is_in(list(dialect.missing))).then(bare))


def _check_blank(texts: pl.LazyFrame, blank: int, path: Path) -> None:
    """Refuse blank lines that cannot be told from records in which everything is missing."""
    empty = texts.select(pl.all_horizontal(pl.all().is_null()).sum()).collect(engine="streaming").item()
    if empty != blank:
        raise InputError(
            f"The file '{path.name}' has {blank:,} blank lines beside records in which everything is "
            "missing, and the two cannot be told apart. Remove the blank lines."
        )


def _strict_count(source: Path | bytes, dialect: Dialect, names: list[str], path: Path) -> int:
    """Count the records with a reader that insists on the same number of fields in each."""
    stream: Any = (
        io.BytesIO(source) if isinstance(source, bytes) else opened(path, compressed=dialect.compressed)
    )
    with stream:
        try:
            reader = arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    column_names=names,
                    skip_rows=dialect.lines_first,
                    skip_rows_after_names=1,
                    encoding="utf8",
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=names[:1], column_types={names[0]: pa.binary()}
                ),
            )
            return sum(batch.num_rows for batch in reader)
        except pa.ArrowInvalid:
            raise _explained(path, dialect, len(names)) from None


def _transcoded(path: Path, dialect: Dialect) -> bytes:
    try:
        with opened(path, compressed=dialect.compressed) as stream:
            return stream.read().decode(dialect.encoding).encode("utf-8")
    except UnicodeError:
        raise wrong_encoding(path, dialect.encoding, _first_undecodable_line(path, dialect)) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _damaged(path) from None


def _explained(path: Path, dialect: Dialect, width: int) -> InputError:
    """Find why a file could not be read to its end, and on which line."""
    try:
        line = _first_undecodable_line(path, dialect)
        if line is not None:
            return wrong_encoding(path, dialect.encoding, line)
        stream, reader = records(path, dialect)
        with stream:
            fault = next(_faults(reader, width, before=dialect.lines_first), None)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return _damaged(path)
    except (OSError, csv.Error):
        fault = None
    if fault is None:
        return InputError(
            f"The file '{path.name}' cannot be read as delimited text to its end; it may be cut off or hold "
            "a stray quotation mark. Mend it or export it again."
        )
    line, fields, spans_lines = fault
    if spans_lines:
        return InputError(
            f"The file '{path.name}' opens a quotation mark on line {line:,} that is not closed on that line. "
            "Close it, or export the file again."
        )
    return InputError(
        f"The file '{path.name}' is ragged: line {line:,} has {fields} fields where the header has {width}. "
        f"Mend that line, or name the right separator (it was read with {dialect.separator!r})."
    )


def _faults(reader: Any, width: int, *, before: int) -> Iterator[tuple[int, int, bool]]:
    """Give the first line, the number of fields and whether it spans lines, of each record of the wrong width.

    ``before`` lines of the file stand before the first that the reader sees.
    """
    last = 0
    for record in reader:
        if record and len(record) != width:
            yield before + last + 1, len(record), reader.line_num > last + 1
        last = reader.line_num


def _first_undecodable_line(path: Path, dialect: Dialect) -> int | None:
    if not dialect.is_utf8:
        return None
    with opened(path, compressed=dialect.compressed) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _damaged(path: Path) -> InputError:
    return InputError(f"The gzipped file '{path.name}' is damaged or cut off. Fetch it again.")
