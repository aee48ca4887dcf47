"""Are these the same records? A fingerprint of the content of a file, whatever its format, engine and order.

Every value is brought into one form: a number is a number, whether it stands as 1, 1.0 or as a text; a date is a date,
with or without a midnight; empty texts, NaN and missing values are one. Each value is hashed with the name of its
column, the hashes of a record are added, and so are those of the records after one more mixing, so that neither the
order of columns nor that of records counts and equal records do. The sums are hashed once more, for their difference
between two versions of a file would be the hash of a single record.

The fingerprint is a function of the data without a key: whoever knows all records but one can try out that one. Keep it
where the data are kept.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Words
from discreet.core.errors import InputError
from discreet.engine import scan
from discreet.engine.frames import collected_batches
from discreet.engine.spooling import is_query, scanned_files
from discreet.microdata import Metadata, Microdata

_ROWS = 1 << 20
_LANES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MISSING, _IS_NUMBER = b"missing", b"number"


def content_of(data: Microdata) -> str:
    """Give the fingerprint of the content of a file; data are read once for it.

    Examples
    --------
    >>> one = Microdata(pl.DataFrame({"sex": ["f", "m"], "age": [30, None]}))
    >>> other = Microdata(pl.DataFrame({"age": [float("nan"), 30.0], "sex": ["m", "f"]}))
    >>> content_of(one) == content_of(other)
    True
    """
    known = data.content_mark
    if "content" not in known:
        known["content"] = _fingerprint(data)
    return known["content"]


def _fingerprint(data: Microdata) -> str:
    if not data.columns:
        raise InputError("A file without columns has no content.")
    names = [unicodedata.normalize("NFC", name).strip() for name in data.columns]
    if len(set(names)) < len(names):
        raise InputError("Two columns have names that differ in spaces or accents only. Rename one of them.")
    neutral = {f"c{place}": name for place, name in enumerate(data.columns)}
    rows, sums = 0, [0, 0]
    for part in collected_batches(scan(data, neutral), _ROWS):
        for piece in part.iter_slices(_ROWS):
            rows += piece.height
            added = _records(piece.select(list(neutral)), names)
            sums = [
                (known + int(own.sum(dtype=np.uint64))) % 2**64
                for known, own in zip(sums, added, strict=True)
            ]
    told = "\0".join(["discreet content 1", str(rows), *sorted(names), *map(str, sums)])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_words(frame: pl.DataFrame, secret: Sequence[int]) -> Words:
    """Give every record a number that only who has the four secret numbers can make of what it holds."""
    one, other = _records(frame, frame.columns)
    first, second, third, last = (np.uint64(part) for part in secret)
    return _mixed(_mixed(_mixed(one ^ first) + second) ^ _mixed(_mixed(other ^ third) + last))


def _records(part: pl.DataFrame, names: Sequence[str]) -> list[Words]:
    found = [np.zeros(part.height, dtype=np.uint64) for _ in _LANES]
    for series, name in zip(part, names, strict=True):
        key = _of_text(name.encode("utf-8", "surrogatepass"))
        for lane, values in enumerate(_values(series)):
            found[lane] += _mixed(values ^ np.uint64(key[lane]))
    return [_mixed(lane) for lane in found]


def _values(series: pl.Series) -> list[Words]:
    """Two words a value, the same for all ways of writing it."""
    if series.dtype == pl.Duration:
        series = series.dt.total_microseconds()
    kind = series.dtype
    if kind.is_integer() and kind not in (pl.Int128, getattr(pl, "UInt128", pl.Int128)):
        whole = series.fill_null(0).to_numpy()
        near = whole.astype(np.float64)
        # A float holds whole numbers up to 2^53; what it lacks of a larger one counts as well.
        lacks = (whole.astype(np.uint64) - _whole(near)).astype(np.uint64)
        return _with_gaps(_of_numbers(near, lacks), series.is_null().to_numpy())
    if kind.is_float():
        near = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
        gaps = np.isnan(near)
        near = np.where(gaps, 0.0, near)
        return _with_gaps(_of_numbers(near, np.zeros(len(near), dtype=np.uint64)), gaps)
    texts = _texts(series)
    levels = texts.drop_nulls().unique()
    hashed = np.array([_of_level(level) for level in levels.to_list()], dtype=np.uint64).reshape(-1, 2)
    table = np.vstack([hashed, np.array([_of_text(_MISSING)], dtype=np.uint64)])
    places = texts.cast(pl.Enum(levels)).to_physical().cast(pl.Int64).fill_null(len(levels)).to_numpy()
    return [table[places, lane] for lane in range(len(_LANES))]


def _texts(series: pl.Series) -> pl.Series:
    kind = series.dtype
    if kind == pl.Date:
        return series.dt.strftime("%Y-%m-%d")
    if isinstance(kind, pl.Datetime):
        if kind.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        texts = series.dt.strftime("%Y-%m-%dT%H:%M:%S%.6f")
        texts = texts.str.strip_suffix("T00:00:00.000000")
        return texts if kind.time_zone is None else texts + "Z"
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        raise InputError(f"The column '{series.name}' holds values that have no canonical form.")
    return series.cast(pl.String)


def _of_level(level: str) -> tuple[int, int]:
    text = unicodedata.normalize("NFC", level).strip()
    if not text:
        return _of_text(_MISSING)
    if not _NUMBER.fullmatch(text):
        return _of_text(b"text " + text.encode())
    near = np.array([float(text)])
    if not np.isfinite(near[0]):
        return _of_text(b"text " + text.encode())
    lacks = int(text) - int(near[0]) if text.lstrip("-").isdigit() else 0
    one, other = _of_numbers(near, np.array([lacks % 2**64], dtype=np.uint64))
    return int(one[0]), int(other[0])


def _of_text(text: bytes) -> tuple[int, int]:
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _of_numbers(near: Floats, lacks: Words) -> list[Words]:
    bits = (near + 0.0).view(np.uint64)  # there is one zero
    key = _of_text(_IS_NUMBER)
    return [_mixed(bits ^ np.uint64(key[lane])) + _mixed(lacks + _LANES[lane]) for lane in range(len(_LANES))]


def _with_gaps(words: list[Words], gaps: Flags) -> list[Words]:
    key = _of_text(_MISSING)
    return [np.where(gaps, np.uint64(key[lane]), own) for lane, own in enumerate(words)]


def _whole(near: Floats) -> Words:
    """Whole numbers behind floats, modulo 2^64."""
    high = np.floor(near / 2.0**32)
    low = (near - high * 2.0**32).astype(np.uint64)
    return (high.astype(np.int64).astype(np.uint64) << np.uint64(32)) + low


def _mixed(words: Words) -> Words:
    """Mix the bits of every word (the finalizer of SplitMix64)."""
    words = words + _LANES[0]
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# Is a file that is read when it is needed still the one that was looked at first?
#
# A treatment of a query reads its source several times: to learn from it, to count, to write. A file that is replaced
# in between would be treated by what another one said.


def fingerprint_of(path: Path) -> tuple[str, int, int]:
    """Place, size and time of the last change of a file."""
    state = path.stat()
    return str(path.absolute()), state.st_size, state.st_mtime_ns


def watched(metadata: Metadata, frame: Any) -> Metadata:
    """Note the files that a query reads, where none were noted; to be asked before it is first run."""
    if metadata.fingerprints:
        return metadata
    return replace(metadata, fingerprints=tuple(map(fingerprint_of, scanned_files(frame))))


def check_unchanged(metadata: Metadata, frame: Any) -> None:
    """Refuse a query of which a file was changed since it was opened; a frame in memory is what it was."""
    if not isinstance(frame, pl.LazyFrame) and not is_query(frame):
        return
    for seen in metadata.fingerprints:
        place = Path(seen[0])
        if not place.exists() or fingerprint_of(place) != seen:
            raise InputError(
                f"'{place.name}' was changed or removed since it was opened, so that parts of the work would be about "
                "another file. Nothing was written. Read it again, and let nobody write to it meanwhile."
            )
