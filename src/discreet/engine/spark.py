"""Work on records one by one as columns of a Spark query.

Only the columns that a step reads and those that it makes pass between Spark and Python; the others stay where they
are. Steps that follow one another are columns of one query on the frame they started from, and Spark calls all of them
in one pass. A step that builds on an earlier one is done in the same call; where nobody asks for a column, the work
behind it is not done either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import narwhals as nw
import polars as pl

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.engine.frames import collect
from discreet.engine.record_batches import Batch, ByRecord, batch_of, plain_kinds
from discreet.microdata import Microdata

_MADE_FROM: WeakKeyDictionary[Any, tuple[Any, tuple[Calls, ...]]] = WeakKeyDictionary()
"""What a frame of Spark was made from, and by which calls."""


def in_spark(data: Microdata, wanted: ByRecord, key: Sequence[str], columns: Sequence[str]) -> Any:
    """Let the executors of Spark do the work."""
    from pyspark.sql import functions

    source, earlier = _MADE_FROM.get(data.frame, (data.frame, ()))
    calls = _with_step(earlier, batch_of(data, wanted, key, plain_kinds(wanted)))
    rows = _as_rows(source)
    held = list(source.columns)
    made: dict[str, Any] = {}
    for call in calls:
        needed = [name for name in call.reads if name in held] or held[:1]
        made |= call.columns({name: functions.col(_quoted(name)) for name in needed})
    treated = rows.select(*(made.get(name, functions.col(_quoted(name))).alias(name) for name in columns))
    _MADE_FROM[treated] = source, calls
    return treated


@dataclass(frozen=True)
class Calls:
    """Steps of which each builds on an earlier one, with the places they have in the plan: one call of Python."""

    steps: tuple[tuple[int, Batch], ...]

    @property
    def makes(self) -> dict[str, Any]:
        """What they make, with the types in Polars."""
        made: dict[str, Any] = {}
        for _, batch in self.steps:
            made |= dict(zip(batch.wanted.makes, batch.kinds, strict=True))
        return made

    @property
    def reads(self) -> tuple[str, ...]:
        """What they need of the frame they started from."""
        known: set[str] = set()
        needed: dict[str, None] = {}
        for _, batch in self.steps:
            needed |= dict.fromkeys(name for name in batch.reads if name not in known)
            known |= set(batch.wanted.makes)
        return tuple(needed)

    def columns(self, given: dict[str, Any]) -> dict[str, Any]:
        """Write the columns that are made as columns of Spark."""
        import pyarrow as pa
        from pyspark.sql.functions import arrow_udf
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructField, StructType

        makes = self.makes
        arrow = pl.DataFrame(schema=makes).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        types = [field.dataType for field in from_arrow_schema(arrow).fields]
        # Fields have neutral names: Spark does not tell `n` from `N`.
        struct = StructType([StructField(f"m{place}", kind) for place, kind in enumerate(types)])
        alone = len(types) == 1
        work = _OnExecutors(tuple(batch for _, batch in self.steps), tuple(given), tuple(makes))

        def made(*arrays: Any) -> Any:
            return work(arrays)

        made.__annotations__ = dict.fromkeys(
            ("arrays", "return"), pa.Array
        )  # tells Spark what it is called with
        called = arrow_udf(made, types[0] if alone else struct)(*given.values())
        if alone:
            return dict.fromkeys(makes, called)
        return {name: called.getField(f"m{place}") for place, name in enumerate(makes)}


def _with_step(calls: Sequence[Calls], batch: Batch) -> tuple[Calls, ...]:
    """Put one more step to the calls on whose columns it builds; one that builds on none is a call of its own."""
    place = sum(len(call.steps) for call in calls)
    touched = {*batch.reads, *batch.wanted.makes}
    joined = [call for call in calls if touched & set(call.makes)]
    steps = sorted((step for call in joined for step in call.steps), key=lambda step: step[0])
    return (*(call for call in calls if call not in joined), Calls((*steps, (place, batch))))


def _as_rows(source: Any) -> Any:
    """Hand records to Python as the rows of Spark.

    Since Spark 4.2 a file that is read by columns goes to Python by columns, but only what Arrow holds already takes
    the short way; a Parquet file is made rows, columns and rows again, which costs more than to write it. A filter that
    every record passes keeps to rows.
    """
    from pyspark.sql import functions

    return source.filter(functions.spark_partition_id() >= 0)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class _OnExecutors:
    """The steps of a call as Spark calls them: arrays of Arrow in, one array out, of structs for several columns."""

    batches: tuple[Batch, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    def __call__(self, arrays: Sequence[Any]) -> Any:
        import pyarrow as pa

        table = pl.DataFrame(pl.from_arrow(pa.RecordBatch.from_arrays(list(arrays), names=list(self.reads))))
        for batch in self.batches:
            made = batch(pl.DataFrame([table[name] for name in batch.reads]), None)
            table = table.with_columns(made.get_columns())
        columns = [_plain(table[name]) for name in self.makes]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, names=[f"m{place}" for place in range(len(columns))])


def _plain(column: pl.Series) -> Any:
    """Give a column in the oldest layout of Arrow, with the short offsets that Spark reads."""
    import pyarrow as pa

    array = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


# How many different whole numbers has a column of Spark?
#
# A bit for each number, 32,768 of them in a map: where record keys lie close together, as running numbers do, the maps
# are far smaller than the keys, and the executors exchange them instead. The answer is exact.


_BITS = 15
"""A map of Spark holds two to the power of this many bits."""
_BYTES_OF_MAP = 4096
_BYTES_PER_RECORD = 16
"""What an exchange of the keys themselves would take."""


def different_whole_numbers(data: Microdata, column: str) -> tuple[int, int, int] | None:
    """Count the records, those that miss the number, and the different numbers; None where maps would be too many."""
    from pyspark.sql import functions

    if not data.schema[column].is_integer():
        return None
    number = functions.col(_quoted(column)).cast("bigint")
    rows = data.frame.select(number.alias("x"))
    # By part, since a map is made in every part that has a number of it.
    ends = rows.groupBy(functions.spark_partition_id().alias("part")).agg(
        functions.min(functions.shiftright("x", _BITS)).alias("least"),
        functions.max(functions.shiftright("x", _BITS)).alias("most"),
        functions.count("*").alias("records"),
        functions.count("x").alias("known"),
    )
    parts = _answer(ends)
    records, known = int(parts["records"].sum()), int(parts["known"].sum())
    maps = sum(most - least + 1 for least, most in parts.select("least", "most").drop_nulls().rows())
    if maps * _BYTES_OF_MAP > _BYTES_PER_RECORD * records:
        return None
    low_bits = functions.col("x").bitwiseAND(2**_BITS - 1).cast("bigint")
    marked = (
        rows.where("x is not null")
        .groupBy(functions.shiftright("x", _BITS).alias("map"))
        .agg(functions.bitmap_construct_agg(low_bits).alias("bits"))
        .agg(functions.sum(functions.bitmap_count("bits")).alias("different"))
    )
    return records, records - known, int(_answer(marked).item() or 0)


def _answer(query: Any) -> Any:
    return collect(nw.from_native(query))


# How is work on numbered pieces handed to the executors of a Spark cluster?
#
# Each piece is one task; what all of them need travels once. Pieces come back wave by wave, so that the caller can note
# what is finished before the next wave begins.


T = TypeVar("T")
_TASKS_PER_CORE = 2


@dataclass(frozen=True)
class _Task:
    work: Callable[[bytes, int], Any]
    shared: Any

    def __call__(self, numbers: Iterator[int]) -> Iterator[Any]:
        for number in numbers:
            yield self.work(self.shared.value, number)


def spark_tasks(
    session: Any, work: Callable[[bytes, int], T], shared: bytes, numbers: Sequence[int]
) -> Iterator[T]:
    """Call ``work(shared, number)`` for every number on the executors of a session, in waves."""
    try:
        context = session.sparkContext
        wave = max(_TASKS_PER_CORE * context.defaultParallelism, 1)
    except Exception as error:
        raise ParameterError(
            "cluster takes a classic Spark session that is running (a session of Spark Connect hands out no tasks). "
            "Leave it out, and give workers for processes of this machine."
        ) from error
    sent = context.broadcast(shared)
    try:
        for start in range(0, len(numbers), wave):
            some = list(numbers[start : start + wave])
            yield from context.parallelize(some, len(some)).mapPartitions(_Task(work, sent)).collect()
    except DiscreetError:
        raise
    except Exception as error:
        raise InputError(
            "A task of Spark failed more often than Spark tries: an executor may be lost, out of memory or out of "
            "disk, or discreet may not be installed there. What was finished before stays."
        ) from error
    finally:
        sent.unpersist()
