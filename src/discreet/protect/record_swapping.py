"""Targeted record swapping: households that stand out in their area change places with similar ones elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers, Words
from discreet.core.cards import Work
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Entries, Public, Share
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units, coded, crossed
from discreet.protect.records_of_classes import DrawnRecords
from discreet.protect.treatment import Change, Treatment, existing, group_column


@method(
    aim="doubt",
    work="class-wise",
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

    Also known as: targeted record swapping; TRS; record swapping.

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

    Without households the exchanges are worked out between the distinct combinations of the columns that are named, and
    their counts; of a query (Polars lazy, DuckDB, Spark) nothing else is collected but one draw for every pair of
    combinations that exchange records, and it stays a query. Which records of a combination move is decided by their
    draws, which belong to their place in the file or to their ``record_key`` (Spark needs one): the same ones on every
    engine. A household is told by all its members together; with one, the columns are collected.

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

    geography: ColumnName | ColumnNames | None = None
    share: Annotated[float, Share()] = 0.05
    household: ColumnName | None = None
    match: Annotated[Sequence[Sequence[str]], Entries(1), Public()] | None = None
    k: Annotated[int, AtLeast(1)] = 3
    keys: ColumnNames | None = None
    at_risk: ColumnName | None = None
    carry: ColumnName | ColumnNames = ()

    def __post_init__(self) -> None:
        lists = [[]] if self.match is None else self.match
        if isinstance(lists, str) or any(isinstance(item, str) for item in lists):
            raise ParameterError(
                "match is a list of lists of columns, in order of preference: match=[['age', 'sex'], ['age']]."
            )

    @property
    def work(self) -> Work:
        """Class-wise where records are swapped singly: the members of a household are looked at together."""
        return "class-wise" if self.household is None else "whole-file"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Find partners and exchange the places."""
        places = existing(
            data, data.roles.location if self.geography is None else self.geography, treatment=self.name
        )
        household = group_column(data, self.household, ("household",), treatment=self.name)
        wanted, keys = self._wanted(data, places, household)
        carry = existing(data, self.carry, treatment=self.name) if self.carry else ()
        moving = [*places, *carry]
        if household is None:
            table, many = engine.counted_combinations(data, wanted)
            self._check_flag(table)
            units = Units.of(None, table.height)
            classes = ClassExchange(table, units, places, keys, k=self.k, at_risk=self.at_risk, many=many)
            return self._by_classes(data, classes, moving, stream)
        table = engine.collect(data, wanted)
        self._check_flag(table)
        units = Units.of(table[household], table.height)
        units.check_same(table, moving, household)
        swap = _Households(table, units, places, keys, k=self.k, at_risk=self.at_risk)
        partner = swap.partners(stream("partners"), self.match or [[]], self.share)
        source = np.where(partner < 0, np.arange(len(units)), partner)
        records = units.first[source][units.of_record]
        swapped = _Swapped(
            len(units),
            int(swap.standing_out.sum()),
            int((swap.standing_out & (partner >= 0)).sum()),
            int((partner >= 0).sum()),
        )
        return Change(
            columns={name: table[name].gather(records) for name in moving},
            notes=self._notes(swapped, "households"),
            parameters=asdict(swapped),
        )

    def _by_classes(
        self, data: Microdata, swap: ClassExchange, moving: Sequence[str], stream: Stream
    ) -> Change:
        """Exchange places between classes of records, and choose the records by their draws."""
        many = swap.records
        moves = swap.moves(stream("partners"), self.match or [[]], self.share)
        gone = np.bincount(moves["from"].to_numpy(), weights=moves["records"].to_numpy(), minlength=len(many))
        swapped = _Swapped(
            int(many.sum()),
            int(many[swap.standing_out].sum()),
            int(gone[swap.standing_out].sum()),
            int(gone.sum()),
        )
        drawn = DrawnRecords(swap.table, np.arange(len(many)), many, stream.keyed("moved records"))
        return Change(
            of_records=moved_records(data, drawn, moves, moving),
            notes=(*self._notes(swapped, "records"), *self._about_people(data)),
            parameters=asdict(swapped),
        )

    def _check_flag(self, table: pl.DataFrame) -> None:
        if self.at_risk and table[self.at_risk].dtype != pl.Boolean:
            raise ColumnError(f"Column '{self.at_risk}' (at_risk) must hold true and false.")

    def _wanted(
        self, data: Microdata, places: Sequence[str], household: str | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Name the columns that the swap looks at, and the keys among them."""
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
        return tuple(existing(data, list(dict.fromkeys(wanted)), treatment=self.name)), keys

    def _about_people(self, data: Microdata) -> tuple[str, ...]:
        if engine.counted_unit(data) is None:
            return ()
        return (
            f"Records were swapped one by one and counted as people, though '{engine.unit_in_words(data)}' has several "
            "for some: a record that stayed gives away the one that moved. Name that column as household to move them "
            "together.",
        )

    def _notes(self, swapped: _Swapped, what: str) -> tuple[str, ...]:
        moved, many = swapped.units_swapped, swapped.units
        left = swapped.units_at_risk - swapped.units_at_risk_swapped
        notes = [
            f"{moved:,} of {many:,} {what} ({percent(moved / many)}) exchanged their place with a similar one "
            f"elsewhere; {swapped.units_at_risk:,} stood out in their area."
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


@dataclass(frozen=True)
class _Swapped:
    """How many households (or records) there are, stand out, stand out and found a partner, and found one."""

    units: int
    units_at_risk: int
    units_at_risk_swapped: int
    units_swapped: int


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

    def company(self) -> LocalCounts:
        """Say where combinations of key values have company enough, as far as that is known."""
        least = self.k if len(self.known) else 0
        return LocalCounts(self.areas[-1], self.known, self.counts, self.width, least, _TRIES)


# Who stands out in which area, and what do they look like? What record swapping knows before it looks for partners.


_TRIES = 32


class Likeness(NamedTuple):
    """Households (or classes) sorted by likeness and area, and the place of each.

    For each place the begin and end of the places that look ``like`` it, and of those in the same area among them.
    """

    order: Integers
    place: Integers
    like: Integers
    near: Integers


class LocalCounts(NamedTuple):
    """Where a combination of key values is common enough not to stand out.

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


class _Households(StandingOut):
    """Households that are swapped one by one."""

    @cached_property
    def _members(self) -> tuple[Integers, Integers]:
        """Where the members of each household begin, and the combinations of key values they have."""
        starts = np.concatenate([[0], np.cumsum(self.units.sizes())]).astype(np.int64)
        return starts, self.combinations[np.argsort(self.units.of_record, kind="stable")]

    def partners(self, rng: np.random.Generator, match: Sequence[Sequence[str]], share: float) -> Integers:
        """Find the partner of every household, -1 for none."""
        from discreet.protect.swapping_kernels import find_partners

        def pair(targets: Integers, look: Integers, level: int, most: int = -1) -> None:
            """Find partners for the targets among those who look alike in another area of the level."""
            alike, company = self.sorted_by(look, level), self.company()
            find_partners(rng, targets.astype(np.int64), most, alike, company, partner, *self._members)

        partner = np.full(len(self.units), -1, dtype=np.int64)
        # Who has no place is set aside as its own partner, and freed again at the end.
        nowhere = np.flatnonzero(~self.placed)
        partner[nowhere] = nowhere
        looks = [self.looks(names) for names in match]
        for level in range(len(self.areas)):
            targets = rng.permutation(np.flatnonzero((self.level == level) & self.placed))
            for look in looks:
                pair(targets, look, level)
        wanted = math.ceil(share * len(self.units) - 1e-9)
        for look in looks:
            short = wanted - int((partner >= 0).sum()) + len(nowhere)
            if short > 0:
                others = rng.permutation(np.flatnonzero(partner < 0))
                pair(others, look, len(self.areas) - 1, short)
        partner[nowhere] = -1
        return partner


# Record swapping without households: exchanges are worked out between classes, and looked up for records.
#
# Records with the same values in all columns that the swap looks at are alike to it. So it decides how many records of
# a class take the place of another class; which ones is decided by their draws (`discreet.protect.records_of_classes`).
class ClassExchange(StandingOut):
    """Classes of records, so many ``records`` in each, that exchange places."""

    def moves(self, rng: np.random.Generator, match: Sequence[Sequence[str]], share: float) -> pl.DataFrame:
        """Say how many records of one class take the place of another: columns ``from``, ``to``, ``records``."""
        from discreet.protect.swapping_kernels import swap_classes

        def exchanges(targets: Integers, look: Integers, level: int, most: int = -1) -> Integers:
            """Find partners for the targets among those who look alike in another area of the level."""
            alike, company = self.sorted_by(look, level), self.company()
            own = targets.astype(np.int64)
            return np.asarray(swap_classes(rng, own, most, alike, company, free, self.combinations))

        free = np.where(self.placed, self.records, 0)
        looks = [self.looks(names) for names in match]
        pairs = []
        for level in range(len(self.areas)):
            standing = np.flatnonzero((self.level == level) & self.placed)
            targets = rng.permutation(np.repeat(standing, self.records[standing]))
            if len(targets):
                pairs += [exchanges(targets, look, level) for look in looks]
        wanted = math.ceil(share * int(self.records.sum()) - 1e-9)
        nobody = np.zeros(0, dtype=np.int64)
        for look in looks:
            short = wanted - 2 * sum(map(len, pairs))
            if short > 0:
                pairs.append(exchanges(nobody, look, len(self.areas) - 1, short))
        both = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])
        ways = pl.DataFrame(np.vstack([both, both[:, ::-1]]), schema=["from", "to"])
        counted = ways.group_by("from", "to").agg(records=pl.len().cast(pl.Int64))
        return counted.sort("from", "to")


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


"""How many candidates are looked at for one in whose area a household does not stand out."""
