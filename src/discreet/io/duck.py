"""DuckDB files: the answer to a query stays a DuckDB relation, computed where the data is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.core.errors import InputError, load_extra, need_known, unknown_name
from discreet.engine.frames import quoted
from discreet.io.naming import Address, require_file
from discreet.io.sql import is_table_name, need_query, only_reading

_PLAIN_NAME = re.compile(r"\w+")
_TABLE_FUNCTIONS = frozenset(("range", "generate_series", "unnest", "repeat", "json_each", "json_tree"))


def open_duckdb(address: Address, query: str | None) -> tuple[Any, dict[str, Any]]:
    """Open a query or a table of a DuckDB file, read only; also return how it was read."""
    duckdb = load_extra("duckdb", extra="duckdb", purpose="Reading DuckDB")
    query = need_query(query, address)
    file = require_file(address)
    try:
        connection = _reading_connection(duckdb, str(file))
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
            connection.execute(f"CREATE OR REPLACE TABLE {quoted(table)} AS SELECT * FROM discreet_source")
            connection.execute("COMMIT")
    except duckdb.Error as error:
        raise InputError(
            f"The table '{table}' cannot be written to {address.shown} ({type(error).__name__}). Check that the "
            "file is no other program's and that you may write there; nothing was changed."
        ) from None


def _reading_connection(duckdb: Any, file: str) -> Any:
    """Open a database for reading, with settings that no query can change and no extension loaded on the way."""
    settings = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    return duckdb.connect(file, read_only=True, config={**settings, "lock_configuration": "true"})


def _select(connection: Any, query: str, address: Address) -> str:
    listed = connection.execute(
        "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    )
    known = [name for (name,) in listed.fetchall()]
    if not is_table_name(query):
        return _only_select(connection, query, known, address)
    *schema, table = query.split(".")
    need_known([table], known, what="table", after=f" The database is {address.shown}.", kind=InputError)
    return "SELECT * FROM " + ".".join(map(quoted, [*schema, table]))


def _only_select(connection: Any, query: str, tables: Sequence[str], address: Address) -> str:
    """Take one statement that DuckDB itself says is a SELECT, from the tables of the database and nothing else.

    A name that is no table would be looked for among the files of the machine and the variables of the program. (To
    forbid DuckDB all files would also forbid it the tables that are handed to it in memory for a join.)
    """
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        raise only_reading(address)
    told = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()[0][0]
    try:
        read = json.loads(told)
    except RecursionError:
        raise InputError(
            f"The query on {address.shown} is nested too deep to be checked. Write it with WITH, or make it a view of "
            "the database. It was not run."
        ) from None
    if read.get("error"):
        raise only_reading(address)
    parts = list(_parts(read))
    own = {entry["key"] for part in parts for entry in part.get("cte_map", {}).get("map", ())}
    folded = {name.lower() for name in tables} | {name.lower() for name in own if _PLAIN_NAME.fullmatch(name)}
    for part in parts:
        if part.get("type") == "BASE_TABLE" and part["table_name"].lower() not in folded:
            raise InputError(
                f"{unknown_name(part['table_name'], list(tables), what='table')} The database is {address.shown}; a "
                "query reads its tables only."
            )
        if part.get("type") == "TABLE_FUNCTION" and _function(part["function"]) not in _TABLE_FUNCTIONS:
            raise InputError(
                f"The query on {address.shown} calls '{_function(part['function'])}', which may read outside the "
                "database. Read that file by itself, or load it into the database first."
            )
    return query


def _function(part: Mapping[str, Any]) -> str:
    return str(part["function_name"]).lower()


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    """Walk through all parts of a statement."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
