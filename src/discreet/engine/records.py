"""From classes back to records, in the engine and the kind of frame of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from discreet.engine.classes import Missing, class_table, key_names
from discreet.engine.frames import Lazy, filler, has_row_order, in_memory, scan
from discreet.engine.roles import overview
from discreet.engine.units import all_suppressed, counted_unit, some_key_known
from discreet.microdata import Microdata


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
        return carry_back(data, keys, missing, _with_risk(table) if risk else table)
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


def _with_risk(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(risk=1 / pl.col("class_size"))


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
