"""Compiled loops of local suppression with gaps as values: who meets whom, and who would better go elsewhere.

A *unit* is a record whose class is too small, a *group* the class that units form when they give up the same keys and
are alike on the others. An *entry* is a group that a unit could join, with what that costs it. A group of too few
units must be filled up with records that could stay where they are; what that costs is its *filling*.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np

from discreet.arrays import Flags, Floats, Integers

_LESS = 1e-9  # what counts as an improvement


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _filling(  # noqa: PLR0917 - compiled code takes arrays by position
    members: int, group: int, k: int, price: Floats, spare: Integers, smallest: Integers, there: Integers
) -> float:
    """What it costs to fill the group up when it has so many members: spare records, else a class as a whole."""
    if members == 0 or members + there[group] >= k:
        return 0.0
    if spare[group] >= k - members:
        return float(price[group] * (k - members))
    if smallest[group] > 0:
        return float(price[group] * smallest[group])
    return np.inf


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def gather(  # noqa: PLR0917 - compiled code takes arrays by position
    entry_start: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    group_start: Integers,
    group_entry: Integers,
    entry_unit: Integers,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
) -> Integers:
    """Let the groups that are cheapest for each of their units form first; return the entry each unit takes."""
    taken = np.full(len(entry_start) - 1, -1, dtype=np.int64)
    groups = len(group_start) - 1
    queue = [(0.0, 0, 0) for _ in range(0)]
    for group in range(groups):
        cost, free = 0.0, 0
        for position in range(group_start[group], group_start[group + 1]):
            cost += entry_cost[group_entry[position]]
            free += 1
        cost += _filling(free, group, k, price, spare, smallest, there)
        if free and cost < np.inf:
            queue.append((cost / free, -free, group))
    heapq.heapify(queue)
    while queue:
        promise, count, group = heapq.heappop(queue)
        cost, free = 0.0, 0
        for position in range(group_start[group], group_start[group + 1]):
            if taken[entry_unit[group_entry[position]]] < 0:
                cost += entry_cost[group_entry[position]]
                free += 1
        cost += _filling(free, group, k, price, spare, smallest, there)
        if free == 0 or cost == np.inf:
            continue
        if cost / free > promise or -free > count:
            heapq.heappush(queue, (cost / free, -free, group))
            continue
        for position in range(group_start[group], group_start[group + 1]):
            if taken[entry_unit[group_entry[position]]] < 0:
                taken[entry_unit[group_entry[position]]] = group_entry[position]
    return taken


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def improve(  # noqa: PLR0917 - compiled code takes arrays by position
    taken: Integers,
    entry_start: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    group_start: Integers,
    group_entry: Integers,
    entry_unit: Integers,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
    awake: Flags,
) -> float:
    """Move units while the whole gets cheaper: one at a time, a group given up, a group formed anew.

    ``taken`` is changed in place; what was saved is returned. The units that are ``awake`` look first, then those for
    whom something has changed, and so on.
    """
    units, groups = len(taken), len(group_start) - 1
    members = np.zeros(groups, dtype=np.int64)
    for unit in range(units):
        members[entry_group[taken[unit]]] += 1
    saved = 0.0
    log_unit = np.zeros(units + 1, dtype=np.int64)
    log_from = np.zeros(units + 1, dtype=np.int64)
    while awake.any():
        before = saved
        was = members.copy()
        concerned = np.zeros(groups, dtype=np.bool_)
        for unit in range(units):
            if awake[unit]:
                for entry in range(entry_start[unit], entry_start[unit + 1]):
                    concerned[entry_group[entry]] = True
        for unit in range(units):
            if awake[unit]:
                saved += _move_one(
                    unit,
                    members,
                    taken,
                    entry_start,
                    entry_group,
                    entry_cost,
                    k,
                    price,
                    spare,
                    smallest,
                    there,
                )
        for group in range(groups):
            if concerned[group] and 0 < members[group] <= 2 * k:
                saved += _give_up(
                    group,
                    members,
                    taken,
                    entry_start,
                    entry_group,
                    entry_cost,
                    group_start,
                    group_entry,
                    entry_unit,
                    k,
                    price,
                    spare,
                    smallest,
                    there,
                    log_unit,
                    log_from,
                )
        for group in range(groups):
            if concerned[group] and group_start[group + 1] - group_start[group] > 1:
                saved += _draw_in(
                    group,
                    members,
                    taken,
                    entry_group,
                    entry_cost,
                    group_start,
                    group_entry,
                    entry_unit,
                    k,
                    price,
                    spare,
                    smallest,
                    there,
                    log_unit,
                    log_from,
                )
        if saved - before < _LESS:
            break
        awake[:] = False
        for group in range(groups):
            # Above k a record more or less changes nobody's price.
            if members[group] != was[group] and min(members[group], was[group]) + there[group] <= k:
                for position in range(group_start[group], group_start[group + 1]):
                    awake[entry_unit[group_entry[position]]] = True
    return saved


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _joining(  # noqa: PLR0917 - compiled code takes arrays by position
    entry: int,
    members: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
) -> float:
    """What it costs, all in all, when a unit more takes this entry."""
    group = entry_group[entry]
    if members[group] + there[group] >= k:
        return float(entry_cost[entry])
    return float(
        entry_cost[entry]
        + _filling(members[group] + 1, group, k, price, spare, smallest, there)
        - _filling(members[group], group, k, price, spare, smallest, there)
    )


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _leaving(  # noqa: PLR0917 - compiled code takes arrays by position
    entry: int,
    members: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
) -> float:
    """What is saved, all in all, when a unit gives this entry up; minus infinity where the others need it."""
    group = entry_group[entry]
    if members[group] - 1 + there[group] >= k:
        return float(entry_cost[entry])
    left = _filling(members[group] - 1, group, k, price, spare, smallest, there)
    if left == np.inf:
        return -np.inf
    now = _filling(members[group], group, k, price, spare, smallest, there)
    return float(entry_cost[entry] + now - left)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _move_one(  # noqa: PLR0917 - compiled code takes arrays by position
    unit: int,
    members: Integers,
    taken: Integers,
    entry_start: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
) -> float:
    """Move a unit to the group where it costs least; return what that saves."""
    old = taken[unit]
    gain = _leaving(old, members, entry_group, entry_cost, k, price, spare, smallest, there)
    best, best_cost = -1, gain - _LESS
    for entry in range(entry_start[unit], entry_start[unit + 1]):
        if entry != old:
            cost = _joining(entry, members, entry_group, entry_cost, k, price, spare, smallest, there)
            if cost < best_cost:
                best, best_cost = entry, cost
    if best < 0:
        return 0.0
    members[entry_group[old]] -= 1
    members[entry_group[best]] += 1
    taken[unit] = best
    return float(gain - best_cost)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _give_up(  # noqa: PLR0917 - compiled code takes arrays by position
    group: int,
    members: Integers,
    taken: Integers,
    entry_start: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    group_start: Integers,
    group_entry: Integers,
    entry_unit: Integers,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
    log_unit: Integers,
    log_from: Integers,
) -> float:
    """Send all units of a group where they cost least, if that is cheaper; return what it saves."""
    saved = _filling(members[group], group, k, price, spare, smallest, there)
    moved = 0
    for position in range(group_start[group], group_start[group + 1]):
        unit = entry_unit[group_entry[position]]
        if taken[unit] != group_entry[position]:
            continue
        best, best_cost = -1, np.inf
        for entry in range(entry_start[unit], entry_start[unit + 1]):
            if entry_group[entry] != group:
                cost = _joining(entry, members, entry_group, entry_cost, k, price, spare, smallest, there)
                if cost < best_cost:
                    best, best_cost = entry, cost
        if best < 0:
            saved = -np.inf
            break
        saved += entry_cost[taken[unit]] - best_cost
        log_unit[moved], log_from[moved] = unit, taken[unit]
        moved += 1
        members[group] -= 1
        members[entry_group[best]] += 1
        taken[unit] = best
    if saved > _LESS:
        return float(saved)
    _undo(moved, members, taken, entry_group, log_unit, log_from)
    return 0.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _draw_in(  # noqa: PLR0917 - compiled code takes arrays by position
    group: int,
    members: Integers,
    taken: Integers,
    entry_group: Integers,
    entry_cost: Floats,
    group_start: Integers,
    group_entry: Integers,
    entry_unit: Integers,
    k: int,
    price: Floats,
    spare: Integers,
    smallest: Integers,
    there: Integers,
    log_unit: Integers,
    log_from: Integers,
) -> float:
    """Let units come from other groups, those of small groups first, if that is cheaper; return what it saves."""
    saved = _filling(members[group], group, k, price, spare, smallest, there)
    moved = 0
    for size in range(1, k + 2):
        for position in range(group_start[group], group_start[group + 1]):
            entry = group_entry[position]
            unit = entry_unit[entry]
            old = entry_group[taken[unit]]
            if old == group or (members[old] != size if size <= k else members[old] < size):
                continue
            gain = _leaving(taken[unit], members, entry_group, entry_cost, k, price, spare, smallest, there)
            # Until the group has k, one more costs nothing: it takes the place of a record that would fill it up.
            wanted = 0.0 if members[group] + there[group] < k else entry_cost[entry]
            if gain < wanted - _LESS:
                continue
            saved += gain - entry_cost[entry]
            log_unit[moved], log_from[moved] = unit, taken[unit]
            moved += 1
            members[old] -= 1
            members[group] += 1
            taken[unit] = entry
    saved -= _filling(members[group], group, k, price, spare, smallest, there)
    if saved > _LESS:
        return float(saved)
    _undo(moved, members, taken, entry_group, log_unit, log_from)
    return 0.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _undo(  # noqa: PLR0917 - compiled code takes arrays by position
    moved: int,
    members: Integers,
    taken: Integers,
    entry_group: Integers,
    log_unit: Integers,
    log_from: Integers,
) -> None:
    for move in range(moved - 1, -1, -1):
        unit = log_unit[move]
        members[entry_group[taken[unit]]] -= 1
        members[entry_group[log_from[move]]] += 1
        taken[unit] = log_from[move]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def fill_up(  # noqa: PLR0917 - compiled code takes arrays by position
    lenders: Integers, start: Integers, order: Integers, lacks: Integers, records: Integers, k: int
) -> tuple[Integers, Integers]:
    """Take from large classes the records that groups lack; say how many each lender gives, and what it keeps.

    Parameters
    ----------
    lenders, start
        The classes that could lend to each group, the largest first.
    order, lacks
        The groups that need records, in the order in which they are served, and how many each group lacks.
    records
        The records of every class. Who lends keeps k; a group that cannot get all it lacks gets nothing.
    """
    taken = np.zeros(len(lenders), dtype=np.int64)
    left = records.copy()
    for group in order:
        able = 0
        for position in range(start[group], start[group + 1]):
            able += max(left[lenders[position]] - k, 0)
        missing = lacks[group]
        if able < missing:
            continue
        for position in range(start[group], start[group + 1]):
            given = min(missing, max(left[lenders[position]] - k, 0))
            taken[position] = given
            left[lenders[position]] -= given
            missing -= given
    return taken, left
