"""Columns as numbers: distinct values with a code for each record, and records that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError
from discreet.protect.generalizing.coded_keys import positions

_SPAN = 2**20
"""Whole numbers that lie closer together than this are looked up in a table, not in a hash."""


def coded(values: pl.Series) -> tuple[Integers, pl.Series]:
    """Give the code of each value among the distinct ones, which are sorted, missing last.

    Examples
    --------
    >>> codes, levels = coded(pl.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), levels.to_list()
    ([1, 0, 2, 1], ['a', 'b', None])
    """
    levels = values.unique().sort(nulls_last=True)
    known = levels.drop_nulls()
    if not len(known):
        return np.zeros(len(values), dtype=np.int64), levels
    if values.dtype == pl.String:
        numbers = values.cast(pl.Enum(known)).to_physical().cast(pl.Int64)
        return numbers.fill_null(len(known)).to_numpy(), levels
    if values.dtype.is_integer() and values.dtype not in (pl.UInt64, pl.Int128, pl.UInt128):
        low, high = int(known[0]), int(known[-1])
        if high - low < _SPAN:
            lookup = np.full(high - low + 2, len(known), dtype=np.int64)
            lookup[known.cast(pl.Int64).to_numpy() - low] = np.arange(len(known))
            numbers = values.cast(pl.Int64) - low
            return lookup[numbers.fill_null(high - low + 1).to_numpy()], levels
    return positions(values, levels), levels


def crossed(table: pl.DataFrame) -> tuple[Integers, pl.DataFrame]:
    """Give the code of each record's combination of values among those that occur.

    Examples
    --------
    >>> crossed(pl.DataFrame({"a": [1, 2, 1], "b": ["x", "x", "x"]}))[0].tolist()
    [0, 1, 0]
    """
    codes = np.zeros(table.height, dtype=np.int64)
    for number, column in enumerate(table):
        own, levels = coded(column)
        # Packing only what occurs keeps the numbers small, however many columns there are.
        codes = _packed(codes * len(levels) + own) if number else own
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
    first[codes[::-1]] = np.arange(table.height)[::-1]
    return codes, table[first]


def _packed(codes: Integers) -> Integers:
    inverse: Integers = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return inverse


@dataclass(frozen=True)
class Units:
    """Records that are treated as one: the members of a household, the visits of a person.

    Attributes
    ----------
    of_record
        The number of each record's unit.
    first
        The first record of each unit, which stands for it.
    """

    of_record: Integers
    first: Integers

    @classmethod
    def of(cls, by: pl.Series | None, records: int) -> Units:
        """Number the units in order of appearance; without a column, and where it is missing, each record is one.

        Examples
        --------
        >>> Units.of(pl.Series(["x", None, "x", None]), 4).of_record.tolist()
        [0, 1, 0, 2]
        """
        if by is None:
            return cls(np.arange(records), np.arange(records))
        codes, levels = coded(by)
        if by.null_count():
            gone = by.is_null().to_numpy()
            codes = codes.copy()
            codes[gone] = len(levels) + np.arange(int(gone.sum()))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return cls(rank[inverse], np.sort(first).astype(np.int64))

    def __len__(self) -> int:
        return len(self.first)

    def sizes(self) -> Integers:
        """Count the records of each unit."""
        return np.bincount(self.of_record, minlength=len(self)).astype(np.int64)

    def check_same(self, table: pl.DataFrame, columns: Sequence[str], by: str) -> None:
        """Refuse columns that differ between records of one unit."""
        if len(self) == len(self.of_record):
            return
        for name in columns:
            column = table[name]
            differ = column.ne_missing(column.gather(self.first).gather(self.of_record))
            if differ.any():
                raise ColumnError(
                    f"Column '{name}' differs between records with the same '{by}' ({int(differ.sum()):,} records). "
                    f"It has to be one value for each '{by}' to be changed for all of them together."
                )
