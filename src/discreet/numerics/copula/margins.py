"""One column on its own: from a share of the records to a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError


class Margin(Protocol):
    """The distribution of one column: anything that turns uniform numbers into values."""

    def quantile(self, uniform: Floats) -> Array:
        """Return the values below which these shares of the column lie."""
        ...


@dataclass(frozen=True)
class EmpiricalMargin:
    """The distribution of a column as it was observed.

    Attributes
    ----------
    levels
        The values that occur, in order (sorted; for nominal columns this order is what the copula sees).
    shares
        The share of records at each level; they sum to 1.
    smooth
        Whether values between the levels may come out, by linear interpolation (numbers only).

    Examples
    --------
    >>> margin, codes = EmpiricalMargin.of(np.array(["b", "a", "b", "b"]))
    >>> margin.levels.tolist(), margin.shares.tolist(), codes.tolist()
    (['a', 'b'], [0.25, 0.75], [1, 0, 1, 1])
    >>> margin.quantile(np.array([0.1, 0.9])).tolist()
    ['a', 'b']
    """

    levels: Array
    shares: Floats
    smooth: bool = False

    @classmethod
    def of(
        cls, values: Array, weights: Floats | None = None, *, smooth: bool = False
    ) -> tuple[EmpiricalMargin, Integers]:
        """Read the margin off a column, and the column as positions among its levels."""
        if smooth and not np.issubdtype(values.dtype, np.number):
            raise ParameterError(
                "Only a column of numbers can be smoothed; leave smooth=False for the others."
            )
        levels, codes = np.unique(values, return_inverse=True)
        mass = np.bincount(codes, weights, minlength=len(levels)).astype(float)
        return cls(levels, mass / mass.sum(), smooth), codes.astype(np.int64)

    def positions(self, uniform: Floats) -> Integers:
        """Return the positions among the levels that these shares fall on."""
        return np.searchsorted(np.cumsum(self.shares)[:-1], uniform, side="right").astype(np.int64)

    def quantile(self, uniform: Floats) -> Array:
        """Return the values below which these shares of the column lie."""
        if self.smooth:
            middle = np.cumsum(self.shares) - self.shares / 2
            return np.asarray(np.interp(uniform, middle, self.levels))
        return np.asarray(self.levels[self.positions(uniform)])
