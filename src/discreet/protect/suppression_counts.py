"""How much company has each combination of key values, gaps matching anything or being a value of their own?

Keys are codes: one row a combination, 0 for a gap. What is asked is always the same: for some rows (the askers),
how many records of the file, and how much survey weight, keep them company.

Where a gap is a value, that is the records with the same codes. Where gaps are wildcards, it is the records that
agree with the asker wherever both show a value *and show no fewer values than the asker does*. So a complete record
has only its complete equals, and a record that was blanked further than the asker hides nobody. Rows are sorted by
which keys they show, and two sorts are compared on the keys both show; nothing is compared pairwise.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.protect.suppression_kernels import add_agreeing, numbered

Among = Literal["showing as much", "showing all of it", "all"]


@dataclass(frozen=True)
class Demand:
    """How much company is enough, and on which columns.

    Attributes
    ----------
    columns
        The columns that an intruder would match on, strata included.
    k
        The least number of records.
    least
        The least weight by number of records; beyond its end any weight will do.
    """

    columns: Integers
    k: int
    least: Floats = field(default_factory=lambda: np.zeros(0))

    def met(self, size: Integers, weight: Floats) -> Flags:
        """Say for each company whether it is enough."""
        enough = size >= self.k
        if len(self.least):
            needed = np.append(self.least, 0.0)[np.minimum(size, len(self.least))]
            enough &= weight >= needed
        return enough


class CountedRows:
    """The distinct rows of a table of codes, with the records and the weight of each.

    Where ``units`` say whose the records are, a row counts people: somebody's records with the same codes are one, of
    their mean weight. ``many`` says how many records a row of the codes stands for, one unless given.
    """

    def __init__(
        self,
        codes: Codes,
        weights: Floats,
        *,
        wildcard: bool,
        units: Integers | None = None,
        many: Integers | None = None,
    ) -> None:
        everything, columns = np.arange(len(codes)), np.arange(codes.shape[1])
        self.row_of, firsts = numbered(codes, everything, columns)
        self.codes: Codes = np.ascontiguousarray(codes[firsts])
        heads, weights = (self.row_of, weights) if units is None else _people(self.row_of, units, weights)
        self.many = many
        self.records: Integers = np.bincount(heads, weights=many, minlength=len(firsts)).astype(np.int64)
        self.weights = summed(heads, weights, len(firsts))
        self._columns = columns
        self._wildcard = wildcard
        self.known = known_keys(self.codes)
        self._by_known = by_value(self.known) if wildcard else {}

    def only(self, rows: Flags) -> CountedRows:
        """Keep some of the rows, as if the records of the others were not there; ``row_of`` stays that of all."""
        part = copy(self)
        part.codes = np.ascontiguousarray(self.codes[rows])
        part.records, part.weights, part.known = self.records[rows], self.weights[rows], self.known[rows]
        part._by_known = by_value(part.known) if self._wildcard else {}
        return part

    def lacking(self, demand: Demand) -> Flags:
        """Say which rows have too little company; a row without any key value tells nothing and needs none.

        The last column is the stratum and no key.
        """
        return (self.codes[:, :-1] > 0).any(axis=1) & ~demand.met(*self.company())

    def company(
        self, asking: Codes | None = None, known: Integers | None = None, *, among: Among = "showing as much"
    ) -> tuple[Integers, Floats]:
        """Count the records, and add up the weight, that keep each asker company; each row by default.

        Parameters
        ----------
        asking, known
            The askers; ``known`` may hide keys that they have.
        among
            Where gaps are wildcards, whom to count of those that agree with the asker: those that show no fewer
            values, those that show all the values that the asker shows, or all.
        """
        if asking is None:
            asking = self.codes
        size, weight = np.zeros(len(asking), dtype=np.int64), np.zeros(len(asking))
        if not self._wildcard:
            rows, askers = np.arange(len(self.codes)), np.arange(len(asking))
            add_agreeing(
                self.codes, rows, self.records, self.weights, asking, askers, self._columns, size, weight
            )
            return size, weight
        for has, askers in by_value(known_keys(asking) if known is None else known).items():
            shared = defaultdict(list)
            for other, rows in self._by_known.items():
                if _counts(has, other, among):
                    shared[has & other].append(rows)
            for both, groups in shared.items():
                rows = np.concatenate(groups)
                columns = bits(both)
                add_agreeing(
                    self.codes, rows, self.records, self.weights, asking, askers, columns, size, weight
                )
        return size, weight


def _people(rows: Integers, units: Integers, weights: Floats) -> tuple[Integers, Floats]:
    """List the row of everybody once for each row they are in, and their mean weight there."""
    order = np.lexsort((units, rows))
    new = np.append(True, (np.diff(rows[order]) != 0) | (np.diff(units[order]) != 0))
    who = np.cumsum(new) - 1
    count = int(who[-1]) + 1
    mean = summed(who, weights[order], count) / np.bincount(who, minlength=count)
    return rows[order][new], mean


def _counts(has: int, other: int, among: Among) -> bool:
    """Say whether rows that show the keys ``other`` are counted for askers that show the keys ``has``."""
    if among == "showing as much":
        return other.bit_count() >= has.bit_count()
    return among == "all" or other & has == has


def known_keys(codes: Codes) -> Integers:
    """Write the columns that each row knows as the bits of a number."""
    known: Integers = (codes > 0).astype(np.int64) @ (1 << np.arange(codes.shape[1], dtype=np.int64))
    return known


def bits(mask: int) -> Integers:
    """List the columns in a mask."""
    return np.array([column for column in range(mask.bit_length()) if mask >> column & 1], dtype=np.int64)


def by_value(values: Integers) -> dict[int, Integers]:
    """List the positions of every value."""
    order = np.argsort(values, kind="stable")
    distinct, starts = np.unique(values[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    return {int(v): order[start:end] for v, start, end in zip(distinct, starts, ends, strict=True)}


def summed(numbers: Integers | Codes, values: npt.NDArray[np.generic], groups: int) -> Floats:
    """Add up values by the number of their group."""
    return np.bincount(numbers, weights=values.astype(np.float64), minlength=groups).astype(np.float64)


# Records in codes, those that are alike and stand together written once.
#
# The search for cells to suppress tells records apart by their codes alone. A file in memory has one row a record; a
# table of classes has one row a class, however many records that is. A row is cut where some of its records lose cells.
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
