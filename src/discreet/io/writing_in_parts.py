"""How is a large file protected from file to file, so that a run that was stopped goes on? As parts with a manifest.

The parts grow in a folder whose name says that it is unfinished. It takes its place only when all parts are there, so
that nobody takes half a release for a whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet import engine
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import full_disk, is_full, note_written, replacing
from discreet.core.files.journals import PartsManifest, digest_of
from discreet.core.progress import track
from discreet.engine.spooling import in_parts
from discreet.io.fingerprints import check_unchanged
from discreet.io.writing import explained_by_engine
from discreet.microdata import Microdata

ROWS_PER_PART = 1_000_000


def write_parts(
    data: Microdata | Any,
    folder: str | os.PathLike[str],
    *,
    rows_per_part: int = ROWS_PER_PART,
    resume: bool = False,
    progress: bool = False,
) -> Path:
    """Write data as Parquet parts in a folder; a run that was stopped goes on where it was.

    A query (Polars lazy, DuckDB) is streamed, a part at a time. Until the last part is written the folder is called
    ``….unfinished``.

    Parameters
    ----------
    data
        Microdata, or a frame of any engine but Spark, which writes parts of its own.
    folder
        Where the parts go, with ``manifest.json``; it must not be there yet.
    rows_per_part
        Records of each part but the last.
    resume
        Go on with the parts of a run that was stopped. The data must be the same: same source, same plan, same seed.
        The last finished part is made again and compared.
    progress
        Show how far it is, on a terminal.

    Examples
    --------
    >>> import polars as pl
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "release"
    >>> made = write_parts(pl.LazyFrame({"age": range(5)}), place, rows_per_part=2)
    >>> sorted(file.name for file in made.iterdir())
    ['manifest.json', 'part-000000.parquet', 'part-000001.parquet', 'part-000002.parquet']
    """
    if isinstance(rows_per_part, bool) or not isinstance(rows_per_part, int) or rows_per_part < 1:
        raise ParameterError("rows_per_part must be a whole number of at least 1.")
    whole = data if isinstance(data, Microdata) else Microdata(data)
    if not engine.has_places(whole):
        raise InputError(
            "Spark writes parts of its own and goes on by itself when it loses an executor: "
            "release.data.frame.write.parquet('folder')."
        )
    target = Path(os.fspath(folder))
    growing = target.with_name(f"{target.name}.unfinished")
    _check_place(target, growing, resume=resume)
    check_unchanged(whole.metadata, whole.frame)
    rows = engine.overview(whole, ()).rows
    if not rows:
        raise InputError("There is no record to write in parts. Write the empty file with write().")
    manifest = PartsManifest(
        growing,
        {"rows": rows, "rows_per_part": rows_per_part, "source": _mark(whole)},
        -(-rows // rows_per_part),
        others="another source, other columns, or another number of records",
    )
    with _goes_on(growing):
        done = _in_a_row(manifest.finished(resume=resume))
        again = max(len(done) - 1, 0)
        made = _written(whole, manifest, again, rows_per_part)
        for number, digest in track(
            made, total=manifest.parts - again, description="Writing parts", progress=progress
        ):
            if number in done and done[number] != digest:
                raise InputError(
                    f"The parts in '{growing.name}' are of another plan or another seed. Give those of the first run, "
                    "or remove the folder and start afresh."
                )
            done[number] = digest
            manifest.note(done)
        check_unchanged(whole.metadata, whole.frame)
        if len(done) != manifest.parts:
            raise InputError(
                "The source has other records than when they were counted: it was changed between two passes. Treat a "
                "copy that nobody writes to, and start afresh."
            )
        growing.rename(target)
    note_written(target.name)
    return target


def _check_place(target: Path, growing: Path, *, resume: bool) -> None:
    if target.exists():
        raise InputError(f"'{target.name}' already exists. Name a folder that is not there yet.")
    if not target.parent.is_dir():
        raise InputError(
            f"'{target.name}' cannot be written: the folder '{target.parent}' does not exist. Create it first."
        )
    if growing.exists() and not resume:
        raise InputError(
            f"'{growing.name}' holds parts of a run that was stopped. Go on with resume=True (--resume), the same plan "
            "and the same seed, or remove the folder."
        )


def _mark(data: Microdata) -> str:
    """Tell the source and the columns from others; nothing of the data can be read from it."""
    place = data.metadata.fingerprints
    told = f"{place!r} {[(name, str(kind)) for name, kind in data.schema.items()]!r}"
    return hashlib.sha256(told.encode()).hexdigest()


def _in_a_row(done: dict[int, str]) -> dict[int, str]:
    """Leave out what comes after a part that is missing: the engine starts from there."""
    first = next(number for number in range(len(done) + 1) if number not in done)
    return {number: digest for number, digest in done.items() if number < first}


@contextlib.contextmanager
def _goes_on(growing: Path) -> Iterator[None]:
    """Say of whatever stops the work what is there, and how to go on."""
    try:
        with explained_by_engine(growing.name, growing):
            yield
    except (OSError, InputError) as error:
        if not is_full(error, growing.parent):
            raise
        kept = len(list(growing.glob("part-*.parquet"))) if growing.is_dir() else 0
        raise InputError(
            f"{full_disk(growing.name)} {kept:,} finished parts are kept there, which are no release: go on with "
            "resume=True (--resume), the same plan and the same seed."
        ) from None


def _written(
    data: Microdata, manifest: PartsManifest, first: int, rows_per_part: int
) -> Iterator[tuple[int, str]]:
    for number, part in enumerate(in_parts(data, first * rows_per_part, rows_per_part), first):
        path = manifest.path(number)
        with replacing(path) as unfinished:
            part.write_parquet(unfinished)
        yield number, digest_of(path)
