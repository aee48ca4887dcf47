"""Which cells must be suppressed so that every record agrees with k records, gaps matching anything?

A record agrees with those that show the same value wherever both show one, and that show no fewer values than it does
(see `agreement`). A record in a group below k needs a gap of its own, so the number of such records is the least that
any choice can cost. Nearly all of them are helped by the cheapest gap: without that value enough records agree with
them. Most have several such gaps to choose from, and this freedom serves the few who have none: a gap that is chosen
well makes its record agree with one of them. A record that is still in a group below k gives up more keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.protect.suppression_counts import CountedRows, Demand, bits
from discreet.protect.suppression_kernels import give_back, numbered, serve_the_stranded

_AT_LEAST = 70  # sets of keys are tried, whatever the file: all those of six keys
_MOST_SETS_TO_SERVE = 12  # sets of one cost, of which every two are compared to serve the stranded
_CLOSE = 1e-9


def suppress_until_met(codes: Codes, weights: Floats, costs: Floats, demand: Demand) -> Codes:
    """Return the codes with as few cells as possible set to 0 so that the demand is met.

    Parameters
    ----------
    codes
        One row a record, one column a key, strata last; 0 is a gap.
    weights
        Survey weight of each record.
    costs
        What a suppressed cell of each key costs; columns beyond these are never suppressed.
    demand
        What is enough company, and on which columns.
    """
    result = codes.copy()
    part = np.ascontiguousarray(codes[:, demand.columns])
    keys = demand.columns[demand.columns < len(costs)]
    while True:
        rows = CountedRows(part, weights, wildcard=True)
        lacking = rows.lacking(demand)
        if not lacking.any():
            break
        masks = np.zeros(len(rows.codes), dtype=np.int64)
        masks[lacking] = _chosen_masks(rows, lacking, costs[keys], demand)
        of_record = masks[rows.row_of]
        for position in range(len(keys)):
            part[of_record >> position & 1 == 1, position] = 0
    result[:, demand.columns] = part
    return result


def _chosen_masks(rows: CountedRows, lacking: Flags, costs: Floats, demand: Demand) -> Integers:
    """Choose the keys (as bits) that each row without company gives up: the cheapest that help it."""
    lonely = _Lonely(rows.only(lacking), rows.only(~lacking), demand)
    chosen = np.zeros(len(lonely.rows.codes), dtype=np.int64)
    tried, served = 0, False
    for _, masks in sets_by_cost(costs):
        waiting = np.flatnonzero(chosen == 0)
        if not len(waiting):
            break
        tried += len(masks)
        if too_many_sets(tried, len(rows.codes) * len(np.unique(rows.known))):
            chosen[waiting] = _one_key_each(lonely, waiting, costs)
            break
        choice = lonely.choices(waiting, masks)
        best = choice.best()
        if not served and (best >= 0).any():
            served = True
            # Rows that give up these sets must show equally many values, and the sets must be few enough.
            few = len(masks) <= _MOST_SETS_TO_SERVE and len({mask.bit_count() for mask in masks}) == 1
            if few and not len(demand.least):
                best = _served(lonely, waiting, choice, best, demand.k)
        chosen[waiting[best >= 0]] = choice.masks[best[best >= 0]]
    # Nothing is left to show: such a record agrees with everybody in its stratum.
    chosen[chosen == 0] = lonely.rows.known[chosen == 0] & ((1 << len(costs)) - 1)
    return chosen


@dataclass(frozen=True)
class _Choice:
    """What the rows that wait could give up: for each set of keys, who is helped, and how much company that brings.

    Attributes
    ----------
    masks
        The sets of keys, as bits.
    helped
        By set and row: whether giving up the set brings company enough.
    safe, lonely
        By set and row: how many agree among rows that keep all their values, and among those in groups below k.
    """

    masks: Integers
    helped: Flags
    safe: Integers
    lonely: Integers

    def best(self) -> Integers:
        """Pick a set for each row, or -1: best in the company of rows that show all it shows, then of many."""
        liked = np.where(self.helped, np.where(self.safe > 0, 1 << 40, 0) + self.lonely, -1)
        first = liked.argmax(axis=0)
        return np.where(self.helped.any(axis=0), first, -1)


@dataclass(frozen=True)
class _Lonely:
    """The rows in groups below k, those in larger groups, and what would be enough."""

    rows: CountedRows
    safe: CountedRows
    demand: Demand

    def choices(self, waiting: Integers, masks: Sequence[int]) -> _Choice:
        """Find out which sets of keys help which of the rows that wait.

        A row for which no set is found will give up more keys and show too little to keep others company; so it is
        not counted, which may leave others without a set, and so on.
        """
        known = self.rows.known[waiting]
        able = np.array([known & mask == mask for mask in masks])
        safe, safe_weight = self._company(self.safe, waiting, masks, able)
        lonely, lonely_weight = self._company(self.rows, waiting, masks, able)
        stranded = np.zeros(len(self.rows.codes), dtype=np.bool_)
        while True:
            helped = able & self.demand.met(safe + lonely, safe_weight + lonely_weight)
            more = np.zeros_like(stranded)
            more[waiting[~helped.any(axis=0)]] = True
            more &= ~stranded
            if not more.any():
                return _Choice(np.array(masks), helped, safe, lonely)
            lost, lost_weight = self._company(self.rows.only(more), waiting, masks, able)
            itself = more[waiting]
            lost[:, itself] = lost_weight[:, itself] = 0
            lonely, lonely_weight = lonely - lost, lonely_weight - lost_weight
            stranded |= more

    def _company(
        self, among: CountedRows, waiting: Integers, masks: Sequence[int], able: Flags
    ) -> tuple[Integers, Floats]:
        size = np.zeros((len(masks), len(waiting)), dtype=np.int64)
        weight = np.zeros(size.shape)
        for i, mask in enumerate(masks):
            asking = waiting[able[i]]
            known = self.rows.known[asking] & ~mask
            size[i, able[i]], weight[i, able[i]] = among.company(self.rows.codes[asking], known)
        return size, weight


def _one_key_each(lonely: _Lonely, waiting: Integers, costs: Floats) -> Integers:
    """Let every row that waits give up the key that brings it most company for its cost."""
    masks = [1 << key for key in range(len(costs))]
    choice = lonely.choices(waiting, masks)
    known = (lonely.rows.known[waiting] >> np.arange(len(costs))[:, None] & 1) == 1
    gain = np.where(known, (choice.safe + np.maximum(choice.lonely, 1)) / costs[:, None], 0.0)
    return np.where(known.any(axis=0), np.array(masks)[gain.argmax(axis=0)], 0)


def _served(lonely: _Lonely, waiting: Integers, choice: _Choice, best: Integers, k: int) -> Integers:
    """Let rows that have a choice choose so that rows without one find company, where that is enough."""
    codes, records = lonely.rows.codes[waiting], lonely.rows.records[waiting]
    complete = np.flatnonzero((codes > 0).all(axis=1))
    stranded = complete[best[complete] < 0]
    if not len(stranded):
        return best
    position = {int(union): i for i, union in enumerate(np.unique(choice.masks[:, None] | choice.masks))}
    pair = np.array([[position[int(a | b)] for b in choice.masks] for a in choice.masks])
    width = codes.shape[1]
    place = np.full((len(position), len(codes)), -1, dtype=np.int64)
    start = np.zeros((len(position), len(stranded) + 1), dtype=np.int64)
    members: list[Integers] = []
    held = 0
    for union, i in position.items():
        numbers, _ = numbered(codes, complete, bits(((1 << width) - 1) & ~union))
        # Only the parties of the stranded are of interest; they are numbered anew.
        parties = np.unique(numbers[np.searchsorted(complete, stranded)])
        anew = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
        anew[parties] = np.arange(len(parties))
        place[i, complete] = anew[numbers]
        there = np.flatnonzero(place[i] >= 0)
        there = there[np.argsort(place[i][there], kind="stable")]
        begins = np.searchsorted(place[i][there], np.arange(len(parties) + 1))
        start[i, : len(begins)] = held + begins
        members.append(there)
        held += len(there)
    listed = np.concatenate(members)
    served = serve_the_stranded(
        best, stranded, choice.helped, choice.safe, records, k, pair, place, start, listed
    )
    return np.asarray(served)


def too_many_sets(tried: int, rows: int) -> bool:
    """Say whether so many sets of keys, each looked up among so many rows, have taken long enough.

    There are 2 ** keys of them. A set costs some time however few the rows are.
    """
    return tried > _AT_LEAST and tried * (rows + 20_000) > 50_000_000


def sets_by_cost(costs: Floats) -> Iterator[tuple[float, list[int]]]:
    """List the sets of keys (as bits) by rising cost, those of one cost together.

    Examples
    --------
    >>> list(sets_by_cost(np.array([1.0, 2.0])))
    [(1.0, [1]), (2.0, [2]), (3.0, [3])]
    """
    order = np.argsort(costs, kind="stable")
    queue = [(float(costs[order[0]]), 1 << int(order[0]), 0)]
    together: list[int] = []
    level = queue[0][0]
    while queue:
        cost, mask, last = heapq.heappop(queue)
        if cost > level * (1 + _CLOSE):
            yield level, together
            together, level = [], cost
        together.append(mask)
        if last + 1 < len(order):
            step, key = int(order[last + 1]), int(order[last])
            heapq.heappush(queue, (cost + float(costs[step]), mask | 1 << step, last + 1))
            moved = cost + float(costs[step]) - float(costs[key])
            heapq.heappush(queue, (moved, mask & ~(1 << key) | 1 << step, last + 1))
    yield level, together


def give_back_unneeded(
    before: Codes,
    after: Codes,
    *,
    weights: Floats,
    costs: Floats,
    demands: Sequence[Demand],
    tied: Sequence[int],
) -> Codes:
    """Undo suppressions that no demand needs, dearest first; keys in ``tied`` stay as they are."""
    codes = after.copy()
    suppressed = (before > 0) & (after == 0)
    suppressed[:, list(tied)] = False
    cells = [np.flatnonzero(suppressed[:, key]) for key in range(len(costs))]
    record = np.concatenate(cells)
    key = np.repeat(np.arange(len(costs)), [len(part) for part in cells])
    if not len(record):
        return codes
    rows = CountedRows(codes, weights, wildcard=True)
    fine = np.ones(len(record), dtype=np.bool_)
    parts = [CountedRows(np.ascontiguousarray(codes[:, d.columns]), weights, wildcard=True) for d in demands]
    company = [part.company() for part in parts]
    for demand, part in zip(demands, parts, strict=True):
        touched = np.flatnonzero(fine & np.isin(key, demand.columns))
        asking = codes[record[touched]]
        asking[np.arange(len(touched)), key[touched]] = before[record[touched], key[touched]]
        size, weight = part.company(np.ascontiguousarray(asking[:, demand.columns]))
        # As it is, the record shows one value less than the asker and is not counted yet.
        fine[touched] = demand.met(size + 1, weight + weights[record[touched]])
    record, key = record[fine], key[fine]
    if not len(record):
        return codes
    order = np.argsort(-costs[key], kind="stable")
    record, key = record[order], key[order]
    owners, candidate = np.unique(record, return_inverse=True)
    room = len(record)
    sizes, masses = (
        np.array([_spread_out(both[at], part, rows, room) for both, part in zip(company, parts, strict=True)])
        for at in (0, 1)
    )
    given = give_back(
        np.vstack([rows.codes, np.zeros((room, codes.shape[1]), dtype=np.int32)]),
        np.append(rows.records, np.zeros(room, dtype=np.int64)),
        np.append(rows.weights, np.zeros(room)),
        len(rows.codes),
        sizes,
        masses,
        np.array([np.isin(np.arange(codes.shape[1]), demand.columns) for demand in demands]),
        np.array([demand.k for demand in demands]),
        _padded([demand.least for demand in demands]),
        rows.row_of[owners],
        candidate,
        key,
        before[record, key],
        weights[record],
    )
    codes[record[given], key[given]] = before[record[given], key[given]]
    return codes


def _spread_out(found: npt.NDArray[np.generic], part: CountedRows, rows: CountedRows, room: int) -> Floats:
    """Give each row of the whole table what was found for its part, with room for rows to come."""
    whole = np.zeros(len(rows.codes) + room, dtype=found.dtype)
    whole[rows.row_of] = found[part.row_of]
    return whole


def _padded(least: Sequence[Floats]) -> Floats:
    padded = np.zeros((len(least), max(len(part) for part in least)))
    for demand, part in enumerate(least):
        padded[demand, : len(part)] = part
    return padded
