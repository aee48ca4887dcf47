"""Which records should meet, and on which keys, so that gaps as values cost few cells?

Every record whose class is too small joins a group: records that give up the same keys and are alike on the others.
A group of at least k costs each of its records only its own cells; a smaller one has to be filled up with records
that could have stayed as they are. First the groups form that are cheapest for their records. Then records move
while that saves cells: one at a time, out of a group that is not worth keeping, or together into one that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.protect.regrouping_kernels import Fillings, Offers, fill_up, gather, improve
from discreet.protect.suppression_counts import CountedRows, bits, summed
from discreet.protect.suppression_kernels import numbered_beside
from discreet.protect.suppression_search import sets_by_cost, too_many_sets

_MOST_ENTRIES = 600_000  # with more, only the cheap groups are looked at
# Which groups a unit looks at: those that cost at most so many times what its best group would, if all joined it.
# Few at first: with many to choose from at once the search settles on worse.
_CHEAP, _DEAR = 1.5, 2.0
_CLOSE = 1e-9


def regroup(rows: CountedRows, lacking: Flags, costs: Floats, k: int) -> tuple[Integers, Integers]:
    """Say which records lose which cells, few of them, so that nearly every class has k records; a gap is a value.

    The last column is the stratum, which has no cost and stays. A class that several groups count on may be unable
    to fill up all of them, so that a few classes can still be too small. What is returned are rows of records, one for
    each record, and the keys it gives up as bits.
    """
    units = np.flatnonzero(lacking[rows.row_of])
    if rows.many is not None:
        units = np.repeat(units, rows.many[units])
    groups, entries = _offers(rows, lacking, rows.row_of[units], costs, k)
    taken, lending = _settled(rows, groups, entries, k)
    records = np.append(units[entries.units(taken)], _first_of_each(rows, groups.lender, lending))
    return records, groups.pattern[np.append(entries.group[taken], np.repeat(groups.borrower, lending))]


@dataclass(frozen=True)
class _Groups:
    """The classes that records could form.

    Attributes
    ----------
    pattern
        The keys that its records do not show, as bits.
    price, spare, smallest, there
        What a record costs that fills it up; how many records the large classes among its likes can spare; the size
        of the smallest of these classes (0: there is none); the records that are there already.
    borrower, lender
        Which group could be filled up from which large class, sorted by group, the largest class first.
    """

    pattern: Integers
    price: Floats
    spare: Integers
    smallest: Integers
    there: Integers
    borrower: Codes
    lender: Codes

    def fillings(self, k: int) -> Fillings:
        return Fillings(k, self.price, self.spare, self.smallest, self.there)


@dataclass(frozen=True)
class _Entries:
    """Who could join which group: where those of a unit begin, the group, what the unit gives up; a unit's fair price.

    There are many of them, so that they are held in as few bytes as will do.
    """

    start: Integers
    group: Codes
    cost: Floats
    fair: Floats

    def units(self, chosen: Integers) -> Integers:
        """Say whose some of the entries are."""
        found: Integers = np.searchsorted(self.start, chosen, "right") - 1
        return found

    def up_to(self, limit: float, *, staying: int) -> Flags:
        """Find the entries that cost at most so many times the fair price of their unit, and those of staying."""
        most = limit * self.fair * (1 + _CLOSE)
        chosen: Flags = self.cost <= np.repeat(most, np.diff(self.start))
        chosen |= self.group == staying
        return chosen

    def offers(self, chosen: Integers, groups: int) -> Offers:
        """Lay out some of the entries by unit and by group, as the kernels take them."""
        group = self.group[chosen]
        start = np.searchsorted(chosen, self.start)
        by_group = np.argsort(group, kind="stable").astype(np.int32)
        group_start = np.append(0, np.cumsum(np.bincount(group, minlength=groups)))
        unit = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
        return Offers(start, group, self.cost[chosen], group_start, by_group, unit)


def _settled(rows: CountedRows, groups: _Groups, entries: _Entries, k: int) -> tuple[Integers, Integers]:
    """Let groups form and units move; return the entry that each unit takes, and how many records each lender gives."""
    count = len(groups.pattern)
    cheap = entries.up_to(_CHEAP, staying=count - 1)
    chosen = np.flatnonzero(cheap)
    offers = entries.offers(chosen, count)
    taken, groups, lending = _moved(rows, groups, offers, gather(offers, groups.fillings(k)), k)
    taken = chosen[taken]
    if len(entries.group) > _MOST_ENTRIES:
        cheap |= np.repeat(entries.group[taken] == count - 1, np.diff(entries.start))
    else:
        cheap[:] = True
    chosen = np.flatnonzero(cheap)
    offers = entries.offers(chosen, count)
    taken, groups, lending = _moved(rows, groups, offers, np.searchsorted(chosen, taken), k)
    return chosen[taken], lending


def _moved(
    rows: CountedRows, groups: _Groups, offers: Offers, taken: Integers, k: int
) -> tuple[Integers, _Groups, Integers]:
    """Move units while that saves cells, and share out the spare records that groups are filled up with.

    Groups count on the same spare records. Who gets none is told so, and its units look again.
    """
    fewest = len(groups.pattern) + 1
    awake = np.ones(len(taken), dtype=np.bool_)
    while True:
        improve(taken, offers, groups.fillings(k), awake)
        members = np.bincount(offers.entry_group[taken], minlength=len(groups.pattern))
        lacks = np.where(members > 0, np.maximum(k - members - groups.there, 0), 0)
        start = np.searchsorted(groups.borrower, np.arange(len(groups.pattern) + 1))
        order = np.argsort(groups.spare, kind="stable")
        lending, left = fill_up(groups.lender, start, order[lacks[order] > 0], lacks, rows.records, k)
        spared = lending + np.maximum(left[groups.lender] - k, 0)
        spare = summed(groups.borrower, spared, len(groups.pattern)).astype(np.int64)
        short = (lacks > 0) & (spare < lacks)
        groups = replace(groups, spare=spare)
        if not short.any() or short.sum() >= fewest:
            break
        fewest = int(short.sum())
        awake = short[offers.entry_group[taken]]
    return taken, groups, lending


def _offers(
    rows: CountedRows, lacking: Flags, row: Integers, costs: Floats, k: int
) -> tuple[_Groups, _Entries]:
    """Find the groups that the units (given by their rows) could join, for every set of keys that is cheap enough."""
    keys = (1 << len(costs)) - 1
    gaps = ~rows.known & keys
    fair = np.full(len(rows.codes), np.inf)
    of_row = _Gathered(row, len(rows.codes))
    found: list[tuple[Codes, Codes, Floats]] = []
    formed: list[_Groups] = []
    count = tried = 0
    for level, patterns in sets_by_cost(costs):
        tried += len(patterns)
        if level > _DEAR * fair[lacking].max() or too_many_sets(tried, len(rows.codes)):
            break
        for pattern in patterns:
            inside = np.flatnonzero(gaps & ~pattern == 0)
            if not lacking[inside].any():
                continue
            kept = bits((keys | 1 << len(costs)) & ~pattern)
            party, _ = numbered_beside(rows.codes, inside[lacking[inside]], inside, kept)
            inside, party = inside[party >= 0], party[party >= 0]
            cost = _cost_of(pattern & ~gaps[inside], costs)
            offered, price = _offered(rows, lacking, inside, party, cost, pattern, costs, k)
            joining = lacking[inside]
            inside, party, cost = inside[joining], party[joining], cost[joining]
            fair[inside] = np.minimum(fair[inside], price[party])
            viable = np.isfinite(price)
            # What is too dear now stays so: fair prices only fall.
            able = viable[party] & ~(cost > _DEAR * fair[inside] * (1 + _CLOSE))
            units, times = of_row.all_of(inside[able])
            group = (np.cumsum(viable) - 1 + count)[party[able]]
            found.append((units, np.repeat(group, times).astype(np.int32), np.repeat(cost[able], times)))
            formed.append(replace(offered, borrower=offered.borrower + np.int32(count)))
            count += len(offered.pattern)
    # Where all else fails a unit stays where it is, at the price of a blank record: a last group takes all of those.
    everyone = np.arange(len(row), dtype=np.int32)
    found.append((everyone, np.full(len(row), count, dtype=np.int32), np.full(len(row), costs.sum())))
    formed.append(_staying(k))
    entries = _laid_out(found, fair[row], staying=count)
    return _with_company(formed, entries)


def _with_company(formed: list[_Groups], entries: _Entries) -> tuple[_Groups, _Entries]:
    """Leave out the groups that nobody looks at any longer, and number the others anew."""
    sought = np.zeros(sum(len(part.pattern) for part in formed), dtype=np.bool_)
    sought[entries.group] = True
    new = (np.cumsum(sought) - 1).astype(np.int32)
    first, parts = 0, []
    for part in formed:
        own, pairs = sought[first : first + len(part.pattern)], sought[part.borrower]
        first += len(part.pattern)
        by_group = (part.pattern, part.price, part.spare, part.smallest, part.there)
        parts.append((*(each[own] for each in by_group), new[part.borrower[pairs]], part.lender[pairs]))
    formed.clear()
    return _Groups(*map(np.concatenate, zip(*parts, strict=True))), replace(entries, group=new[entries.group])


def _laid_out(found: list[tuple[Codes, Codes, Floats]], fair: Floats, *, staying: int) -> _Entries:
    """Put the entries of each unit together, those of cheap patterns first, letting go of what was found."""
    most = _DEAR * fair * (1 + _CLOSE)
    many = np.zeros(len(fair), dtype=np.int64)
    for at, (unit, group, cost) in enumerate(found):
        cheap = (cost <= most[unit]) | (group == staying)
        found[at] = unit[cheap], group[cheap], cost[cheap]
        many[found[at][0]] += 1
    start = np.append(0, np.cumsum(many))
    groups, costs = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    place = start[:-1].copy()
    while found:
        # A unit is in a pattern once, so that its place is its own.
        unit, group, cost = found.pop(0)
        groups[place[unit]], costs[place[unit]] = group, cost
        place[unit] += 1
    return _Entries(start, groups, costs, fair)


class _Gathered:
    """The units of each row, ready to be looked up."""

    def __init__(self, row: Integers, rows: int) -> None:
        self._order = np.argsort(row, kind="stable").astype(np.int32)
        self._many = np.bincount(row, minlength=rows)
        self._start = np.cumsum(self._many) - self._many

    def all_of(self, rows: Integers) -> tuple[Codes, Integers]:
        """List the units of some rows, and say how many each row has."""
        many = self._many[rows]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return self._order[np.repeat(self._start[rows], many) + within], many


def _offered(  # noqa: PLR0917 - one step of a loop, and its arrays
    rows: CountedRows,
    lacking: Flags,
    inside: Integers,
    party: Integers,
    cost: Floats,
    pattern: int,
    costs: Floats,
    k: int,
) -> tuple[_Groups, Floats]:
    """Describe the groups of one pattern that can reach k, and what each unit would pay if all its likes joined."""
    records, count = rows.records[inside], int(party.max()) + 1
    joining, moving = lacking[inside], cost > 0
    lending, there = ~joining & moving, ~joining & ~moving
    spare = summed(party[lending], np.maximum(records[lending] - k, 0), count).astype(np.int64)
    smallest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(smallest, party[lending], records[lending])
    smallest[smallest == np.iinfo(np.int64).max] = 0
    arrived = summed(party[there], records[there], count).astype(np.int64)
    price = float(_cost_of(np.array([pattern]), costs)[0])
    if pattern == (1 << len(costs)) - 1:
        arrived[:] = k  # a record that shows nothing needs no company
    units = summed(party[joining], records[joining], count)
    own = summed(party[joining], (records * cost)[joining], count)
    lacks = np.maximum(k - units - arrived, 0)
    filling = np.where(spare >= lacks, lacks, np.where(smallest > 0, smallest, np.inf))
    each = np.full(count, np.inf)
    np.divide(own + price * filling, units, out=each, where=units > 0)
    viable = np.isfinite(each)
    able = np.flatnonzero(lending & viable[party])
    able = able[np.lexsort((-records[able], party[able]))]
    groups = _Groups(
        pattern=np.full(int(viable.sum()), pattern, dtype=np.int64),
        price=np.full(int(viable.sum()), price),
        spare=spare[viable],
        smallest=smallest[viable],
        there=arrived[viable],
        # Pairs of groups and classes are what there is most of.
        borrower=(np.cumsum(viable) - 1)[party[able]].astype(np.int32),
        lender=inside[able].astype(np.int32),
    )
    return groups, each


def _staying(k: int) -> _Groups:
    none, one = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    return _Groups(
        pattern=one, price=np.zeros(1), spare=one, smallest=one, there=one + k, borrower=none, lender=none
    )


def _cost_of(masks: Integers, costs: Floats) -> Floats:
    """Add up the costs of the keys in each mask."""
    if 1 << len(costs) > len(masks):
        total: Floats = ((masks[:, None] >> np.arange(len(costs)) & 1) * costs).sum(axis=1)
        return total
    every = _cost_of(np.arange((1 << len(costs)) - 1), costs)
    return np.append(every, costs.sum())[masks]


def _first_of_each(rows: CountedRows, lenders: Codes, taken: Integers) -> Integers:
    """List records of the rows that lend, so many for each time a row lends, nobody twice."""
    lending = np.flatnonzero(taken)
    lenders, taken = lenders[lending], taken[lending]
    by_row = np.argsort(rows.row_of, kind="stable")
    start = np.cumsum(rows.records) - rows.records
    order = np.argsort(lenders, kind="stable")
    before = np.cumsum(taken[order]) - taken[order]
    first = np.searchsorted(lenders[order], lenders[order])
    offset = np.zeros(len(lenders), dtype=np.int64)
    offset[order] = before - before[first]
    within = np.arange(int(taken.sum())) - np.repeat(np.cumsum(taken) - taken, taken)
    place = np.repeat(start[lenders] + offset, taken) + within
    if rows.many is not None:
        place = np.searchsorted(np.cumsum(rows.many[by_row]), place, side="right")
    return np.asarray(by_row[place])
