"""Hierarchy files: separated text, one line a leaf."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.inputs import note_read
from discreet.core.files.texts import named_separator

_SEPARATORS = (";", ",", "\t", "|")


def read_rows(path: Path, *, separator: str | None, header: bool, encoding: str) -> list[list[str]]:
    """Read the rows of a hierarchy file; every line must have the same number of fields."""
    if separator is not None and len(separator) != 1:
        raise ParameterError("separator must be one character, or None to detect it.")
    named, text = named_separator(_text(path, encoding))
    separator = separator or named
    try:
        rows = _split(text, separator) if separator else _best_split(text)
    except csv.Error as error:
        raise InputError(f"The hierarchy file '{path}' is not separated text: {error}.") from error
    rows = rows[1:] if header else rows
    if not rows:
        raise InputError(f"The hierarchy file '{path}' holds no rows.")
    widths = [len(row) for row in rows]
    usual = max(set(widths), key=widths.count)
    ragged = [number for number, width in enumerate(widths, start=1 + header) if width != usual]
    if ragged:
        raise InputError(
            f"The hierarchy file '{path}' has {usual} fields on most lines but another number on "
            f"{len(ragged)} of them, first on line {ragged[0]}. Complete these lines, or name the separator."
        )
    return rows


def write_rows(path: Path, rows: Iterable[Sequence[str]], *, separator: str) -> None:
    """Write rows as separated text, whole or not at all."""
    from discreet.core.files.atomic import replacing

    if len(separator) != 1:
        raise ParameterError("separator must be one character.")
    with replacing(path) as unfinished, unfinished.open("x", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def _text(path: Path, encoding: str) -> str:
    note_read(path)
    try:
        text = path.read_text(encoding=encoding)
    except OSError as error:
        raise InputError(f"Cannot read the hierarchy file '{path}': {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"The hierarchy file '{path}' is not {encoding} text. Name its encoding, e.g. encoding='latin-1'."
        ) from error
    except ValueError as error:
        raise InputError("The name of a hierarchy file holds a character that no name can have.") from error
    except LookupError as error:
        raise ParameterError(f"encoding '{encoding}' is unknown. Use for instance 'utf-8'.") from error
    return text.removeprefix("\ufeff")


def _split(text: str, separator: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


def _best_split(text: str) -> list[list[str]]:
    """Prefer the separator that splits every line alike into the most fields."""
    splits = [_split(text, separator) for separator in _SEPARATORS]
    widths = [{len(row) for row in rows} for rows in splits]
    regular = [len(seen) == 1 for seen in widths]
    best = max(
        range(len(splits)), key=lambda i: (regular[i] and max(widths[i]) > 1, max(widths[i], default=0))
    )
    return splits[best]
