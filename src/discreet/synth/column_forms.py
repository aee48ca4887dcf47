"""How a column of the user becomes variables for models, and how drawn values become that column again.

A category is one variable of codes, missing being one more level. A number that has missing values, special codes
or spikes becomes two: its *state* (an ordinary number, which code, or missing) and its *value*, which counts only
where the state is ordinary. Nothing is imputed: missing values are modelled as what they are, so a model never meets
a NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Array, Codes, Flags, Floats
from discreet.core.errors import ColumnError, unknown_name
from discreet.core.roles import Columns
from discreet.core.wording import type_name
from discreet.numerics.trees.coding import FINE, Feature
from discreet.synth.saved_models import stored, stored_as

_MOST_DECIMALS = 8
# Whole numbers up to here are all floats; up to there a float times a unit still fits 128 bits.
_EXACT = 2**53
_LARGEST = 2.0**66


@stored("category-form")
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
        # Polars might take the name of a column for a pattern (``^a$``).
        plain = plain_text(series.rename("level"))
        levels = plain.drop_nulls().unique().sort()
        seen = levels.to_list()
        fresh = [value for value in dict.fromkeys(extra) if value is not None and value not in seen]
        if fresh:
            levels = pl.concat([levels, _as_levels(fresh, plain.dtype, series.name)])
            levels = levels.sort() if series.dtype == pl.Boolean else levels
        if isinstance(series.dtype, pl.Enum):
            place = {level: at for at, level in enumerate(series.dtype.categories.to_list())}
            levels = pl.Series(sorted(levels.to_list(), key=place.__getitem__), dtype=pl.String)
        has_missing = missing or series.null_count() > 0 or None in extra
        return cls(series.name, series.dtype, levels.rename("level"), has_missing, ordered)

    @property
    def size(self) -> int:
        """Number of levels, missing included."""
        return len(self.levels) + self.has_missing

    @property
    def decimals(self) -> int | None:
        """Decimal places of numbers that are taken for categories; None for others."""
        if not self.levels.dtype.is_float():
            return 0 if self.levels.dtype.is_integer() else None
        return decimals_of(self.levels.to_numpy(), single=self.dtype == pl.Float32)

    def split(self, series: pl.Series) -> tuple[Variable, ...]:
        """Return the column as variables: one of codes."""
        codes = self.codes(series)
        return (Variable(self.name, codes, levels=self.size, ordered=self.ordered),)

    def codes(self, series: pl.Series) -> Codes:
        """Return the code of every value."""
        codes = places_among(plain_text(series), self.levels)
        codes = codes.fill_null(len(self.levels)) if self.has_missing else codes
        if codes.null_count():
            raise ColumnError(
                f"Column '{self.name}' has values that were not there when the model was fitted. "
                "Fit the model to the file that holds them."
            )
        return codes.to_numpy().astype(np.int32)

    def joined(self, parts: Sequence[Array]) -> pl.Series:
        """Turn drawn codes into the column."""
        levels = self.levels.cast(self.dtype)
        if self.has_missing:
            levels = levels.extend(pl.Series([None], dtype=self.dtype))
        return levels.gather(pl.Series(parts[0].astype(np.uint32))).rename(self.name)


@stored("number-form")
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
    start, unit
        Where models count from and in steps of what: a time that is told to the minute is counted in minutes, so that
        drawn times are told to the minute too and no whole number is too large for a float.
    """

    name: str
    dtype: pl.DataType
    fixed: tuple[float, ...] = ()
    has_missing: bool = False
    breaks: tuple[float, ...] = ()
    decimals: int | None = None
    low: float = 0.0
    high: float = 0.0
    start: int = 0
    unit: int = 1

    @classmethod
    def of(
        cls, series: pl.Series, *, fixed: Sequence[float] = (), groups: int = 0, missing: bool = False
    ) -> NumberForm:
        """Read the form off a column; special codes and spikes that do not occur are left out."""
        start, unit = _grid(series)
        there = _counted(series, start, unit).drop_nulls().to_numpy()
        if np.isinf(there).any():
            raise ColumnError(
                f"Column '{series.name}' has infinite values, which no model can use. Make them missing, or leave the "
                "column out."
            )
        codes = dict.fromkeys((value - start) / unit for value in fixed)
        kept = tuple(float(value) for value in codes if np.any(there == value))
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
            0 if whole else decimals_of(ordinary, single=series.dtype == pl.Float32),
            float(ordinary.min()) if len(ordinary) else 0.0,
            float(ordinary.max()) if len(ordinary) else 0.0,
            start,
            unit,
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
        numbers = _counted(series, self.start, self.unit)
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

    def joined(self, parts: Sequence[Array]) -> pl.Series:
        """Turn drawn states and values into the column, rounded and within what its type can hold."""
        values = np.asarray(parts[-1], dtype=np.float64).copy()
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0  # no negative zero
        if len(parts) == 1:
            return from_numbers(values, None, self.dtype, self.name, start=self.start, unit=self.unit)
        states = parts[0]
        for place, code in enumerate(self.fixed):
            values[states == self.n_ordinary + place] = code
        missing = states == self.n_states - 1 if self.has_missing else None
        return from_numbers(values, missing, self.dtype, self.name, start=self.start, unit=self.unit)


def as_numbers(series: pl.Series) -> pl.Series:
    """Return a column of numbers, dates or times as floats; missing and NaN are null."""
    series = series.rename("number")
    physical = series.to_physical() if series.dtype.is_temporal() else series
    return physical.cast(pl.Float64).fill_nan(None)


def from_numbers(
    values: Floats,
    missing: Flags | None,
    dtype: pl.DataType,
    name: str,
    *,
    start: int = 0,
    unit: int = 1,
) -> pl.Series:
    """Turn floats into a column of that type; whole numbers and times may be counted from a start in units."""
    series = pl.Series("number", values)
    if dtype == pl.Int64 and (start, unit) == (0, 1) and _all_exact(values):
        series = series.round(0).cast(dtype)
    elif dtype.is_integer() or dtype.is_temporal():
        low, high = _bounds(dtype)
        whole = series.round(0).clip(-_LARGEST, _LARGEST).cast(pl.Int128)
        if (start, unit) != (0, 1):
            whole = whole * _wide(unit) + _wide(start)
        physical = pl.Int32 if dtype == pl.Date else pl.Int64 if dtype.is_temporal() else dtype
        series = whole.clip(_wide(low), _wide(high)).cast(physical).cast(dtype)
    else:
        series = series.cast(dtype)
    if missing is not None:
        series = series.set(pl.Series(missing), None)
    return series.rename(name)


def _all_exact(values: Floats) -> bool:
    """Whether all are numbers that the most usual type of whole numbers holds, so that nothing needs to be cut off."""
    return not len(values) or bool(values.min() >= -_EXACT and values.max() <= _EXACT)


def _bounds(dtype: pl.DataType) -> tuple[int, int]:
    """Return the smallest and the largest whole number that stands for a value of the type."""
    if dtype == pl.Time:
        return 0, 86_400 * 10**9 - 1
    held = dtype if dtype.is_integer() else pl.Int32() if dtype == pl.Date else pl.Int64()
    return pl.select(held.min()).item(), pl.select(held.max()).item()  # type: ignore[attr-defined]


def _grid(series: pl.Series) -> tuple[int, int]:
    """Find where to start counting and in which steps, so that all values are whole numbers that floats can hold."""
    clock = series.dtype.is_temporal() and series.dtype != pl.Date
    if not (clock or series.dtype.is_integer()):
        return 0, 1
    whole = series.rename("number").to_physical().drop_nulls().cast(pl.Int128)
    if not len(whole):
        return 0, 1
    low, high = int(whole.min()), int(whole.max())  # type: ignore[arg-type]
    if not clock and max(-low, high) <= _EXACT:
        return 0, 1
    steps = (whole - _wide(low)).cast(pl.UInt64, strict=False).drop_nulls().to_numpy()
    unit = int(np.gcd.reduce(steps)) or 1
    return low % unit if clock else low, unit


def _wide(number: int) -> pl.Series:
    return pl.Series([number], dtype=pl.Int128)


def _counted(series: pl.Series, start: int, unit: int) -> pl.Series:
    """Return a column as floats, counted from a start in units."""
    if (start, unit) == (0, 1):
        return as_numbers(series)
    return ((series.rename("number").to_physical().cast(pl.Int128) - _wide(start)) // _wide(unit)).cast(
        pl.Float64
    )


def decimals_of(values: Floats, *, single: bool = False) -> int | None:
    """Count the decimal places that a column was written with; None where there is no end to them.

    ``single`` is for numbers that were 32-bit floats, of which only seven digits mean something.

    Examples
    --------
    >>> decimals_of(np.array([1.25, 3.5])), decimals_of(np.array([1 / 3]))
    (2, None)
    """
    finite = values[np.isfinite(values)]
    # A step through the column is enough to see how its numbers were written, and the last look is at all of them.
    for sample in (finite[:: max(1, len(finite) // 1000)], finite):
        for places in range(_MOST_DECIMALS + 1):
            if np.allclose(np.round(sample, places), sample, rtol=1e-7 if single else 1e-12, atol=1e-12):
                break
        else:
            return None
    return places


def plain_text(series: pl.Series) -> pl.Series:
    """Take a category for its text."""
    return series.cast(pl.String) if isinstance(series.dtype, pl.Categorical | pl.Enum) else series


def places_among(values: pl.Series, levels: pl.Series) -> pl.Series:
    """The place of every value among levels of its type; null where it is none of them.

    Examples
    --------
    >>> places_among(pl.Series(["b", None, "c"]), pl.Series(["a", "b"])).to_list()
    [1, None, None]
    """
    keyed = pl.DataFrame({"level": levels, "place": np.arange(len(levels))})
    return values.to_frame("level").join(keyed, on="level", how="left", maintain_order="left")["place"]


def _as_levels(values: Sequence[Any], dtype: pl.DataType, name: str) -> pl.Series:
    try:
        return pl.Series("level", list(values), dtype=dtype, strict=True)
    except TypeError as error:
        raise ColumnError(
            f"A rule gives column '{name}' a value that is not {type_name(dtype)}. Write it in the type of the column."
        ) from error


# A column in the form that models work with: numbers, or the codes of categories, without gaps.
#
# Missing values, special codes and spikes have been split off before (see `discreet.synth.column_forms`), so a model
# never meets a NaN. A variable remembers how trees code it, so that a column is coded once for all the trees it feeds.
Rows = npt.NDArray[np.intp] | Flags | slice


class Variable:
    """One modelled column.

    Parameters
    ----------
    name
        Of the column, or of the part of it, e.g. ``"income"`` or ``"income: state"``.
    values
        64-bit floats of a number, 32-bit codes ``0 … levels - 1`` of a category.
    levels
        Number of categories; 0 for a number.
    ordered
        Whether the categories stand in an order that means something.
    decimals
        Decimal places that drawn numbers are rounded to; None leaves them as they are.

    Examples
    --------
    >>> Variable("age", np.array([30.0, 41.0]), decimals=0).is_number
    True
    """

    __slots__ = ("_codes", "_feature", "decimals", "levels", "name", "ordered", "values")

    def __init__(
        self,
        name: str,
        values: Array,
        *,
        levels: int = 0,
        ordered: bool = False,
        decimals: int | None = None,
        feature: Feature | None = None,
        codes: Array | None = None,
    ) -> None:
        self.name = name
        self.values: Array = np.ascontiguousarray(values, dtype=np.int32 if levels else np.float64)
        self.levels = levels
        self.ordered = ordered
        self.decimals = decimals
        self._feature = feature
        self._codes = codes

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers rather than categories."""
        return self.levels == 0

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        kind = "number" if self.is_number else f"{self.levels} levels"
        return f"Variable({self.name!r}, {kind}, {len(self)} values)"

    @property
    def feature(self) -> Feature:
        """How trees see the column: cut points of a number, level count of a category."""
        if self._feature is None:
            self._feature = Feature.numeric(self.values) if self.is_number else Feature.category(self.levels)
        return self._feature

    @property
    def is_coded(self) -> bool:
        """Whether its coding for trees was learned already."""
        return self._feature is not None

    @property
    def codes(self) -> Array:
        """The values in the coding of the trees."""
        if self._codes is None:
            self._codes = self.feature.encode(self.values)
        return self._codes

    def take(self, rows: Rows) -> Variable:
        """Return some of the records, coded as before."""
        codes = None if self._codes is None else self._codes[rows]
        return self._with(self.values[rows], codes)

    def redrawn(self, values: Array) -> Variable:
        """Return other values of the same variable, to be coded the same way."""
        return self._with(values, None)

    def _with(self, values: Array, codes: Array | None) -> Variable:
        return Variable(
            self.name,
            values,
            levels=self.levels,
            ordered=self.ordered,
            decimals=self.decimals,
            feature=self._feature,
            codes=codes,
        )


Form = CategoryForm | NumberForm


def columns_named(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return some columns; Polars' own ``select`` takes a column that is called ``*`` for all of them."""
    return pl.DataFrame({name: frame[name] for name in names})


def listed(columns: Columns) -> tuple[str, ...]:
    """Columns as the user names them: one, several or none.

    Examples
    --------
    >>> listed("age"), listed(None)
    (('age',), ())
    """
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def check_named(settings: Mapping[str, Iterable[str] | None], known: Iterable[str]) -> None:
    """Refuse a column that is not there; ``settings`` say under which name the user wrote which columns."""
    for setting, columns in settings.items():
        for name in columns or ():
            if name not in known:
                raise ColumnError(f"{unknown_name(name, known)} It was named under {setting}.")


def scaled(weights: Floats) -> Floats:
    """Bring weights to a sum of as many as there are."""
    return np.asarray(weights * (len(weights) / weights.sum()))


def positive_weights(weights: pl.Series, way_out: str) -> Floats:
    """Return survey weights; ``way_out`` says what to do where one is no positive number."""
    numbers = weights.cast(pl.Float64)
    bad = int((numbers.is_null() | ~numbers.is_finite() | (numbers <= 0)).fill_null(True).sum())
    if bad:
        raise ColumnError(
            f"The weight '{weights.name}' is missing, zero, negative or not finite in {bad:,} records. {way_out}"
        )
    return numbers.to_numpy()


def is_numeric(dtype: pl.DataType) -> bool:
    """Whether a column of this type is modelled as a number: numbers, dates and times."""
    return dtype.is_numeric() or dtype.is_temporal()


def _of_parts(parts: tuple[str, Array, int, bool, int | None, Feature | None]) -> Variable:
    name, values, levels, ordered, decimals, feature = parts
    return Variable(name, values, levels=levels, ordered=ordered, decimals=decimals, feature=feature)


stored_as("coded-column", Feature, dict[str, Array], Feature.to_arrays, Feature.from_arrays)
stored_as(
    "variable",
    Variable,
    tuple[str, Array, int, bool, int | None, Feature | None],
    lambda own: (
        own.name,
        own.values,
        own.levels,
        own.ordered,
        own.decimals,
        own.feature if own.is_coded else None,
    ),
    _of_parts,
)


def code_table(predictors: Sequence[Variable], size: int, columns: int | None = None) -> Array:
    """Put the coded predictors side by side, one column after the other in memory.

    Where ``columns`` are more than the predictors, fine categories stand there once more, to be cut in the order of
    their levels (`features_of`).
    """
    again = (
        [variable for variable in predictors if _is_fine(variable)]
        if columns != len(predictors) and columns
        else []
    )
    shown = [*predictors, *again]
    wide = any(variable.codes.dtype == np.int32 for variable in shown)
    table = np.empty((size, len(shown)), dtype=np.int32 if wide else np.int16, order="F")
    for place, variable in enumerate(shown):
        table[:, place] = variable.codes
    return table


def features_of(predictors: Sequence[Variable]) -> list[Feature]:
    """Say what trees see: every predictor, and each category of many levels once more, in the order of its levels.

    Sets of many levels are chosen to fit the records at hand, and are held back for that (``level_penalty``). A cut in
    the order of the levels is not: codes, dates and times of day that are written as text mostly mean something in it.
    """
    again = [Feature.in_order(variable.levels) for variable in predictors if _is_fine(variable)]
    return [*(variable.feature for variable in predictors), *again]


def _is_fine(variable: Variable) -> bool:
    return variable.levels > FINE
