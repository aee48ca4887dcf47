"""Columns of two files as codes that mean the same in both, and the table of some columns that was released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError, need_known
from discreet.microdata import Microdata


class Released:
    """What was released, asked for tables: one file, or many tables of which each has a few columns.

    Parameters
    ----------
    original
        The file that it was made from.
    released
        A file, or a release whose ``table_for`` gives the table of some columns.
    """

    def __init__(self, original: Microdata, released: Any) -> None:
        self.real = engine.collect(original)
        self.roles = original.roles
        self.many = hasattr(released, "table_for")
        if not self.many and not isinstance(released, Microdata):
            raise ParameterError(
                "released must be a file (Microdata) or a release of many tables, which has table_for."
            )
        self._released = released
        self._whole = None if self.many else engine.collect(released)

    @property
    def columns(self) -> list[str]:
        """The columns of the original that were released, without those that name or weigh people."""
        if self._whole is not None:
            known = set(self._whole.columns)
        else:
            known = {name for columns in self._released.tables for name in columns}
        roles = self.roles
        apart = {*roles.identifiers, roles.household, roles.person, roles.weight}
        return [name for name in self.real.columns if name in known and name not in apart]

    def named(self, columns: str | Sequence[str] | None) -> list[str]:
        """Return the columns that are asked about; all that both have unless named."""
        if columns is None:
            return self.columns
        names = [columns] if isinstance(columns, str) else list(columns)
        known = [name for name in self.real.columns if name in {*self.columns, *self._extra()}]
        need_known(names, known)
        return names

    def _extra(self) -> list[str]:
        return [] if self._whole is None else self._whole.columns

    def table(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return the released table of some columns."""
        if self._whole is not None:
            return self._whole.select(columns)
        return engine.collect(self._released.table_for(columns)).select(columns)

    def tables(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the sets of columns that were released together, of those that are asked about."""
        if self._whole is not None:
            return [tuple(columns)]
        asked = set(columns)
        return [
            tuple(name for name in columns if name in own) for own in self._released.tables if own <= asked
        ]


def as_numbers(real: pl.Series, made: pl.Series) -> tuple[Floats, Floats]:
    """Write a column of both files as numbers: texts by their place in the alphabet, missing as -1."""
    if real.dtype.is_numeric() or real.dtype.is_temporal() or real.dtype == pl.Boolean:
        both = [own.to_physical().cast(pl.Float64, strict=False) for own in (real, made)]
    else:
        texts = [own.cast(pl.String) for own in (real, made)]
        levels = pl.concat(texts).drop_nulls().unique().sort()
        both = [own.cast(pl.Enum(levels)).to_physical().cast(pl.Float64) for own in texts]
    one, other = (own.fill_null(-1.0).fill_nan(-1.0).to_numpy() for own in both)
    return one, other


class Coding:
    """Classes of a column, the same for both files; what only the release has is a class of its own."""

    def __init__(self, series: pl.Series, bins: int, top: float | None) -> None:
        self.top = top
        self.dtype = series.dtype
        self.number = series.dtype.is_numeric() and series.n_unique() > bins
        if self.number:
            values = np.sort(self._values(series))
            at = np.minimum(
                np.floor(bins * np.arange(1, len(values) + 1) / (len(values) + 1)).astype(int), bins - 1
            )
            ends = [values[at == own].max() for own in range(bins) if (at == own).any()]
            self.ends = np.unique(ends)
            self.size = len(self.ends) + 3
        else:
            levels = series.drop_nulls().cast(pl.String).unique().sort()
            self.levels = pl.DataFrame({"level": levels, "code": np.arange(len(levels))})
            self.size = len(levels) + 2

    def _values(self, series: pl.Series) -> Any:
        values = series.cast(pl.Float64).drop_nulls().drop_nans().to_numpy()
        return values if self.top is None else values[values != self.top]

    def codes(self, series: pl.Series) -> Integers:
        """Return the class of every value; 1.0 in one file is 1 in the other."""
        if self.dtype.is_numeric() and series.dtype.is_numeric():
            series = series.cast(self.dtype, strict=False)
        gone = series.is_null().to_numpy()
        if self.number:
            values = series.cast(pl.Float64, strict=False).fill_null(0.0).fill_nan(0.0).to_numpy()
            codes = np.minimum(np.searchsorted(self.ends, values, side="left"), len(self.ends) - 1)
            if self.top is not None:
                codes = np.where(values == self.top, self.size - 2, codes)
        else:
            text = series.rename("level").cast(pl.String).to_frame()
            found = text.join(self.levels, on="level", how="left", maintain_order="left")["code"]
            codes = found.fill_null(self.size - 2).to_numpy()
        return np.where(gone, self.size - 1, codes).astype(np.int64)
