"""How does a tree see a column? As small whole numbers: intervals of a number, levels of a category.

A `Feature` is learned once from the training values of a column and then codes any later values of it: a number
becomes the interval between two cuts it falls in, a category keeps its code. Cuts lie halfway between neighboring
training values: between all of them where there are few, else between quantiles, with heaped values in intervals
of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError

MAX_BINS = 4096  # more cuts cost time and did not fit new records better in bench/trees.py
UNSEEN = -1
FINE = 30  # levels of a category; finer ones may be cut in the order of their levels as well


@dataclass(frozen=True, eq=False)
class Feature:
    """One predictor column: a number cut into intervals, or a category with its number of levels.

    Attributes
    ----------
    cuts
        Ascending cuts of a number; a value goes into the interval of the cuts at or below it. Empty for a category.
    levels
        How many codes there are: intervals (one more for missing values where training had some) or categories.
    categorical
        Whether codes are categories without order.
    missing
        Whether code 0 stands for missing numbers.
    scores
        The mean training value in each interval (missing: the mean of all), for tests of linear association.

    Examples
    --------
    >>> age = Feature.numeric([20, 30, 30, 40])
    >>> age.cuts
    array([25., 35.])
    >>> age.encode([10, 25, 99])
    array([0, 1, 2], dtype=int16)
    >>> Feature.category(3).encode([0, 2, 7])
    array([ 0,  2, -1], dtype=int16)
    """

    cuts: Floats
    levels: int
    categorical: bool
    missing: bool
    scores: Floats

    @classmethod
    def numeric(cls, values: npt.ArrayLike, *, max_bins: int = MAX_BINS) -> Feature:
        """Learn the cuts of a number (dates as days, booleans as 0 and 1) from its training values."""
        if max_bins < 2:
            raise ParameterError("max_bins must be at least 2: a number needs one cut to split on.")
        column = np.asarray(values, dtype=np.float64)
        known = column[~np.isnan(column)]
        missing = len(known) < len(column)
        distinct, counts = np.unique(known, return_counts=True)
        cuts = _halfway(distinct, _chosen(counts, max_bins))
        levels = len(cuts) + 1 + missing
        code = np.searchsorted(cuts, distinct, side="right") + missing
        held = np.bincount(code, weights=counts, minlength=levels)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # infinite and huge values keep a finite score below
            total = np.bincount(code, weights=counts * distinct, minlength=levels)
            middle = float(known.mean()) if len(known) else 0.0
            scores = np.divide(total, held, out=np.full(levels, middle), where=held > 0)
        return cls(cuts, levels, categorical=False, missing=missing, scores=np.nan_to_num(scores))

    @classmethod
    def category(cls, levels: int) -> Feature:
        """Describe a category coded 0 to ``levels - 1``; a missing value is a level of its own, if it is one."""
        if levels < 0:
            raise ParameterError("levels must not be negative.")
        return cls(np.empty(0), int(levels), categorical=True, missing=False, scores=np.zeros(int(levels)))

    @classmethod
    def in_order(cls, levels: int) -> Feature:
        """Describe a category whose codes ``0 … levels - 1`` are cut in their order, as a number is.

        Examples
        --------
        >>> Feature.in_order(3).encode([0, 2])
        array([0, 2], dtype=int16)
        """
        places = np.arange(levels, dtype=np.float64)
        return cls(places[1:] - 0.5, int(levels), categorical=False, missing=False, scores=places)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type the codes fit in; two bytes unless there are more than 32,767 levels."""
        return np.dtype(np.int16 if self.levels <= np.iinfo(np.int16).max else np.int32)

    def encode(self, values: npt.ArrayLike) -> Array:
        """Code new values; an unseen category, or a missing number where training had none, becomes -1."""
        if self.categorical:
            levels = np.asarray(values)
            known = (levels >= 0) & (levels < self.levels)
            return np.where(known, levels, UNSEEN).astype(self.dtype)
        from discreet.numerics.trees.walk_kernels import intervals

        column = np.ascontiguousarray(values, dtype=np.float64)
        codes: Array = intervals(self.cuts, column).astype(self.dtype)
        if self.missing:
            codes += 1
        codes[np.isnan(column)] = 0 if self.missing else UNSEEN
        return codes

    def to_arrays(self) -> dict[str, Array]:
        """Give the feature as plain arrays, to be written to an npz file."""
        flags = np.array([self.levels, self.categorical, self.missing], dtype=np.int64)
        return {"cuts": self.cuts, "flags": flags, "scores": self.scores}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Feature:
        """Read the feature back from the arrays of `to_arrays`."""
        levels, categorical, missing = (int(flag) for flag in arrays["flags"])
        cuts, scores = arrays["cuts"], arrays["scores"]
        ascending = cuts.ndim == 1 and cuts.dtype == np.float64 and bool((np.diff(cuts) >= 0).all())
        if not ascending or levels < 0 or (not categorical and levels != len(cuts) + 1 + bool(missing)):
            raise ParameterError("The cuts of a coded column do not fit its levels.")
        return cls(cuts, levels, bool(categorical), bool(missing), scores)


def encode(features: Sequence[Feature], columns: Sequence[npt.ArrayLike]) -> Array:
    """Code columns of values, one feature each, into a table with the columns one after the other in memory.

    Examples
    --------
    >>> encode([Feature.numeric([1, 2]), Feature.category(2)], [[1, 5], [0, 1]]).tolist()
    [[0, 0], [1, 1]]
    """
    if len(features) != len(columns):
        raise ParameterError(
            f"There are {len(features)} features but {len(columns)} columns; give one for each."
        )
    rows = len(np.asarray(columns[0])) if len(columns) else 0
    codes = np.empty((rows, len(features)), dtype=code_type(features), order="F")
    for j, (feature, column) in enumerate(zip(features, columns, strict=True)):
        codes[:, j] = feature.encode(column)
    return codes


def code_type(features: Sequence[Feature]) -> np.dtype[Any]:
    """Find the smallest type that holds the codes of all features."""
    return max(
        (feature.dtype for feature in features), key=lambda kind: kind.itemsize, default=np.dtype(np.int16)
    )


def _chosen(counts: Integers, max_bins: int) -> Integers:
    """Choose the distinct values that open an interval: all, or quantiles with heaped values set apart."""
    if len(counts) <= max_bins:
        return np.arange(1, len(counts))
    ends = np.cumsum(counts)
    # A heap takes two cuts for the steps it covers, so half the cuts may go to either side of heaps.
    steps = np.arange(1, max_bins) * (ends[-1] / max_bins)
    at, covered = np.unique(np.searchsorted(ends, steps, side="left"), return_counts=True)
    after_heaps = at[covered > 1] + 1
    opening = np.union1d(at, after_heaps)
    return opening[(opening > 0) & (opening < len(counts))]


def _halfway(distinct: Floats, opening: Integers) -> Floats:
    below, above = distinct[opening - 1], distinct[opening]
    middle = below / 2 + above / 2
    # Between neighboring floats, or infinities, there is no room: the upper value is the cut.
    return np.where((middle > below) & (middle <= above), middle, above)
