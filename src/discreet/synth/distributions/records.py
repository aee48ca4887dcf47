"""A file or an array opened for resampling: its numbers as floats, and the way back to what it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.microdata import Microdata
from discreet.synth.column_forms import as_numbers, decimals_of, from_numbers, is_numeric


@dataclass(frozen=True, eq=False)
class Records:
    """Records of any kind.

    Attributes
    ----------
    table
        All columns, as Polars.
    numbers
        The columns of numbers, dates and times as floats; missing is NaN.
    decimals
        Decimal places of each of them; None where there is no end to them.
    source
        What was given.
    """

    table: pl.DataFrame
    numbers: Mapping[str, Floats]
    decimals: Mapping[str, int | None]
    source: Any = field(repr=False)

    @classmethod
    def of(cls, data: Any) -> Records:
        """Open Microdata, a data frame, or an array with a row a record."""
        if isinstance(data, list | tuple):
            data = np.asarray(data)
        table = _table(data) if isinstance(data, np.ndarray) else engine.whole_frame(_microdata(data))
        if not table.height or not table.width:
            raise InputError("There are no records to resample.")
        numeric = [name for name, dtype in table.schema.items() if is_numeric(dtype)]
        numbers = {name: as_numbers(table[name]).fill_null(float("nan")).to_numpy() for name in numeric}
        for name, values in numbers.items():
            if np.isinf(values).any():
                raise InputError(f"Column '{name}' has infinite values. Make them missing or drop them.")
        whole = {
            name: not table.schema[name].is_float() and not table.schema[name].is_decimal()
            for name in numeric
        }
        decimals = {name: 0 if whole[name] else decimals_of(values) for name, values in numbers.items()}
        return cls(table, numbers, decimals, data)

    def __len__(self) -> int:
        return self.table.height

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns that are not numbers."""
        return tuple(name for name in self.table.columns if name not in self.numbers)

    def rounded(self, name: str, values: Floats) -> Floats:
        """Round to the decimal places of a column."""
        places = self.decimals[name]
        return values if places is None else np.round(values, places)

    def rebuilt(self, rows: Integers, columns: Mapping[str, Floats | pl.Series] | None = None) -> Any:
        """Return these records, in the kind that was given, with some columns replaced.

        New numbers come as floats with NaN for missing, anything else as a Polars column.
        """
        fresh = {name: self._typed(name, values) for name, values in (columns or {}).items()}
        if isinstance(self.source, np.ndarray):
            taken = self.table[rows].with_columns(series.alias(name) for name, series in fresh.items())
            made = np.column_stack([taken[name].to_numpy() for name in taken.columns])
            return (made if self.source.ndim == 2 else made[:, 0]).astype(self.source.dtype)
        data = _microdata(self.source)
        drawn = data.with_frame(self._frame(data, rows, fresh))
        return drawn if isinstance(self.source, Microdata) else drawn.frame

    def _frame(self, data: Microdata, rows: Integers, fresh: Mapping[str, pl.Series]) -> Any:
        if isinstance(data.wrapped, nw.DataFrame):
            taken = data.with_frame(engine.rebuilt(data, {}, order=rows))
            return engine.rebuilt(taken, fresh)
        # A query engine may hand its rows over in another order next time, so what was read goes back.
        frame = self.table[rows].with_columns(series.alias(name) for name, series in fresh.items())
        return engine.queried(data, frame)

    def _typed(self, name: str, values: Floats | pl.Series) -> pl.Series:
        if isinstance(values, pl.Series):
            return values.cast(self.table.schema[name])
        missing = np.isnan(values)
        plain = np.where(missing, 0.0, values) if missing.any() else values
        column = from_numbers(plain, missing if missing.any() else None, self.table.schema[name], name)
        return (
            column.fill_null(float("nan"))
            if isinstance(self.source, np.ndarray) and missing.any()
            else column
        )


def _microdata(data: Any) -> Microdata:
    return data if isinstance(data, Microdata) else Microdata(data)


def _table(array: Array) -> pl.DataFrame:
    if array.ndim not in (1, 2):
        raise ParameterError("An array must have one or two dimensions: a row a record.")
    columns = array[:, None] if array.ndim == 1 else array
    return pl.DataFrame(
        {f"column {place}": np.ascontiguousarray(columns[:, place]) for place in range(columns.shape[1])}
    )
