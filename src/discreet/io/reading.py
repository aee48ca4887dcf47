"""One door for every source: `read` tells the format, reads the data, and finds its roles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError, InputError, ParameterError, is_panic, unknown_name
from discreet.core.native_libraries import quiet_panics
from discreet.core.roles import EXCLUSIVE, ROLES, Roles, columns_named
from discreet.core.values import check_calendar
from discreet.io.delimited import scan_delimited
from discreet.io.fingerprints import fingerprint_of
from discreet.io.naming import (
    FORMATS,
    checksum,
    existing_file,
    format_of,
    full_suffix,
    is_address,
    parsed_address,
)
from discreet.io.sidecar import Sidecar, load_sidecar, sidecar_path
from discreet.microdata import Metadata, Microdata

_LABELLED = ("spss", "stata", "sas", "xport")
_LONGEST_QUERY = 100_000
_LABELLED_OPTIONS = ("user_missing", "value_labels", "encoding")
OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": ("separator", "decimal", "encoding", "missing", "only_missing", "text", "dates"),
    "parquet": (),
    "arrow": (),
    "excel": ("sheet", "missing", "only_missing", "dates"),
    **dict.fromkeys(_LABELLED, _LABELLED_OPTIONS),
}


def read(
    source: str | os.PathLike[str],
    *,
    roles: Roles | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    query: str | None = None,
    **options: Any,
) -> Microdata:
    r"""Read a file or a database query, with the roles of its columns.

    Parameters
    ----------
    source
        A file (``.csv``, ``.csv.gz``, ``.tsv``, ``.parquet``, ``.arrow``, ``.feather``, ``.sav``, ``.zsav``,
        ``.dta``, ``.sas7bdat``, ``.xpt``, ``.xlsx``) or the address of a database (``sqlite:///people.db``,
        ``duckdb:///people.duckdb``, ``postgresql://host/database``, …).
    roles
        Roles, a mapping of them, or the path of a TOML file that holds them. Without this a sidecar
        ``survey.roles.toml`` next to ``survey.csv`` is used. Role keywords replace single roles of either.
    query
        For a database: a SELECT statement or the name of a table.
    **options
        The roles of `Microdata` (``keys=``, ``sensitive=``, ``weight=``, …), which go before ``roles``; and how
        to read: ``separator``, ``decimal``, ``encoding``, ``missing`` (beside the usual texts, or with
        ``only_missing=True`` instead of them), ``text`` (columns to keep as text) and ``dates`` (how dates are written:
        ``"dmy"``, ``"mdy"``, ``{"born": "%d/%m/%Y"}``; ``"text"`` leaves them) for delimited files, ``sheet``,
        ``missing`` and ``dates`` for Excel, ``user_missing="keep"``, ``value_labels="categories"`` and ``encoding``
        for SPSS, Stata and SAS.

    Returns
    -------
    Microdata
        Lazy for delimited, Parquet, Arrow and DuckDB sources. ``data.metadata.reading`` says how it was read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age;zip;pay\n30;01234;1,5\n31;09999;?\n")
    >>> data = read(file, keys=["age", "zip"], sensitive="pay")
    >>> data.frame.collect().rows()
    [(30, '01234', 1.5), (31, '09999', None)]
    >>> data.metadata.reading["separator"], data.metadata.source
    (';', 'people.csv')
    """
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"read takes the name of a file or the address of a database, not a {type(source).__name__}. "
            "A data frame goes straight into Microdata(frame, keys=…)."
        )
    given = {name: options.pop(name) for name in ROLES if name in options}
    given = {name: columns for name, columns in given.items() if columns is not None}
    options = {name: value for name, value in options.items() if value is not None}
    place = os.fspath(source)
    try:
        with quiet_panics():
            if is_address(place):
                return _read_database(place, query, _sidecar(None, roles), given, options)
            if query is not None:
                raise ParameterError("A query belongs to a database; a file is read whole. Leave query out.")
            return _read_file(existing_file(Path(place)), roles, given, options)
    except BaseException as error:
        if is_panic(error):
            raise InputError(
                f"'{parsed_address(place).shown if is_address(place) else Path(place).name}' holds something that its "
                "engine cannot read. Export it again, or as another format."
            ) from None
        raise


def options_for(source: str | os.PathLike[str]) -> tuple[str, ...]:
    """Name the reading options that fit a source, by its suffix; a database and an unknown suffix take none.

    Examples
    --------
    >>> options_for("people.xlsx"), options_for("people.parquet")
    (('sheet', 'missing', 'only_missing', 'dates'), ())
    """
    place = os.fspath(source)
    return () if is_address(place) else OPTIONS.get(FORMATS.get(full_suffix(Path(place)), ""), ())


def _read_file(path: Path, roles: Any, given: dict[str, Any], options: dict[str, Any]) -> Microdata:
    kind = format_of(path)
    _check_options(options, kind, path.name)
    sidecar = _sidecar(path, roles)
    known = {name: value for name, value in sidecar.reading.items() if name in OPTIONS[kind]}
    options = {**known, **options}
    metadata = Metadata()
    frame: Any
    if kind == "csv":
        frame, reading = scan_delimited(path, **options)
    elif kind in ("parquet", "arrow"):
        frame, reading = scan_columnar(path, kind)
    elif kind == "excel":
        from discreet.io.excel import read_excel

        frame, reading = read_excel(path, **options)
    else:
        from discreet.io.labelled import read_labelled

        frame, metadata, reading = read_labelled(path, kind, **options)
    seen = (fingerprint_of(path),) if kind in ("csv", "parquet", "arrow") else ()
    metadata = replace(
        metadata,
        source=path.name,
        checksum=checksum(path),
        reading=reading,
        fingerprints=seen,
        origins=((os.path.realpath(path), ""),),
    )
    uses_sidecar = roles is None
    chosen = _chosen(sidecar.roles, given)
    try:
        return Microdata(frame, **chosen, metadata=metadata)
    except ColumnError as error:
        if uses_sidecar and sidecar.roles != Roles():
            raise ColumnError(f"{error} The roles were read from '{sidecar_path(path).name}'.") from None
        raise


def _read_database(
    uri: str, query: str | None, sidecar: Sidecar, given: dict[str, Any], options: dict[str, Any]
) -> Microdata:
    address = parsed_address(uri)
    _check_options(options, None, address.shown)
    if query is not None and len(query) > _LONGEST_QUERY:
        raise ParameterError(
            f"The query has {len(query):,} characters, more than {_LONGEST_QUERY:,}. Make it a view of the database, "
            "or put its long lists into a table."
        )
    frame: Any
    if address.engine == "duckdb":
        from discreet.io.duck import open_duckdb

        frame, reading = open_duckdb(address, query)
    else:
        from discreet.io.sql import read_sql

        frame, reading = read_sql(address, query)
    source = address.file.name if address.file else address.shown
    place = os.path.realpath(address.file) if address.file else address.shown
    metadata = Metadata(source=source, reading=reading, origins=((place, query or ""),))
    return Microdata(frame, **_chosen(sidecar.roles, given), metadata=metadata)


def _check_options(options: Mapping[str, Any], kind: str | None, name: str) -> None:
    allowed = OPTIONS[kind] if kind else ()
    elsewhere = {option for known in OPTIONS.values() for option in known}
    for option in options:
        if option not in allowed and option in elsewhere:
            takes = f"takes {', '.join(allowed)}" if allowed else "needs no options of that kind"
            raise ParameterError(
                f"The option '{option}' is not for reading '{name}': {'a file' if kind else 'a source'} like that "
                f"{takes}. Leave it out."
            )
        if option not in allowed:
            raise ParameterError(
                f"{unknown_name(option, (*allowed, *ROLES), what='option')} It was given for reading '{name}'."
            )


def _sidecar(path: Path | None, roles: Any) -> Sidecar:
    if isinstance(roles, Roles):
        return Sidecar(roles=roles)
    if isinstance(roles, Mapping):
        return Sidecar(roles=Roles.of(**roles))
    if roles is not None:
        return load_sidecar(roles)
    beside = sidecar_path(path) if path else None
    return load_sidecar(beside) if beside and beside.is_file() else Sidecar()


def _chosen(roles: Roles, given: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the roles of the file that nobody named; a column that is named for another role leaves its own."""
    taken = {
        column
        for role, columns in given.items()
        if role in EXCLUSIVE
        for column in columns_named(columns, role)
    }
    kept: dict[str, Any] = {}
    for role in (field.name for field in fields(roles)):
        columns = getattr(roles, role)
        if role in EXCLUSIVE and role not in given and columns:
            left = tuple(name for name in columns_named(columns, role) if name not in taken)
            columns = left if isinstance(columns, tuple) else next(iter(left), None)
        kept[role] = columns
    return {**kept, **given}


# Parquet and Arrow (Feather) files, read as lazy frames.


def scan_columnar(path: Path, kind: str) -> tuple[pl.LazyFrame | pl.DataFrame, dict[str, Any]]:
    """Open a Parquet or Arrow file without loading it; also return how it was read."""
    try:
        frame = pl.scan_parquet(path, glob=False) if kind == "parquet" else _scan_arrow(path)
        rows = frame.lazy().select(pl.len()).collect().item()
        if rows:
            check_calendar(frame)
    except (pl.exceptions.PolarsError, OSError, ValueError):
        raise InputError(
            f"The file '{path.name}' cannot be read as {kind.capitalize()}: it is cut off, damaged or of "
            "another format. Copy or export it again."
        ) from None
    if rows == 0:
        raise InputError(f"The file '{path.name}' has columns but no records. Give a file with records.")
    return frame, {"format": kind, "rows": rows}


def _scan_arrow(path: Path) -> pl.LazyFrame | pl.DataFrame:
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return pl.scan_ipc(path, glob=False) if is_file else pl.read_ipc_stream(path)
