"""One door out: `write` tells the format by the name and writes the data whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError, InputError, ParameterError, gave_up, need_known, unpacked
from discreet.core.files.atomic import (
    check_target,
    full_disk,
    is_full,
    note_written,
    replacing,
    replacing_together,
)
from discreet.core.files.inputs import Place, check_apart, is_same, place_of
from discreet.core.files.journals import PartsManifest, digest_of
from discreet.core.native_libraries import quiet_panics
from discreet.core.progress import track
from discreet.engine import spooling
from discreet.io.delimited import OPTIONS as DELIMITED_OPTIONS
from discreet.io.delimited import style_of, write_delimited
from discreet.io.fingerprints import check_unchanged
from discreet.io.naming import Address, format_of, is_address, parsed_address
from discreet.microdata import Metadata, Microdata

OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": DELIMITED_OPTIONS,
    "excel": ("sheet", "guard_formulas"),
    "database": ("table",),
}


def write(
    data: Microdata | Any, path_or_uri: str | os.PathLike[str], *, overwrite: bool = False, **options: Any
) -> Path | str:
    r"""Write data to a file or to a table of a database.

    Types are kept as far as the format has them: categories and their order, dates, integers with missing
    values, true/false; labels, missing codes and measures in SPSS files. A query (Polars lazy, DuckDB, Spark) is
    streamed into Parquet, Arrow and CSV without being loaded whole; Spark writes parts beside the file first, which
    this process has to be able to read.

    Parameters
    ----------
    data
        Microdata, or a frame of any engine.
    path_or_uri
        A file name, whose suffix tells the format, or the address of a database.
    overwrite
        Whether a file or table that is already there may be replaced; never the one that the data came from.
    **options
        For delimited files ``separator``, ``decimal``, ``encoding``, ``newline`` (``"lf"`` or ``"crlf"``), ``dates`` (a
        format by column, or ``"iso"``) and ``missing`` (the text of a missing value): all as the data were read,
        column by column, unless named; decimals (``2.50``) and words for true and false as well. ``sheet`` for Excel,
        ``table`` for a database. ``guard_formulas`` for both text and Excel: no text is computed by a spreadsheet
        (in text files an apostrophe is put before such texts and names).

    Returns
    -------
    Path or str
        Where it was written: the file, or the address of the database without its login.

    Examples
    --------
    >>> import polars as pl
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> write(pl.DataFrame({"age": [30, None]}), file).read_text()
    'age\n30\n\n'
    """
    place = os.fspath(path_or_uri)
    frame, metadata = (data.frame, data.metadata) if isinstance(data, Microdata) else (data, Metadata())
    frame = Microdata(frame).frame
    if is_address(place):
        return _write_table(frame, place, metadata, overwrite=overwrite, **_allowed(options, "database"))
    path = Path(place)
    kind = format_of(path)
    options = _allowed(options, kind)
    check_target(path, overwrite=overwrite)
    check_apart(path, _origins(metadata, frame))
    with replacing(path, overwrite=overwrite) as unfinished:
        check_unchanged(metadata, frame)
        with explained_by_engine(path.name, path.parent):
            _write_file(frame, unfinished, kind, metadata, **options)
        check_unchanged(metadata, frame)
    return path


def write_together(
    data: Sequence[Microdata],
    paths: Sequence[str | os.PathLike[str]],
    *,
    overwrite: bool = False,
    **options: Any,
) -> list[Path]:
    """Write files that belong together, such as the copies of one synthesis: none takes its place before all are done.

    The parameters are those of `write`; databases are not written to.

    Examples
    --------
    >>> import polars as pl
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> people = Microdata(pl.DataFrame({"age": [30, 40]}))
    >>> [file.name for file in write_together([people, people], [folder / "1.csv", folder / "2.csv"])]
    ['1.csv', '2.csv']
    """
    targets = [Path(path) for path in paths]
    given = [_allowed(options, format_of(path)) for path in targets]
    read = [place for item in data for place in _origins(item.metadata, item.frame)]
    for path in targets:
        check_apart(path, read)
    with replacing_together(targets, overwrite=overwrite) as unfinished:
        for item, file, chosen in zip(data, unfinished, given, strict=True):
            with explained_by_engine(file.name, file.parent):
                _write_file(item.frame, file, format_of(file), item.metadata, **chosen)
            check_unchanged(item.metadata, item.frame)
    return targets


def _origins(metadata: Metadata, frame: Any) -> list[Place]:
    """List the files that data came from, and those that a query of them reads: they are not written over."""
    read = {place for place, table in metadata.origins if not table}
    if isinstance(frame, pl.LazyFrame) or spooling.is_query(frame):
        read |= {str(place) for place in (*spooling.scanned_files(frame), *spooling.scanned_folders(frame))}
    return [place for place in map(place_of, sorted(read)) if place.identity]


def _check_tables(address: Address, table: str, metadata: Metadata) -> None:
    """Refuse to write data over the table that they came from, or one that their query names."""
    place = os.path.realpath(address.file) if address.file else address.shown
    for origin, query in metadata.origins:
        named = re.search(rf"(?<!\w){re.escape(table)}(?!\w)", query, re.IGNORECASE)
        if named and (
            origin == place if address.file is None else is_same(place_of(origin), place_of(place))
        ):
            raise InputError(
                f"The data were read from the table '{table}' of {address.shown}: it would be lost. Give another name."
            )


@contextlib.contextmanager
def explained_by_engine(name: str, place: Path | None = None) -> Iterator[None]:
    """Say that nothing was written, without the words of an engine, which may quote data."""
    try:
        with quiet_panics():
            yield
    except (DiscreetError, OSError):
        raise
    except BaseException as error:
        if not gave_up(error):
            raise
        if (refused := unpacked(error)) is not None:
            raise refused from None
        if place is not None and isinstance(error, Exception) and is_full(error, place):
            raise full_disk(name) from None
        raise InputError(
            f"'{name}' cannot be written: the format cannot hold a column of the data, or the data could "
            f"not be read to its end ({type(error).__name__}), as where parts have other columns or types than the "
            "first. Nothing of it was written."
        ) from None


def _allowed(options: dict[str, Any], kind: str) -> dict[str, Any]:
    need_known(options, (*OPTIONS.get(kind, ()), "overwrite"), what="option", kind=ParameterError)
    return {name: value for name, value in options.items() if value is not None}


def _write_file(frame: Any, path: Path, kind: str, metadata: Metadata, **options: Any) -> None:
    query = spooling.in_one_pass(frame)
    if query is not None:
        _write_file(query, path, kind, metadata, **options)
    elif spooling.is_query(frame) and not (kind == "parquet" and spooling.writes_parquet(frame)):
        with spooling.spooled(frame, path.parent) as parts:
            _write_file(parts, path, kind, metadata, **options)
    elif kind == "csv":
        write_delimited(spooling.as_query(frame), path, style_of(path, metadata.reading, options))
    elif kind == "parquet":
        spooling.sink_parquet(frame, path)
    elif kind == "arrow":
        spooling.as_query(frame).sink_ipc(path)
    elif kind == "excel":
        from discreet.io.excel import write_excel

        write_excel(spooling.as_polars(frame), path, **options)
    else:
        from discreet.io.labelled import write_labelled

        write_labelled(spooling.as_polars(frame), path, kind, metadata)


def _write_table(
    frame: Any, uri: str, metadata: Metadata, *, overwrite: bool, table: str | None = None
) -> Path | str:
    address = parsed_address(uri)
    if not table:
        raise ParameterError(f"Writing to {address.shown} needs the name of a table: give table='people'.")
    _check_tables(address, table, metadata)
    with explained_by_engine(address.shown):
        table_of_rows = spooling.as_polars(frame)
    check_unchanged(metadata, frame)
    is_new = address.file is not None and not address.file.exists()
    if address.file is not None:
        check_target(address.file, overwrite=True)
    try:
        if address.engine == "duckdb":
            from discreet.io.duck import write_duckdb

            write_duckdb(table_of_rows, address, table=table, overwrite=overwrite)
        else:
            from discreet.io.sql import write_sql

            write_sql(table_of_rows, address, table=table, overwrite=overwrite)
    except BaseException as error:
        full = address.file is not None and is_full(error, address.file.parent)
        if address.file is not None and is_new:
            for ending in ("", ".wal", "-journal", "-wal", "-shm"):
                address.file.with_name(f"{address.file.name}{ending}").unlink(missing_ok=True)
        if full:
            raise full_disk(address.shown) from None
        raise
    note_written(f"{table} in {address.shown}")
    return address.file or address.shown


# How is a large file protected from file to file, so that a run that was stopped goes on? As parts with a manifest.
#
# The parts grow in a folder whose name says that it is unfinished. It takes its place only when all parts are there, so
# that nobody takes half a release for a whole one.


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
    for number, part in enumerate(spooling.in_parts(data, first * rows_per_part, rows_per_part), first):
        path = manifest.path(number)
        with replacing(path) as unfinished:
            part.write_parquet(unfinished)
        yield number, digest_of(path)
