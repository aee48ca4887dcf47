"""How many different whole numbers has a column of Spark?

A bit for each number, 32,768 of them in a map: where record keys lie close together, as running numbers do, the maps
are far smaller than the keys, and the executors exchange them instead. The answer is exact.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw

from discreet.engine.frames import collect
from discreet.microdata import Microdata

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
    number = functions.col("`" + column.replace("`", "``") + "`").cast("bigint")
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
    marked = (
        rows.where("x is not null")
        .groupBy(functions.shiftright("x", _BITS).alias("map"))
        .agg(
            functions.bitmap_construct_agg(functions.col("x").bitwiseAND(2**_BITS - 1).cast("bigint")).alias(
                "bits"
            )
        )
        .agg(functions.sum(functions.bitmap_count("bits")).alias("different"))
    )
    return records, records - known, int(_answer(marked).item() or 0)


def _answer(query: Any) -> Any:
    return collect(nw.from_native(query))
