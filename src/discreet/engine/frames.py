"""How a frame of any engine becomes a lazy query, and how a result goes back in kind.

Inside a query columns carry neutral names (``k0``, ``k1``, ``s``, ``w``), because DuckDB and Spark do not tell
``n`` from ``N`` and a user's column may be called anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import narwhals as nw
import polars as pl

from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError, is_panic, unpacked
from discreet.core.native_libraries import quiet_panics
from discreet.core.results import Detail
from discreet.core.values import check_calendar
from discreet.core.wording import type_name
from discreet.microdata import Microdata

Lazy = nw.LazyFrame[Any]
WHOSE = "\0whose"
"""The name under which a query finds whose the records are, where the column itself is no longer in the file."""
_SAMPLE, _WHOLE = "a sample beside it", "the file it was drawn from"
_SMALL = 10_000  # records of a file in memory that is kept as it was read
T = TypeVar("T")
Table = pl.DataFrame | Mapping[str, Any] | Callable[[], Any]
"""A detail table, its columns, or what makes either."""


def remembered(data: Microdata, shelf: str, at: Hashable, make: Callable[[], T]) -> T:
    """Compute something of an (immutable) file once and keep it with the file."""
    held = data.memory.setdefault(shelf, {})
    if at not in held:
        held[at] = make()
    return cast(T, held[at])


def engine_name(data: Microdata) -> str:
    """Name the engine that holds the data: ``polars``, ``pandas``, ``pyarrow``, ``duckdb``, ``pyspark``…"""
    return str(data.wrapped.implementation)


def is_lazy(data: Microdata) -> bool:
    """Whether the file is a query that is not run yet, so that it may be larger than memory."""
    return isinstance(data.wrapped, nw.LazyFrame)


def known_by(data: Microdata, sample: Microdata) -> Microdata:
    """Return the same query, too large to hold, with a sample of it beside: measures count it where it is.

    Examples
    --------
    >>> query = Microdata(pl.LazyFrame({"age": range(1000)}))
    >>> sample_of(known_by(query, Microdata(pl.DataFrame({"age": [7, 8]})))).frame.height, sample_of(query)
    (2, None)
    """
    found = data.with_roles()
    found.memory.update({**data.memory, _SAMPLE: sample})
    return found


def sample_of(data: Microdata) -> Microdata | None:
    """Return the sample that stands beside a query that is too large to hold."""
    found: Microdata | None = data.memory.get(_SAMPLE)
    return found


def drawn_from(sample: Microdata, data: Microdata) -> Microdata:
    """Let a sample know the file that it was drawn from, so that a measure can ask that file what samples get wrong."""
    sample.memory[_WHOLE] = data
    return sample


def whole_of(data: Microdata) -> Microdata:
    """Return the file that a sample was drawn from; a file that is none itself."""
    found: Microdata = data.memory.get(_WHOLE, data)
    return found


def has_row_order(data: Microdata) -> bool:
    """Whether the records of the source stand in an order that means something."""
    return isinstance(data.wrapped, nw.DataFrame) or data.wrapped.implementation.is_polars()


def has_places(data: Microdata) -> bool:
    """Whether records have places by which the engine tells them apart, in whatever order it reads them."""
    return not data.wrapped.implementation.is_pyspark()


def need_record_key(data: Microdata, record_key: Sequence[str], purpose: str) -> None:
    """Refuse to choose among equal records where nothing tells them apart."""
    if not record_key and not has_places(data):
        raise ParameterError(
            f"{purpose} chooses among records with the same keys, and the records of Spark stand in no order by "
            "which they could be told apart. Name the column that does: record_key='id' (--record-key id)."
        )


def declared_levels(data: Microdata, name: str) -> list[Any]:
    """Read the levels that a category column declares, so that an empty one is not dropped."""
    dtype = data.schema[name]
    if isinstance(dtype, nw.Enum):
        return list(dtype.categories)
    if dtype == nw.Categorical and data.wrapped.implementation.is_pandas():
        series = data.wrapped.select(name)
        return list(series[name].cat.get_categories().to_list()) if isinstance(series, nw.DataFrame) else []
    return []


def scan(data: Microdata, columns: Mapping[str, str]) -> Lazy:
    """Open a lazy query on some columns, under new names: ``{new name: column}``.

    Missing is one thing afterwards: NaN of a float column becomes null.
    """
    wanted = tuple(dict.fromkeys(columns.values()))
    source, address = _addressable(_lazy(data, wanted), wanted)
    return source.select(
        *(_cleaned(data, column, address[column]).alias(name) for name, column in columns.items())
    )


def collect(
    source: Lazy | Microdata, columns: Sequence[str] | None = None, *, any_names: bool = False
) -> pl.DataFrame:
    """Bring a query, or the named columns of a file, into memory as Polars.

    The columns of a file keep their types; the counts of a query come back as 64-bit integers whatever the engine
    made of them. ``any_names`` says that the caller takes each column by itself, under another name, so that one
    called ``*`` stands for nothing else.
    """
    if isinstance(source, Microdata):
        names = tuple(columns) if columns is not None else source.columns
        # Counting gives columns neutral names; whoever has several in memory calls them by their own.
        if not any_names and len(names) > 1:
            source.need_plain_names(names)
        read = partial(_read, source, names)
        if not isinstance(source.wrapped, nw.DataFrame) or len(source.wrapped) > _SMALL:
            return read()
        # A query costs as much for ten records as for thousands; whoever fits again and again waits for nothing else.
        return remembered(source, "read", names, read).clone()
    return _with_plain_counts(in_memory(source))


def collected_batches(source: Lazy, rows: int) -> Iterator[pl.DataFrame]:
    """Run a query and hand its answer over so many rows at a time, types as `collect` gives them.

    Polars and DuckDB hold no more of it than that; what other engines answer comes as a whole.
    """
    native = source.to_native()
    parts: Iterator[pl.DataFrame]
    if isinstance(native, pl.LazyFrame):
        parts = iter(native.collect_batches(chunk_size=rows, lazy=True, engine="streaming"))
    elif source.implementation.is_duckdb():
        parts = (pl.DataFrame(pl.from_arrow(batch)) for batch in handed_over(native, rows))
    else:
        yield collect(source)
        return
    empty = True
    while True:
        with _in_plain_words():
            part = next(parts, None)
        if part is None:
            break
        check_calendar(part, named=False)
        yield _with_plain_counts(part)
        empty = False
    if empty:
        yield collect(source.head(0))


def _with_plain_counts(table: pl.DataFrame) -> pl.DataFrame:
    counts = [
        name for name, dtype in table.schema.items() if isinstance(dtype, pl.Decimal) and dtype.scale == 0
    ] + [name for name, dtype in table.schema.items() if dtype == pl.UInt32]
    return table.with_columns(pl.col(counts).cast(pl.Int64)) if counts else table


def _read(data: Microdata, names: tuple[str, ...]) -> pl.DataFrame:
    table = in_memory(scan(data, {name: name for name in names}), named=True)
    return table.with_columns(
        in_declared_order(table[name], data.schema[name])
        for name in dict.fromkeys(names)
        if name in data.schema
    )


def in_memory(source: Lazy, *, named: bool = False) -> pl.DataFrame:
    """Run a query to its end; Polars streams, so that a file larger than memory can be counted.

    ``named`` says that the columns of the query carry the user's names.
    """
    streaming = {"engine": "streaming"} if source.implementation.is_polars() else {}
    with _in_plain_words():
        table: pl.DataFrame = source.collect(backend="polars", **streaming).to_native()
    check_calendar(table, named=named)
    return table


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Say what an engine gave up at without its own words, which may quote data."""
    try:
        with quiet_panics():
            yield
    except Exception as error:
        raise _engine_error(error) from error
    except BaseException as error:
        if is_panic(error):
            raise _engine_error(error) from None
        raise


def like(data: Microdata, table: pl.DataFrame) -> Any:
    """Hand a small table to the user in the kind of frame they work with (Polars where it is a query engine)."""
    kind = data.wrapped.implementation
    if kind.is_pandas():
        return table.to_pandas()
    if kind.is_pyarrow():
        return table.to_arrow()
    return table


def tables_like(data: Microdata, **tables: Table) -> Detail:
    """Name the detail tables of a result, each handed over as `like` does; a function is called when it is asked for.

    A table by column is given as its columns; one that is in the user's kind of frame already stays as it is.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30, 41]}))
    >>> tables_like(people, records={"row": [1, 2]}, sizes=lambda: pl.DataFrame({"n": [2]}))["sizes"].item()
    2
    """

    def made(table: Table) -> Any:
        found = table() if callable(table) else table
        if isinstance(found, Mapping):
            found = pl.DataFrame(found)
        return like(data, found) if isinstance(found, pl.DataFrame) else found

    return Detail(**{name: partial(made, table) for name, table in tables.items()})


def filler(dtype: Any) -> Any:
    """Return a stand-in of the right type for a missing value; an is-missing flag travels beside it."""
    if dtype.is_numeric():
        return nw.lit(0).cast(dtype)
    if dtype == nw.Boolean:
        return nw.lit(False)
    if dtype.is_temporal():
        return nw.lit(0).cast(nw.Int64).cast(nw.String)
    return nw.lit("")


def _lazy(data: Microdata, columns: tuple[str, ...]) -> Lazy:
    """Open the source as a lazy frame; pandas and PyArrow columns go through Arrow into Polars, once each."""
    wrapped = data.wrapped
    aside = data.whose[1].alias(WHOSE) if data.whose and WHOSE in columns else None
    if wrapped.implementation.is_polars():
        source = wrapped if isinstance(wrapped, nw.LazyFrame) else wrapped.lazy()
        return source if aside is None else nw.from_native(source.to_native().with_columns(aside))
    if isinstance(wrapped, nw.LazyFrame):
        return wrapped
    if aside is not None:
        remembered(data, "columns", WHOSE, lambda: aside)
    parts = [remembered(data, "columns", column, partial(_to_polars, data, column)) for column in columns]
    return nw.from_native(pl.DataFrame(parts).lazy())


def _addressable(source: Lazy, columns: tuple[str, ...]) -> tuple[Lazy, dict[str, str]]:
    """Rename columns that Polars would take for a pattern: ``*`` means all of them, ``^a$`` those that match."""
    patterns = [name for name in columns if name == "*" or (name.startswith("^") and name.endswith("$"))]
    address = dict(zip(columns, columns, strict=True))
    if not patterns or not source.implementation.is_polars():
        return source, address
    plain = {name: f"discreet pattern {place}" for place, name in enumerate(patterns)}
    return source.rename(plain), address | plain


def in_declared_order(column: pl.Series, dtype: Any) -> pl.Series:
    """Give an ordered category its order back, which pandas, Arrow and DuckDB lose on the way into Polars.

    Parameters
    ----------
    column
        The column as it arrived.
    dtype
        Its type in the schema of the file.

    Examples
    --------
    >>> in_declared_order(pl.Series(["b", "a"], dtype=pl.Categorical), nw.Enum(["b", "a"])).sort().to_list()
    ['b', 'a']
    """
    if isinstance(dtype, nw.Enum) and column.dtype in (pl.Categorical, pl.String):
        return column.cast(pl.String).cast(pl.Enum(dtype.categories))
    return column


def _to_polars(data: Microdata, column: str) -> pl.Series:
    frame = data.wrapped
    assert isinstance(frame, nw.DataFrame)
    native = frame.get_column(column).to_native()
    if frame.implementation.is_pandas():
        return in_declared_order(_from_pandas(native, column), data.schema[column])
    try:
        return in_declared_order(pl.Series(column, frame.get_column(column).to_arrow()), data.schema[column])
    except Exception as error:
        raise ColumnError(
            f"Column '{column}' cannot be read as one type. Convert it before you start: {type(error).__name__}."
        ) from error


def _from_pandas(series: Any, column: str) -> pl.Series:
    """Convert one pandas column; an object column of mixed types is compared by its text."""
    series = series.reset_index(drop=True)
    try:
        return pl.Series(column, pl.from_pandas(series, nan_to_null=True))
    except Exception:
        missing = series.isna()
        text = series.astype(str).str.replace(r"^(-?\d+)\.0$", r"\1", regex=True)
        return pl.Series(column, pl.from_pandas(text.mask(missing, None).astype(object)))


def _cleaned(data: Microdata, column: str, address: str) -> nw.Expr:
    expression = nw.col(address)
    if column == WHOSE:
        return expression
    dtype = data.schema[column]
    if dtype == nw.Binary:
        raise ColumnError(
            f"Column '{column}' holds raw bytes, which cannot be compared. Convert it to text first, or leave it out."
        )
    if dtype.is_nested() or (dtype == nw.Object and not data.wrapped.implementation.is_pandas()):
        raise ColumnError(
            f"Column '{column}' holds {type_name(dtype)} values, which cannot be counted. Unpack it into "
            "plain columns first."
        )
    if dtype.is_float():
        return nw.when(~expression.is_nan()).then(expression)
    return expression


def _engine_error(error: BaseException) -> DiscreetError:
    refused = unpacked(error)
    if refused is not None:
        return refused
    kind = type(error).__name__
    if isinstance(error, MemoryError) or "memory" in kind.lower():
        return InputError(
            f"The engine ran out of memory ({kind}): the keys have too many combinations for what it may use. Raise "
            "its memory limit, or name fewer or coarser keys."
        )
    return InputError(
        f"The data could not be read to the end ({kind}). The file may be truncated, changed while it was read, "
        "or of another type further down than at its start; read it again, or convert the column first."
    )


# How does Polars read what DuckDB holds? Batch by batch, as a query that is not run yet.
#
# DuckDB hands a function of Python two thousand records at a time, and asking costs more than the work on so few. So
# a relation on which work on records stands has a second form beside it: the same records as a Polars query, which
# draws large batches from the relation underneath. Whoever passes over the records once (to write them, to add them
# up) takes that form; a query of the user runs in DuckDB as ever. A query that reads the records twice must not: the
# second reading would end the first, because they share a connection.


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
