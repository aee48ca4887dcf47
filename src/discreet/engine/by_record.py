"""Work on records one by one, where the data is: no engine hands over more than a batch at a time.

What becomes of a record is said by a function of a batch of records (`ByRecord`). A file in memory is one batch; Polars
and DuckDB call the function while they stream the file, Spark calls it on its executors. Whatever is drawn is drawn by
the number of the record (its place in the file, or what the user names as its key), so that the bytes do not depend on
the engine, nor on how it cuts the file.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.arrays import Words
from discreet.engine.frames import Lazy, collect, in_declared_order, in_memory, scan
from discreet.engine.roles import overview
from discreet.errors import ColumnError, DiscreetError, InputError, ParameterError, carried, unknown_name
from discreet.microdata import Microdata
from discreet.randomness import KeyedDraws
from discreet.value_text import canonical_text

_RECORD, _MADE = "discreet record", "discreet made"
_KEY_OF_KEYS = KeyedDraws.of(0, "record key")
"""Turns what names a record into a number; nothing is drawn from it."""


@dataclass(frozen=True)
class ByRecord:
    """What becomes of a record, whatever stands beside it.

    Attributes
    ----------
    reads
        The columns that the work looks at.
    makes
        The columns it makes with their types; ``"labels"`` for texts whose order is that of the numbers they stand for
        (the column of the same name), which a query of the distinct ones tells.
    work
        Makes the new columns of a batch: it is given the columns that are read, missing values being null, and the
        numbers of the records.
    draws
        Whether it looks at the numbers of the records.
    """

    reads: tuple[str, ...]
    makes: Mapping[str, pl.DataType | type[pl.DataType] | Literal["labels"]]
    work: Callable[[pl.DataFrame, Words], Mapping[str, pl.Series]]
    draws: bool = False


def is_lazy(data: Microdata) -> bool:
    """Whether the file is a query that is not run yet, so that it may be larger than memory."""
    return isinstance(data.wrapped, nw.LazyFrame)


def types_in_polars(data: Microdata, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Say which Polars types columns arrive in; no record is read."""
    none = in_memory(scan(data, {name: name for name in columns}).head(0), named=True)
    return {name: in_declared_order(none[name], data.schema[name]).dtype for name in columns}


def extremes(data: Microdata, column: str) -> tuple[float, float]:
    """Find the smallest and the largest number of a column; infinity on the wrong side where it has none."""
    found = collect(scan(data, {"x": column}).select(least=nw.col("x").min(), most=nw.col("x").max()))
    least, most = found.row(0)
    return (math.inf if least is None else float(least)), (-math.inf if most is None else float(most))


def spread(data: Microdata, column: str) -> float:
    """Give the standard deviation of a column, 0 for one that does not vary, to six significant digits.

    Engines add numbers up in different orders, which shows in the last digits; rounded, they agree. Distances from the
    least number are taken, scaled to at most 1, so that neither rounding nor overflow decides what is constant.
    """
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
    rows = scan(data, {"x": column}).select(away.alias("away"))
    total, known = collect(rows.select(total=nw.col("away").sum(), known=nw.col("away").count())).row(0)
    if known < 2:
        return 0.0
    apart = (nw.col("away") - float(f"{total / known:.6g}")).alias("apart")
    moments = rows.select(apart).select(
        first=nw.col("apart").sum(), second=(nw.col("apart") * nw.col("apart")).sum()
    )
    first, second = collect(moments).row(0)
    return float(f"{2 * reach * math.sqrt(max(second - first * first / known, 0.0) / (known - 1)):.6g}")


def check_record_key(data: Microdata, key: Sequence[str], *, purpose: str) -> None:
    """Refuse a key that does not tell the records apart: two records would share their draws."""
    for name in key:
        if name not in data.schema:
            raise ColumnError(
                f"{unknown_name(name, data.columns)} It was named as record_key for {purpose}: a step that draws has "
                "to stand before one that leaves the column out."
            )
    counted = overview(data, key)
    gone = [name for name in key if counted.missing[name]]
    if gone:
        raise ColumnError(
            f"The record key '{gone[0]}' is missing in {counted.missing[gone[0]]:,} records. Name columns that tell "
            "all records apart."
        )
    names = {f"k{i}": name for i, name in enumerate(key)}
    different = scan(data, names).unique().select(nw.len().cast(nw.Int64))
    count = int(collect(different).item())
    if count < counted.rows:
        raise ColumnError(
            f"The record key {', '.join(map(repr, key))} has {count:,} different values for {counted.rows:,} records. "
            "Name columns that tell all records apart."
        )


def record_numbers(table: pl.DataFrame, key: Sequence[str]) -> Words:
    """Give every record the number that its key stands for, the same whatever type an engine keeps it in.

    Examples
    --------
    >>> one, other = (record_numbers(pl.DataFrame({"id": ids}), ["id"]) for ids in ([7, 8], [7.0, 9.0]))
    >>> bool(one[0] == other[0]), bool(one[1] == other[1])
    (True, False)
    """
    numbers = np.zeros(table.height, dtype=np.uint64)
    for place, name in enumerate(key):
        values = table[name]
        texts = canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)
        own = _KEY_OF_KEYS.of_texts(texts.fill_null(""))
        numbers = own if not place else _KEY_OF_KEYS.words(numbers) ^ _KEY_OF_KEYS.words(own, place)
    return numbers


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
        return _in_polars(data, wanted, key, columns)
    if kind.is_duckdb():
        return _in_duckdb(data, wanted, key, columns, purpose)
    if kind.is_pyspark():
        if wanted.draws and not key:
            raise ParameterError(
                f"{purpose} draws random numbers for each record, and the records of Spark stand in no order by which "
                "they could be told apart. Name the column that does: record_key='id' (--record-key id)."
            )
        return _in_spark(data, wanted, key, columns)
    raise InputError(f"{purpose} cannot work on a query of {kind}. Collect it first.")


def without_columns(data: Microdata, drop: Sequence[str]) -> Any:
    """Return the frame without some columns, as a query that is not run yet."""
    native = data.frame
    if data.wrapped.implementation.is_duckdb():
        return native.project(", ".join(_quoted(name) for name in data.columns if name not in drop))
    return native.drop(*drop)


def changed_cells(data: Microdata, wanted: ByRecord, key: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count by column the cells that differ and those that became missing, in one pass where the data is."""
    there = [name for name in wanted.makes if name in data.schema]
    if not there:
        return {}
    counting = ByRecord(
        tuple(dict.fromkeys([*wanted.reads, *there])),
        {f"{_MADE} {place}": pl.Int64() for place in range(2 * len(there))},
        _Counting(wanted, tuple(there)),
        wanted.draws,
    )
    frame = made_lazily(data, counting, key=key, drop=data.columns, purpose="counting")
    flags: Lazy = nw.from_native(frame)
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
            marks[f"{_MADE} {2 * place}"], marks[f"{_MADE} {2 * place + 1}"] = found["differ"], found["gone"]
        return marks


@dataclass(frozen=True)
class _Batch:
    """The work as an engine calls it: neutral names in, neutral names out, numbers from a place or a key."""

    wanted: ByRecord
    reads: tuple[str, ...]
    key: tuple[str, ...]
    kinds: tuple[Any, ...]
    levels: tuple[Any, ...]

    def __call__(self, table: pl.DataFrame, places: pl.Series | None) -> pl.DataFrame:
        if not table.height:
            return pl.DataFrame(schema=dict(zip(self.wanted.makes, self.kinds, strict=True)))
        clean = table.select(
            in_declared_order(column.fill_nan(None) if column.dtype.is_float() else column, levels).alias(
                name
            )
            for name, levels, column in zip(self.reads, self.levels, table, strict=True)
        )
        if self.key:
            numbers = record_numbers(clean, self.key)
        elif places is not None:
            numbers = places.cast(pl.UInt64).to_numpy()
        else:
            numbers = np.zeros(table.height, dtype=np.uint64)
        try:
            made = self.wanted.work(clean.select(self.wanted.reads), numbers)
        except DiscreetError as error:
            raise carried(error) from error
        kinds = zip(self.wanted.makes, self.kinds, strict=True)
        return pl.DataFrame([_fitted(made[name], kind).alias(name) for name, kind in kinds])


def _fitted(column: pl.Series, kind: Any) -> pl.Series:
    if kind == column.dtype:
        return column
    return (
        column.cast(pl.String).cast(kind) if column.dtype in (pl.Enum, pl.Categorical) else column.cast(kind)
    )


def _batch(data: Microdata, wanted: ByRecord, key: Sequence[str], kinds: Sequence[Any]) -> _Batch:
    reads = tuple(dict.fromkeys([*wanted.reads, *key]))
    return _Batch(wanted, reads, tuple(key), tuple(kinds), tuple(data.schema[name] for name in reads))


def _plain_kinds(wanted: ByRecord) -> list[Any]:
    """The types of what is made on engines that have no categories of their own."""
    return [
        pl.String() if kind == "labels" or isinstance(kind, pl.Enum | pl.Categorical) else kind
        for kind in wanted.makes.values()
    ]


def _in_polars(data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str]) -> pl.LazyFrame:
    kinds = [_levels(data, wanted, name) if kind == "labels" else kind for name, kind in wanted.makes.items()]
    batch = _batch(data, wanted, key, kinds)
    numbered = wanted.draws and not key
    source: pl.LazyFrame = data.frame
    source = source.with_row_index(_RECORD) if numbered else source
    read = [*batch.reads, *([_RECORD] if numbered else [])]

    def work(batched: pl.Series) -> pl.Series:
        table = batched.struct.unnest()
        places = table[_RECORD] if numbered else None
        return batch(table.select(batch.reads), places).to_struct(_MADE)

    made = pl.struct(read).map_batches(
        work,
        return_dtype=pl.Struct(dict(zip(wanted.makes, kinds, strict=True))),
        is_elementwise=True,
    )
    fresh = {name: pl.col(_MADE).struct.field(name) for name in wanted.makes}
    return source.with_columns(made.alias(_MADE)).select(
        fresh[name].alias(name) if name in fresh else pl.col(name) for name in columns
    )


def _levels(data: Microdata, wanted: ByRecord, name: str) -> pl.Enum:
    """Ask which labels the file has, in the order of the numbers behind them."""
    batch = _batch(data, wanted, (), _plain_kinds(wanted))

    def work(batched: pl.Series) -> pl.Series:
        return batch(batched.struct.unnest(), None)[name]

    label = pl.struct(batch.reads).map_batches(work, return_dtype=pl.String(), is_elementwise=True)
    source: pl.LazyFrame = data.frame
    query = (
        source.select(pl.col(name).alias("old"), label.alias("new")).group_by("new").agg(pl.col("old").min())
    )
    found = in_memory(nw.from_native(query)).drop_nulls("new").sort("old")
    return pl.Enum(found["new"])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _in_duckdb(
    data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str], purpose: str
) -> Any:
    import duckdb

    relation = data.frame
    connection = getattr(relation, "_con", None)
    if connection is None:
        raise InputError(
            f"{purpose} needs the connection behind a DuckDB relation, which this version of duckdb does not show. "
            "Upgrade it: pip install 'discreet[duckdb]'."
        )
    kinds = _plain_kinds(wanted)
    batch = _batch(data, wanted, key, kinds)
    numbered = wanted.draws and not key
    if numbered:
        _need_insertion_order(relation, purpose)

    def work(batched: Any) -> Any:
        table = pl.Series(pl.from_arrow(batched)).struct.unnest()
        places = table.to_series(-1) - 1 if numbered else None
        made = batch(table[:, : len(batch.reads)], places)
        return made.rename({n: f"m{i}" for i, n in enumerate(made.columns)}).to_struct("made").to_arrow()

    held = dict(zip(relation.columns, relation.dtypes, strict=True))
    taken = {f"r{i}": held[name] for i, name in enumerate(batch.reads)}
    parts = [f"r{i} := {_quoted(name)}" for i, name in enumerate(batch.reads)]
    if numbered:
        taken["place"], parts = "BIGINT", [*parts, "place := row_number() over ()"]
    example = pl.DataFrame(schema={f"m{i}": kind for i, kind in enumerate(kinds)}).to_arrow()
    given = connection.from_arrow(example)
    name = f"discreet_{secrets.token_hex(8)}"
    connection.create_function(
        name,
        work,
        [duckdb.struct_type(taken)],
        duckdb.struct_type(dict(zip(given.columns, given.dtypes, strict=True))),
        type="arrow",
        null_handling="special",
    )
    made = _quoted(_MADE)
    fresh = {column: f"{made}.m{i} AS {_quoted(column)}" for i, column in enumerate(wanted.makes)}
    rest = [_quoted(column) for column in columns if column not in fresh]
    inner = relation.project(", ".join([*rest, f"{name}(struct_pack({', '.join(parts)})) AS {made}"]))
    return inner.project(", ".join(fresh.get(column, _quoted(column)) for column in columns))


def _need_insertion_order(relation: Any, purpose: str) -> None:
    kept = relation.query("discreet_source", "SELECT current_setting('preserve_insertion_order')").fetchall()[
        0
    ][0]
    if not kept:
        raise ParameterError(
            f"{purpose} draws random numbers by the place of a record, and this DuckDB connection keeps no order "
            "(preserve_insertion_order is off). Name a column that tells records apart: record_key='id' "
            "(--record-key id)."
        )


def _in_spark(data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str]) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    kinds = _plain_kinds(wanted)
    batch = _batch(data, wanted, key, kinds)
    empty = pl.DataFrame(schema=dict(zip(wanted.makes, kinds, strict=True)))
    fresh = from_arrow_schema(empty.to_arrow(compat_level=pl.CompatLevel.oldest()).schema)
    old = data.frame.schema
    fields = [fresh[name] if name in wanted.makes else old[name] for name in columns]
    work = _OnExecutors(batch, tuple(columns))
    return data.frame.mapInArrow(work, StructType(fields))


@dataclass(frozen=True)
class _OnExecutors:
    """The work as Spark calls it: Arrow batches in, Arrow batches out."""

    batch: _Batch
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for each in batches:
            table = pl.DataFrame(pl.from_arrow(each.select(list(self.batch.reads))))
            made = self.batch(table, None).to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
            arrays = []
            for name in self.columns:
                if name in made.schema.names:
                    column = made.column(name)
                    whole = column.chunk(0) if column.num_chunks else pa.array([], column.type)
                    arrays.append(whole.cast(pa.string()) if pa.types.is_large_string(whole.type) else whole)
                else:
                    arrays.append(each.column(name))
            yield pa.RecordBatch.from_arrays(arrays, names=list(self.columns))
