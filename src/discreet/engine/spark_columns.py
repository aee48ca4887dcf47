"""Work on records one by one as columns of a Spark query.

Only the columns that a step reads and those that it makes pass between Spark and Python; the others stay where they
are. Steps that follow one another are columns of one query on the frame they started from, and Spark calls all of them
in one pass. A step that builds on an earlier one is done in the same call; where nobody asks for a column, the work
behind it is not done either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

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
