"""Hierarchies of dates along the calendar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError
from discreet.hierarchy.ordered import OrderedHierarchy
from discreet.hierarchy.values import as_tuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

# January 1970, where NumPy counts from, opens a quarter, a year and a decade: periods are whole steps of it.
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_ORDER = ("day", *_MONTHS)


@dataclass(frozen=True, repr=False)
class Dates(OrderedHierarchy):
    """Periods of the calendar, with labels such as 2024-03-09, 2024-03, 2024-Q1, 2024 and 2020s."""

    levels: Sequence[str] = _ORDER
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
        return [f"{year}s" for year in years] if period == "decade" else years

    def _parameters(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}
