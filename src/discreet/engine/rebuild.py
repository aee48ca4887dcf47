"""Put treated columns back into the user's own kind of frame, with types and column order kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.values import check_calendar
from discreet.engine.classes import Missing, class_table, key_names
from discreet.engine.frames import Lazy, collect, filler, has_row_order, in_memory, scan
from discreet.engine.resolved_roles import all_suppressed, counted_unit, overview, some_key_known
from discreet.microdata import Microdata

Columns = Mapping[str, pl.Series]


def rebuilt(
    data: Microdata,
    columns: Mapping[str, pl.Series],
    *,
    keep: pl.Series | None = None,
    order: Integers | None = None,
    drop: Sequence[str] = (),
) -> Any:
    """Return the frame of the data with some columns replaced or added, in the kind that came in.

    Parameters
    ----------
    data
        The file as it was.
    columns
        New content by column, one value a record of the file as it was.
    keep
        True for the records that stay.
    order
        Positions, among the records that stay, in their new order.
    drop
        Columns to leave out.
    """
    kind = data.wrapped.implementation
    if kind.is_pandas():
        return _pandas(data.frame, columns, keep, order, drop)
    if kind.is_pyarrow():
        return _arrow(data, columns, keep, order, drop)
    frame = _polars(whole_frame(data), columns, keep, order, drop)
    return frame if isinstance(data.wrapped, nw.DataFrame) else queried(data, frame)


def in_kind(data: Microdata, frame: pl.DataFrame) -> Any:
    """Return new records in the kind of frame of a file, its column types kept where they can hold them."""
    return _new_records(data, frame, own_types=False)


def in_kind_alone(data: Microdata, frame: pl.DataFrame) -> Any:
    """Return new records in the kind of frame of a file and in types of their own; none of the file comes along."""
    return _new_records(data, frame, own_types=True)


def _new_records(data: Microdata, frame: pl.DataFrame, *, own_types: bool) -> Any:
    kind = data.wrapped.implementation
    if kind.is_pandas():
        import pandas as pd

        old = {} if own_types else data.frame.dtypes
        return pd.DataFrame(
            {name: _pandas_column(frame[name], old.get(name)) for name in frame.columns}, copy=False
        )
    if kind.is_pyarrow():
        return frame.to_arrow() if own_types else _as_arrow(data.frame.schema, frame)
    return frame if isinstance(data.wrapped, nw.DataFrame) else queried(data, frame)


def queried(data: Microdata, frame: pl.DataFrame) -> Any:
    """Hand a table over as a query of the engine that holds a file."""
    return frame.lazy() if data.wrapped.implementation.is_polars() else uploaded(data, frame).to_native()


def without_records(
    data: Microdata, frame: pl.DataFrame, levels: Mapping[str, pl.Series | None] | None = None
) -> Any:
    """Return the columns of a table in the kind of frame of the file, without records.

    Where ``levels`` were declared, the columns have the types of the table, which were declared too; a pandas category
    carries the declared levels and no value that was read.
    """
    kind = data.wrapped.implementation
    if levels is not None:
        made = in_kind_alone(data, frame.clear())
        if kind.is_pandas():
            for name, declared in levels.items():
                if declared is not None and name in made and hasattr(data.frame[name], "cat"):
                    made[name] = data.frame[name].head(0).cat.set_categories(declared.to_list())
        return made
    if kind.is_pandas():
        return data.frame[frame.columns].head(0).copy()
    if kind.is_pyarrow():
        return data.frame.select(frame.columns).schema.empty_table()
    return in_kind(data, frame.clear())


def whole_frame(data: Microdata) -> pl.DataFrame:
    """Collect every column of the file, NaN and all, without touching what is already Polars."""
    wrapped = data.wrapped
    if wrapped.implementation.is_polars():
        native: pl.DataFrame | pl.LazyFrame = wrapped.to_native()
        if isinstance(native, pl.LazyFrame):
            return in_memory(nw.from_native(native), named=True)
        check_calendar(native)
        return native
    return collect(data)


def _polars(
    frame: pl.DataFrame, columns: Columns, keep: pl.Series | None, order: Integers | None, drop: Sequence[str]
) -> pl.DataFrame:
    frame = frame.with_columns(series.alias(name) for name, series in columns.items()).drop(drop)
    if keep is not None:
        frame = frame.filter(keep)
    return frame if order is None else frame[order]


def _arrow(
    data: Microdata, columns: Columns, keep: pl.Series | None, order: Integers | None, drop: Sequence[str]
) -> Any:
    import pyarrow as pa

    table = data.frame
    for name, series in columns.items():
        fresh = series.to_arrow()
        position = table.schema.get_field_index(name)
        if position < 0:
            table = table.append_column(name, fresh)
            continue
        old = table.schema.field(position).type
        if _same_kind(old, fresh.type, pa):
            fresh = fresh.cast(old)
        table = table.set_column(position, name, pa.chunked_array([fresh]))
    table = table.drop_columns(list(drop))
    if keep is not None:
        table = table.filter(keep.to_arrow())
    return table if order is None else table.take(order)


def _as_arrow(schema: Any, frame: pl.DataFrame) -> Any:
    import pyarrow as pa

    table = frame.to_arrow()
    for position, name in enumerate(table.column_names):
        at = schema.get_field_index(name)
        if at >= 0 and _same_kind(schema.field(at).type, table.schema.field(position).type, pa):
            table = table.set_column(position, name, table.column(position).cast(schema.field(at).type))
    return table


def _same_kind(old: Any, new: Any, pa: Any) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary, pa.types.is_string_view)
    both_text = any(is_kind(old) for is_kind in texts) and any(is_kind(new) for is_kind in texts)
    same = (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal)
    return both_text or any(is_kind(old) and is_kind(new) for is_kind in same)


def _pandas(
    frame: Any, columns: Columns, keep: pl.Series | None, order: Integers | None, drop: Sequence[str]
) -> Any:
    frame = frame.copy(deep=False)
    for name, series in columns.items():
        fresh = _pandas_column(series, frame[name].dtype if name in frame.columns else None)
        fresh.index = frame.index
        frame[name] = fresh
    frame = frame.drop(columns=list(drop))
    if keep is not None:
        frame = frame[keep.to_numpy()]
    # Old index labels beside a new order would say where each record stood.
    return frame if order is None else frame.iloc[order].reset_index(drop=True)


def _pandas_column(series: pl.Series, old: Any) -> Any:
    """Convert a column, keeping whole numbers whole where values are missing and the old type where it fits."""
    import pandas as pd

    holes = series.null_count() > 0
    if series.dtype.is_integer() and holes:
        fresh = pd.Series(
            series.to_arrow().to_pandas(types_mapper={}.get, integer_object_nulls=True), dtype="Int64"
        )
    elif series.dtype == pl.Boolean and holes:
        fresh = pd.Series(series.to_arrow().to_pandas(), dtype="boolean")
    else:
        fresh = series.to_pandas()
    # Categories are equal to pandas in whatever order they stand; here the order must survive too.
    if old is None or (old == fresh.dtype and not isinstance(old, pd.CategoricalDtype)):
        return fresh
    if isinstance(old, pd.CategoricalDtype):
        if isinstance(series.dtype, pl.Enum) and series.dtype.categories.to_list() != list(old.categories):
            return fresh  # levels of its own, which were declared
        known = set(old.categories)
        values = series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series
        fits = set(values.drop_nulls().unique().to_list()) <= known
        return pd.Series(values.to_pandas(), dtype=old if fits else "category")
    try:
        converted = fresh.astype(old)
    except (TypeError, ValueError):
        return fresh
    same = pd.api.types.is_numeric_dtype(old) == pd.api.types.is_numeric_dtype(fresh.dtype)
    lossless = not pd.api.types.is_integer_dtype(old) or not series.dtype.is_float()
    return converted if same and lossless else fresh


# From classes back to records, in the engine and the kind of frame of the source.


def carry_back(
    data: Microdata,
    keys: Sequence[str],
    missing: Missing = "category",
    table: pl.DataFrame | None = None,
    *,
    risk: bool = False,
) -> Any:
    """Give every record what is known of its class, in the kind of frame that came in.

    Without a ``table`` that is ``class_size`` (and ``risk``, one over it, when asked for). With one, its columns
    other than ``k0``… are joined on, missing key values matching missing. The result holds ``record`` (the
    position, where records have an order), the identifiers and keys, and the new columns. A lazy source gives a
    lazy result.
    """
    names = key_names(keys)
    if table is None and counted_unit(data) is not None:
        table = class_table(data, keys, missing).select(*names, "class_size")
        table = table.with_columns(risk=1 / pl.col("class_size")) if risk else table
        return carry_back(data, keys, missing, table)
    about = {column: column for column in (*data.roles.identifiers, *keys)}
    rows = scan(data, {**names, **_neutral(about)})
    ordered = has_row_order(data)
    if ordered:
        rows = nw.from_native(rows.to_native().with_row_index("record").cast({"record": pl.Int64}))
    found = (
        _with_sizes(rows, names, data, keys, missing)
        if table is None
        else beside_classes(data, rows, table, names)
    )
    new = ["class_size"] if table is None else [column for column in table.columns if column not in names]
    if risk:
        found = found.with_columns((nw.lit(1.0) / nw.col("class_size").cast(nw.Float64)).alias("risk"))
        new.append("risk")
    chosen = found.select(
        *(["record"] if ordered else []),
        *(nw.col(name).alias(_beside(column, ("record", *new))) for name, column in _neutral(about).items()),
        *new,
    )
    return _in_kind(data, chosen)


def named_classes(keys: Sequence[str], table: pl.DataFrame) -> pl.DataFrame:
    """Give the key columns of a class table their own names back."""
    new = [column for column in table.columns if column not in key_names(keys)]
    return table.rename({name: _beside(key, new) for name, key in key_names(keys).items()})


def _beside(column: str, new: Sequence[str]) -> str:
    """Keep a user's column apart from a computed one of the same name."""
    return f"{column} (key)" if column in new else column


def _neutral(about: dict[str, str]) -> dict[str, str]:
    return {f"r{i}": column for i, column in enumerate(about)}


def _with_sizes(
    rows: Lazy, names: dict[str, str], data: Microdata, keys: Sequence[str], missing: Missing
) -> Lazy:
    """Count by window, which keeps the order and treats missing as a value on every engine."""
    size = nw.len().over(*names).cast(nw.Int64)
    rows = rows.with_columns(size.alias("class_size"))
    if missing == "drop" and any(overview(data, keys).missing.values()):
        complete = nw.all_horizontal(*(~nw.col(name).is_null() for name in names), ignore_nulls=False)
        rows = rows.with_columns(nw.when(complete).then(nw.col("class_size")).alias("class_size"))
    elif all_suppressed(data, keys):
        in_a_class = nw.when(some_key_known(names)).then(nw.col("class_size"))
        rows = rows.with_columns(in_a_class.alias("class_size"))
    return rows


def beside_classes(
    data: Microdata, rows: Lazy, table: pl.DataFrame, names: Sequence[str] | dict[str, str]
) -> Lazy:
    """Join a table of classes to the rows of a query by the key columns ``names``, missing values matching missing.

    The rows keep their order where the engine has one; those of no class of the table miss what it holds.
    """
    if rows.implementation.is_polars():
        native: pl.LazyFrame = rows.to_native()
        joined = native.join(
            table.lazy(), on=list(names), how="left", nulls_equal=True, maintain_order="left"
        )
        return nw.from_native(joined)
    return _null_safe_join(rows, uploaded(data, table), list(names))


def _null_safe_join(rows: Lazy, table: Lazy, on: list[str]) -> Lazy:
    """Join on value-or-filler plus an is-missing flag: a plain join loses records with missing keys."""
    left, right = _flagged(rows, on), _flagged(table, on)
    flags = [f"{name}_{part}" for name in on for part in ("gone", "known")]
    return left.join(right.drop(*on), on=flags, how="left")


def _flagged(frame: Lazy, on: list[str]) -> Lazy:
    schema = frame.collect_schema()
    parts = []
    for name in on:
        dtype, column = schema[name], nw.col(name)
        if dtype.is_temporal() or isinstance(dtype, nw.Categorical | nw.Enum):
            column = column.cast(nw.String)
            dtype = nw.String()
        known = nw.when(~column.is_null()).then(column).otherwise(filler(dtype))
        parts += [nw.col(name).is_null().alias(f"{name}_gone"), known.alias(f"{name}_known")]
    return frame.with_columns(*parts)


def uploaded(data: Microdata, table: pl.DataFrame) -> Lazy:
    """Hand a Polars table to the engine of the source."""
    arrow = table.to_arrow()
    native = data.frame
    if data.wrapped.implementation.is_duckdb():
        # DuckDB finds ``arrow`` by name in this scope, on the connection the relation belongs to.
        return _lazy_of(native.query("discreet_source", "select * from arrow"))
    if data.wrapped.implementation.is_pyspark():
        return _lazy_of(native.sparkSession.createDataFrame(arrow))
    return nw.from_native(table.lazy())


def _lazy_of(native: Any) -> Lazy:
    wrapped: Lazy = nw.from_native(native)
    return wrapped


def _in_kind(data: Microdata, found: Lazy) -> Any:
    kind = data.wrapped.implementation
    if isinstance(data.wrapped, nw.LazyFrame):
        return found.to_native()
    table = in_memory(found)
    if kind.is_pandas():
        frame = table.to_pandas()
        frame.index = data.frame.index
        return frame
    if kind.is_pyarrow():
        return table.to_arrow()
    return table
