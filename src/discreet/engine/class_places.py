"""Where in a table of classes does a record stand? Looked up by number, with a table that is laid out once.

A join lays its table out anew for every batch of records, which for millions of classes costs more than all the rest.
Here the values of each column become small numbers, column after column is packed into one number, and the place of
that number among the classes is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.engine.frames import Lazy, collect, collected_batches, scan
from discreet.engine.spooling import in_one_pass
from discreet.microdata import Microdata

_FEW_TEXTS = 2000
_NARROW = 2**20
_LARGEST = 2**62
_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class ClassPlaces:
    """The combinations of values that occur, each of them once, ready to be looked up.

    Examples
    --------
    >>> places = ClassPlaces(pl.DataFrame({"age": [31, 34, None], "job": ["cook", "spy", "spy"]}))
    >>> places.of(pl.DataFrame({"age": [None, 31, 31], "job": ["spy", "cook", "spy"]})).tolist()
    [2, 0, -1]
    """

    table: pl.DataFrame

    def of(self, rows: pl.DataFrame) -> Integers:
        """Find the place of each record among the classes; -1 for a combination that is none of them."""
        numbers = np.zeros(rows.height, dtype=np.int64)
        known = np.ones(rows.height, dtype=np.bool_)
        steps, places = self._laid_out
        for column, step in zip(self.table.columns, steps, strict=True):
            codes = step.values.codes(rows[column].cast(self.table.schema[column]))
            known &= codes != _UNKNOWN
            numbers = (numbers if step.so_far is None else step.so_far.of(numbers)) * step.values.size + codes
            if step.so_far is not None:
                known &= numbers >= 0
        return np.where(known, places.of(numbers), _UNKNOWN)

    @cached_property
    def _laid_out(self) -> tuple[list[_Step], _Places]:
        """Find how each column is packed, and the numbers of the classes.

        Where the next column would not fit, the combinations so far are numbered by their places first.
        """
        steps, numbers, span = [], np.zeros(self.table.height, dtype=np.int64), 1
        for name in self.table.columns:
            values, so_far = _coding(self.table[name]), None
            if span * values.size >= _LARGEST:
                so_far = _Places(np.unique(numbers))
                numbers, span = so_far.of(numbers), len(so_far.keys)
            numbers = numbers * values.size + values.codes(self.table[name])
            span *= values.size
            steps.append(_Step(values, so_far))
        return steps, _Places(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {"table": self.table}  # what is laid out is made again where it arrives


@dataclass(frozen=True, eq=False)
class _Places:
    """Whole numbers, all different, ready to be looked up."""

    keys: Integers
    slots: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from discreet.engine.counting_kernels import laid_out

        object.__setattr__(self, "slots", laid_out(self.keys))

    def of(self, values: Integers) -> Integers:
        from discreet.engine.counting_kernels import place_of_each

        return place_of_each(np.ascontiguousarray(values), self.keys, self.slots)


@dataclass(frozen=True, eq=False)
class _Texts:
    """Many different texts, looked up by a digest; the text that is found has to be the one that was sought."""

    values: pl.Series
    places: _Places

    def of(self, column: pl.Series) -> Integers:
        found = self.places.of(_digests(column))
        same = self.values.gather(np.maximum(found, 0)).eq_missing(column).to_numpy()
        return np.where(same, found, _UNKNOWN)


@dataclass(frozen=True, eq=False)
class _Values:
    """How the values of one column become the numbers 0…size-1, the last one standing for missing."""

    size: int
    low: int = 0
    texts: pl.Series | None = None
    many: _Texts | None = None
    numbers: _Places | None = None

    def codes(self, column: pl.Series) -> Integers:
        missing = column.is_null().to_numpy()
        if self.many is not None:
            codes = self.many.of(_as_text(column))
        elif self.texts is not None:
            known = _as_text(column).cast(pl.Enum(self.texts), strict=False).to_physical()
            codes = known.cast(pl.Int64).fill_null(_UNKNOWN).to_numpy()
        else:
            numbers = _whole(column)
            codes = (
                np.where((numbers < self.low) | (numbers - self.low >= self.size - 1), -1, numbers - self.low)
                if self.numbers is None
                else self.numbers.of(numbers)
            )
        return np.where(missing, self.size - 1, codes)


@dataclass(frozen=True, eq=False)
class _Step:
    """The coding of one column, and the combinations of the columns before it where those are numbered first."""

    values: _Values
    so_far: _Places | None


def _coding(column: pl.Series) -> _Values:
    distinct = column.unique().drop_nulls()
    if _is_number(column.dtype):
        numbers = _whole(distinct)
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, -1)
        if high - low < _NARROW:
            return _Values(high - low + 2, low=low)
        return _Values(len(numbers) + 1, numbers=_Places(np.unique(numbers)))
    texts = _as_text(distinct).unique().sort()
    if len(texts) <= _FEW_TEXTS:
        return _Values(len(texts) + 1, texts=texts)
    digests = _digests(texts)
    if len(np.unique(digests)) < len(digests):
        return _Values(len(texts) + 1, texts=texts)
    return _Values(len(texts) + 1, many=_Texts(texts, _Places(digests)))


def _is_number(dtype: pl.DataType) -> bool:
    """Whether values are held as 64 bits or less, or can be."""
    narrow = dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128, pl.UInt64)
    return narrow or dtype.is_float() or dtype == pl.Boolean or dtype.is_temporal()


def _whole(column: pl.Series) -> Integers:
    """The values of a column as whole numbers; equal ones, and only those, have the same."""
    if column.dtype.is_float():
        # Nought has two signs, and they are equal.
        return (column.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0).view(np.int64)
    return column.to_physical().cast(pl.Int64).fill_null(0).to_numpy()


def _as_text(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else column.cast(pl.String)


def _digests(texts: pl.Series) -> Integers:
    return texts.hash(1).to_numpy().view(np.int64)


# Which records come first in each class? Those with the lowest numbers, kept while a query streams past.


_ROWS = 250_000


def lowest_numbers(frame: Any, names: Mapping[str, str], most: Integers) -> Integers | None:
    """Give the lowest numbers of the records of each class, class by class; None where a class has too few records.

    Parameters
    ----------
    frame
        A query.
    names
        Its columns ``class`` (from 0 on), ``most`` (how many numbers of the class are kept: what is not above 0 is
        passed over) and ``number``.
    most
        How many numbers are kept, by class.
    """
    query = in_one_pass(frame)
    rows = scan(Microdata(frame if query is None else query), dict(names)).filter(nw.col("most") > 0)
    found = _ranked(rows) if rows.implementation.is_pyspark() else _streamed(rows, most)
    return found if found is not None and len(found) == int(most.sum()) else None


def _ranked(rows: Lazy) -> Integers:
    """Let the executors find them."""
    rank = nw.col("number").rank("ordinal").over("class")
    first = rows.with_columns(rank.alias("rank")).filter(nw.col("rank") <= nw.col("most"))
    return collect(first.select("class", "number")).sort("class", "number")["number"].to_numpy()


def _streamed(rows: Lazy, most: Integers) -> Integers | None:
    from discreet.engine.counting_kernels import keep_lowest

    start = np.cumsum(most) - most
    held, filled = np.zeros(int(most.sum()), dtype=np.int64), np.zeros(len(most), dtype=np.int64)
    for part in collected_batches(rows.select("class", "number"), _ROWS):
        keep_lowest(part["class"].to_numpy(), part["number"].to_numpy(), start, most, held, filled)
    if (filled < most).any():
        return None
    return held[np.lexsort((held, np.repeat(np.arange(len(most)), most)))]
