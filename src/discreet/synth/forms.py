"""How a column of the user becomes variables for models, and how drawn values become that column again.

A category is one variable of codes, missing being one more level. A number that has missing values, special codes
or spikes becomes two: its *state* (an ordinary number, which code, or missing) and its *value*, which counts only
where the state is ordinary. Nothing is imputed: missing values are modelled as what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.errors import ColumnError
from discreet.synth.variables import Variable

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]

_MOST_DECIMALS = 8


@dataclass(frozen=True, eq=False)
class CategoryForm:
    """A column of categories.

    Attributes
    ----------
    name
        Of the column.
    dtype
        Its type.
    levels
        Its categories in order, without missing.
    has_missing
        Whether missing is a level (the last one).
    ordered
        Whether the order of the levels means something.
    """

    name: str
    dtype: pl.DataType
    levels: pl.Series
    has_missing: bool
    ordered: bool = False

    @classmethod
    def of(
        cls, series: pl.Series, *, ordered: bool = False, missing: bool = False, extra: Sequence[Any] = ()
    ) -> CategoryForm:
        """Read the form off a column; ``extra`` are levels that rules may bring in."""
        plain = _plain(series)
        levels = plain.drop_nulls().unique().sort()
        seen = levels.to_list()
        fresh = [value for value in dict.fromkeys(extra) if value is not None and value not in seen]
        if fresh:
            levels = pl.concat([levels, _as_levels(fresh, plain.dtype, series.name)])
        if isinstance(series.dtype, pl.Enum):
            place = {level: at for at, level in enumerate(series.dtype.categories.to_list())}
            levels = pl.Series(sorted(levels.to_list(), key=place.__getitem__), dtype=pl.String)
        has_missing = missing or series.null_count() > 0 or None in extra
        return cls(series.name, series.dtype, levels.rename("level"), has_missing, ordered)

    @property
    def size(self) -> int:
        """Number of levels, missing included."""
        return len(self.levels) + self.has_missing

    def split(self, series: pl.Series) -> tuple[Variable, ...]:
        """Return the column as variables: one of codes."""
        codes = self.codes(series)
        return (Variable(self.name, codes, levels=self.size, ordered=self.ordered),)

    def codes(self, series: pl.Series) -> Codes:
        """Return the code of every value."""
        keyed = pl.DataFrame({"level": self.levels, "code": np.arange(len(self.levels), dtype=np.int32)})
        found = _plain(series).to_frame("level").join(keyed, on="level", how="left", maintain_order="left")
        last = len(self.levels) if self.has_missing else None
        codes = found["code"].fill_null(last) if last is not None else found["code"]
        if codes.null_count():
            raise ColumnError(
                f"Column '{self.name}' has values that were not there when the model was fitted. "
                "Fit the model to the file that holds them."
            )
        return codes.to_numpy().astype(np.int32)

    def joined(self, parts: Sequence[npt.NDArray[Any]]) -> pl.Series:
        """Turn drawn codes into the column."""
        codes = pl.Series(parts[0].astype(np.int64))
        if self.has_missing:
            codes = codes.set(codes == len(self.levels), None)
        return self.levels.gather(codes).cast(self.dtype).rename(self.name)

    def state(self) -> dict[str, Any]:
        """Return the form for a model file."""
        return {
            "form": "category",
            "name": self.name,
            "empty": pl.Series(self.name, [], dtype=self.dtype),
            "levels": self.levels,
            "has_missing": self.has_missing,
            "ordered": self.ordered,
        }


@dataclass(frozen=True, eq=False)
class NumberForm:
    """A column of numbers, dates or times.

    Attributes
    ----------
    name
        Of the column.
    dtype
        Its type.
    fixed
        Special codes and spikes: values that are states of their own.
    has_missing
        Whether missing is a state (the last one).
    breaks
        Inner breaks of the groups that ordinary values are modelled by first; usually none.
    decimals
        Decimal places of the observed values.
    low, high
        Smallest and largest ordinary value.
    """

    name: str
    dtype: pl.DataType
    fixed: tuple[float, ...] = ()
    has_missing: bool = False
    breaks: tuple[float, ...] = ()
    decimals: int | None = None
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(
        cls, series: pl.Series, *, fixed: Sequence[float] = (), groups: int = 0, missing: bool = False
    ) -> NumberForm:
        """Read the form off a column; special codes and spikes that do not occur are left out."""
        numbers = as_numbers(series)
        there = numbers.drop_nulls().to_numpy()
        kept = tuple(float(value) for value in dict.fromkeys(fixed) if np.any(there == value))
        ordinary = there[~np.isin(there, kept)] if kept else there
        breaks: tuple[float, ...] = ()
        if groups and len(ordinary):
            cuts = np.quantile(ordinary, np.arange(1, groups) / groups, method="inverted_cdf")
            breaks = tuple(float(cut) for cut in np.unique(cuts) if cut < ordinary.max())
        whole = series.dtype.is_integer() or series.dtype.is_temporal()
        return cls(
            series.name,
            series.dtype,
            kept,
            missing or series.null_count() > 0,
            breaks,
            0 if whole else decimals_of(ordinary),
            float(ordinary.min()) if len(ordinary) else 0.0,
            float(ordinary.max()) if len(ordinary) else 0.0,
        )

    @property
    def n_ordinary(self) -> int:
        """Number of states in which the value is an ordinary number: its groups."""
        return len(self.breaks) + 1

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.n_ordinary + len(self.fixed) + self.has_missing

    def split(self, series: pl.Series) -> tuple[Variable, ...]:
        """Return the column as variables: its state, where it has more than one, and its value."""
        numbers = as_numbers(series)
        missing = numbers.is_null().to_numpy()
        values = numbers.fill_null(0.0).to_numpy()
        states = np.zeros(len(values), dtype=np.int32)
        if self.breaks:
            states = np.searchsorted(np.array(self.breaks), values, side="left").astype(np.int32)
        for place, code in enumerate(self.fixed):
            states[values == code] = self.n_ordinary + place
        states[missing] = self.n_states - 1
        return self.variables(states, values)

    def variables(self, states: Codes, values: Floats) -> tuple[Variable, ...]:
        """Put states and values into the form of models; the value of a state that is none is 0."""
        if self.n_states == 1:
            return (Variable(self.name, values, decimals=self.decimals),)
        ordinary = states < self.n_ordinary
        return (
            Variable(f"{self.name}: state", states, levels=self.n_states),
            Variable(self.name, np.where(ordinary, values, 0.0), decimals=self.decimals),
        )

    def joined(self, parts: Sequence[npt.NDArray[Any]]) -> pl.Series:
        """Turn drawn states and values into the column, rounded and within what its type can hold."""
        values = np.asarray(parts[-1], dtype=np.float64).copy()
        if self.decimals is not None:
            values = np.round(values, self.decimals)
        if len(parts) == 1:
            return from_numbers(values, None, self.dtype, self.name)
        states = parts[0]
        for place, code in enumerate(self.fixed):
            values[states == self.n_ordinary + place] = code
        missing = states == self.n_states - 1 if self.has_missing else None
        return from_numbers(values, missing, self.dtype, self.name)

    def state(self) -> dict[str, Any]:
        """Return the form for a model file."""
        return {
            "form": "number",
            "name": self.name,
            "empty": pl.Series(self.name, [], dtype=self.dtype),
            "fixed": list(self.fixed),
            "has_missing": self.has_missing,
            "breaks": list(self.breaks),
            "decimals": self.decimals,
            "low": self.low,
            "high": self.high,
        }


Form = CategoryForm | NumberForm


def restored_form(state: Mapping[str, Any]) -> Form:
    """Make a form again from a model file."""
    if state["form"] == "category":
        return CategoryForm(
            state["name"], state["empty"].dtype, state["levels"], state["has_missing"], state["ordered"]
        )
    return NumberForm(
        state["name"],
        state["empty"].dtype,
        tuple(state["fixed"]),
        state["has_missing"],
        tuple(state["breaks"]),
        state["decimals"],
        state["low"],
        state["high"],
    )


def is_numeric(dtype: pl.DataType) -> bool:
    """Whether a column of this type is modelled as a number: numbers, dates and times."""
    return dtype.is_numeric() or dtype.is_temporal()


def as_numbers(series: pl.Series) -> pl.Series:
    """Return a column of numbers, dates or times as floats; missing and NaN are null."""
    physical = series.to_physical() if series.dtype.is_temporal() else series
    return physical.cast(pl.Float64).fill_nan(None)


def from_numbers(
    values: Floats, missing: npt.NDArray[np.bool_] | None, dtype: pl.DataType, name: str
) -> pl.Series:
    """Turn floats into a column of that type."""
    series = pl.Series(name, values)
    if dtype.is_integer():
        bounds = np.iinfo(pl.Series([], dtype=dtype).to_numpy().dtype)
        # The largest 64-bit whole number is no float; the one below it is.
        series = (
            series.clip(float(bounds.min), float(np.nextafter(float(bounds.max), 0))).round(0).cast(dtype)
        )
    elif dtype.is_temporal():
        series = series.round(0).cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    else:
        series = series.cast(dtype)
    if missing is None:
        return series
    return series.set(pl.Series(missing), None)


def decimals_of(values: Floats) -> int | None:
    """Count the decimal places that a column was written with; None where there is no end to them.

    Examples
    --------
    >>> decimals_of(np.array([1.25, 3.5])), decimals_of(np.array([1 / 3]))
    (2, None)
    """
    finite = values[np.isfinite(values)]
    # A step through the column is enough to see how its numbers were written, and the last look is at all of them.
    for sample in (finite[:: max(1, len(finite) // 1000)], finite):
        for places in range(_MOST_DECIMALS + 1):
            if np.allclose(np.round(sample, places), sample, rtol=1e-12, atol=1e-12):
                break
        else:
            return None
    return places


def _plain(series: pl.Series) -> pl.Series:
    """Take a category for its text."""
    return series.cast(pl.String) if isinstance(series.dtype, pl.Categorical | pl.Enum) else series


def _as_levels(values: Sequence[Any], dtype: pl.DataType, name: str) -> pl.Series:
    try:
        return pl.Series("level", list(values), dtype=dtype, strict=True)
    except TypeError as error:
        raise ColumnError(
            f"A rule gives column '{name}' a value that is not {dtype}. Write it in the type of the column."
        ) from error
