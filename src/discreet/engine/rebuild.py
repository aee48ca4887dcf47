"""Put treated columns back into the user's own kind of frame, with types and column order kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.calendar_range import check_calendar
from discreet.engine.frames import collect, in_memory
from discreet.engine.records import uploaded
from discreet.microdata import Microdata


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
    if isinstance(data.wrapped, nw.DataFrame):
        return frame
    return queried(data, frame)


def in_kind(data: Microdata, frame: pl.DataFrame) -> Any:
    """Return new records in the kind of frame of a file, its column types kept where they can hold them."""
    kind = data.wrapped.implementation
    if kind.is_pandas():
        import pandas as pd

        old = data.frame.dtypes
        return pd.DataFrame(
            {name: _pandas_column(frame[name], old.get(name)) for name in frame.columns}, copy=False
        )
    if kind.is_pyarrow():
        return _as_arrow(data.frame.schema, frame)
    if isinstance(data.wrapped, nw.DataFrame):
        return frame
    return queried(data, frame)


def in_kind_alone(data: Microdata, frame: pl.DataFrame) -> Any:
    """Return new records in the kind of frame of a file and in types of their own; none of the file comes along."""
    kind = data.wrapped.implementation
    if kind.is_pandas():
        import pandas as pd

        return pd.DataFrame({name: _pandas_column(frame[name], None) for name in frame.columns}, copy=False)
    if kind.is_pyarrow():
        return frame.to_arrow()
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
    frame: pl.DataFrame,
    columns: Mapping[str, pl.Series],
    keep: pl.Series | None,
    order: Integers | None,
    drop: Sequence[str],
) -> pl.DataFrame:
    frame = frame.with_columns(series.alias(name) for name, series in columns.items()).drop(drop)
    if keep is not None:
        frame = frame.filter(keep)
    return frame if order is None else frame[order]


def _arrow(
    data: Microdata,
    columns: Mapping[str, pl.Series],
    keep: pl.Series | None,
    order: Integers | None,
    drop: Sequence[str],
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
    frame: Any,
    columns: Mapping[str, pl.Series],
    keep: pl.Series | None,
    order: Integers | None,
    drop: Sequence[str],
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
