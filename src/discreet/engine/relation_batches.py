"""How does Polars read what DuckDB holds? Batch by batch, as a query that is not run yet.

DuckDB hands a function of Python two thousand records at a time, and asking costs more than the work on so few. So a
relation on which work on records stands has a second form beside it: the same records as a Polars query, which draws
large batches from the relation underneath. Whoever passes over the records once (to write them, to add them up) takes
that form; a query of the user runs in DuckDB as ever. A query that reads the records twice must not: the second reading
would end the first, because they share a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

_ROWS = 100_000
_SAME_IN_POLARS = frozenset(
    ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
) | {"FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
_BESIDE: WeakKeyDictionary[Any, pl.LazyFrame] = WeakKeyDictionary()


def quoted(name: str) -> str:
    """Write the name of a column as DuckDB reads it."""
    return '"' + name.replace('"', '""') + '"'


def passing_query(relation: Any) -> pl.LazyFrame | None:
    """Give the Polars query that passes once over the records of a relation; None where it has none beside it."""
    return _BESIDE.get(relation)


def put_beside(relation: Any, query: pl.LazyFrame) -> Any:
    """Note that a query gives the same records as a relation, in the same order; return the relation."""
    _BESIDE[relation] = query
    return relation


def handed_over(relation: Any, rows: int) -> Iterator[Any]:
    """Run a relation and hand its records over as Arrow batches of so many."""
    reader = relation.to_arrow_reader(rows)
    try:
        yield from reader
    except OSError as error:
        # Arrow takes whatever stops DuckDB for a failure of the disk.
        raise RuntimeError(str(error)) from error
    finally:
        # Whoever stops early must not leave the connection waiting to be read to the end.
        reader.close()


def read_in_batches(relation: Any) -> pl.LazyFrame | None:
    """Read a relation as a Polars query, or take the one beside it.

    None where a column has a type that would not come out of Polars as DuckDB itself writes it.
    """
    known = passing_query(relation)
    if known is not None:
        return known
    from polars.io.plugins import register_io_source

    kinds = [str(kind) for kind in relation.dtypes]
    if not all(_comes_through(kind) for kind in kinds):
        return None
    written = {
        name: f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" if _is_enum(kind) else quoted(name)
        for name, kind in zip(relation.columns, kinds, strict=True)
    }

    def batches(
        columns: list[str] | None, wanted: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        chosen = relation.project(", ".join(written[name] for name in columns or written))
        for batch in handed_over(chosen if rows is None else chosen.limit(rows), _ROWS):
            table = pl.DataFrame(pl.from_arrow(batch))
            yield table if wanted is None else table.filter(wanted)

    none = pl.DataFrame(
        pl.from_arrow(relation.project(", ".join(written.values())).limit(0).to_arrow_table())
    )
    return register_io_source(batches, schema=none.schema)


def _is_enum(kind: str) -> bool:
    return kind.startswith("ENUM(")


def _comes_through(kind: str) -> bool:
    plain = not kind.endswith("]") and (kind in _SAME_IN_POLARS or kind.startswith("DECIMAL("))
    return plain or (_is_enum(kind) and kind.endswith(")"))
