"""How a delimited text file is written: encoding, separator, decimal mark, missing tokens.

All four are detected from the head of the file; each can be given instead.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from discreet.core.errors import DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.core.files.untrusted import check_gzip, named_separator

MISSING_TOKENS = ("", "NA", "N/A", "NULL", "null", "NaN", "nan", "?", ".")
SEPARATORS = (",", ";", "\t", "|")

_HEAD = 1 << 18
_LONGEST_HEADER = 1 << 22
_MOST_COLUMNS = 20_000
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = (
    b"\x89PNG",
    b"PK\x03\x04",
    b"%PDF",
    b"PAR1",
    b"\xd0\xcf\x11\xe0",
    b"SQLite format 3",
    b"BZh",
    b"\xfd7zXZ",
)
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """The way one delimited file is written.

    Attributes
    ----------
    separator, decimal, encoding
        As given or detected.
    missing
        Fields that count as missing.
    compressed
        Whether the file is gzipped.
    padded
        Whether fields stand after a blank (``39, Male``), which is not part of them.
    newline
        How lines end: ``"lf"`` (Unix) or ``"crlf"`` (Windows).
    lines_first
        How many lines stand before the header: blank ones, and one that names the separator (``sep=;``).
    detected
        Which of these were detected rather than given.
    """

    separator: str
    decimal: str
    encoding: str
    missing: tuple[str, ...]
    compressed: bool
    padded: bool
    newline: str
    detected: tuple[str, ...]
    lines_first: int = 0

    @property
    def is_utf8(self) -> bool:
        """Whether the engine can read the bytes as they are."""
        return self.encoding in ("utf-8", "utf-8-sig")

    def to_dict(self) -> dict[str, Any]:
        """Return it for the record: what a report shows about how the file was read."""
        told = {"format": "csv", **vars(self), "missing": list(self.missing), "detected": list(self.detected)}
        return {name: value for name, value in told.items() if name != "lines_first"}


def detect(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | Sequence[str] | None = None,
    only_missing: bool = False,
) -> tuple[Dialect, list[str]]:
    r"""Tell how a file is written from its head; what is given is believed. Also return its column names.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age;pay\n30;1,5\n31;2,5\n")
    >>> dialect, names = detect(file)
    >>> dialect.separator, dialect.decimal, dialect.encoding, names
    (';', ',', 'utf-8', ['age', 'pay'])
    """
    given = {"separator": separator, "decimal": decimal, "encoding": encoding, "missing": missing}
    compressed = _is_gzip(path)
    head = _head(path, compressed=compressed)
    encoding = known_encoding(encoding) if encoding else _encoding_of(head)
    text = _decoded(head, encoding, path)
    if head.startswith(_SIGNATURES) or "\0" in text:
        raise InputError(
            f"The file '{path.name}' is not text: it holds binary data. If it is of another format, give it the "
            "suffix of that format; otherwise export it again as text."
        )
    if not text.strip():
        raise InputError(f"The file '{path.name}' is empty. Give a file with a header and records.")
    lines = _blank_lines(text)
    text = text.split("\n", lines)[-1]
    named, text = named_separator(text)
    if named is not None:
        separator, lines = separator or named, lines + 1
        if not text.strip():
            raise InputError(
                f"The file '{path.name}' names its separator and nothing else. Give a file with a header and records."
            )
    separator = one_character("separator", separator) if separator else _separator_of(text, path)
    decimal = decimal or _decimal_of(text, separator)
    if decimal not in (".", ","):
        raise ParameterError("The decimal mark must be '.' or ','.")
    if decimal == separator:
        raise ParameterError(
            f"The decimal mark and the separator cannot both be '{separator}'. Give another one."
        )
    tokens = missing_tokens(missing, only=only_missing)
    if not all(isinstance(token, str) for token in tokens):
        raise ParameterError(
            "The missing tokens must be texts as they stand in the file, e.g. missing=['-8']."
        )
    dialect = Dialect(
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        missing=tuple(dict.fromkeys(tokens)),
        compressed=compressed,
        padded=_is_padded(text, separator),
        newline="crlf" if "\r\n" in text else "lf",
        detected=tuple(name for name, value in given.items() if value is None),
        lines_first=lines,
    )
    return dialect, _header(text, dialect, path)


def missing_tokens(missing: str | Sequence[str] | None, *, only: bool = False) -> tuple[str, ...]:
    """List the texts that stand for a missing value: the usual ones and those that were named, or ``only`` these.

    Examples
    --------
    >>> missing_tokens("-99", only=True), "NA" in missing_tokens("-99")
    (('', '-99'), True)
    """
    named = () if missing is None else (missing,) if isinstance(missing, str) else tuple(missing)
    if only and not named:
        raise ParameterError("only_missing says that the texts under missing are all: name them (missing=…).")
    return ("", *named) if only else (*MISSING_TOKENS, *named)


def opened(path: Path, *, compressed: bool) -> BinaryIO:
    """Open the bytes of a file, unpacked where it is gzipped."""
    return cast(BinaryIO, gzip.open(path, "rb")) if compressed else path.open("rb")


def records(path: Path, dialect: Dialect) -> Any:
    """Open a text stream and a CSV reader on it that stands at the header, for finding the line of a fault."""
    stream = io.TextIOWrapper(
        opened(path, compressed=dialect.compressed), encoding=dialect.encoding, errors="replace", newline=""
    )
    for _ in range(dialect.lines_first):
        stream.readline()
    return stream, csv.reader(stream, delimiter=dialect.separator)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if path.suffix.lower() == ".gz" and not packed:
        raise InputError(f"'{path.name}' is named as gzipped but is not. Unpack or rename it.")
    return packed


def _head(path: Path, *, compressed: bool) -> bytes:
    try:
        if compressed:
            check_gzip(path)
        with opened(path, compressed=compressed) as file:
            head = file.read(_HEAD)
            # A wide file has a long header, which must be read whole.
            return head if b"\n" in head else head + file.readline(_LONGEST_HEADER) + file.read(_HEAD)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"The gzipped file '{path.name}' is damaged or cut off. Fetch it again.") from error


def known_encoding(encoding: str) -> str:
    """Return the usual name of an encoding, or refuse one that nobody knows."""
    known = ("utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "cp1250", "iso8859-15")
    try:
        found = codecs.lookup(encoding)
        # Python also calls recodings of bytes or of text a codec (hex, rot13): they turn no bytes into text.
        if "a".encode(found.name).decode(found.name) == "a":
            return {"utf8": "utf-8"}.get(encoding.lower(), found.name)
    except (LookupError, TypeError, ValueError):
        pass
    raise ParameterError(unknown_name(encoding, known, what="encoding")) from None


def _encoding_of(head: bytes) -> str:
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name
    pairs = max(len(head) // 2, 1)
    if head[1::2].count(0) > pairs * 0.4:
        return "utf-16-le"
    if head[0::2].count(0) > pairs * 0.4:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        # Five bytes mean nothing in cp1252; a file that has them can only be read as latin-1.
        return "latin-1" if any(byte in head for byte in b"\x81\x8d\x8f\x90\x9d") else "cp1252"
    return "utf-8"


def _decoded(head: bytes, encoding: str, path: Path) -> str:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        raise wrong_encoding(path, encoding, None) from None
    # The last line of a head that was cut is no evidence.
    return text[: text.rfind("\n") + 1] if len(head) == _HEAD and "\n" in text else text


def wrong_encoding(path: Path, encoding: str, line: int | None) -> InputError:
    """Word the refusal of a file whose bytes are not text in the encoding."""
    where = f" (line {line:,})" if line else ""
    return InputError(
        f"The file '{path.name}' is not {encoding} text{where}. Name the encoding it was saved in, "
        "e.g. encoding='cp1252' for Windows in Western Europe or encoding='utf-8'."
    )


def one_character(name: str, value: str) -> str:
    """Check a mark of the file that is one plain character; a tab may be written out."""
    value = "\t" if value == "\\t" else value
    if len(value) != 1 or not value.isascii():
        raise ParameterError(f"The {name} must be one plain character, e.g. ',' or ';'.")
    return value


def _blank_lines(text: str) -> int:
    """Count the lines before the first one that says something."""
    start = len(text) - len(text.lstrip(" \r\n\ufeff"))
    return text.count("\n", 0, start)


def _rows(text: str, separator: str, most: int = 500) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [row for row, _ in zip(reader, range(most), strict=False) if row]
    except csv.Error:
        return []


def _separator_of(text: str, path: Path) -> str:
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    best, best_score = ",", (0.0, 0)
    for candidate in SEPARATORS:
        rows = _rows(text, candidate)
        width = len(rows[0]) if rows else 1
        if width > 1:
            agree = sum(len(row) == width for row in rows) / len(rows)
            score = (round(agree, 2), width)
            best, best_score = (candidate, score) if score > best_score else (best, best_score)
    return best


def _decimal_of(text: str, separator: str) -> str:
    if separator == ",":
        return "."
    fields = [field.strip() for row in _rows(text, separator)[1:] for field in row]
    commas = sum(bool(_COMMA.fullmatch(field)) for field in fields)
    points = sum(bool(_POINT.fullmatch(field)) for field in fields)
    return "," if commas > points else "."


def _is_padded(text: str, separator: str) -> bool:
    later = [field for row in _rows(text, separator)[1:] for field in row[1:] if field]
    return bool(later) and all(field.startswith(" ") for field in later)


def _header(text: str, dialect: Dialect, path: Path) -> list[str]:
    rows = _rows(text, dialect.separator, most=1)
    names = [name.removeprefix("\ufeff") for name in rows[0]] if rows else []
    names = [name.strip() for name in names] if dialect.padded else names
    if len(names) > _MOST_COLUMNS or ("\n" not in text and len(text) >= _LONGEST_HEADER):
        raise InputError(
            f"The header of '{path.name}' names more than {_MOST_COLUMNS:,} columns, or more than {_LONGEST_HEADER:,} "
            "characters. Select the columns that are needed and write them to a file of their own."
        )
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        more = f" (and {len(twice) - 1} more)" if len(twice) > 1 else ""
        raise InputError(
            f"The file '{path.name}' names the column '{twice[0]}'{more} more than once. "
            "Rename the columns so that each name is used once."
        )
    if names and all(_NUMBER.fullmatch(name.strip()) for name in names):
        warnings.warn(
            f"The file '{path.name}' seems to have no header: its first line holds numbers only and was taken for "
            "the names of the columns. If it is a record, put a line with names first.",
            DiscreetWarning,
            stacklevel=2,
        )
    return names
