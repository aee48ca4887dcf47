"""What every sampler is given and hands back: files or arrays opened for resampling, and the values drawn.

`Draws` says how the values came about; `Records` knows the way back from floats to what was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata
from discreet.synth.column_forms import as_numbers, decimals_of, from_numbers, is_numeric

#: A sampler is a function of a NumPy generator and a number of draws; a frozen scipy distribution does, too.
Sampler = Callable[[np.random.Generator, int], Any]
Size = int | tuple[int, ...]
Values_co = TypeVar("Values_co", covariant=True)


@dataclass(frozen=True)
class Draws(Generic[Values_co]):
    """Drawn values, and what the sampler can say about how it drew them.

    Attributes
    ----------
    values
        The draws: an array, or the kind of file that was given.
    diagnostics
        The method and its numbers: proposals, acceptance rate, comparisons, fitted parameters…

    Examples
    --------
    >>> draws = Draws(np.array([1.0, 2.0]), {"method": "by hand"})
    >>> float(np.mean(draws)), len(draws)
    (1.5, 2)
    """

    values: Values_co
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagnostics", MappingProxyType(dict(self.diagnostics)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=bool(copy)) if copy else np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)  # type: ignore[arg-type]


def shape_of(size: Size) -> tuple[int, ...]:
    """Read a size as a shape.

    Examples
    --------
    >>> shape_of(3), shape_of((2, 5))
    ((3,), (2, 5))
    """
    shape = tuple(size) if isinstance(size, tuple) else (size,)
    for part in shape:
        if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 0:
            raise ParameterError("size must be a whole number of zero or above, or a tuple of them.")
    return tuple(int(part) for part in shape)


def count_of(size: int) -> int:
    """Read a size that must be a single number."""
    shape = shape_of(size)
    if len(shape) != 1:
        raise ParameterError("size must be one whole number here.")
    return shape[0]


def uniforms(size: Size | None, given: npt.ArrayLike | None, seed: Seed) -> Floats:
    """Return the uniform numbers that were given, or draw as many as asked for, never 0 and never 1.

    Examples
    --------
    >>> uniforms(None, [0.1, 0.9], None).tolist()
    [0.1, 0.9]
    """
    if given is None:
        if size is None:
            raise ParameterError(
                "Say how many to draw with size=, or give the uniform numbers with uniform=."
            )
        # 0 comes up once in 2**53 draws and is the quantile minus infinity for many a family.
        return np.maximum(generator(seed).random(shape_of(size)), 2.0**-54)
    numbers = np.asarray(given, dtype=np.float64)
    if not np.all((numbers >= 0) & (numbers <= 1)):
        raise ParameterError("uniform must hold numbers from 0 to 1, without missing ones.")
    return numbers


def as_sampler(source: Any, what: str = "sampler") -> Sampler:
    """Read a function of a generator and a size, or a frozen scipy distribution, as a sampler.

    Examples
    --------
    >>> normal = as_sampler(lambda rng, n: rng.standard_normal(n))
    >>> normal(np.random.default_rng(1), 3).shape
    (3,)
    """
    if hasattr(source, "rvs"):
        return lambda rng, n: np.asarray(source.rvs(size=n, random_state=rng))
    if not callable(source):
        raise ParameterError(
            f"{what} must be a function of a NumPy generator and a number of draws, or a frozen scipy distribution."
        )

    def draw(rng: np.random.Generator, n: int) -> Array:
        drawn = np.asarray(source(rng, n))
        if drawn.ndim == 0 or len(drawn) != n:
            raise ParameterError(f"{what} must return as many draws as it is asked for, one a row.")
        return drawn

    return draw


# A file or an array opened for resampling: its numbers as floats, and the way back to what it was.


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
