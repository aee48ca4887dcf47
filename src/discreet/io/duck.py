"""DuckDB files: the answer to a query stays a DuckDB relation, computed where the data is."""

from __future__ import annotations

from typing import Any

from discreet.errors import InputError, load_extra, unknown_name
from discreet.io.address import Address, require_file
from discreet.io.sql import is_table_name, need_query, only_reading


def open_duckdb(address: Address, query: str | None) -> tuple[Any, dict[str, Any]]:
    """Open a query or a table of a DuckDB file, read only; also return how it was read."""
    duckdb = load_extra("duckdb", extra="duckdb", purpose="Reading DuckDB")
    query = need_query(query, address)
    file = require_file(address)
    try:
        connection = _closed_connection(duckdb, str(file))
    except duckdb.Error:
        raise InputError(
            f"The file '{file.name}' cannot be opened as a DuckDB database: it is damaged, of another format or "
            "in use by a program that writes to it. Close that program or give another file."
        ) from None
    try:
        # The relation keeps its connection alive for as long as somebody holds the relation.
        relation = connection.sql(_select(connection, query, address))
        if relation is None:
            raise InputError(f"The query on {address.shown} returns no table. Give a SELECT statement.")
        rows = relation.aggregate("count(*)").fetchall()[0][0]
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        words = str(error).splitlines()[0].rstrip(".!")
        raise InputError(f"{address.shown} cannot run the query: {words}. Mend the query.") from None
    except duckdb.PermissionException:
        raise InputError(
            f"The query on {address.shown} reaches for a file outside the database, which is not allowed. Read that "
            "file by itself, or load it into the database first."
        ) from None
    except duckdb.Error as error:
        raise InputError(
            f"{address.shown} stopped while running the query ({type(error).__name__}). "
            "Run it in DuckDB's own shell to see why."
        ) from None
    if rows == 0:
        raise InputError(f"The query on {address.shown} returned no records. Check its conditions.")
    return relation, {"format": "duckdb", "query": query, "rows": rows}


def write_duckdb(frame: Any, address: Address, *, table: str, overwrite: bool) -> None:
    """Write a Polars frame as a table, in one transaction: the table is there whole or not at all."""
    duckdb = load_extra("duckdb", extra="duckdb", purpose="Writing DuckDB")
    quoted = '"' + table.replace('"', '""') + '"'
    try:
        with duckdb.connect(str(address.file)) as connection:
            known = {
                name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            }
            if table in known and not overwrite:
                raise InputError(
                    f"The table '{table}' already exists in {address.shown}. "
                    "Give another name, or overwrite=True to replace it."
                )
            connection.register("discreet_source", frame.to_arrow())
            connection.execute("BEGIN")
            connection.execute(f"CREATE OR REPLACE TABLE {quoted} AS SELECT * FROM discreet_source")
            connection.execute("COMMIT")
    except duckdb.Error as error:
        raise InputError(
            f"The table '{table}' cannot be written to {address.shown} ({type(error).__name__}). Check that the "
            "file is no other program's and that you may write there; nothing was changed."
        ) from None


def _closed_connection(duckdb: Any, file: str) -> Any:
    """Open a database from which a query reaches neither files, nor the network, nor the variables of the program."""
    closed = {"enable_external_access": "false", "lock_configuration": "true"}
    return duckdb.connect(file, read_only=True, config=closed)


def _only_select(connection: Any, query: str, address: Address) -> str:
    """Take one statement, and one that DuckDB itself says is a SELECT."""
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        raise only_reading(address)
    return query


def _select(connection: Any, query: str, address: Address) -> str:
    if not is_table_name(query):
        return _only_select(connection, query, address)
    *schema, table = query.split(".")
    listed = connection.execute(
        "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    )
    known = [name for (name,) in listed.fetchall()]
    if table not in known:
        raise InputError(f"{unknown_name(table, known, what='table')} The database is {address.shown}.")
    return "SELECT * FROM " + ".".join('"' + part.replace('"', '""') + '"' for part in [*schema, table])
