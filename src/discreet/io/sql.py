"""Tables and queries of a database: SQLite, PostgreSQL and whatever else SQLAlchemy speaks.

PostgreSQL goes through ADBC where it is installed, which hands over Arrow columns; everything else through
SQLAlchemy. DuckDB has its own module, because its answers stay lazy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError, InputError, load_extra, need_known
from discreet.core.wording import type_name
from discreet.io.naming import Address, require_file

_REASONS = (
    ("authentication", "it refused the user name or password"),
    ("access denied", "it refused the user name or password"),
    ("timeout", "it did not answer in time"),
    ("timed out", "it did not answer in time"),
    ("refused", "nothing answers at that host and port"),
    ("resolve", "the host name is not known"),
    ("translate host", "the host name is not known"),
    ("does not exist", "the database or user does not exist"),
    ("not a database", "the file is no SQLite database"),
)
_BARE_NAME = re.compile(r"^[^\s;()]+$")
_READS = re.compile(
    r"^(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|table|from)\b", re.IGNORECASE | re.DOTALL
)
_TEXT = re.compile(r"'[^']*'")
_HARMLESS_PRAGMAS = frozenset(
    (
        "table_info",
        "table_xinfo",
        "table_list",
        "foreign_key_list",
        "index_list",
        "index_info",
        "read_uncommitted",
    )
)
_CANNOT_KEEP = (pl.Object, pl.Duration)


def is_table_name(query: str) -> bool:
    """Whether a query is just the name of a table.

    Examples
    --------
    >>> is_table_name("people"), is_table_name("public.people"), is_table_name("SELECT age FROM people")
    (True, True, False)
    """
    return bool(_BARE_NAME.match(query.strip()))


def need_query(query: str | None, address: Address) -> str:
    """Refuse to read a database without saying what, or with a statement that could change it."""
    if not query or not query.strip():
        raise InputError(
            f"The database {address.shown} needs a query: give query='SELECT …' or the name of a table, "
            "query='people'."
        )
    query = query.strip().rstrip(";")
    if not is_table_name(query) and not (_READS.match(query) and _is_one_statement(query)):
        raise only_reading(address)
    return query


def only_reading(address: Address) -> InputError:
    """Word the refusal of a query that does more than read."""
    return InputError(
        f"The query on {address.shown} must be one statement that only reads: begin it with SELECT (or WITH), or give "
        "the name of a table. It was not run."
    )


def _is_one_statement(query: str) -> bool:
    """Whether no second statement can hide in a query, whatever the rules of quoting of the database.

    A semicolon is let through inside a plain text in quotes only; where comments, backslashes or other quotes could
    shift what is a text, it is refused.
    """
    if ";" not in query:
        return True
    plain = not any(mark in query for mark in ("--", "/*", "$", "\\", "`", "#"))
    return plain and ";" not in _TEXT.sub("", query)


def read_sql(address: Address, query: str | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Run a query, or read a table, into memory; also return how it was read."""
    query = need_query(query, address)
    if address.engine == "sqlite":
        require_file(address)
    if address.engine == "postgresql" and _has_adbc():
        frame, route = _through_adbc(address, query), "adbc"
    else:
        frame, route = _through_sqlalchemy(address, query), "sqlalchemy"
    if frame.height == 0:
        raise InputError(f"The query on {address.shown} returned no records. Check its conditions.")
    return frame, {"format": address.engine, "route": route, "query": query, "rows": frame.height}


def write_sql(frame: pl.DataFrame, address: Address, *, table: str, overwrite: bool) -> None:
    """Write a frame as a table, in one transaction: the table is there whole or not at all."""
    sqlalchemy = load_extra("sqlalchemy", extra="sql", purpose="Writing to a database")
    engine = _engine(sqlalchemy, address)
    schema = frame.schema.items()
    columns = [sqlalchemy.Column(name, _column_type(sqlalchemy, name, dtype)) for name, dtype in schema]
    definition = sqlalchemy.Table(table, sqlalchemy.MetaData(), *columns)
    try:
        with _connected(engine, address) as connection, connection.begin():
            # SQLite's driver would commit each change of tables on its own.
            if address.engine == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if sqlalchemy.inspect(connection).has_table(table):
                if not overwrite:
                    raise InputError(
                        f"The table '{table}' already exists in {address.shown}. "
                        "Give another name, or overwrite=True to replace it."
                    )
                definition.drop(connection)
            definition.create(connection)
            for part in _plain_texts(frame).iter_slices(10_000):
                connection.execute(definition.insert(), part.to_dicts())
    except (sqlalchemy.exc.SQLAlchemyError, OverflowError) as error:
        raise InputError(
            f"The table '{table}' cannot be written to {address.shown} ({type(error).__name__}). "
            "Check that you may create tables there and that its types can hold the values; nothing was changed."
        ) from None
    finally:
        engine.dispose()


def _has_adbc() -> bool:
    return importlib.util.find_spec("adbc_driver_postgresql") is not None


def _through_adbc(address: Address, query: str) -> pl.DataFrame:
    driver = load_extra("adbc_driver_postgresql.dbapi", extra="sql", purpose="Reading PostgreSQL")
    uri = "postgresql://" + address.uri.partition("://")[2]
    try:
        connection = driver.connect(uri)
    except driver.Error as error:
        raise _unreachable(address, error) from None
    with connection, connection.cursor() as cursor:
        try:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(_select(query, '"'))
            table = cursor.fetch_arrow_table()
        except driver.Error as error:
            raise _refused(address, query, getattr(error, "sqlstate", None), str(error)) from None
    return _plain_decimals(table)


def _plain_decimals(table: Any) -> pl.DataFrame:
    """Turn NUMERIC columns, which the driver hands over as texts, into numbers."""
    opaque = [column.name for column in table.schema if getattr(column.type, "type_name", None) == "numeric"]
    for name in opaque:
        place = table.schema.get_field_index(name)
        column = table.column(place)
        table = table.set_column(place, name, column.cast(column.type.storage_type))
    frame = pl.DataFrame(pl.from_arrow(table))
    return frame.with_columns(pl.col(opaque).cast(pl.Float64))


def _through_sqlalchemy(address: Address, query: str) -> pl.DataFrame:
    sqlalchemy = load_extra("sqlalchemy", extra="sql", purpose="Reading a database")
    engine = _engine(sqlalchemy, address, reading=True)
    try:
        with _connected(engine, address) as connection:
            if address.engine == "postgresql":
                connection.execution_options(postgresql_readonly=True)
            try:
                frame: pl.DataFrame = pl.read_database(
                    _selection(sqlalchemy, connection, query, address), connection, infer_schema_length=None
                )
            except sqlalchemy.exc.SQLAlchemyError as error:
                state = getattr(getattr(error, "orig", None), "sqlstate", None)
                raise _refused(address, query, state, str(getattr(error, "orig", error))) from None
            except (pl.exceptions.PolarsError, TypeError, ValueError):
                raise InputError(
                    f"A column of the query on {address.shown} mixes types, for example texts and numbers. "
                    "Convert it in the query with CAST."
                ) from None
    finally:
        engine.dispose()
    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise ColumnError(f"The query names the column '{twice[0]}' twice. Rename one with AS.")
    decimals = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Decimal)]
    return frame.with_columns(pl.col(decimals).cast(pl.Float64))


def _engine(sqlalchemy: Any, address: Address, *, reading: bool = False) -> Any:
    uri = address.uri
    if reading and address.engine == "sqlite":
        # SQLite without a file name in its address would be kept open for all threads, were it pooled.
        open_file, no_pool = partial(_reading_sqlite, address), sqlalchemy.pool.NullPool
        return sqlalchemy.create_engine("sqlite://", creator=open_file, poolclass=no_pool)
    if address.file is not None:
        uri = f"{address.engine}:///{address.file}"
    elif uri.startswith("postgres://"):
        uri = "postgresql" + uri.removeprefix("postgres")
    try:
        return sqlalchemy.create_engine(uri)
    except ModuleNotFoundError as error:
        raise InputError(
            f"Reading {address.shown} needs the driver '{error.name}', which is not installed. "
            f"Install it with: pip install {error.name}."
        ) from None
    except sqlalchemy.exc.ArgumentError:
        raise InputError(
            f"There is no database driver for '{address.engine}://'. Known are duckdb, sqlite, postgresql and "
            "any other that SQLAlchemy has installed."
        ) from None


def _reading_sqlite(address: Address) -> sqlite3.Connection:
    """Open a SQLite file so that nothing but reading it is possible."""
    assert address.file is not None
    _undo_what_was_cut_short(address.file)
    connection = sqlite3.connect(f"{address.file.resolve().as_uri()}?mode=ro", uri=True)
    # A query may select from its tables and call functions; it may not attach other files or change settings.
    allowed = {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_TRANSACTION,
    }

    def decide(action: int, first: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_PRAGMA:
            return sqlite3.SQLITE_OK if first in _HARMLESS_PRAGMAS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(decide)
    return connection


def _undo_what_was_cut_short(file: Path) -> None:
    """Let SQLite take back the half of a change that a killed program left, which it cannot do while only reading.

    SQLite does so by itself when a file is opened for writing and nobody else is at work on it; the tables are then as
    they were before that change.
    """
    journal = file.with_name(f"{file.name}-journal")
    if not journal.exists() or journal.stat().st_size == 0:
        return
    place = f"{file.resolve().as_uri()}?mode=rw"
    # Who may not write reads on, and is told by SQLite where that fails.
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(place, uri=True)) as connection,
    ):
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _connected(engine: Any, address: Address) -> Any:
    try:
        return engine.connect()
    except Exception as error:
        raise _unreachable(address, error) from None


def _selection(sqlalchemy: Any, connection: Any, query: str, address: Address) -> Any:
    """Read a named table with the types it declares; a query comes with those the driver gives."""
    if not is_table_name(query):
        return sqlalchemy.text(query)
    schema, _, table = query.rpartition(".")
    inspector = sqlalchemy.inspect(connection)
    known = [*inspector.get_table_names(schema or None), *inspector.get_view_names(schema or None)]
    need_known([table], known, what="table", after=f" The database is {address.shown}.", kind=InputError)
    return sqlalchemy.select(
        sqlalchemy.Table(table, sqlalchemy.MetaData(), schema=schema or None, autoload_with=connection)
    )


def _select(query: str, quote: str) -> str:
    if not is_table_name(query):
        return query
    return "SELECT * FROM " + ".".join(
        f"{quote}{part}{quote}" for part in query.replace(quote, "").split(".")
    )


def _unreachable(address: Address, error: Exception) -> InputError:
    # The driver's own words may hold the user name or the whole address: only the reason is taken over.
    words = str(error).lower()
    reason = next((reason for sign, reason in _REASONS if sign in words), "it cannot be reached")
    return InputError(
        f"The database {address.shown} cannot be opened: {reason}. Check that it runs, and the host, port, "
        "database name and login."
    )


def _refused(address: Address, query: str, state: str | None, words: str) -> InputError:
    if is_table_name(query) and (state == "42P01" or "no such table" in words):
        return InputError(f"There is no table '{query}' in {address.shown}. Check its name and schema.")
    signs = ("syntax error", "no such column", "no such table", "no such function")
    # Faults of the query quote the query; any other message may quote data.
    if (state or "").startswith("42") or any(sign in words for sign in signs):
        return InputError(f"{address.shown} cannot run the query: {_first_line(words)}. Mend the query.")
    return InputError(
        f"{address.shown} stopped while running the query. Run it in the database's own tool to see why."
    )


def _first_line(words: str) -> str:
    line = next((line for line in words.splitlines() if line.strip()), "unknown fault")
    found = re.search(r"ERROR:\s*(.*)", words)
    return (found.group(1) if found else line).strip().rstrip(".")


def _column_type(sqlalchemy: Any, name: str, dtype: pl.DataType) -> Any:
    if dtype.is_nested() or dtype in _CANNOT_KEEP:
        raise ColumnError(
            f"Column '{name}' holds {type_name(dtype)} values, which a table cannot keep. Convert or drop it."
        )
    if dtype.is_integer():
        return sqlalchemy.BigInteger
    if dtype.is_numeric():
        return sqlalchemy.Double
    if isinstance(dtype, pl.Datetime) and dtype.time_zone:
        return sqlalchemy.DateTime(timezone=True)
    kinds: Sequence[tuple[Any, Any]] = (
        (pl.Boolean, sqlalchemy.Boolean),
        (pl.Date, sqlalchemy.Date),
        (pl.Datetime, sqlalchemy.DateTime),
        (pl.Time, sqlalchemy.Time),
        (pl.Binary, sqlalchemy.LargeBinary),
    )
    return next((kind for polars_type, kind in kinds if dtype == polars_type), sqlalchemy.Text)


def _plain_texts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String), pl.col(pl.Decimal).cast(pl.Float64)
    )
