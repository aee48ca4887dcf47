"""Delimited text out: in the way the data came in, unless told otherwise.

What reads a release is usually what read the original, so a file with semicolons, decimal commas, dates such as
``31.12.1990`` and the letters of Windows goes out like that. Each of these can be named instead.
"""

from __future__ import annotations

import codecs
import gzip
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import InputError, ParameterError
from discreet.io.dates import has_time
from discreet.io.dialect import known_encoding, one_character
from discreet.io.formulas import guarded
from discreet.io.naming import full_suffix

OPTIONS = ("separator", "decimal", "missing", "encoding", "newline", "dates", "guard_formulas")
_NEWLINES = {"lf": "\n", "crlf": "\r\n"}


@dataclass(frozen=True)
class Style:
    """How a delimited file is to be written."""

    separator: str
    decimal: str = "."
    missing: str = ""
    encoding: str = "utf-8"
    newline: str = "\n"
    dates: Mapping[str, str] = field(default_factory=dict)
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
        missing=given.get("missing", ""),
        encoding=known_encoding(given.get("encoding") or came.get("encoding", "utf-8")),
        newline=_NEWLINES[newline],
        dates={} if dates == "iso" else dates,
        guards_formulas=bool(given.get("guard_formulas")),
    )


def write_delimited(frame: pl.LazyFrame, path: Path, style: Style) -> None:
    """Stream a frame into a delimited file; packed where its name says so, in the encoding that was chosen."""
    packed = full_suffix(path).endswith(".gz")
    direct = style.encoding in ("utf-8", "utf-8-sig")
    plain = path if direct and not packed else path.with_name(f"{path.name}.part")
    # What is only on the way stays where it is: the folder goes when the file is in place, and tells of a full disk.
    frame = _with_dates(frame, style.dates)
    (guarded(frame) if style.guards_formulas else frame).sink_csv(
        plain,
        separator=style.separator,
        decimal_comma=style.decimal == ",",
        null_value=style.missing,
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
