"""Targeted record swapping: households that stand out in their area change places with similar ones elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet import engine
from discreet.arrays import Integers
from discreet.errors import ColumnError, ParameterError
from discreet.method_cards import method
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units, coded, crossed
from discreet.protect.columns import existing, group_column
from discreet.protect.treatment import Change, Stream, Treatment
from discreet.results import percent

_TRIES = 32


@method(
    aim="doubt",
    work="whole-file",
    references=(
        "Shlomo, N., Tudor, C. and Groom, P. (2010). Data swapping for protecting census tables. Privacy "
        "in Statistical Databases, LNCS 6344, 41–51.",
    ),
)
@dataclass(frozen=True)
class RecordSwap(Treatment):
    """Let households that stand out in their area change places with similar ones elsewhere.

    It protects against recognizing a household in a small area by what is rare there, and against being sure
    that a rare household is the right one.

    A household is at risk in an area when one of its members has a combination of key values that fewer than ``k``
    people there share. It is swapped with a household of the same size that looks like it and lives in another
    area of the level at which it stands out, if possible in one where it would not. All places of both households
    are exchanged. Counts of people and households by area stay exactly the same, and so does all that is said
    about a household but its place; who can be sure that a rare household in a small area is the one they know?

    Parameters
    ----------
    geography
        The columns of places, from the largest to the smallest: ``["county", "municipality"]``; those with the
        role ``location`` unless named.
    share
        The least share of households to swap. Where those at risk are fewer, others are drawn at random, so that
        nobody can conclude from a swap that a household is rare.
    household
        The column of the household; the role ``household`` unless named. Without one, records are swapped singly.
    match
        What households must have in common to be swapped: lists of columns in order of preference, e.g.
        ``[["age_group", "sex"], ["age_group"], []]``. The members, taken together, agree in them; an empty list
        asks for the size only, which always has to agree.
    k
        The smallest number of people in an area with the same key values who do not stand out.
    keys
        What an intruder may know; the keys of the data, without places, unless named.
    at_risk
        Instead of ``k`` and ``keys``, a column that is true for records at risk in their smallest area.
    carry
        Columns that go with the place, e.g. a grid cell or a degree of urbanization.

    Notes
    -----
    Households at risk in a large area are served first, then those at risk only in a smaller one, each in random
    order. A household without a place takes no part. Weighted totals of areas may change, because weights stay
    with the people.

    What it costs
    -------------
    Relations between place and the columns that partners do not have in common, mostly for rare households.
    Totals by area stay exact.

    When not to use it
    ------------------
    Do not use it where place itself is the subject, such as a study of exposure near a plant. Do not use it
    as the only protection of a detailed file: a swapped record is still a true record. Keep the swapping rate
    secret where you can.

    Examples
    --------
    >>> people = pl.DataFrame({"town": ["A"] * 3 + ["B"] * 3, "sex": ["f", "f", "m", "m", "m", "f"]})
    >>> swap = RecordSwap(geography=["town"], keys=["sex"], k=2, share=0)
    >>> release = swap.apply(Microdata(people), seed=1)
    >>> release.data.frame["town"].value_counts().sort("town")["count"].to_list()
    [3, 3]
    >>> release.log[0].parameters["units_at_risk"], release.log[0].parameters["units_at_risk_swapped"]
    (2, 2)
    """

    geography: str | Sequence[str] | None = None
    share: float = 0.05
    household: str | None = None
    match: Sequence[Sequence[str]] | None = None
    k: int = 3
    keys: Sequence[str] | None = None
    at_risk: str | None = None
    carry: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ParameterError(
                "share must be between 0 and 1, e.g. 0.05 for at least 5 % of the households."
            )
        if self.k < 1 or self.k != int(self.k):
            raise ParameterError("k must be a whole number of at least 1.")
        lists = [[]] if self.match is None else self.match
        if isinstance(lists, str) or any(isinstance(item, str) for item in lists):
            raise ParameterError(
                "match is a list of lists of columns, in order of preference: match=[['age', 'sex'], ['age']]."
            )
        if not lists:
            raise ParameterError("match has no list of columns. Leave it out to match the size only.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Find partners and exchange the places."""
        places = existing(
            data, data.roles.location if self.geography is None else self.geography, treatment=self.name
        )
        table, household, keys = self._collected(data, places)
        units = Units.of(table[household] if household else None, table.height)
        carry = existing(data, self.carry, treatment=self.name) if self.carry else ()
        moving = [*places, *carry]
        if household:
            units.check_same(table, moving, household)
        swap = _Swap(self, table, units, places, keys)
        partner = swap.partners(stream("partners"))
        source = np.where(partner < 0, np.arange(len(units)), partner)
        records = units.first[source][units.of_record]
        return Change(
            columns={name: table[name].gather(records) for name in moving},
            notes=(*self._notes(swap, household, partner), *self._about_people(data, household)),
            parameters={
                "units": len(units),
                "units_at_risk": int(swap.standing_out.sum()),
                "units_at_risk_swapped": int((swap.standing_out & (partner >= 0)).sum()),
                "units_swapped": int((partner >= 0).sum()),
            },
        )

    def _collected(
        self, data: Microdata, places: Sequence[str]
    ) -> tuple[pl.DataFrame, str | None, tuple[str, ...]]:
        household = group_column(data, self.household, ("household",), treatment=self.name)
        named = data.roles.keys if self.keys is None else tuple(self.keys)
        keys = tuple(key for key in named if key not in places)
        if self.at_risk is not None:
            keys = ()
        elif not keys:
            raise ParameterError(
                "record-swap needs to know who stands out: name keys=['age', 'sex', …] beside the places, or a "
                "column at_risk that is true for records at risk."
            )
        wanted = [
            *places,
            *keys,
            *((household,) if household else ()),
            *([self.at_risk] if self.at_risk else []),
            *([self.carry] if isinstance(self.carry, str) else self.carry),
            *(name for names in self.match or () for name in names),
        ]
        for names in self.match or ():
            if places[-1] in names:
                raise ParameterError(
                    f"match names '{places[-1]}', the place that is to be exchanged. Leave it out."
                )
        table = engine.collect(data, existing(data, list(dict.fromkeys(wanted)), treatment=self.name))
        if self.at_risk and table[self.at_risk].dtype != pl.Boolean:
            raise ColumnError(f"Column '{self.at_risk}' (at_risk) must hold true and false.")
        return table, household, keys

    def _about_people(self, data: Microdata, household: str | None) -> tuple[str, ...]:
        if household is not None or engine.unit_column(data) is None:
            return ()
        return (
            f"Records were swapped one by one and counted as people, though '{engine.unit_in_words(data)}' has several "
            "for some: a record that stayed gives away the one that moved. Name that column as household to move them "
            "together.",
        )

    def _notes(self, swap: _Swap, household: str | None, partner: Integers) -> tuple[str, ...]:
        what = "households" if household else "records"
        moved, many = int((partner >= 0).sum()), len(partner)
        risky = int(swap.standing_out.sum())
        left = int((swap.standing_out & (partner < 0)).sum())
        notes = [
            f"{moved:,} of {many:,} {what} ({percent(moved / many)}) exchanged their place with a similar one "
            f"elsewhere; {risky:,} stood out in their area."
        ]
        if left:
            notes.append(
                f"{left:,} {what} that stand out found no partner and stay where they are. Add a looser list to match."
            )
        if moved < self.share * many:
            notes.append(
                f"The wanted share of {percent(self.share)} was not reached: too few {what} look alike."
            )
        return tuple(notes)


class _Swap:
    """The households, where they live, who stands out, and what they look like."""

    def __init__(
        self,
        asked: RecordSwap,
        table: pl.DataFrame,
        units: Units,
        places: Sequence[str],
        keys: Sequence[str],
    ) -> None:
        self.asked, self.table, self.units = asked, table, units
        homes = table.select(places)[units.first]
        self.areas = [crossed(homes.select(places[: level + 1]))[0] for level in range(len(places))]
        self.placed = homes.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
        self.combinations = crossed(table.select(keys))[0] if keys else np.zeros(table.height, dtype=np.int64)
        self.members = self.combinations[np.argsort(units.of_record, kind="stable")]
        self.member_starts = np.concatenate([[0], np.cumsum(units.sizes())]).astype(np.int64)
        self.known: Integers = np.zeros(0, dtype=np.int64)
        self.counts: Integers = np.zeros(0, dtype=np.int64)
        self.level = self._levels_of_risk()
        self.standing_out = (self.level < len(places)) & self.placed

    def _levels_of_risk(self) -> Integers:
        """Give each household the largest area in which it stands out; one past the last where in none."""
        lowest = len(self.areas) - 1
        level = np.full(len(self.units), lowest + 1, dtype=np.int64)
        if self.asked.at_risk is not None:
            flagged = self.table[self.asked.at_risk].fill_null(False).to_numpy()
            level[self.units.of_record[flagged]] = lowest
            return level
        width = int(self.combinations.max(initial=0)) + 1
        for at in range(lowest, -1, -1):
            pairs = self.areas[at][self.units.of_record] * width + self.combinations
            known, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
            rare = counts[inverse] < self.asked.k
            level[self.units.of_record[rare]] = at
            if at == lowest:
                self.known, self.counts = known.astype(np.int64), counts.astype(np.int64)
        return level

    def partners(self, rng: np.random.Generator) -> Integers:
        """Find the partner of every household, -1 for none."""
        partner = np.full(len(self.units), -1, dtype=np.int64)
        # Who has no place is set aside as its own partner, and freed again at the end.
        nowhere = np.flatnonzero(~self.placed)
        partner[nowhere] = nowhere
        looks = [self._looks(names) for names in (self.asked.match or [[]])]
        for level in range(len(self.areas)):
            targets = rng.permutation(np.flatnonzero((self.level == level) & self.placed))
            for look in looks:
                self._pair(rng, targets, partner, look=look, level=level)
        wanted = math.ceil(self.asked.share * len(self.units) - 1e-9)
        for look in looks:
            short = wanted - int((partner >= 0).sum()) + len(nowhere)
            if short > 0:
                others = rng.permutation(np.flatnonzero(partner < 0))
                self._pair(rng, others, partner, look=look, level=len(self.areas) - 1, most=short)
        partner[nowhere] = -1
        return partner

    def _pair(
        self,
        rng: np.random.Generator,
        targets: Integers,
        partner: Integers,
        *,
        look: Integers,
        level: int,
        most: int = -1,
    ) -> None:
        """Find partners for the targets among those who look alike in another area of the level."""
        from discreet.protect.swapping.record_swap_kernels import find_partners

        area = self.areas[level]
        order = np.lexsort((area, look)).astype(np.int64)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        find_partners(
            rng,
            targets.astype(np.int64),
            most,
            order,
            place,
            _runs(look[order]),
            _runs(look[order], area[order]),
            partner,
            self.areas[-1],
            self.member_starts,
            self.members,
            self.known,
            self.counts,
            int(self.combinations.max(initial=0)) + 1,
            self.asked.k if len(self.known) else 0,
            _TRIES,
        )

    def _looks(self, names: Sequence[str]) -> Integers:
        """Number what households look like: the values of their members in some columns, whatever the order."""
        if not names:
            return self.units.sizes()
        values = crossed(self.table.select(names))[0]
        together = (
            pl.DataFrame({"unit": self.units.of_record, "value": values})
            .group_by("unit")
            .agg(pl.col("value").sort().cast(pl.String).str.join("-"))
            .sort("unit")
        )
        return coded(together["value"])[0]


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
