"""Which cells must go so that every class is large enough, a gap being a value of its own?

A record whose class is too small must end up in a class that is large enough, with the same gaps and the same
values. Records meet by giving up the keys in which they differ. Every set of keys offers such meetings; each has a
price a record that needs it, and the cheapest meetings take place first. Where too few meet, a safe class lends the
records it can spare, or joins as a whole. Most records have found their group before (`suppression_regrouping`); what
is left to meetings are those who did not, and demands on weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.protect.suppression_counts import Alike, CountedRows, Demand, summed
from discreet.protect.suppression_kernels import numbered, numbered_beside
from discreet.protect.suppression_regrouping import regroup
from discreet.protect.suppression_search import sets_by_cost, too_many_sets

# With no more records in groups below k, meetings alone are tried as well, and the cheaper is taken.
_FEW = 500
_Losses: TypeAlias = tuple[Integers, Integers, Integers]
"""Rows of records, the cells they lose as bits, and how many of their records do."""


def merge_until_met(alike: Alike, costs: Floats, demand: Demand, units: Integers | None = None) -> Alike:
    """Return the records with few cells set to 0 so that every class meets the demand; 0 is a value.

    ``units`` say whose the records are. What people who are in several classes bring to a meeting is overestimated, so
    that more meetings are held until the count of each class is right.
    """
    prices = costs[demand.columns[demand.columns < len(costs)]]
    rows = _counted(alike, demand, units)
    lacking = rows.lacking(demand)
    if not lacking.any():
        return alike
    starts = [alike]
    if not len(demand.least) and units is None:
        regrouped = alike.blanked(*regroup(rows, lacking, prices, demand.k), demand.columns)
        starts = [regrouped, *starts] if int(rows.records[lacking].sum()) <= _FEW else [regrouped]
    del rows
    found = [_merged(start, prices, demand, units) for start in starts]
    if len(found) == 1:
        return found[0]
    gaps = [each.summed(each.codes[:, demand.columns] == 0)[: len(prices)] for each in found]
    return found[int(np.argmin([float((each - gaps[0]) @ prices) for each in gaps]))]


def _counted(alike: Alike, demand: Demand, units: Integers | None = None) -> CountedRows:
    part = np.ascontiguousarray(alike.codes[:, demand.columns])
    return CountedRows(part, alike.weights, wildcard=False, units=units, many=alike.many)


def _merged(alike: Alike, costs: Floats, demand: Demand, units: Integers | None) -> Alike:
    """Hold meetings until every class meets the demand."""
    while True:
        rows = _counted(alike, demand, units)
        lacking = rows.lacking(demand)
        if not lacking.any():
            return alike
        meetings = _meetings(rows, lacking, costs, demand)
        moved = _moved(meetings, rows, lacking, demand)
        stranded = _giving_up_a_key(rows, lacking & np.isinf(meetings.price), costs)
        lost, masks, counts = (np.concatenate(pair) for pair in zip(moved, stranded, strict=True))
        alike = alike.blanked(lost, masks, demand.columns, counts)


def _giving_up_a_key(rows: CountedRows, stranded: Flags, costs: Floats) -> _Losses:
    """Where too many sets of keys would have to be tried, let the rows without a meeting give up a key.

    It is the one with most values for its cost, and the same for all: they have more in common than before.
    """
    if not stranded.any():
        return _losses([], [], [])
    codes = rows.codes[stranded, : len(costs)]
    values = np.array([len(np.unique(column[column > 0])) for column in codes.T])
    key = int(np.argmax(values / costs))
    there = np.flatnonzero(stranded[rows.row_of])
    return there, np.full(len(there), 1 << key, dtype=np.int64), _records(rows, there)


def _records(rows: CountedRows, there: Integers) -> Integers:
    return np.ones(len(there), dtype=np.int64) if rows.many is None else rows.many[there]


def _losses(taken: list[Integers], masks: list[int], counts: list[Integers]) -> _Losses:
    none = [np.zeros(0, dtype=np.int64)]
    each = np.repeat(np.array(masks, dtype=np.int64), [len(part) for part in taken])
    return np.concatenate(taken or none), each, np.concatenate(counts or none)


@dataclass(frozen=True)
class _Meetings:
    """The best meeting open to each row in a group below k: its set of keys, its number there, its price."""

    mask: Integers
    number: Integers
    price: Floats


def _meetings(rows: CountedRows, lacking: Flags, costs: Floats, demand: Demand) -> _Meetings:
    count = len(rows.codes)
    best = _Meetings(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), np.full(count, np.inf))
    spare = np.where(lacking | (len(demand.least) > 0), 0, np.maximum(rows.records - demand.k, 0))
    tried = 0
    for cost, masks in sets_by_cost(costs):
        # A meeting on dearer keys cannot be cheaper than what everybody has found.
        tried += len(masks)
        if best.price[lacking].max() <= cost or too_many_sets(tried, count):
            break
        for mask in masks:
            party, numbers, there = _parties(rows, lacking, mask, len(costs))
            need, moving = lacking[party], ~there
            records, weights = rows.records[party], rows.weights[party]
            total = _per_party(numbers, np.where(need | there, records, 0))
            weight = _per_party(numbers, np.where(need | there, weights, 0.0))
            movers = _per_party(numbers, np.where(need & moving, records, 0))
            helped = _per_party(numbers, np.where(need, records, 0))
            lent = np.maximum(demand.k - total, 0)
            enough = demand.met(total.astype(np.int64), weight)
            borrowed = _per_party(numbers, np.where(moving, spare[party], 0)) >= lent
            borrowed &= len(demand.least) == 0
            whole, whole_enough = _whole_classes(
                records, weights, numbers, ~need & moving, total, weight, demand
            )
            extra = np.where(enough, 0, np.where(borrowed, lent, whole))
            possible = (helped > 0) & (enough | borrowed | whole_enough)
            price = np.full(len(movers), np.inf)
            price[possible] = cost * (movers[possible] + extra[possible]) / helped[possible]
            better = need & (price[numbers] < best.price[party])
            chosen = party[better]
            best.mask[chosen], best.number[chosen] = mask, numbers[better]
            best.price[chosen] = price[numbers[better]]
    return best


def _parties(rows: CountedRows, lacking: Flags, mask: int, keys: int) -> tuple[Integers, Integers, Flags]:
    """Find the rows that are alike without these keys to one in a group below k.

    Returns these rows, the number of each one's party, and who is there already.
    """
    gone = np.array(
        [mask >> column & 1 == 1 for column in range(keys)] + [False] * (rows.codes.shape[1] - keys)
    )
    everything = np.arange(len(rows.codes))
    numbers, _ = numbered_beside(rows.codes, np.flatnonzero(lacking), everything, np.flatnonzero(~gone))
    party = np.flatnonzero(numbers >= 0)
    return party, numbers[party], (rows.codes[party][:, gone] == 0).all(axis=1)


def _per_party(numbers: Integers, values: npt.NDArray[np.generic]) -> Floats:
    return summed(numbers, values, int(numbers.max()) + 1)


def _whole_classes(  # noqa: PLR0917 - one step of a loop, and its arrays
    records: Integers,
    weights: Floats,
    numbers: Integers,
    safe: Flags,
    total: Floats,
    weight: Floats,
    demand: Demand,
) -> tuple[Floats, Flags]:
    """Say how many records come along, and whether that is enough, if the safe classes of a party join as a whole."""
    size = _per_party(numbers, np.where(safe, records, 0))
    heavy = _per_party(numbers, np.where(safe, weights, 0.0))
    smallest = np.full(len(total), np.inf)
    np.minimum.at(smallest, numbers[safe], records[safe].astype(np.float64))
    # A safe class meets the demand on its own, and more company never breaks it: one is always enough.
    one_enough = np.isfinite(smallest)
    all_enough = demand.met((total + size).astype(np.int64), weight + heavy)
    return np.where(one_enough, smallest, size), one_enough | all_enough


def _moved(meetings: _Meetings, rows: CountedRows, lacking: Flags, demand: Demand) -> _Losses:
    """Let the cheapest meetings take place, as far as nobody is at two of them; say who loses which cells."""
    if not (lacking & np.isfinite(meetings.price)).any():
        return _losses([], [], [])
    members = _Gathered(rows.row_of, len(rows.codes))
    parties: dict[int, tuple[Integers, _Gathered, Flags]] = {}
    busy = np.zeros(len(rows.codes), dtype=np.bool_)
    open_rows = np.flatnonzero(lacking & np.isfinite(meetings.price))
    invited = np.stack([meetings.mask[open_rows], meetings.number[open_rows]])
    _, first = np.unique(invited, axis=1, return_index=True)
    hosts = open_rows[first]
    taken: list[Integers] = []
    masks: list[int] = []
    counts: list[Integers] = []
    for host in hosts[np.argsort(meetings.price[hosts], kind="stable")]:
        mask = int(meetings.mask[host])
        if mask not in parties:
            some, numbers, there = _parties(rows, lacking, mask, len(demand.columns))
            parties[mask] = some, _Gathered(numbers, int(numbers.max()) + 1), there
        some, gathered, there = parties[mask]
        at = gathered.of(int(meetings.number[host]))
        party, here = some[at], there[at]
        if busy[party].any():
            continue
        busy[party] = True
        coming = party[lacking[party] & ~here]
        met = np.append(coming, party[here])
        size, weight = int(rows.records[met].sum()), float(rows.weights[met].sum())
        goers = [members.of(int(row)) for row in coming]
        going = [_records(rows, each) for each in goers]
        if not bool(demand.met(np.array([size]), np.array([weight]))[0]):
            lent = _lent(demand, demand.k - size, rows, party[~lacking[party] & ~here], members)
            goers, going = goers + [each for each, _ in lent], going + [many for _, many in lent]
        taken, counts, masks = taken + goers, counts + going, masks + [mask] * len(goers)
    return _losses(taken, masks, counts)


class _Gathered:
    """The positions that have each number, ready to be looked up."""

    def __init__(self, numbers: Integers, count: int) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._start = np.searchsorted(numbers[self._order], np.arange(count + 1))

    def of(self, number: int) -> Integers:
        return self._order[self._start[number] : self._start[number + 1]]


def _lent(
    demand: Demand, needed: int, rows: CountedRows, safe: Integers, members: _Gathered
) -> list[tuple[Integers, Integers]]:
    """Choose the records of safe classes that must come along: spare ones, else the smallest class as a whole."""
    spare = np.maximum(rows.records[safe] - demand.k, 0)
    if len(demand.least) == 0 and spare.sum() >= needed:
        richest = np.argsort(-spare, kind="stable")
        before = np.cumsum(spare[richest]) - spare[richest]
        taken = np.clip(needed - before, 0, spare[richest])
        pairs = zip(safe[richest], taken, strict=True)
        return [_first(rows, members.of(int(row)), int(take)) for row, take in pairs if take]
    if not len(safe):
        return []
    whole = members.of(int(safe[np.argmin(rows.records[safe])]))
    return [(whole, _records(rows, whole))]


def _first(rows: CountedRows, there: Integers, take: int) -> tuple[Integers, Integers]:
    """Take so many records, the first ones."""
    records = _records(rows, there)
    counts = np.clip(take - (np.cumsum(records) - records), 0, records)
    return there[counts > 0], counts[counts > 0]


def restore_whole_classes(before: Codes, after: Alike, costs: Floats, demand: Demand) -> Alike:
    """Put values back where the class left behind and the class arrived at both meet the demand."""
    codes, weights, many = after.codes.copy(), after.weights, after.many
    rows = CountedRows(codes, weights, wildcard=False, many=many)
    was = np.arange(len(codes)) if after.source is None else after.source
    changed = True
    while changed:
        changed = False
        for key in np.argsort(-costs, kind="stable"):
            gone = np.flatnonzero((codes[:, key] == 0) & (before[was, key] > 0))
            if not len(gone):
                continue
            back = codes[gone]
            back[:, key] = before[was[gone], key]
            numbers, _ = numbered(back, np.arange(len(back)), np.arange(back.shape[1]))
            movers = np.bincount(numbers, weights=None if many is None else many[gone]).astype(np.int64)
            moved_weight = np.bincount(numbers, weights=weights[gone])
            from_row = np.zeros(len(movers), dtype=np.int64)
            from_row[numbers] = rows.row_of[gone]
            first = np.unique(numbers, return_index=True)[1]
            size, weight = rows.company(back[first])
            arrives = demand.met(size + movers, weight + moved_weight)
            chosen = np.zeros(len(movers), dtype=np.bool_)
            # One move a class and round, the largest first: what is left behind is then known.
            order = np.lexsort((-movers, from_row))
            order = order[arrives[order]]
            order = order[np.append(True, np.diff(from_row[order]) != 0)] if len(order) else order
            left = rows.records[from_row[order]] - movers[order]
            left_weight = rows.weights[from_row[order]] - moved_weight[order]
            stays = (left == 0) | demand.met(left, left_weight)
            chosen[order[stays]] = True
            if chosen.any():
                accepted = gone[chosen[numbers]]
                codes[accepted, key] = before[was[accepted], key]
                rows = CountedRows(codes, weights, wildcard=False, many=many)
                changed = True
    return replace(after, codes=codes)
