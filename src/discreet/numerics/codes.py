"""What can be done with coded columns? They are projected, crossed to one number a cell, and counted.

A column of codes is an array of whole numbers from 0 to its size less one; several of them with their sizes are what a
table is made of. Every step gives new arrays and leaves the old ones as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError

MOST_CELLS = 2**62
_DENSE = 2**24  # tables up to this size are counted cell by cell; in larger ones sorting costs less


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """Columns of codes, and how many values each of them can take.

    Examples
    --------
    >>> sex, age = np.array([0, 1, 1]), np.array([2, 0, 2])
    >>> table = CodedColumns((sex, age), (2, 3))
    >>> table.crossed().tolist(), table.counted().tolist()
    ([2, 3, 5], [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    >>> table.project([1]).occupied().tolist()
    [1.0, 2.0]
    """

    codes: Sequence[Integers]
    sizes: Sequence[int]

    @property
    def cells(self) -> int:
        """How many cells the columns have together."""
        return math.prod(self.sizes)

    def project(self, columns: Iterable[int]) -> CodedColumns:
        """Keep some columns, in the order given."""
        places = list(columns)
        return CodedColumns([self.codes[at] for at in places], [self.sizes[at] for at in places])

    def crossed(self) -> Integers:
        """Number the cell of every record, the last column running fastest."""
        if self.cells >= MOST_CELLS:
            raise ParameterError(
                "The cross of these columns has more cells than can be numbered. Cross fewer columns, or columns of "
                "fewer values."
            )
        number = np.zeros(len(self.codes[0]) if len(self.codes) else 0, dtype=np.int64)
        for codes, size in zip(self.codes, self.sizes, strict=True):
            number *= size
            number += codes
        return number

    def counted(self, weights: Floats | None = None) -> Floats:
        """Count the records of every cell, or sum their weights; one axis a column."""
        counts = np.bincount(self.crossed(), weights, self.cells).astype(np.float64)
        return counts.reshape(tuple(self.sizes))

    def occupied(self, weights: Floats | None = None) -> Floats:
        """Count the records of the cells that occur, in the order of the cells; no table of all cells is made."""
        cells = self.crossed()
        if self.cells > _DENSE:
            cells = np.unique(cells, return_inverse=True)[1]
        counts = np.bincount(cells, weights).astype(np.float64)
        return counts[counts > 0]
