"""TOML, JSON and archives that anybody may have written: what is too deep, endless or far too large is an error.

The parsers of Python give up on such text with errors of other kinds (RecursionError, a limit of digits), or hand over
a structure on which the next function gives up. Here both are a ValueError, like every other fault of the text.

Some kilobytes of a packed file can become gigabytes. The directory of a zip archive says how large its parts are, and
may lie. Readers that believe it (`zipfile`) are held to it; for readers that unpack to the end whatever it says, the
parts are unpacked here once, a piece at a time, and counted.
"""

from __future__ import annotations

import json
import math
import re
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from discreet.core.errors import InputError
from discreet.core.files.inputs import note_read

DEEPEST = 100
_DOTTED = re.compile(
    r"""(?:^|[{,\[])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){"""
    f"{DEEPEST}}}",
    re.MULTILINE,
)
_TOO_LONG = "it has a number of more than 300 digits"
_MOST_BITS = 1_000  # no float holds much more
_TOO_DEEP = f"it is nested more than {DEEPEST} deep"


def parsed_toml(text: str) -> dict[str, Any]:
    """Parse TOML; every fault is a ValueError whose text says what is wrong.

    Examples
    --------
    >>> parsed_toml("rows = 5")
    {'rows': 5}
    >>> parsed_toml("a = " + "[" * 50_000)
    Traceback (most recent call last):
    ValueError: it is nested more than 100 deep
    """
    # A long dotted key is a fault, and takes the parser a time that grows with the square of its length.
    if _DOTTED.search(text):
        raise ValueError(_TOO_DEEP)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:
        raise ValueError(_TOO_LONG) from error
    checked_depth(document)
    return document


def parsed_json(text: str | bytes, *, finite: bool = False) -> Any:
    """Parse JSON; every fault is a ValueError, with ``finite`` also NaN and numbers beyond the largest.

    Examples
    --------
    >>> parsed_json("[1, 2]")
    [1, 2]
    >>> parsed_json("[1e999]", finite=True)
    Traceback (most recent call last):
    ValueError: it has a number that is not finite
    """
    options: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite} if finite else {}
    try:
        return checked_depth(json.loads(text, **options))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("it has a number that is not finite")
    return number


def checked_depth(document: Any) -> Any:
    """Return the structure, or refuse one too deep to be walked through, or with a number too long for a float."""
    floor = [document] if isinstance(document, dict | list) else []
    for _ in range(DEEPEST + 1):
        inside = [item for part in floor for item in (part.values() if isinstance(part, dict) else part)]
        if any(isinstance(item, int) and item.bit_length() > _MOST_BITS for item in inside):
            raise ValueError(_TOO_LONG)
        floor = [item for item in inside if isinstance(item, dict | list)]
        if not floor:
            return document
    raise ValueError(_TOO_DEEP)


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Read a TOML file; errors name it as ``what``, such as "plan file", and never show what it holds.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "plan.toml"
    >>> _ = file.write_text("rows = 5")
    >>> read_toml(file, "plan file")
    {'rows': 5}
    """
    place = Path(path)
    note_read(place, kept="ledger" in what)  # a ledger is read to be written again
    try:
        # Some editors put a byte order mark in front.
        return parsed_toml(place.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InputError(f"There is no {what} '{place.name or path}' there. Check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The {what} '{place.name}' cannot be read as UTF-8 text.") from error
    except ValueError as error:
        raise InputError(f"The {what} '{place.name}' is not valid TOML: {error}.") from error


_LINE = re.compile(r'\ufeff?"?sep=(\\t|[^\r\n"])"?[,;\t|]*\r?\n', re.IGNORECASE)


def named_separator(text: str) -> tuple[str | None, str]:
    r"""Return the separator that the first line names, None where it names none, and the text after that line.

    Examples
    --------
    >>> named_separator("sep=;\na;b\n1;2\n")
    (';', 'a;b\n1;2\n')
    >>> named_separator("sep;other\n1;2\n")
    (None, 'sep;other\n1;2\n')
    """
    named = _LINE.match(text)
    return (named[1].replace("\\t", "\t"), text[named.end() :]) if named else (None, text)


# Packed files


_ALWAYS_TAKEN = 128 << 20
_ALWAYS_TAKEN_TEXT = 1 << 30
_MOST_TIMES = 60  # tables and arrays shrink ten- to thirtyfold; what shrinks a thousandfold holds nothing
_BEST = 1_100  # DEFLATE shrinks 1,032-fold at best
_PIECE = 1 << 20


def check_archive(path: Path, *, counted: bool = False) -> None:
    """Refuse a zip archive that unpacks to far more than files of its kind do.

    Parameters
    ----------
    path
        The archive: a workbook, a model.
    counted
        Whether the parts are unpacked to count them, for a reader that does not believe the directory.
    """
    packed, limit = _limits(path, _ALWAYS_TAKEN, _MOST_TIMES)
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        size = sum(item.file_size for item in archive.infolist())
        if size <= limit and counted and packed * _BEST > limit:
            size = _counted(_parts(archive, raw), limit)
    if size > limit:
        raise _far_too_large(path, limit)


def check_gzip(path: Path) -> None:
    """Refuse a gzipped text that unpacks to far more than tables do; a damaged one is left to its reader."""
    packed, limit = _limits(path, _ALWAYS_TAKEN_TEXT, 4 * _MOST_TIMES)
    if packed * _BEST <= limit:
        return
    with path.open("rb") as raw:
        if _counted(_members(raw), limit) > limit:
            raise _far_too_large(path, limit)


def _limits(path: Path, always: int, times: int) -> tuple[int, int]:
    packed = path.stat().st_size
    return packed, max(always, times * packed)


def _far_too_large(path: Path, limit: int) -> InputError:
    return InputError(
        f"'{path.name}' unpacks to more than {limit:,} bytes, many times what files of its size hold. It was not read. "
        "Unpack it yourself and look at it, or save it again with the program that made it."
    )


def _counted(pieces: Iterator[int], limit: int) -> int:
    size = 0
    for piece in pieces:
        size += piece
        if size > limit:
            break
    return size


def _parts(archive: zipfile.ZipFile, raw: BinaryIO) -> Iterator[int]:
    """Give what the parts of an archive unpack to, piece by piece."""
    for item in archive.infolist():
        if item.compress_type != zipfile.ZIP_DEFLATED:
            yield max(item.file_size, item.compress_size)
            continue
        raw.seek(item.header_offset + 26)
        names = struct.unpack("<HH", raw.read(4))
        raw.seek(sum(names), 1)
        left, inflating = item.compress_size, zlib.decompressobj(-zlib.MAX_WBITS)
        while left > 0 and not inflating.eof and (piece := raw.read(min(left, _PIECE))):
            left -= len(piece)
            yield from _inflated(inflating, piece)


def _members(raw: BinaryIO) -> Iterator[int]:
    """Give what a gzipped file unpacks to; it may have several members, one behind the other."""
    inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
    while piece := raw.read(_PIECE):
        while piece:
            if inflating.eof:
                inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
            try:
                yield from _inflated(inflating, piece)
            except zlib.error:
                return
            piece = inflating.unused_data


def _inflated(inflating: Any, piece: bytes) -> Iterator[int]:
    while piece and not inflating.eof:  # at the end both tails hold what comes after it
        yield len(inflating.decompress(piece, _PIECE))
        piece = inflating.unconsumed_tail
