"""The work on a batch of records, as each engine calls it.

Neutral names go in and come out, a record is known by its place or its key, and what is made has the types that were
declared. Polars calls the work while it streams, DuckDB likewise where a query of the user asks for the records; how
Spark calls it on its executors is said in `discreet.engine.spark`.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Words
from discreet.core.errors import DiscreetError, InputError, ParameterError, carried
from discreet.core.randomness import KeyedDraws
from discreet.core.values import canonical_text
from discreet.engine.frames import in_declared_order, in_memory, put_beside, quoted, read_in_batches
from discreet.microdata import Microdata

MADE = "discreet made"
_RECORD = "discreet record"
_KEY_OF_KEYS = KeyedDraws.of(0, "record key")
"""Turns what names a record into a number; nothing is drawn from it."""
_MOST_CODES = 256
"""How wide the whole numbers of a column may spread for their labels to be asked for one by one."""


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


@dataclass(frozen=True)
class Batch:
    """The work as an engine calls it: neutral names in, neutral names out, numbers from a place or a key."""

    wanted: ByRecord
    reads: tuple[str, ...]
    key: tuple[str, ...]
    kinds: tuple[Any, ...]
    levels: tuple[Any, ...]

    def __call__(self, table: pl.DataFrame, places: pl.Series | None) -> pl.DataFrame:
        """Make the new columns of a batch; ``places`` tells records apart where no key does."""
        if not table.height:
            return pl.DataFrame(schema=dict(zip(self.wanted.makes, self.kinds, strict=True)))
        # Frames made of columns, not selected from others: a query costs more than the work on a small batch.
        clean = pl.DataFrame(
            [
                in_declared_order(_without_nan(column), levels).alias(name)
                for name, levels, column in zip(self.reads, self.levels, table, strict=True)
            ]
        )
        if self.key:
            numbers = record_numbers(clean, self.key)
        elif places is not None:
            numbers = places.cast(pl.UInt64).to_numpy()
        else:
            numbers = np.zeros(table.height, dtype=np.uint64)
        try:
            made = self.wanted.work(pl.DataFrame([clean[name] for name in self.wanted.reads]), numbers)
        except DiscreetError as error:
            raise carried(error) from error
        kinds = zip(self.wanted.makes, self.kinds, strict=True)
        return pl.DataFrame([_fitted(made[name], kind).alias(name) for name, kind in kinds])


def _without_nan(column: pl.Series) -> pl.Series:
    # The sum tells whether there is any, infinite numbers of both signs apart.
    if column.dtype.is_float() and math.isnan(column.sum() or 0.0):
        return column.fill_nan(None)
    return column


def _fitted(column: pl.Series, kind: Any) -> pl.Series:
    if kind == column.dtype:
        return column
    if isinstance(column.dtype, pl.Enum):
        # The few levels are brought to the other type, and the records take theirs by number.
        fitted = column.dtype.categories.cast(kind, strict=False).gather(column.to_physical())
        if fitted.null_count() == column.null_count():
            return fitted
    if column.dtype in (pl.Enum, pl.Categorical):
        return column.cast(pl.String).cast(kind)
    return column.cast(kind)


def batch_of(data: Microdata, wanted: ByRecord, key: Sequence[str], kinds: Sequence[Any]) -> Batch:
    """Say how the work is called on the columns of a file."""
    reads = tuple(dict.fromkeys([*wanted.reads, *key]))
    return Batch(wanted, reads, tuple(key), tuple(kinds), tuple(data.schema[name] for name in reads))


def plain_kinds(wanted: ByRecord) -> list[Any]:
    """The types of what is made on engines that have no categories of their own."""
    return [
        pl.String() if kind == "labels" or isinstance(kind, pl.Enum | pl.Categorical) else kind
        for kind in wanted.makes.values()
    ]


def in_polars(data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str]) -> pl.LazyFrame:
    """Let Polars do the work while it streams."""
    kinds = [_levels(data, wanted, name) if kind == "labels" else kind for name, kind in wanted.makes.items()]
    return _streamed(data.frame, batch_of(data, wanted, key, kinds), columns)


def _streamed(source: pl.LazyFrame, batch: Batch, columns: Sequence[str]) -> pl.LazyFrame:
    wanted = batch.wanted
    numbered = wanted.draws and not batch.key
    source = source.with_row_index(_RECORD) if numbered else source
    read = [*batch.reads, *([_RECORD] if numbered else [])]

    def work(batched: pl.Series) -> pl.Series:
        table = batched.struct.unnest()
        places = table[_RECORD] if numbered else None
        return batch(table.select(batch.reads), places).to_struct(MADE)

    made = pl.struct(read).map_batches(
        work, return_dtype=pl.Struct(dict(zip(wanted.makes, batch.kinds, strict=True))), is_elementwise=True
    )
    fresh = {name: pl.col(MADE).struct.field(name) for name in wanted.makes}
    return source.with_columns(made.alias(MADE)).select(
        fresh[name].alias(name) if name in fresh else pl.col(name) for name in columns
    )


def _levels(data: Microdata, wanted: ByRecord, name: str) -> pl.Enum:
    """Ask which labels the file has, in the order of the numbers behind them."""
    batch = batch_of(data, wanted, (), plain_kinds(wanted))
    few = _few_codes(data, name)
    if few is not None:
        alone = pl.DataFrame(
            [few if each == name else _nothing(data, each, len(few)) for each in batch.reads]
        )
        return pl.Enum(batch(alone, None)[name].drop_nulls().unique(maintain_order=True))

    def work(batched: pl.Series) -> pl.Series:
        return batch(batched.struct.unnest(), None)[name]

    label = pl.struct(batch.reads).map_batches(work, return_dtype=pl.String(), is_elementwise=True)
    source: pl.LazyFrame = data.frame
    query = (
        source.select(pl.col(name).alias("old"), label.alias("new")).group_by("new").agg(pl.col("old").min())
    )
    found = in_memory(nw.from_native(query)).drop_nulls("new").sort("old")
    return pl.Enum(found["new"])


def in_duckdb(
    data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str], purpose: str
) -> Any:
    """Let DuckDB do the work where a query asks for the records, and Polars where somebody passes over them once."""
    import duckdb

    relation = data.frame
    connection = getattr(relation, "_con", None)
    if connection is None:
        raise InputError(
            f"{purpose} needs the connection behind a DuckDB relation, which this version of duckdb does not show. "
            "Upgrade it: pip install 'discreet[duckdb]'."
        )
    kinds = plain_kinds(wanted)
    batch = batch_of(data, wanted, key, kinds)
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
    parts = [f"r{i} := {quoted(name)}" for i, name in enumerate(batch.reads)]
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
    made = quoted(MADE)
    fresh = {column: f"{made}.m{i} AS {quoted(column)}" for i, column in enumerate(wanted.makes)}
    rest = [quoted(column) for column in columns if column not in fresh]
    inner = relation.project(", ".join([*rest, f"{name}(struct_pack({', '.join(parts)})) AS {made}"]))
    treated = inner.project(", ".join(fresh.get(column, quoted(column)) for column in columns))
    source = read_in_batches(relation)
    return treated if source is None else put_beside(treated, _streamed(source, batch, columns))


def _few_codes(data: Microdata, name: str) -> pl.Series | None:
    """Give the different values of a column of whole numbers, in order, where they lie close together."""
    if not data.schema[name].is_integer():
        return None
    source: pl.LazyFrame = data.frame
    ends = source.select(least=pl.col(name).min(), most=pl.col(name).max())
    least, most = in_memory(nw.from_native(ends)).row(0)
    if least is None or most - least > _MOST_CODES:
        return None
    return in_memory(nw.from_native(source.select(name).unique())).to_series().drop_nulls().sort()


def _nothing(data: Microdata, name: str, rows: int) -> pl.Series:
    source: pl.LazyFrame = data.frame
    return pl.repeat(None, rows, dtype=source.select(name).collect_schema()[name], eager=True).alias(name)


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
