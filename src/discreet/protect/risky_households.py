"""Who stands out in which area, and what do they look like? What record swapping knows before it looks for partners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.protect.coded_columns import Units, coded, crossed

_TRIES = 32
"""How many candidates are looked at for one in whose area a household does not stand out."""


class Likeness(NamedTuple):
    """Households (or classes) sorted by likeness and area, and the place of each.

    For each place the begin and end of the places that look ``like`` it, and of those in the same area among them.
    """

    order: Integers
    place: Integers
    like: Integers
    near: Integers


class Company(NamedTuple):
    """Where a combination of key values has company enough.

    The area of each household (or class) at the lowest level; the sorted codes of (area, combination) that occur
    there, and how often; how many combinations there are; how often one must occur in an area not to stand out (below
    1 every area will do); and how many candidates are looked at for one in whose area that is so.
    """

    lowest: Integers
    known: Integers
    counts: Integers
    combinations: int
    least: int
    tries: int


class StandingOut:
    """The households, where they live, who stands out, and what they look like.

    Parameters
    ----------
    table, units, many
        Records and their households; or combinations of values that occur, each a unit of its own, and how ``many``
        records have each.
    places, keys
        The columns of places, from the largest to the smallest, and of what an intruder may know.
    k, at_risk
        The smallest number of people in an area who do not stand out, or the column that says who does.
    """

    def __init__(
        self,
        table: pl.DataFrame,
        units: Units,
        places: Sequence[str],
        keys: Sequence[str],
        *,
        k: int,
        at_risk: str | None,
        many: Integers | None = None,
    ) -> None:
        self.table, self.units, self.k = table, units, k
        self.records = np.ones(table.height, dtype=np.int64) if many is None else many
        homes = table.select(places)[units.first]
        self.areas = [crossed(homes.select(places[: level + 1]))[0] for level in range(len(places))]
        self.placed = homes.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
        self.combinations = crossed(table.select(keys))[0] if keys else np.zeros(table.height, dtype=np.int64)
        self.width = int(self.combinations.max(initial=0)) + 1
        self.known: Integers = np.zeros(0, dtype=np.int64)
        self.counts: Integers = np.zeros(0, dtype=np.int64)
        self.level = self._levels_of_risk(at_risk)
        self.standing_out = (self.level < len(places)) & self.placed

    def _levels_of_risk(self, at_risk: str | None) -> Integers:
        """Give each household the largest area in which it stands out; one past the last where in none."""
        lowest = len(self.areas) - 1
        level = np.full(len(self.units), lowest + 1, dtype=np.int64)
        if at_risk is not None:
            flagged = self.table[at_risk].fill_null(False).to_numpy()
            level[self.units.of_record[flagged]] = lowest
            return level
        for at in range(lowest, -1, -1):
            pairs = self.areas[at][self.units.of_record] * self.width + self.combinations
            known, inverse = np.unique(pairs, return_inverse=True)
            counts = np.bincount(inverse, weights=self.records).astype(np.int64)
            rare = counts[inverse] < self.k
            level[self.units.of_record[rare]] = at
            if at == lowest:
                self.known, self.counts = known.astype(np.int64), counts
        return level

    def looks(self, names: Sequence[str]) -> Integers:
        """Number what households look like: the values of their members in some columns, whatever the order."""
        if not names:
            return self.units.sizes()
        values = crossed(self.table.select(names))[0]
        if len(self.units) == self.table.height:
            return values
        together = (
            pl.DataFrame({"unit": self.units.of_record, "value": values})
            .group_by("unit")
            .agg(pl.col("value").sort().cast(pl.String).str.join("-"))
            .sort("unit")
        )
        return coded(together["value"])[0]

    def sorted_by(self, look: Integers, level: int) -> Likeness:
        """Sort the households by what they look like and their areas of a level."""
        area = self.areas[level]
        order = np.lexsort((area, look)).astype(np.int64)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return Likeness(order, place, _runs(look[order]), _runs(look[order], area[order]))

    def company(self) -> Company:
        """Say where combinations of key values have company enough, as far as that is known."""
        least = self.k if len(self.known) else 0
        return Company(self.areas[-1], self.known, self.counts, self.width, least, _TRIES)


def _runs(*codes: Integers) -> Integers:
    """Give for every place the begin and end of the run of equal codes it lies in."""
    size = len(codes[0])
    fresh = np.zeros(size, dtype=np.bool_)
    fresh[:1] = True
    for column in codes:
        fresh[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], size)
    run = np.cumsum(fresh) - 1
    return np.column_stack([begins[run], ends[run]]).astype(np.int64)
