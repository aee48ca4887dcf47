"""Compiled loops of local suppression: counting agreement, choosing cells, giving cells back.

Keys are codes, one row a combination; 0 is a missing (or suppressed) value. A set of keys is a list of columns.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _start(codes: Codes, row: int, columns: Ints, last: int) -> int:
    mixed = np.uint64(1469598103934665603)
    for column in columns:
        mixed = (mixed ^ np.uint64(codes[row, column])) * _MIX
        mixed ^= mixed >> _SHIFT
    return np.int64(mixed & np.uint64(last))  # type: ignore[return-value]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _alike(left: Codes, i: int, right: Codes, j: int, columns: Ints) -> bool:
    for column in columns:  # noqa: SIM110 - a generator does not compile
        if left[i, column] != right[j, column]:
            return False
    return True


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def numbered(codes: Codes, rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """Number the distinct combinations of some columns among some rows, in order of first appearance.

    Returns the number of each row's combination, and the first row of each combination.
    """
    size = 16
    while size < 2 * len(rows):
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    firsts = np.empty(len(rows), dtype=np.int64)
    numbers = np.empty(len(rows), dtype=np.int64)
    found = 0
    for position in range(len(rows)):
        row = rows[position]
        slot = _start(codes, row, columns, size - 1)
        while slots[slot] >= 0 and not _alike(codes, row, codes, firsts[slots[slot]], columns):
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = found
            firsts[found] = row
            found += 1
        numbers[position] = slots[slot]
    return numbers, firsts[:found].copy()


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def add_agreeing(  # noqa: PLR0917 - compiled code takes arrays by position
    codes: Codes,
    rows: Ints,
    records: Ints,
    weights: Floats,
    asking: Codes,
    askers: Ints,
    columns: Ints,
    found: Ints,
    found_weight: Floats,
) -> None:
    """Add to each asker the records (and their weights) of the rows that are alike on these columns.

    The askers are put into the table and the rows stream past it: askers are few, rows are many.
    """
    numbers, firsts = numbered(asking, askers, columns)
    size = 16
    while size < 2 * len(firsts):
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    for number in range(len(firsts)):
        slot = _start(asking, firsts[number], columns, size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    total = np.zeros(len(firsts), dtype=np.int64)
    total_weight = np.zeros(len(firsts), dtype=np.float64)
    for row in rows:
        slot = _start(codes, row, columns, size - 1)
        while slots[slot] >= 0 and not _alike(codes, row, asking, firsts[slots[slot]], columns):
            slot = (slot + 1) & (size - 1)
        if slots[slot] >= 0:
            total[slots[slot]] += records[row]
            total_weight[slots[slot]] += weights[row]
    for position in range(len(askers)):
        found[askers[position]] += total[numbers[position]]
        found_weight[askers[position]] += total_weight[numbers[position]]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _enough(size: int, weight: float, k: int, least: Floats) -> bool:
    return size >= k and (size >= len(least) or weight >= least[size])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def choose(  # noqa: PLR0917 - compiled code takes arrays by position
    size: Ints,
    weight: Floats,
    own_weight: Floats,
    alike: Ints,
    most: Floats,
    k: int,
    least: Floats,
    group_start: Ints,
    group_members: Ints,
    group_cost: Floats,
    unit_start: Ints,
    unit_groups: Ints,
) -> Ints:
    """Choose which records give up which keys: a greedy multicover.

    A *unit* is a record that lacks company. A *group* gathers the units that would agree with one another if some
    keys were suppressed; a unit that suppresses them has company enough, and every other unit of the group that is
    not its like gains one record. The group whose suppression helps most units for its cost comes first.

    Parameters
    ----------
    size, weight
        Company of each unit (changed in place), in records and in weight.
    own_weight, alike
        Weight of each unit, and the number of its combination.
    most
        What each unit may pay at most in this call; at 0 it only profits from others.
    k, least
        What is enough: k records, and, with s records, a weight of ``least[s]``.
    group_start, group_members, group_cost, unit_start, unit_groups
        Who is in which group, by group and by unit, and what its suppression costs.

    Returns
    -------
    numpy.ndarray
        For each unit the group to which it gives way, or -1.
    """
    units, groups = len(size), len(group_cost)
    chosen = np.full(units, -1, dtype=np.int64)
    lacking = np.zeros(units, dtype=np.bool_)
    alike_lacking = np.zeros(alike.max() + 1 if units else 0, dtype=np.int64)
    for unit in range(units):
        if not _enough(size[unit], weight[unit], k, least):
            lacking[unit] = True
            alike_lacking[alike[unit]] += 1
    in_need = np.zeros(groups, dtype=np.int64)
    able = np.zeros(groups, dtype=np.int64)
    queue = [(0.0, 0) for _ in range(0)]
    for group in range(groups):
        for unit in group_members[group_start[group] : group_start[group + 1]]:
            in_need[group] += lacking[unit]
            able[group] += lacking[unit] and group_cost[group] <= most[unit]
        if able[group]:
            queue.append((-in_need[group] / group_cost[group], group))
    heapq.heapify(queue)
    while queue:
        promise, group = heapq.heappop(queue)
        if not able[group]:
            continue
        now = -in_need[group] / group_cost[group]
        if now > promise:
            heapq.heappush(queue, (now, group))
            continue
        best, best_gain, best_elsewhere = -1, np.int64(-(2**62)), np.int64(2**62)
        for unit in group_members[group_start[group] : group_start[group + 1]]:
            if not lacking[unit] or group_cost[group] > most[unit]:
                continue
            gain = max(k - size[unit], 1) - alike_lacking[alike[unit]]
            if gain < best_gain:
                continue
            # Of equals, the one that is least likely to be helped by others goes first.
            elsewhere = np.int64(0)
            for other in unit_groups[unit_start[unit] : unit_start[unit + 1]]:
                elsewhere += in_need[other]
            if gain > best_gain or elsewhere < best_elsewhere:
                best, best_gain, best_elsewhere = unit, gain, elsewhere
        chosen[best] = group
        for position in range(group_start[group], group_start[group + 1]):
            unit = group_members[position]
            if not lacking[unit]:
                continue
            if unit != best:
                if alike[unit] == alike[best]:
                    continue
                size[unit] += 1
                weight[unit] += own_weight[best]
                if not _enough(size[unit], weight[unit], k, least):
                    continue
            lacking[unit] = False
            alike_lacking[alike[unit]] -= 1
            for other in unit_groups[unit_start[unit] : unit_start[unit + 1]]:
                in_need[other] -= 1
                able[other] -= group_cost[other] <= most[unit]
        heapq.heappush(queue, (-in_need[group] / group_cost[group], group))
    return chosen


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _agree_elsewhere(codes: Codes, i: int, j: int, on: Bools, key: int) -> bool:
    for column in range(codes.shape[1]):
        if column != key and on[column]:
            left, right = codes[i, column], codes[j, column]
            if left and right and left != right:
                return False
    return True


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def give_back(  # noqa: PLR0917 - compiled code takes arrays by position
    codes: Codes,
    records: Ints,
    total_weight: Floats,
    rows: int,
    size: Ints,
    weight: Floats,
    on: Bools,
    k: Ints,
    least: Floats,
    row_of: Ints,
    candidate: Ints,
    key: Ints,
    value: Codes,
    own_weight: Floats,
) -> Bools:
    """Return suppressed cells to their values, one after the other, where nobody needs the gap.

    Parameters
    ----------
    codes, records, total_weight, rows
        The distinct combinations as they are, how many records and how much weight each has, and how many there
        are; the arrays have room for one more row a candidate and are changed in place.
    size, weight
        Company of each row, by demand.
    on, k, least
        The columns of each demand and what is enough for it.
    row_of
        The row of each record with a candidate cell, changed in place.
    candidate, key, value, own_weight
        The cells to try: the record, the key, the code to put back, the weight of the record.

    Returns
    -------
    numpy.ndarray
        True for the cells that were given back.
    """
    given = np.zeros(len(candidate), dtype=np.bool_)
    demands = len(k)
    left_size = np.zeros(demands, dtype=np.int64)
    left_weight = np.zeros(demands, dtype=np.float64)
    for cell in range(len(candidate)):
        row, column = row_of[candidate[cell]], key[cell]
        fine = True
        for demand in range(demands):
            left_size[demand], left_weight[demand] = size[demand, row], weight[demand, row]
            if not on[demand, column]:
                continue
            for other in range(rows):
                code = codes[other, column]
                if records[other] == 0 or code == 0 or code == value[cell]:
                    continue
                if not _agree_elsewhere(codes, row, other, on[demand], column):
                    continue
                left_size[demand] -= records[other]
                left_weight[demand] -= total_weight[other]
                fine = _enough(
                    size[demand, other] - 1,
                    weight[demand, other] - own_weight[cell],
                    k[demand],
                    least[demand],
                )
                if not fine:
                    break
            fine = fine and _enough(left_size[demand], left_weight[demand], k[demand], least[demand])
            if not fine:
                break
        if not fine:
            continue
        given[cell] = True
        for demand in range(demands):
            if not on[demand, column]:
                continue
            for other in range(rows):
                code = codes[other, column]
                if code == 0 or code == value[cell]:
                    continue
                if _agree_elsewhere(codes, row, other, on[demand], column):
                    size[demand, other] -= 1
                    weight[demand, other] -= own_weight[cell]
        codes[rows] = codes[row]
        codes[rows, column] = value[cell]
        size[:, rows], weight[:, rows] = left_size, left_weight
        records[row] -= 1
        total_weight[row] -= own_weight[cell]
        records[rows], total_weight[rows] = 1, own_weight[cell]
        row_of[candidate[cell]] = rows
        rows += 1
    return given
