"""Delimited text: CSV and TSV, plain or gzipped, read as a lazy frame.

The file is looked at once, in a streaming pass that never holds it whole, to tell the type of every column
and to find broken lines; after that it is a Polars query like any other. Only a file that is not UTF-8 is
read into memory, because the engine reads UTF-8 alone.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shutil
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.io.column_types import (
    TYPES,
    Wanted,
    dates_of,
    has_time,
    kinds_of,
    parsed,
    question_of_order,
    typed,
    wanted_dates,
)
from discreet.io.dialect import (
    Dialect,
    detect,
    known_encoding,
    one_character,
    opened,
    records,
    wrong_encoding,
)
from discreet.io.naming import full_suffix
from discreet.io.spellings import as_written, spellings_of

_PARSED_BY_SCANNER = ("whole", "number")


def scan_delimited(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | Sequence[str] | None = None,
    only_missing: bool = False,
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
        Fields that count as missing beside the usual ones (NA, NULL, NaN, ``?``, ``.`` and the empty field).
    only_missing
        Whether only they and the empty field do.
    text
        Columns to keep as text though they look like numbers or dates.
    dates
        How dates are written, where it is in doubt: an order (``"dmy"``, ``"mdy"``, ``"ymd"``), formats by column
        (``{"born": "%d/%m/%Y"}`` or ``"born=%d/%m/%Y"``), or ``"text"`` to leave them as texts. Detected unless given.
    """
    dialect, names = detect(
        path,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        missing=missing,
        only_missing=only_missing,
    )
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
    bare = replace(dialect, missing=(), padded=False)
    kinds_by_name = {called[place]: kind for place, kind in kinds.items()}
    spelled = spellings_of(_texts(source, bare, places).rename(called), kinds_by_name, dialect.missing)
    about = {
        **spelled,
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


# Delimited text out: in the way the data came in, unless told otherwise.
#
# What reads a release is usually what read the original, so a file with semicolons, decimal commas, dates such as
# ``31.12.1990`` and the letters of Windows goes out like that. Each of these can be named instead.


OPTIONS = ("separator", "decimal", "missing", "encoding", "newline", "dates", "guard_formulas")
_NEWLINES = {"lf": "\n", "crlf": "\r\n"}


@dataclass(frozen=True)
class Style:
    """How a delimited file is to be written."""

    separator: str
    decimal: str = "."
    missing: str | None = None
    encoding: str = "utf-8"
    newline: str = "\n"
    dates: Mapping[str, str] = field(default_factory=dict)
    spelled: Mapping[str, Any] = field(default_factory=dict)
    guards_formulas: bool = False


def style_of(path: Path, reading: Mapping[str, Any], given: Mapping[str, Any]) -> Style:
    """Choose how to write: as told, else as the data were read, else with commas, points and UTF-8.

    Examples
    --------
    >>> came = {"format": "csv", "separator": ";", "decimal": ",", "encoding": "cp1252"}
    >>> style = style_of(Path("out.csv"), came, {"encoding": "utf-8"})
    >>> style.separator, style.decimal, style.encoding
    (';', ',', 'utf-8')
    """
    came = reading if reading.get("format") == "csv" else {}
    tabs = full_suffix(path).startswith(".tsv")
    decimal = given.get("decimal") or came.get("decimal", ".")
    # A decimal mark that is named brings the separator that goes with it.
    kept = None if given.get("decimal") else came.get("separator")
    separator = given.get("separator") or ("\t" if tabs else kept or (";" if decimal == "," else ","))
    separator = one_character("separator", separator)
    if decimal not in (".", ",") or decimal == separator:
        raise ParameterError("The decimal mark must be '.' or ',' and differ from the separator.")
    newline = str(given.get("newline") or came.get("newline", "lf"))
    if newline not in _NEWLINES:
        raise ParameterError("newline is 'lf' (Unix) or 'crlf' (Windows).")
    dates = given.get("dates", came.get("dates", {}))
    return Style(
        separator=separator,
        decimal=decimal,
        missing=given.get("missing"),
        encoding=known_encoding(given.get("encoding") or came.get("encoding", "utf-8")),
        newline=_NEWLINES[newline],
        dates={} if dates == "iso" else dates,
        spelled=came,
        guards_formulas=bool(given.get("guard_formulas")),
    )


def write_delimited(frame: pl.LazyFrame, path: Path, style: Style) -> None:
    """Stream a frame into a delimited file; packed where its name says so, in the encoding that was chosen."""
    packed = full_suffix(path).endswith(".gz")
    direct = style.encoding in ("utf-8", "utf-8-sig")
    plain = path if direct and not packed else path.with_name(f"{path.name}.part")
    # What is only on the way stays where it is: the folder goes when the file is in place, and tells of a full disk.
    frame = _with_dates(frame, style.dates)
    frame = guarded(frame) if style.guards_formulas else frame
    as_written(frame, style.spelled, decimal=style.decimal, missing=style.missing).sink_csv(
        plain,
        separator=style.separator,
        decimal_comma=style.decimal == ",",
        null_value=style.missing or "",
        line_terminator=style.newline,
        include_bom=style.encoding == "utf-8-sig",
    )
    if plain != path:
        _finish(plain, path, style.encoding, packed=packed, direct=direct)


def _with_dates(frame: pl.LazyFrame, formats: Mapping[str, str]) -> pl.LazyFrame:
    """Write dates as they were written, in the columns that are dates still."""
    schema = frame.collect_schema()
    kept = {
        name: form
        for name, form in formats.items()
        if isinstance(schema.get(name), pl.Datetime if has_time(form) else pl.Date)
    }
    return frame.with_columns(pl.col(name).dt.to_string(form) for name, form in kept.items())


def _finish(plain: Path, path: Path, encoding: str, *, packed: bool, direct: bool) -> None:
    with plain.open("rb") as text, path.open("wb") as raw:
        target: Any = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) if packed else raw
        try:
            if direct:
                shutil.copyfileobj(text, target, 1 << 20)
            else:
                _transcode(text, target, encoding, path)
        finally:
            if packed:
                target.close()


def _transcode(text: Any, target: Any, encoding: str, path: Path) -> None:
    decoder, encoder = codecs.getincrementaldecoder("utf-8")(), codecs.getincrementalencoder(encoding)()
    try:
        while block := text.read(1 << 20):
            target.write(encoder.encode(decoder.decode(block)))
        target.write(encoder.encode(decoder.decode(b"", final=True), final=True))
    except UnicodeEncodeError:
        raise InputError(
            f"'{path.name}' cannot be written as {encoding}, as the data came: some characters do not exist there. "
            "Name another encoding, e.g. encoding='utf-8' (on the command line --write-as encoding=utf-8)."
        ) from None


# Texts that a spreadsheet would take for formulas.
#
# A cell that begins with ``=``, ``+``, ``-`` or ``@`` is computed when a CSV file is opened in a spreadsheet, and a
# formula can send what stands beside it elsewhere. An apostrophe before it makes it a text again; numbers need none.


_BEGINS = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?$"
SIGN = "'"


def guarded(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before texts and column names that a spreadsheet would compute.

    Examples
    --------
    >>> guarded(pl.LazyFrame({"=a": ["=1+1", "-5", "- none", "plain", None]})).collect().to_dict(as_series=False)
    {"'=a": ["'=1+1", '-5', "'- none", 'plain', None]}
    """
    schema = frame.collect_schema()
    texts = [name for name, dtype in schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    plain = [pl.col(name).cast(pl.String) for name in texts]
    safe = [
        pl.when(text.str.contains(_BEGINS) & ~text.str.contains(_NUMBER))
        .then(pl.concat_str(pl.lit(SIGN), text))
        .otherwise(text)
        .alias(name)
        for name, text in zip(texts, plain, strict=True)
    ]
    renamed = {name: f"{SIGN}{name}" for name in schema if computes(name)}
    taken = [new for new in renamed.values() if new in schema]
    if taken:
        raise ParameterError(
            f"Column '{taken[0][1:]}' would be called '{taken[0]}' for a spreadsheet, which is there already. "
            "Rename one of them."
        )
    return frame.with_columns(safe).rename(renamed)


def computes(text: str) -> bool:
    """Whether a spreadsheet would compute a text."""
    return bool(re.search(_BEGINS, text)) and not re.search(_NUMBER, text)
