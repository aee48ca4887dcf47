"""Which cells agree with these margins and stay nearest to where they began? Iterative proportional fitting.

Every margin in turn scales the cells that it sums, until all hold (Deming and Stephan 1940). Log-linear models of
tables, joint synthesis, population risk and the raking of weights stand on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.core.arrays import Floats, Integers


class Margin(Protocol):
    """Sums of cells that are to hold."""

    @property
    def wanted(self) -> Floats:
        """What the sums are to be."""
        ...

    def sums(self, cells: Floats) -> Floats:
        """Add the cells up."""
        ...

    def spread(self, sums: Floats) -> Floats:
        """Give every cell the number of the sum that it is in."""
        ...


@dataclass(frozen=True, eq=False)
class AxisMargin:
    """The margin of an array of cells over some of its axes; ``wanted`` has the others with length 1."""

    axes: tuple[int, ...]
    wanted: Floats

    @classmethod
    def of(cls, counts: Floats, axes: Iterable[int]) -> AxisMargin:
        """Take the margin that these counts have.

        Examples
        --------
        >>> AxisMargin.of(np.array([[1.0, 2.0], [3.0, 4.0]]), [0]).wanted.tolist()
        [[3.0], [7.0]]
        """
        kept = tuple(axes)
        return cls(kept, cls(kept, counts).sums(counts))

    def sums(self, cells: Floats) -> Floats:
        """Add up over the other axes."""
        others = tuple(axis for axis in range(cells.ndim) if axis not in self.axes)
        return np.asarray(cells.sum(axis=others, keepdims=True))

    def spread(self, sums: Floats) -> Floats:
        """Leave the sums as they are: they broadcast."""
        return sums


@dataclass(frozen=True, eq=False)
class GroupMargin:
    """The margin of a list of cells by the group of each."""

    groups: Integers
    wanted: Floats

    def sums(self, cells: Floats) -> Floats:
        """Add up by group."""
        return np.bincount(self.groups, cells, minlength=len(self.wanted)).astype(np.float64, copy=False)

    def spread(self, sums: Floats) -> Floats:
        """Look the sum of each cell's group up."""
        return np.asarray(sums[self.groups])


@dataclass(frozen=True, eq=False)
class Fit:
    """Cells that were scaled: by how much a margin was still off in the last round, and whether that was enough."""

    cells: Floats
    rounds: int
    gap: float
    settled: bool


def fit_margins(
    start: Floats,
    margins: Sequence[Margin],
    *,
    tolerance: float,
    rounds: int,
    empty: float = 0.0,
    within: Callable[[Floats], Floats] | None = None,
) -> Fit:
    """Scale the cells to each margin in turn until none is off by the tolerance.

    Parameters
    ----------
    start
        Cells to begin with; ratios between them that no margin speaks of stay.
    margins
        What is to hold.
    tolerance
        How far a sum may be off, in the unit of the cells, when its turn comes.
    rounds
        When to give up.
    empty
        By what the cells of a sum of zero are scaled.
    within
        Brings the cells into bounds after every round.

    Examples
    --------
    >>> rows, columns = AxisMargin((0,), np.array([[3.0], [1.0]])), AxisMargin((1,), np.array([[2.0, 2.0]]))
    >>> fit_margins(np.ones((2, 2)), [rows, columns], tolerance=1e-9, rounds=9).cells.tolist()
    [[1.5, 1.5], [0.5, 0.5]]
    """
    cells, gap = start.astype(np.float64), np.inf
    for done in range(1, rounds + 1):
        gap = 0.0
        for margin in margins:
            now = margin.sums(cells)
            gap = max(gap, float(np.abs(now - margin.wanted).max(initial=0.0)))
            factors = np.divide(margin.wanted, now, out=np.full_like(now, empty), where=now > 0)
            cells *= margin.spread(factors)
        if within is not None:
            cells = within(cells)
        if gap <= tolerance:
            return Fit(cells, done, gap, True)
    return Fit(cells, rounds, gap, False)
