"""Which cells must go so that every record has company enough, gaps matching anything?

A gap in one record also gives company to the records it now agrees with, so the cells are chosen together, as a
weighted multicover: first the records that cannot be helped cheaply (their wide gaps serve many), then the others,
each time the suppression that helps most records for its cost. Two rules keep the answer honest. Only a record that
lacks company loses cells, and never more than the cheapest set that helps itself: otherwise k - 1 blank records
would make any file "k-anonymous".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.protect.hiding.agreement import CountedRows, Demand, by_value, known_keys
from discreet.protect.hiding.agreement import bits as columns_of
from discreet.protect.hiding.suppression_kernels import choose, give_back, numbered

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_HARD = 0.7  # records whose cheapest help costs more than this share of the dearest are treated together
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
        size, weight = rows.company()
        lacking = ~demand.met(size, weight)
        units = np.flatnonzero(lacking[rows.row_of])
        if not len(units):
            break
        lonely = _Lonely(
            asking=part[units],
            known=known_keys(part[units]),
            row=rows.row_of[units],
            size=size[rows.row_of[units]],
            weight=weight[rows.row_of[units]],
            own_weight=weights[units],
        )
        masks = _chosen_masks(lonely, rows, costs[keys], demand)
        for position in range(len(keys)):
            part[units[masks >> position & 1 == 1], position] = 0
    result[:, demand.columns] = part
    return result


@dataclass(frozen=True)
class _Lonely:
    """The records that lack company: their codes, the keys they know, their row, and the company they have."""

    asking: Codes
    known: Ints
    row: Ints
    size: Ints
    weight: Floats
    own_weight: Floats


def _chosen_masks(lonely: _Lonely, rows: CountedRows, costs: Floats, demand: Demand) -> Ints:
    """Choose, for each record that lacks company, the keys it gives up in this round (as bits)."""
    helpful, price = _cheapest_help(lonely, rows, costs, demand)
    dearest = price.max()
    tried = [(mask, cost, served) for mask, cost, served in helpful if cost > _HARD * dearest]
    members, group_of, group_mask, group_cost = _groups(lonely, tried)
    group_start, group_members = _gathered(group_of, members, len(group_mask))
    unit_start, unit_groups = _gathered(members, group_of, len(lonely.row))
    chosen = choose(
        lonely.size.copy(),
        lonely.weight.copy(),
        lonely.own_weight,
        np.unique(lonely.row, return_inverse=True)[1],
        np.where(price > _HARD * dearest, price * (1 + _CLOSE), 0.0),
        demand.k,
        demand.least,
        group_start,
        group_members,
        group_cost,
        unit_start,
        unit_groups,
    )
    return np.where(chosen >= 0, group_mask[chosen], 0)


def _cheapest_help(
    lonely: _Lonely, rows: CountedRows, costs: Floats, demand: Demand
) -> tuple[list[tuple[int, float, Ints]], Floats]:
    """Find the cheapest sets of keys whose suppression gives each record company enough, and what they cost.

    Records of one row need the same, so one of them asks.
    """
    _, first, row = np.unique(lonely.row, return_index=True, return_inverse=True)
    price = np.full(len(first), np.inf)
    helpful = []
    for cost, masks in sets_by_cost(costs):
        open_rows = first[np.isinf(price)]
        if not len(open_rows):
            break
        for mask in masks:
            able = open_rows[lonely.known[open_rows] & mask == mask]
            if not len(able):
                continue
            size, weight = rows.company(lonely.asking[able], lonely.known[able] & ~mask)
            served = able[demand.met(size, weight)]
            if len(served):
                helpful.append((mask, cost, served))
                price[row[served]] = cost
    return helpful, price[row]


def _groups(lonely: _Lonely, tried: Sequence[tuple[int, float, Ints]]) -> tuple[Ints, Ints, Ints, Floats]:
    """Gather the records that agree once a set of keys is gone, wherever that gives some of them company enough."""
    members: list[Ints] = []
    group_of: list[Ints] = []
    group_mask: list[Ints] = []
    group_cost: list[Floats] = []
    formed = 0
    for mask, cost, served in tried:
        for has, among in by_value(lonely.known[served]).items():
            alike = np.flatnonzero(lonely.known == has)
            numbers, _ = numbered(lonely.asking, alike, columns_of(has & ~mask))
            serving = np.zeros(numbers.max() + 1, dtype=np.bool_)
            serving[numbers[np.searchsorted(alike, served[among])]] = True
            inside = serving[numbers]
            members.append(alike[inside])
            group_of.append((np.cumsum(serving) - 1 + formed)[numbers[inside]])
            new = int(serving.sum())
            group_mask.append(np.full(new, mask))
            group_cost.append(np.full(new, cost))
            formed += new
    return (
        np.concatenate(members),
        np.concatenate(group_of),
        np.concatenate(group_mask),
        np.concatenate(group_cost),
    )


def _gathered(by: Ints, values: Ints, groups: int) -> tuple[Ints, Ints]:
    """Sort the values by their group, with the position where each group starts."""
    order = np.argsort(by, kind="stable")
    return np.searchsorted(by[order], np.arange(groups + 1)), values[order]


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
    for demand, part, (size, _) in zip(demands, parts, company, strict=True):
        touched = np.flatnonzero(fine & np.isin(key, demand.columns))
        asking = codes[record[touched]]
        asking[np.arange(len(touched)), key[touched]] = before[record[touched], key[touched]]
        asking = np.ascontiguousarray(asking[:, demand.columns])
        own = demand.met(*part.company(asking))
        # Whoever has just enough company must not lose this record.
        barely = CountedRows(
            part.codes[size == demand.k], np.zeros(int((size == demand.k).sum())), wildcard=True
        )
        now = np.ascontiguousarray(codes[record[touched]][:, demand.columns])
        fine[touched] = own & (barely.company(asking)[0] == barely.company(now)[0])
    record, key = record[fine], key[fine]
    if not len(record):
        return codes
    order = np.argsort(-costs[key], kind="stable")
    record, key = record[order], key[order]
    owners, candidate = np.unique(record, return_inverse=True)
    room = len(record)
    given = give_back(
        np.vstack([rows.codes, np.zeros((room, codes.shape[1]), dtype=np.int32)]),
        np.append(rows.records, np.zeros(room, dtype=np.int64)),
        np.append(rows.weights, np.zeros(room)),
        len(rows.codes),
        np.array(
            [_spread_out(found[0], part, rows, room) for found, part in zip(company, parts, strict=True)]
        ),
        np.array(
            [_spread_out(found[1], part, rows, room) for found, part in zip(company, parts, strict=True)]
        ),
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
