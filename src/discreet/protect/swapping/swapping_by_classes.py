"""Record swapping without households: exchanges are worked out between classes, and looked up for records.

Records with the same values in all columns that the swap looks at are alike to it. So it decides how many records of a
class take the place of another class; which ones is decided by their draws (`discreet.protect.records_of_classes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Integers, Words
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.records_of_classes import DrawnRecords
from discreet.protect.swapping.standing_out import StandingOut


class ClassSwap(StandingOut):
    """Classes of records, so many ``records`` in each, that exchange places."""

    def moves(self, rng: np.random.Generator, match: Sequence[Sequence[str]], share: float) -> pl.DataFrame:
        """Say how many records of one class take the place of another: columns ``from``, ``to``, ``records``."""
        free = np.where(self.placed, self.records, 0)
        looks = [self.looks(names) for names in match]
        pairs = []
        for level in range(len(self.areas)):
            standing = np.flatnonzero((self.level == level) & self.placed)
            targets = rng.permutation(np.repeat(standing, self.records[standing]))
            if len(targets):
                pairs += [self._exchanges(rng, targets, free, look=look, level=level) for look in looks]
        wanted = math.ceil(share * int(self.records.sum()) - 1e-9)
        nobody = np.zeros(0, dtype=np.int64)
        for look in looks:
            short = wanted - 2 * sum(map(len, pairs))
            if short > 0:
                lowest = len(self.areas) - 1
                pairs.append(self._exchanges(rng, nobody, free, look=look, level=lowest, most=short))
        both = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])
        ways = pl.DataFrame(
            {"from": np.concatenate([both[:, 0], both[:, 1]]), "to": np.concatenate([both[:, 1], both[:, 0]])}
        )
        counted = ways.group_by("from", "to").agg(records=pl.len().cast(pl.Int64))
        return counted.sort("from", "to")

    def _exchanges(
        self,
        rng: np.random.Generator,
        targets: Integers,
        free: Integers,
        *,
        look: Integers,
        level: int,
        most: int = -1,
    ) -> Integers:
        """Find partners for the targets among those who look alike in another area of the level."""
        from discreet.protect.swapping.class_swap_kernels import swap_classes

        alike, company = self.sorted_by(look, level), self.company()
        found: Integers = swap_classes(
            rng, targets.astype(np.int64), most, alike, company, free, self.combinations
        )
        return found


def moved_records(
    data: Microdata, drawn: DrawnRecords, moves: pl.DataFrame, moving: Sequence[str]
) -> Callable[[tuple[str, ...]], ByRecord]:
    """Say what becomes of a record, once it is known by what records are told apart.

    Parameters
    ----------
    data, drawn
        The file, its classes, and the draws that decide which records of a class move: those with the lowest, the
        lowest of all to the first of the classes that its records go to.
    moves
        What `ClassSwap.moves` found.
    moving
        The columns that are exchanged.
    """
    ranks = moves.select(
        pl.col("from").alias("class"), rank=pl.col("records").cum_sum().over("from").cast(pl.Int64)
    )

    def of_records(record_key: tuple[str, ...]) -> ByRecord:
        last = drawn.last(data, ranks, record_key, purpose="record-swap")
        begins = np.searchsorted(moves["from"].to_numpy(), np.arange(len(drawn.sizes) + 1)).astype(np.int64)
        columns = {name: drawn.table[name] for name in moving}
        work = _Moving(drawn, columns, moves["to"].to_numpy(), last, begins)
        makes = {name: column.dtype for name, column in columns.items()}
        return ByRecord(tuple(drawn.table.columns), makes, work, draws=not moves.is_empty())

    return of_records


@dataclass(frozen=True, eq=False)
class _Moving:
    """Gives the records of a batch the place that their class and draw say."""

    drawn: DrawnRecords
    columns: Mapping[str, pl.Series]
    to: Integers
    last: Integers
    begins: Integers

    def __call__(self, rows: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        place = self.drawn.places(rows)
        if len(self.to):
            draws = self.drawn.draw(records)
            low, end = self.begins[place], self.begins[place + 1]
            high = end.copy()
            # Every record looks for the first move of its class whose last draw is not below its own.
            while (undecided := low < high).any():
                middle = np.where(undecided, (low + high) // 2, 0)
                below = undecided & (self.last[middle] < draws)
                low = np.where(below, middle + 1, low)
                high = np.where(undecided & ~below, middle, high)
            place = np.where(low < end, self.to[np.minimum(low, len(self.to) - 1)], place)
        return {name: column.gather(place) for name, column in self.columns.items()}
