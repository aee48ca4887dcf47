"""How large is what a packed file unpacks to? Asked before it is read: some kilobytes can become gigabytes.

The directory of a zip archive says how large its parts are, and may lie. Readers that believe it (`zipfile`) are held
to it; for readers that unpack to the end whatever it says, the parts are unpacked here once, a piece at a time, and
counted.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from discreet.core.errors import InputError

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
