"""Records in codes, those that are alike and stand together written once.

The search for cells to suppress tells records apart by their codes alone. A file in memory has one row a record; a
table of classes has one row a class, however many records that is. A row is cut where some of its records lose cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers


@dataclass(frozen=True, eq=False)
class Alike:
    """Rows of records.

    Attributes
    ----------
    codes
        One row a run of records, one column a key, the stratum last; 0 is a gap.
    weights
        Survey weight of each row.
    many
        How many records a row stands for; None for one each.
    source
        The row that each was cut from; None where none was.

    Examples
    --------
    >>> three = Alike(np.array([[1, 1], [2, 1]]), np.zeros(2), many=np.array([2, 1]))
    >>> cut = three.blanked(np.array([0]), np.array([1]), np.array([0]))
    >>> cut.codes.tolist(), cut.many.tolist(), cut.source.tolist()
    ([[0, 1], [1, 1], [2, 1]], [1, 1, 1], [0, 0, 1])
    """

    codes: Codes
    weights: Floats
    many: Integers | None = None
    source: Integers | None = None

    def blanked(
        self, rows: Integers, masks: Integers, columns: Integers, counts: Integers | None = None
    ) -> Alike:
        """Blank cells of the first records of some rows.

        Parameters
        ----------
        rows, masks
            The rows that records are taken from, those of one row in turn, and the cells they lose as bits.
        columns
            The column of each bit.
        counts
            How many records at a time; one unless given.
        """
        if self.many is None:
            return replace(self, codes=_without(self.codes.copy(), np.asarray(rows), masks, columns))
        counts = np.ones(len(rows), dtype=np.int64) if counts is None else counts
        order = np.argsort(rows, kind="stable")
        rows, masks, counts = rows[order], masks[order], counts[order]
        if len(rows):
            first = np.flatnonzero(np.append(True, (np.diff(rows) != 0) | (np.diff(masks) != 0)))
            rows, masks, counts = rows[first], masks[first], np.add.reduceat(counts, first)
        left = self.many.copy()
        np.subtract.at(left, rows, counts)
        staying = np.flatnonzero(left > 0)
        owner = np.concatenate([rows, staying])
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        lost = np.concatenate([masks, np.zeros(len(staying), dtype=np.int64)])[order]
        touched = np.flatnonzero(lost)
        return Alike(
            codes=_without(self.codes[owner], touched, lost[touched], columns),
            weights=self.weights[owner],
            many=np.concatenate([counts, left[staying]])[order],
            source=owner if self.source is None else self.source[owner],
        )

    def summed(self, cells: np.ndarray) -> Integers:
        """Count the records in which cells are marked, by column."""
        total: Integers = cells.sum(axis=0) if self.many is None else self.many @ cells
        return total


def _without(codes: Codes, rows: Integers, masks: Integers, columns: Integers) -> Codes:
    for bit, column in enumerate(columns):
        codes[rows[masks >> bit & 1 == 1], column] = 0
    return codes
