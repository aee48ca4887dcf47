"""Hierarchies on a line: labels are intervals of numbers or of days, and keep their order."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from discreet.hierarchy.algebra import TOP, Hierarchy
from discreet.hierarchy.values import through_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
