"""Keys as one number: a combination of small codes is counted and sorted many times faster than its columns.

Each column becomes whole numbers in the order of its values, missing last: whole numbers and dates by their
distance from the smallest, everything else by the place among the sorted distinct values. Where all combinations
fit into 63 bits they are packed into one number. Polars counts the numbers; other engines count the columns, and
their counts are packed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from discreet.arrays import Integers
from discreet.engine.frames import in_memory

_LARGEST = 2**62


@dataclass(frozen=True)
class Coding:
    """How one column becomes the numbers 0…size-1; the last one stands for missing.

    ``values`` are the distinct values of a column that is coded by place; without them the code is the distance
    from ``low``.
    """

    size: int
    dtype: pl.DataType
    low: int = 0
    values: pl.Series | None = None

    def code(self, column: str) -> pl.Expr:
        """The code of each value, as an expression."""
        if self.values is None:
            known = pl.col(column).to_physical().cast(pl.Int64) - self.low
        else:
            places = pl.Series(range(len(self.values)), dtype=pl.Int64)
            known = pl.col(column).replace_strict(self.values, places, default=None, return_dtype=pl.Int64)
        return known.fill_null(self.size - 1)

    def decode(self, codes: Integers) -> pl.Series:
        """Turn codes back into values."""
        series = pl.Series(codes)
        if self.values is not None:
            gap = pl.Series(self.values.name, [None], dtype=self.values.dtype)
            return pl.concat([self.values, gap]).gather(series)
        known = pl.select(pl.when(series < self.size - 1).then(series + self.low)).to_series()
        return known.cast(pl.Int32).cast(self.dtype) if self.dtype == pl.Date else known.cast(self.dtype)


@dataclass(frozen=True)
class Packing:
    """The codings of several columns, the last one being the fastest to turn."""

    codings: Mapping[str, Coding]

    @property
    def number(self) -> pl.Expr:
        """The packed number of each record, as an expression."""
        packed = pl.lit(0, dtype=pl.Int64)
        for column, coding in self.codings.items():
            packed = packed * coding.size + coding.code(column)
        return packed

    def codes(self, numbers: Integers) -> dict[str, Integers]:
        """Unpack the codes of every column."""
        found = {}
        rest = numbers
        for column, coding in reversed(list(self.codings.items())):
            found[column] = rest % coding.size
            rest = rest // coding.size
        return {column: found[column] for column in self.codings}

    def decode(self, numbers: Integers) -> pl.DataFrame:
        """Unpack the values of every column."""
        codes = self.codes(numbers)
        return pl.DataFrame({column: self.codings[column].decode(codes[column]) for column in self.codings})

    def project(self, numbers: Integers, columns: Sequence[str]) -> Integers:
        """Pack only some of the columns, in the order of the packing, from numbers that hold them all.

        Neighboring columns are cut out in one piece, since divisions are what costs.
        """
        packed = np.zeros(len(numbers), dtype=np.int64)
        below = math.prod(coding.size for coding in self.codings.values())
        for kept, run in itertools.groupby(self.codings.items(), key=lambda item: item[0] in columns):
            span = math.prod(coding.size for _, coding in run)
            below //= span
            if kept:
                packed = packed * span + numbers // below % span
        return packed


@dataclass(frozen=True)
class PackedClasses:
    """The classes of a file: one number and one count each."""

    packing: Packing
    numbers: Integers
    records: Integers

    def sizes(self, columns: Sequence[str]) -> Integers:
        """Return the class sizes on some of the columns; who misses all of them is in no class."""
        codings = self.packing.codings
        span = math.prod(codings[column].size for column in columns)
        # The last number of all is that of missing in every column.
        if set(columns) == set(codings):
            silent = len(self.numbers) > 0 and self.numbers[-1] == span - 1
            return self.records[:-1] if silent else self.records
        numbers = self.packing.project(self.numbers, columns)
        if span <= 4 * len(numbers):
            counted = np.bincount(numbers, weights=self.records, minlength=span)[: span - 1].astype(np.int64)
            return counted[counted > 0]
        rows = pl.DataFrame({"number": numbers, "records": self.records}).lazy()
        grouped = rows.filter(pl.col("number") != span - 1).group_by("number")
        return in_memory(nw.from_native(grouped.agg(pl.col("records").sum())))["records"].to_numpy()


def packed_classes(
    rows: pl.LazyFrame, columns: Sequence[str], *, counts: str | None = None
) -> PackedClasses | None:
    """Count the combinations of the columns, sorted by their packed number; None where they do not fit.

    ``counts`` names the column that says how many records a row stands for, where rows were counted before.
    """
    packing = packing_of(rows, columns)
    if packing is None:
        return None
    many = pl.len() if counts is None else pl.col(counts).sum()
    chosen = rows.select(packing.number.alias("number"), *([counts] if counts else []))
    counted = chosen.group_by("number").agg(records=many.cast(pl.Int64))
    table = in_memory(nw.from_native(counted)).sort("number")
    return PackedClasses(packing, table["number"].to_numpy(), table["records"].to_numpy())


def packing_of(rows: pl.LazyFrame, columns: Sequence[str]) -> Packing | None:
    """Find codings for the columns whose combinations fit into one number; None where there are none."""
    schema = rows.collect_schema()
    whole = [column for column in columns if is_whole(schema[column])]
    codings = _by_distance(rows, whole, schema) if whole else {}
    codings |= {column: _by_place(rows, column) for column in columns if column not in codings}
    for column in sorted(whole, key=lambda c: -codings[c].size):
        if math.prod(coding.size for coding in codings.values()) < _LARGEST:
            break
        codings[column] = _by_place(rows, column)
    if math.prod(coding.size for coding in codings.values()) >= _LARGEST:
        return None
    return Packing({column: codings[column] for column in columns})


def is_whole(dtype: pl.DataType) -> bool:
    """Whether a column holds whole numbers, or what is one underneath; such columns are coded by distance."""
    return dtype.is_integer() or dtype in (pl.Boolean, pl.Date)


def _by_distance(rows: pl.LazyFrame, columns: Sequence[str], schema: pl.Schema) -> dict[str, Coding]:
    """Code whole numbers by their distance from the smallest; those that run too wide are left to `_by_place`."""
    physical = [pl.col(column).to_physical().cast(pl.Int64, strict=False) for column in columns]
    known = [pl.col(column).count().name.suffix(" known") for column in columns]
    query = rows.select(
        *(expression.min().name.suffix(" low") for expression in physical),
        *(expression.max().name.suffix(" high") for expression in physical),
        *(expression.count().name.suffix(" whole") for expression in physical),
        *known,
    )
    found = in_memory(nw.from_native(query)).row(0, named=True)
    codings = {}
    for column in columns:
        low, high = found[f"{column} low"], found[f"{column} high"]
        if low is None:
            low, high = 0, -1
        if found[f"{column} whole"] == found[f"{column} known"] and high - low < _LARGEST:
            codings[column] = Coding(int(high - low) + 2, schema[column], int(low))
    return codings


def _by_place(rows: pl.LazyFrame, column: str) -> Coding:
    distinct = in_memory(nw.from_native(rows.select(pl.col(column).unique()))).to_series().drop_nulls()
    if distinct.dtype == pl.Categorical:
        distinct = distinct.cast(pl.String).sort().cast(distinct.dtype)
    else:
        distinct = distinct.sort()
    return Coding(len(distinct) + 1, distinct.dtype, values=distinct)
