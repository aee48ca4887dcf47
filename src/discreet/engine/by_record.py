"""Work on records one by one, where the data is: no engine hands over more than a batch at a time.

What becomes of a record is said by a function of a batch of records (`ByRecord`). A file in memory is one batch; Polars
and DuckDB call the function while they stream the file, Spark calls it on its executors. Whatever is drawn is drawn by
the number of the record (its place in the file, or what the user names as its key), so that the bytes do not depend on
the engine, nor on how it cuts the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Words
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.engine.frames import (
    Lazy,
    collect,
    in_declared_order,
    in_memory,
    passing_query,
    put_beside,
    quoted,
    remembered,
    scan,
)
from discreet.engine.record_batches import MADE, ByRecord, in_duckdb, in_polars, record_numbers
from discreet.engine.resolved_roles import overview
from discreet.engine.spark import different_whole_numbers, in_spark
from discreet.microdata import Microdata

_TOLD_APART = "record keys"
"""Where a file keeps by which columns its records are known to be told apart."""


def types_in_polars(data: Microdata, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Say which Polars types columns arrive in; no record is read."""
    none = in_memory(scan(data, {name: name for name in columns}).head(0), named=True)
    return {name: in_declared_order(none[name], data.schema[name]).dtype for name in columns}


def extremes(data: Microdata, column: str) -> tuple[float, float]:
    """Find the smallest and the largest number of a column; infinity on the wrong side where it has none."""
    found = collect(_passing(data, column).select(least=nw.col("x").min(), most=nw.col("x").max()))
    least, most = found.row(0)
    return (math.inf if least is None else float(least)), (-math.inf if most is None else float(most))


def spread(data: Microdata, column: str) -> float:
    """Give the standard deviation of a column, 0 for one that does not vary, to six significant digits.

    Engines add numbers up in different orders, which shows in the last digits; rounded, they agree. Distances from the
    least number are taken, scaled to at most 1, so that neither rounding nor overflow decides what is constant.
    """
    if data.wrapped.implementation.is_pyspark():
        at_once = _spread_at_once(data, column)
        if at_once is not None:
            return at_once
    least, most = extremes(data, column)
    if least > most:
        return 0.0
    if not (math.isfinite(least) and math.isfinite(most)):
        raise ColumnError(
            f"Column '{column}' holds infinite numbers, which have no spread. Make them missing, or top-code them "
            "first."
        )
    reach = most / 2 - least / 2
    if reach <= 0:
        return 0.0
    away = (nw.col("x").cast(nw.Float64) / 2 - least / 2) / reach
    rows = _passing(data, column).select(away.alias("away"))
    total, known = collect(rows.select(total=nw.col("away").sum(), known=nw.col("away").count())).row(0)
    if known < 2:
        return 0.0
    apart = (nw.col("away") - float(f"{total / known:.6g}")).alias("apart")
    moments = rows.select(apart).select(
        first=nw.col("apart").sum(), second=(nw.col("apart") * nw.col("apart")).sum()
    )
    first, second = collect(moments).row(0)
    return float(f"{2 * reach * math.sqrt(max(second - first * first / known, 0.0) / (known - 1)):.6g}")


def _spread_at_once(data: Microdata, column: str) -> float | None:
    """Ask Spark for the standard deviation in one pass; None where it might not be right to six digits.

    Spark updates means and squares as it goes, which loses digits only where the numbers are large beside their spread.
    """
    x = nw.col("x").cast(nw.Float64)
    asked = _passing(data, column).select(least=x.min(), most=x.max(), known=x.count(), deviation=x.std())
    least, most, known, deviation = collect(asked).row(0)
    if known < 2:
        return None
    far = max(abs(least), abs(most))
    plain = 1e-100 < far < 1e100 and most - least > 1e-3 * far
    return float(f"{deviation:.6g}") if plain and deviation > 1e-6 * (most - least) else None


def _passing(data: Microdata, column: str) -> Lazy:
    """Open a query that reads one column once, as ``x``."""
    query = passing_query(data.frame) if data.wrapped.implementation.is_duckdb() else None
    return scan(data if query is None else Microdata(query), {"x": column})


def check_record_key(data: Microdata, key: Sequence[str], *, purpose: str) -> None:
    """Refuse a key that does not tell the records apart: two records would share their draws. Asked once a plan."""
    needed = (
        f" It was named as record_key for {purpose}: a step that draws has to stand before one that leaves the column "
        "out."
    )
    need_known(key, data.columns, after=needed)
    remembered(data, _TOLD_APART, tuple(key), lambda: _tells_apart(data, key))


def _tells_apart(data: Microdata, key: Sequence[str]) -> bool:
    rows, missing, different = _counted_keys(data, key)
    gone = [name for name in key if missing[name]]
    if gone:
        raise ColumnError(
            f"The record key '{gone[0]}' is missing in {missing[gone[0]]:,} records. Name columns that tell "
            "all records apart."
        )
    count = different()
    if count < rows:
        raise ColumnError(
            f"The record key {', '.join(map(repr, key))} has {count:,} different values for {rows:,} records. "
            "Name columns that tell all records apart."
        )
    return True


def _counted_keys(data: Microdata, key: Sequence[str]) -> tuple[int, Mapping[str, int], Callable[[], int]]:
    """Count the records, the gaps of each key column and, when asked, the different keys."""
    if len(key) == 1 and data.wrapped.implementation.is_pyspark():
        found = different_whole_numbers(data, key[0])
        if found is not None:
            rows, missing, different = found
            return rows, {key[0]: missing}, lambda: different
    counted = overview(data, key)
    distinct = scan(data, {f"k{i}": name for i, name in enumerate(key)}).unique()
    return (
        counted.rows,
        counted.missing,
        lambda: int(collect(distinct.select(nw.len().cast(nw.Int64))).item()),
    )


def carry_over(data: Microdata, treated: Microdata, made: Sequence[str]) -> None:
    """Know of a treated query what was known before: no record came or went, and columns not made anew are the same."""
    same = {name for name in treated.columns if name in data.schema and name not in made}
    if "rows" in data.memory:
        treated.memory["rows"] = data.memory["rows"]
    missing = data.memory.get("missing", {})
    treated.memory["missing"] = {name: count for name, count in missing.items() if name in same}
    keys = data.memory.get(_TOLD_APART, {})
    treated.memory[_TOLD_APART] = {key: told for key, told in keys.items() if same.issuperset(key)}


def made_in_memory(
    data: Microdata, wanted: ByRecord, key: Sequence[str] = ()
) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """Do the work on a file that is brought into memory as one batch: what was read, and what was made of it."""
    table = collect(data, list(dict.fromkeys([*wanted.reads, *key])))
    numbers = record_numbers(table, key) if key else np.arange(table.height, dtype=np.uint64)
    made = wanted.work(table.select(wanted.reads), numbers)
    return table, {name: column.alias(name) for name, column in made.items()}


def made_lazily(
    data: Microdata, wanted: ByRecord, *, key: Sequence[str] = (), drop: Sequence[str] = (), purpose: str
) -> Any:
    """Return the frame with some columns made anew, as a query of the same engine that is not run yet."""
    kind = data.wrapped.implementation
    columns = [name for name in (*data.columns, *wanted.makes) if name not in drop]
    columns = list(dict.fromkeys(columns))
    if kind.is_polars():
        return in_polars(data, wanted, key, columns)
    if kind.is_duckdb():
        return in_duckdb(data, wanted, key, columns, purpose)
    if kind.is_pyspark():
        if wanted.draws and not key:
            raise ParameterError(
                f"{purpose} draws random numbers for each record, and the records of Spark stand in no order by which "
                "they could be told apart. Name the column that does: record_key='id' (--record-key id)."
            )
        return in_spark(data, wanted, key, columns)
    raise InputError(f"{purpose} cannot work on a query of {kind}. Collect it first.")


def without_columns(data: Microdata, drop: Sequence[str]) -> Any:
    """Return the frame without some columns, as a query that is not run yet."""
    native = data.frame
    if data.wrapped.implementation.is_duckdb():
        kept = native.project(", ".join(quoted(name) for name in data.columns if name not in drop))
        query = passing_query(native)
        return kept if query is None else put_beside(kept, query.drop(drop))
    return native.drop(*drop)


def changed_cells(data: Microdata, wanted: ByRecord, key: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count by column the cells that differ and those that became missing, in one pass where the data is."""
    there = [name for name in wanted.makes if name in data.schema]
    if not there:
        return {}
    counting = ByRecord(
        tuple(dict.fromkeys([*wanted.reads, *there])),
        {f"{MADE} {place}": pl.Int64() for place in range(2 * len(there))},
        _Counting(wanted, tuple(there)),
        wanted.draws,
    )
    frame = made_lazily(data, counting, key=key, drop=data.columns, purpose="counting")
    query = passing_query(frame) if data.wrapped.implementation.is_duckdb() else None
    flags: Lazy = nw.from_native(frame if query is None else query)
    sums = flags.select(*(nw.col(name).sum() for name in counting.makes))
    row = in_memory(sums).row(0)
    return {name: (int(row[2 * i] or 0), int(row[2 * i + 1] or 0)) for i, name in enumerate(there)}


def in_one_type(old: pl.Series, new: pl.Series) -> pl.DataFrame:
    """Bring the old and the new values to one type: numbers as numbers, everything else by its text."""
    if old.dtype == new.dtype and not old.dtype.is_float():
        return pl.DataFrame({"old": old, "new": new})
    numbers = old.dtype.is_numeric() and new.dtype.is_numeric()
    kind = pl.Float64() if numbers else pl.String()
    pair = pl.DataFrame({"old": old.cast(kind), "new": new.cast(kind)})
    return pair.fill_nan(None) if numbers else pair


@dataclass(frozen=True)
class _Counting:
    """Marks the cells of a batch that the work changes, and those it empties."""

    wanted: ByRecord
    there: tuple[str, ...]

    def __call__(self, table: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        made = self.wanted.work(table.select(self.wanted.reads), numbers)
        marks: dict[str, pl.Series] = {}
        for place, name in enumerate(self.there):
            pair = in_one_type(table[name], made[name])
            found = pair.select(
                differ=pl.col("old").ne_missing(pl.col("new")).cast(pl.Int64),
                gone=(pl.col("old").is_not_null() & pl.col("new").is_null()).cast(pl.Int64),
            )
            marks[f"{MADE} {2 * place}"], marks[f"{MADE} {2 * place + 1}"] = found["differ"], found["gone"]
        return marks
