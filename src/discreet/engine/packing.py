"""Keys as one number: a combination of small codes is counted and sorted many times faster than its columns.

Each column becomes whole numbers in the order of its values, missing last: whole numbers and dates by their
distance from the smallest, everything else by the place among the sorted distinct values. Where all combinations
fit into 63 bits they are packed into one number. Polars counts the numbers; other engines count the columns, and
their counts are packed.
"""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import InputError
from discreet.core.files.atomic import full_disk, is_full
from discreet.engine.frames import in_memory

_LARGEST = 2**62
_PLAIN = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)


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
            counted = np.bincount(numbers, weights=self.records, minlength=span)[: span - 1]
            return counted[counted > 0].astype(np.int64)
        rows = pl.DataFrame({"number": numbers, "records": self.records}).lazy()
        grouped = rows.filter(pl.col("number") != span - 1).group_by("number")
        return in_memory(nw.from_native(grouped.agg(pl.col("records").sum())))["records"].to_numpy()

    def without_last(self) -> PackedClasses:
        """Add up the classes that differ in the last column only; who misses all others is in no class."""
        *kept, (_, last) = self.packing.codings.items()
        packing = Packing(dict(kept))
        classes = self.numbers // last.size
        starts = np.flatnonzero(np.diff(classes, prepend=-1))
        numbers, records = classes[starts], np.add.reduceat(self.records, starts)
        span = math.prod(coding.size for coding in packing.codings.values())
        known = numbers < span - 1 if len(numbers) and numbers[-1] == span - 1 else slice(None)
        return PackedClasses(packing, numbers[known], records[known])


def packed_by_engine(rows: nw.LazyFrame[Any], columns: Sequence[str]) -> PackedClasses | None:
    """Let an engine pack whole numbers and count them, so that one number a class comes home; None for other columns.

    An engine groups by one number much faster than by several columns.
    """
    schema = rows.collect_schema()
    if not all(isinstance(schema[column], _PLAIN) for column in columns):
        return None
    ends = in_memory(
        rows.select(
            *(nw.col(column).min().cast(nw.Int64).alias(f"{column} low") for column in columns),
            *(nw.col(column).max().cast(nw.Int64).alias(f"{column} high") for column in columns),
        )
    ).row(0, named=True)
    types = in_memory(rows.select(*columns).head(0)).schema
    codings = {}
    for column in columns:
        low, high = ends[f"{column} low"], ends[f"{column} high"]
        low, high = (0, -1) if low is None else (int(low), int(high))
        codings[column] = Coding(high - low + 2, types[column], low)
    if math.prod(coding.size for coding in codings.values()) >= _LARGEST:
        return None
    number = nw.lit(0, nw.Int64)
    for column, coding in codings.items():
        known = nw.col(column).cast(nw.Int64) - coding.low
        number = number * coding.size + nw.when(~nw.col(column).is_null()).then(known).otherwise(
            coding.size - 1
        )
    counted = rows.select(number.alias("number")).group_by("number")
    table = in_memory(counted.agg(nw.len().cast(nw.Int64).alias("records"))).sort("number")
    return PackedClasses(Packing(codings), table["number"].to_numpy(), table["records"].to_numpy())


def packed_classes(
    rows: pl.LazyFrame, columns: Sequence[str], *, counts: str | None = None
) -> PackedClasses | None:
    """Count the combinations of the columns, sorted by their packed number; None where they do not fit.

    ``counts`` names the column that says how many records a row stands for, where rows were counted before.
    """
    packing = packing_of(rows, columns)
    if packing is None:
        return None
    if counts is None:
        grouped = rows.select(packing.number.alias("number")).group_by("number")
        counted = grouped.agg(records=pl.len().cast(pl.Int64))
    else:
        counted = rows.select(packing.number.alias("number"), pl.col(counts).cast(pl.Int64).alias("records"))
    table = in_memory(nw.from_native(counted)).sort("number")
    numbers, records = table["number"].to_numpy(), table["records"].to_numpy()
    fresh = np.flatnonzero(np.diff(numbers, prepend=-1))
    if len(fresh) < len(numbers):
        # Counted before, two rows may still read alike: one engine tells no number from a missing one.
        numbers, records = numbers[fresh], np.add.reduceat(records, fresh)
    return PackedClasses(packing, numbers, records)


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


# Where does a table of very many classes stay while somebody works on it? In a file that is mapped into memory.
#
# What is mapped is read from the disk when it is looked at and forgotten when memory is short. The table is written
# as it comes from the engine, put in order a piece at a time, and gone from the disk when nobody looks at it any
# longer.


HELD_IN_MEMORY = 1_000_000
"""Rows of a table that are rather kept in memory."""
_PIECE = 250_000


def in_order(batches: Iterable[pl.DataFrame], by: Sequence[str], most: int) -> pl.DataFrame | None:
    """Put the rows of a table in order, missing values last; None where there are more than ``most``.

    A table beyond `HELD_IN_MEMORY` rows goes through files, and what is given back is mapped. (One with categories
    stays in memory: each batch numbers them in its own way, which a file of Arrow does not allow.)

    Examples
    --------
    >>> in_order([pl.DataFrame({"a": [2, 3]}), pl.DataFrame({"a": [1]})], ["a"], most=3)["a"].to_list()
    [1, 2, 3]
    """
    parts: list[pl.DataFrame] = []
    many, coming = 0, iter(batches)
    for part in coming:
        parts.append(part)
        many += part.height
        if many > most:
            return None
        if many > HELD_IN_MEMORY and pl.Categorical not in part.dtypes:
            return _through_files(parts, coming, by, most)
    return pl.concat(parts, rechunk=True).sort(*by, nulls_last=True)


def _through_files(
    held: list[pl.DataFrame], coming: Iterator[pl.DataFrame], by: Sequence[str], most: int
) -> pl.DataFrame | None:
    folder = Path(tempfile.mkdtemp(prefix="discreet-classes-"))
    found = None
    try:
        many = _written(folder / "as it comes", _handed_on(held, coming), most)
        if many <= most:
            table = _mapped(folder / "as it comes")
            order = table.select(pl.arg_sort_by(*by, nulls_last=True)).to_series()
            pieces = (table[order[at : at + _PIECE]] for at in range(0, many, _PIECE))
            _written(folder / "in order", pieces, most)
            found = _mapped(folder / "in order")
    except OSError as error:
        raise lost_in(folder, error, "a table of classes", "The table of classes") from error
    finally:
        # A file that is mapped outlives its name where the system allows it; elsewhere it goes with the table.
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists() and found is not None:
            weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _handed_on(held: list[pl.DataFrame], coming: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Give what is held and then what comes, letting go of each part."""
    while held:
        yield held.pop(0)
    yield from coming


def _written(file: Path, parts: Iterable[pl.DataFrame], most: int) -> int:
    import pyarrow as pa

    writer, many = None, 0
    try:
        for part in parts:
            many += part.height
            if many > most:
                break
            arrow = part.to_arrow()
            writer = writer or pa.ipc.new_file(file, arrow.schema)
            writer.write_table(arrow)
    finally:
        if writer is not None:
            writer.close()
    return many


def _mapped(file: Path) -> pl.DataFrame:
    import pyarrow as pa

    return pl.DataFrame(pl.from_arrow(pa.ipc.open_file(pa.memory_map(str(file))).read_all(), rechunk=False))


def lost_in(folder: Path, error: OSError, what: str, subject: str) -> InputError:
    """Say why something cannot be kept in the folder for temporary files: the disk is full, or it takes no files."""
    if is_full(error, folder):
        return full_disk(what)
    return InputError(
        f"{subject} cannot be written to the folder for temporary files. Name one with room by the variable TMPDIR."
    )
