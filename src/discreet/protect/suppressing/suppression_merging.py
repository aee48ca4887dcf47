"""Which cells must go so that every class is large enough, a gap being a value of its own?

A record whose class is too small must end up in a class that is large enough, with the same gaps and the same
values. Records meet by giving up the keys in which they differ. Every set of keys offers such meetings; each has a
price a record that needs it, and the cheapest meetings take place first. Where too few meet, a safe class lends the
records it can spare, or joins as a whole. Most records have found their group before (`suppression_regrouping`); what
is left to meetings are those who did not, and demands on weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.arrays import Codes, Flags, Floats, Integers
from discreet.protect.suppressing.agreement import CountedRows, Demand, bits, summed
from discreet.protect.suppressing.suppression_kernels import numbered
from discreet.protect.suppressing.suppression_regrouping import regroup
from discreet.protect.suppressing.suppression_search import sets_by_cost, too_many_sets

_FEW = (
    500  # with no more records that lack company, meetings alone are tried as well, and the cheaper is taken
)


def merge_until_met(
    codes: Codes, weights: Floats, costs: Floats, demand: Demand, units: Integers | None = None
) -> Codes:
    """Return the codes with few cells set to 0 so that every class meets the demand; 0 is a value.

    Parameters are those of `suppress_until_met`, and ``units``: whose the records are. What people who are in several
    classes bring to a meeting is overestimated, so that more meetings are held until the count of each class is right.
    """
    result = codes.copy()
    part = np.ascontiguousarray(codes[:, demand.columns])
    prices = costs[demand.columns[demand.columns < len(costs)]]
    rows = CountedRows(part, weights, wildcard=False, units=units)
    lacking = rows.lacking(demand)
    if not lacking.any():
        return result
    starts = [part] if len(demand.least) or units is not None else [regroup(part, weights, prices, demand)]
    if starts[0] is not part and int(rows.records[lacking].sum()) <= _FEW:
        starts.append(part)
    found = [_merged(start, weights, prices, demand, units) for start in starts]
    spent = [float(((part > 0) & (each == 0)).sum(axis=0)[: len(prices)] @ prices) for each in found]
    result[:, demand.columns] = found[int(np.argmin(spent))]
    return result


def _merged(part: Codes, weights: Floats, costs: Floats, demand: Demand, units: Integers | None) -> Codes:
    """Hold meetings until every class meets the demand."""
    part = part.copy()
    while True:
        rows = CountedRows(part, weights, wildcard=False, units=units)
        lacking = rows.lacking(demand)
        if not lacking.any():
            return part
        meetings = _meetings(rows, lacking, costs, demand)
        _hold(meetings, part, rows, lacking, demand)
        _give_up_a_key(part, rows, lacking & np.isinf(meetings.price), costs)


def _give_up_a_key(part: Codes, rows: CountedRows, stranded: Flags, costs: Floats) -> None:
    """Where too many sets of keys would have to be tried, let the rows without a meeting give up a key.

    It is the one with most values for its cost, and the same for all: they have more in common than before.
    """
    if not stranded.any():
        return
    codes = rows.codes[stranded, : len(costs)]
    values = np.array([len(np.unique(column[column > 0])) for column in codes.T])
    key = int(np.argmax(values / costs))
    part[stranded[rows.row_of], key] = 0


@dataclass(frozen=True)
class _Meetings:
    """The best meeting open to each row that lacks company: its set of keys, its number there, its price."""

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
            numbers, there, moving = _parties(rows, mask, len(costs))
            total = _per_party(numbers, np.where(lacking | there, rows.records, 0))
            weight = _per_party(numbers, np.where(lacking | there, rows.weights, 0.0))
            movers = _per_party(numbers, np.where(lacking & moving, rows.records, 0))
            helped = _per_party(numbers, np.where(lacking, rows.records, 0))
            lent = np.maximum(demand.k - total, 0)
            enough = demand.met(total.astype(np.int64), weight)
            borrowed = _per_party(numbers, np.where(moving, spare, 0)) >= lent
            borrowed &= len(demand.least) == 0
            whole, whole_enough = _whole_classes(
                rows,
                numbers=numbers,
                lacking=lacking,
                moving=moving,
                total=total,
                weight=weight,
                demand=demand,
            )
            extra = np.where(enough, 0, np.where(borrowed, lent, whole))
            possible = (helped > 0) & (enough | borrowed | whole_enough)
            price = np.full(len(movers), np.inf)
            price[possible] = cost * (movers[possible] + extra[possible]) / helped[possible]
            better = lacking & (price[numbers] < best.price)
            best.mask[better], best.number[better] = mask, numbers[better]
            best.price[better] = price[numbers[better]]
    return best


def _parties(rows: CountedRows, mask: int, keys: int) -> tuple[Integers, Flags, Flags]:
    """Number the rows that become alike without these keys; say who is there already and who would move."""
    gone = np.array(
        [mask >> column & 1 == 1 for column in range(keys)] + [False] * (rows.codes.shape[1] - keys)
    )
    kept = np.flatnonzero(~gone)
    numbers, _ = numbered(rows.codes, np.arange(len(rows.codes)), kept)
    there = (rows.codes[:, gone] == 0).all(axis=1)
    return numbers, there, ~there


def _per_party(numbers: Integers, values: npt.NDArray[np.generic]) -> Floats:
    return summed(numbers, values, int(numbers.max()) + 1)


def _whole_classes(
    rows: CountedRows,
    *,
    numbers: Integers,
    lacking: Flags,
    moving: Flags,
    total: Floats,
    weight: Floats,
    demand: Demand,
) -> tuple[Floats, Flags]:
    """Say how many records come along, and whether that is enough, if the safe classes of a party join as a whole."""
    safe = ~lacking & moving
    size = _per_party(numbers, np.where(safe, rows.records, 0))
    heavy = _per_party(numbers, np.where(safe, rows.weights, 0.0))
    smallest = np.full(len(total), np.inf)
    np.minimum.at(smallest, numbers[safe], rows.records[safe].astype(np.float64))
    # A safe class meets the demand on its own, and more company never breaks it: one is always enough.
    one_enough = np.isfinite(smallest)
    all_enough = demand.met((total + size).astype(np.int64), weight + heavy)
    return np.where(one_enough, smallest, size), one_enough | all_enough


def _hold(meetings: _Meetings, part: Codes, rows: CountedRows, lacking: Flags, demand: Demand) -> None:
    """Let the cheapest meetings take place, as far as nobody is at two of them."""
    members = _Gathered(rows.row_of, len(rows.codes))
    parties: dict[int, tuple[_Gathered, Flags]] = {}
    busy = np.zeros(len(rows.codes), dtype=np.bool_)
    open_rows = np.flatnonzero(lacking)
    invited = np.stack([meetings.mask[open_rows], meetings.number[open_rows]])
    _, first = np.unique(invited, axis=1, return_index=True)
    hosts = open_rows[first]
    for host in hosts[np.argsort(meetings.price[hosts], kind="stable")]:
        mask = int(meetings.mask[host])
        if mask not in parties:
            numbers, there, _ = _parties(rows, mask, part.shape[1])
            parties[mask] = _Gathered(numbers, int(numbers.max()) + 1), there
        gathered, there = parties[mask]
        party = gathered.of(int(meetings.number[host]))
        if busy[party].any():
            continue
        busy[party] = True
        coming = party[lacking[party] & ~there[party]]
        met = np.append(coming, party[there[party]])
        size, weight = int(rows.records[met].sum()), float(rows.weights[met].sum())
        goers = [members.of(int(row)) for row in coming]
        if not bool(demand.met(np.array([size]), np.array([weight]))[0]):
            goers += _lent(demand, demand.k - size, rows, party[~lacking[party] & ~there[party]], members)
        if goers:
            moved = np.concatenate(goers)
            for column in bits(mask):
                part[moved, column] = 0


class _Gathered:
    """The positions that have each number, ready to be looked up."""

    def __init__(self, numbers: Integers, count: int) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._start = np.searchsorted(numbers[self._order], np.arange(count + 1))

    def of(self, number: int) -> Integers:
        return self._order[self._start[number] : self._start[number + 1]]


def _lent(
    demand: Demand, needed: int, rows: CountedRows, safe: Integers, members: _Gathered
) -> list[Integers]:
    """Choose the records of safe classes that must come along: spare ones, else the smallest class as a whole."""
    spare = np.maximum(rows.records[safe] - demand.k, 0)
    if len(demand.least) == 0 and spare.sum() >= needed:
        richest = np.argsort(-spare, kind="stable")
        before = np.cumsum(spare[richest]) - spare[richest]
        taken = np.clip(needed - before, 0, spare[richest])
        return [members.of(int(row))[:take] for row, take in zip(safe[richest], taken, strict=True) if take]
    return [members.of(int(safe[np.argmin(rows.records[safe])]))] if len(safe) else []


def restore_whole_classes(
    before: Codes, after: Codes, weights: Floats, costs: Floats, demand: Demand
) -> Codes:
    """Put values back where the class left behind and the class arrived at both meet the demand."""
    codes = after.copy()
    rows = CountedRows(codes, weights, wildcard=False)
    changed = True
    while changed:
        changed = False
        for key in np.argsort(-costs, kind="stable"):
            gone = np.flatnonzero((codes[:, key] == 0) & (before[:, key] > 0))
            if not len(gone):
                continue
            back = codes[gone]
            back[:, key] = before[gone, key]
            numbers, _ = numbered(back, np.arange(len(back)), np.arange(back.shape[1]))
            movers = np.bincount(numbers)
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
                codes[accepted, key] = before[accepted, key]
                rows = CountedRows(codes, weights, wildcard=False)
                changed = True
    return codes
