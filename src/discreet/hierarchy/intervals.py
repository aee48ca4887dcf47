"""Hierarchies of numbers: intervals of equal width, and intervals between given breaks."""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError
from discreet.hierarchy.algebra import TOP, Hierarchy
from discreet.hierarchy.enumerated import as_tuple, through_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BELOW, _ABOVE = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_LARGEST_EXACT = 2.0**53


# Hierarchies on a line: labels are intervals of numbers or of days, and keep their order.


class OrderedHierarchy(Hierarchy):
    """Values are points on a line, labels are intervals that tile it; the top level is the whole line."""

    ordered: ClassVar[bool] = True
    closed: str = "left"

    @abstractmethod
    def _points(self, values: pl.Series) -> pl.Series:
        """Place each value on the line; null where missing or where no interval can hold it."""

    @abstractmethod
    def _bins(self, points: NDArray[Any], level: int) -> NDArray[np.int64]:
        """Give the number of each point's interval at a level between 0 and the top, in order."""

    @abstractmethod
    def _edges(self, bins: NDArray[np.int64], level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the two ends of each interval, infinite where it is open-ended."""

    @abstractmethod
    def _bin_names(self, bins: NDArray[np.int64], level: int) -> list[str]:
        """Name each interval."""

    def _bounds(self) -> list[float]:
        """Give the points that belong to the domain whether or not data reach them."""
        return []

    def _ancestors(self, values: pl.Series, level: int) -> pl.Series:
        points = self._points(values)
        found = points.drop_nulls().to_numpy()
        bins = np.zeros(len(found), dtype=np.int64) if level == self.height else self._bins(found, level)
        return through_distinct(_spread(bins, points), lambda distinct: self._named(distinct, level))

    def _named(self, distinct: pl.Series, level: int) -> pl.Series:
        top = level == self.height
        names = [TOP] * len(distinct) if top else self._bin_names(distinct.to_numpy(), level)
        known = [TOP] if top else self._fixed_labels(level)
        return pl.Series(names, dtype=pl.Enum(known or list(dict.fromkeys(names))))

    def _shares(self, values: pl.Series, level: int) -> pl.Series:
        points = self._points(values)
        found = points.drop_nulls().to_numpy()
        if not len(found):
            return pl.repeat(None, len(values), dtype=pl.Float64, eager=True)
        unit = _unit(found)
        # A value stands for the unit it opens (or closes), so that the last value of the range has an extent.
        before, after = (0.0, unit) if self.closed == "left" else (unit, 0.0)
        start = min([float(found.min()) - before, *self._bounds()])
        end = max([float(found.max()) + after, *self._bounds()])
        if level == self.height:
            shares = np.ones(len(found))
        elif level == 0:
            shares = np.full(len(found), min(1.0, unit / (end - start)))
        else:
            low, high = self._edges(self._bins(found, level), level)
            shares = np.minimum(1.0, (np.minimum(high, end) - np.maximum(low, start)) / (end - start))
        return _spread(shares, points)


def _spread(answers: NDArray[Any], points: pl.Series) -> pl.Series:
    """Put the answers for the points that exist back to their places, null elsewhere."""
    if not points.null_count():
        return pl.Series(answers)
    present = points.is_not_null()
    full = np.zeros(len(points), dtype=answers.dtype)
    full[present.to_numpy()] = answers
    return pl.select(pl.when(present).then(pl.Series(full))).to_series()


def _unit(points: NDArray[Any]) -> float:
    """Give the extent of one value: 1 for whole numbers, else the smallest gap between two that were seen."""
    if np.issubdtype(points.dtype, np.integer):
        return 1.0
    gaps = np.diff(np.unique(points))
    smallest = float(gaps.min()) if len(gaps) else 1.0
    return max(smallest, 2 * float(np.spacing(np.abs(points).max())))


class NumericHierarchy(OrderedHierarchy):
    """What equal and custom intervals share: numbers in, bracketed names out."""

    def _points(self, values: pl.Series) -> pl.Series:
        dtype = values.dtype
        if dtype == pl.Null:
            return values.cast(pl.Int64)
        if dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128, pl.UInt128):
            return values.cast(pl.Int64)
        # A single-precision 0.7 means 0.7: widened bit by bit it would fall below the edge at 0.7.
        points = (values.cast(pl.String) if dtype == pl.Float32 else values).cast(pl.Float64)
        return pl.select(pl.when(points.is_finite()).then(points)).to_series()

    def _misfit(self, values: pl.Series) -> str | None:
        if values.dtype.is_numeric():
            return None
        return "an interval hierarchy is for numbers. Convert the column, or use a table, prefixes or dates."

    def _bracketed(self, low: float, high: float) -> str:
        left = self.closed == "left"
        if math.isinf(low):
            return f"{'<' if left else '<='}{_written(high)}"
        if math.isinf(high):
            return f"{'>=' if left else '>'}{_written(low)}"
        inside = f"{_written(low)}, {_written(high)}"
        return f"[{inside})" if left else f"({inside}]"


def _written(number: float) -> str:
    if isinstance(number, float) and not number.is_integer():
        return format(number, ".15g")
    return str(int(number))


@dataclass(frozen=True, repr=False)
class Intervals(NumericHierarchy):
    """Intervals of equal width, with open-ended ones beyond the bounds."""

    widths: Sequence[float]
    origin: float = 0
    lower: float | None = None
    upper: float | None = None
    closed: str = "left"
    kind: ClassVar[str] = "intervals"

    def __post_init__(self) -> None:
        widths = tuple(_number(width, "widths") for width in as_tuple(self.widths, "widths"))
        if not widths or widths[0] <= 0:
            raise ParameterError("widths must list at least one width, all above 0.")
        for previous, width in itertools.pairwise(widths):
            ratio = width / previous
            if round(ratio) < 2 or abs(ratio - round(ratio)) > 1e-9 * ratio:
                raise ParameterError(
                    f"widths do not nest: {_written(width)} is not a multiple (2 or more) of "
                    f"{_written(previous)}. Choose each width as a multiple of the one before."
                )
        lower, upper = (
            None if b is None else _number(b, "lower and upper") for b in (self.lower, self.upper)
        )
        if lower is not None and upper is not None and lower >= upper:
            raise ParameterError("lower must be below upper.")
        _check_closed(self.closed)
        for name, value in [("widths", widths), ("lower", lower), ("upper", upper)]:
            object.__setattr__(self, name, value)
        origin = _number(self.origin, "origin")
        if not abs(origin) / widths[0] < _LARGEST_EXACT:
            raise ParameterError(
                "origin lies too far away: intervals of that width cannot be counted from it."
            )
        object.__setattr__(self, "origin", origin)

    def __repr__(self) -> str:
        widths = ", ".join(map(_written, self.widths))
        return f"<Hierarchy intervals: height {self.height}, widths {widths}>"

    @property
    def height(self) -> int:
        """The number of widths, and one for the top."""
        return len(self.widths) + 1

    def _points(self, values: pl.Series) -> pl.Series:
        points = super()._points(values)
        if points.dtype.is_integer():
            return points
        # Further out a float no longer tells neighboring intervals apart.
        steps = ((points - self.origin) / self.widths[0]).abs()
        outside = self._is_below(points) | self._is_above(points)
        return pl.select(pl.when((steps < _LARGEST_EXACT) | outside).then(points)).to_series()

    def _is_below(self, points: Any) -> Any:
        lower = -math.inf if self.lower is None else self.lower
        return points < lower if self.closed == "left" else points <= lower

    def _is_above(self, points: Any) -> Any:
        upper = math.inf if self.upper is None else self.upper
        return points >= upper if self.closed == "left" else points > upper

    def _bins(self, points: NDArray[Any], level: int) -> NDArray[np.int64]:
        below, above = self._is_below(points), self._is_above(points)
        inside = ~(below | above)
        # Coarser intervals are counted in whole finest ones, which makes them nest whatever the rounding.
        ratio = round(self.widths[level - 1] / self.widths[0])
        bins = np.where(below, _BELOW, _ABOVE)
        bins[inside] = self._finest(points[inside]) // ratio
        return bins

    def _finest(self, points: NDArray[Any]) -> NDArray[np.int64]:
        origin, width = self.origin, self.widths[0]
        left = self.closed == "left"
        if np.issubdtype(points.dtype, np.integer) and isinstance(origin, int) and isinstance(width, int):
            return (points - origin) // width if left else -((origin - points) // width) - 1
        steps = (points - origin) / width
        nearest = np.rint(steps)
        # 0.3 / 0.1 is a hair below 3: a value that misses an edge by rounding only lies on the edge.
        on_edge = np.abs(steps - nearest) <= 8 * np.spacing(np.maximum(1.0, np.abs(steps)))
        whole = np.where(on_edge, nearest, np.floor(steps) if left else np.ceil(steps))
        return (whole if left else whole - 1).astype(np.int64)

    def _edges(self, bins: NDArray[np.int64], level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        lower = -math.inf if self.lower is None else self.lower
        upper = math.inf if self.upper is None else self.upper
        width = self.widths[level - 1]
        low = np.maximum(self.origin + bins.astype(np.float64) * width, lower)
        high = np.minimum(self.origin + (bins.astype(np.float64) + 1) * width, upper)
        low[bins == _BELOW], high[bins == _BELOW] = -math.inf, lower
        low[bins == _ABOVE], high[bins == _ABOVE] = upper, math.inf
        return low, high

    def _bin_names(self, bins: NDArray[np.int64], level: int) -> list[str]:
        return [self._bin_name(number, level) for number in bins.tolist()]

    def _bin_name(self, number: int, level: int) -> str:
        lower = -math.inf if self.lower is None else self.lower
        upper = math.inf if self.upper is None else self.upper
        if number == _BELOW:
            return self._bracketed(-math.inf, lower)
        if number == _ABOVE:
            return self._bracketed(upper, math.inf)
        # In Python numbers, so that large whole edges stay exact.
        low, high = (self.origin + step * self.widths[level - 1] for step in (number, number + 1))
        return self._bracketed(max(low, lower), min(high, upper))

    def _bounds(self) -> list[float]:
        return [float(bound) for bound in (self.lower, self.upper) if bound is not None]

    def _parameters(self) -> dict[str, Any]:
        bounds = {"lower": self.lower, "upper": self.upper}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"widths": list(self.widths), "origin": self.origin, **given, "closed": self.closed}


@dataclass(frozen=True, repr=False)
class Breaks(NumericHierarchy):
    """Intervals between given breaks; the outer ones are open-ended."""

    cuts: Sequence[Sequence[float]]
    names: Sequence[Sequence[str]] | None = None
    closed: str = "left"
    kind: ClassVar[str] = "breaks"

    def __post_init__(self) -> None:
        levels = [as_tuple(level, "breaks of a level") for level in as_tuple(self.cuts, "breaks")]
        cuts = tuple(tuple(_number(cut, "breaks") for cut in level) for level in levels)
        if not cuts or not all(cuts):
            raise ParameterError("breaks must list at least one level, and each level at least one break.")
        for level, breaks in enumerate(cuts, start=1):
            if any(high <= low for low, high in itertools.pairwise(breaks)):
                raise ParameterError(f"breaks of level {level} must grow from one to the next. Sort them.")
            if level > 1 and not set(breaks) <= set(cuts[level - 2]):
                raise ParameterError(
                    f"breaks do not nest: level {level} has breaks that level {level - 1} lacks. "
                    "Each level may only drop breaks of the one before."
                )
        _check_closed(self.closed)
        object.__setattr__(self, "cuts", cuts)
        if self.names is not None:
            object.__setattr__(self, "names", _checked_names(self.names, cuts))

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(level) + 1) for level in self.cuts)
        return f"<Hierarchy breaks: height {self.height}, intervals per level {sizes}, 1>"

    @property
    def height(self) -> int:
        """The number of lists of breaks, and one for the top."""
        return len(self.cuts) + 1

    def _bins(self, points: NDArray[Any], level: int) -> NDArray[np.int64]:
        side = "right" if self.closed == "left" else "left"
        return np.searchsorted(np.asarray(self.cuts[level - 1]), points, side=side).astype(np.int64)  # type: ignore[call-overload,no-any-return]

    def _ends(self, level: int) -> list[float]:
        return [-math.inf, *self.cuts[level - 1], math.inf]

    def _edges(self, bins: NDArray[np.int64], level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        ends = np.asarray(self._ends(level), dtype=np.float64)
        return ends[bins], ends[bins + 1]

    def _bin_names(self, bins: NDArray[np.int64], level: int) -> list[str]:
        names = self._level_names(level)
        return [names[number] for number in bins.tolist()]

    def _level_names(self, level: int) -> list[str]:
        if self.names is not None:
            return list(self.names[level - 1])
        return [self._bracketed(low, high) for low, high in itertools.pairwise(self._ends(level))]

    def _fixed_labels(self, level: int) -> list[str] | None:
        return self._level_names(level) if 0 < level < self.height else None

    def _bounds(self) -> list[float]:
        return [float(self.cuts[0][0]), float(self.cuts[0][-1])]

    def _parameters(self) -> dict[str, Any]:
        names = {} if self.names is None else {"labels": [list(level) for level in self.names]}
        return {"breaks": [list(level) for level in self.cuts], **names, "closed": self.closed}


def _number(value: Any, parameter: str) -> float:
    """Take a finite number, as a whole one where it is whole, so that labels and arithmetic are exact."""
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not real or not abs(value) <= sys.float_info.max:
        raise ParameterError(f"{parameter} must be finite numbers.")
    return int(value) if abs(value) < _LARGEST_EXACT and value == int(value) else float(value)


def _check_closed(closed: str) -> None:
    if closed not in ("left", "right"):
        raise ParameterError("closed must be 'left' for [a, b) or 'right' for (a, b].")


def _checked_names(
    names: Sequence[Sequence[str]], cuts: tuple[tuple[float, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    if len(names) != len(cuts):
        raise ParameterError(f"labels must have one list a level: {len(cuts)}, not {len(names)}.")
    for level, (given, breaks) in enumerate(zip(names, cuts, strict=True), start=1):
        if isinstance(given, str) or not all(isinstance(name, str) for name in given):
            raise ParameterError(f"labels of level {level} must be a list of texts.")
        if len(given) != len(breaks) + 1 or len(set(given)) != len(given):
            raise ParameterError(
                f"labels of level {level} must be {len(breaks) + 1} different texts, one more than breaks."
            )
    return tuple(tuple(level) for level in names)


# Hierarchies of dates along the calendar.


# January 1970, where NumPy counts from, opens each of these periods: they are whole steps of it.
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "5 years": 60, "decade": 120, "20 years": 240}
_ORDER = ("day", *_MONTHS)


@dataclass(frozen=True, repr=False)
class Dates(OrderedHierarchy):
    """Periods of the calendar, with labels such as 2024-03-09, 2024-03, 2024-Q1, 2024, 2020-2024 and 2020s."""

    levels: Sequence[str] = ("day", "month", "quarter", "year", "decade")
    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        levels = as_tuple(self.levels, "levels")
        if not levels or not set(levels) <= set(_ORDER):
            raise ParameterError(
                f"levels must be some of {', '.join(_ORDER)}. (Weeks do not nest in months or years.)"
            )
        if list(levels) != [period for period in _ORDER if period in levels]:
            raise ParameterError(f"levels must go from fine to coarse, each once: {', '.join(_ORDER)}.")
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        return f"<Hierarchy dates: height {self.height}, {', '.join(self.levels)}>"

    @property
    def height(self) -> int:
        """The number of periods, and one for the top."""
        return len(self.levels) + 1

    def _points(self, values: pl.Series) -> pl.Series:
        if isinstance(values.dtype, pl.Datetime):
            values = values.dt.date()
        return values.cast(pl.Date).to_physical()

    def _misfit(self, values: pl.Series) -> str | None:
        if isinstance(values.dtype, (pl.Date, pl.Datetime)):
            return None
        return "a date hierarchy is for dates and datetimes. Convert the column to dates first."

    def _bins(self, points: NDArray[Any], level: int) -> NDArray[np.int64]:
        period = self.levels[level - 1]
        if period == "day":
            return points.astype(np.int64)
        months = points.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        return months // _MONTHS[period]

    def _edges(self, bins: NDArray[np.int64], level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._first_days(bins, level), self._first_days(bins + 1, level)

    def _first_days(self, bins: NDArray[np.int64], level: int) -> NDArray[np.float64]:
        period = self.levels[level - 1]
        if period == "day":
            return bins.astype(np.float64)
        months = (bins * _MONTHS[period]).astype("datetime64[M]")
        return months.astype("datetime64[D]").astype(np.int64).astype(np.float64)

    def _bin_names(self, bins: NDArray[np.int64], level: int) -> list[str]:
        period = self.levels[level - 1]
        if period == "day":
            return [str(day) for day in bins.astype("datetime64[D]")]
        months = (bins * _MONTHS[period]).astype("datetime64[M]")
        if period == "month":
            return [str(month) for month in months]
        years = [str(year) for year in months.astype("datetime64[Y]")]
        if period == "quarter":
            return [f"{year}-Q{number % 4 + 1}" for year, number in zip(years, bins.tolist(), strict=True)]
        if period in ("5 years", "20 years"):
            return [f"{year}-{int(year) + _MONTHS[period] // 12 - 1}" for year in years]
        return [f"{year}s" for year in years] if period == "decade" else years

    def _parameters(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}
