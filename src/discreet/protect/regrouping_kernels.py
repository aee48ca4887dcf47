"""Compiled loops of local suppression with gaps as values: who meets whom, and who would better go elsewhere.

A *unit* is a record whose class is too small, a *group* the class that units form when they give up the same keys and
are alike on the others. An *entry* is a group that a unit could join, with what that costs it. A group of too few
units must be filled up with records that could stay where they are; what that costs is its *filling*.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.core.compiling import ZERO, compiled, inner

_LESS = 1e-9  # what counts as an improvement


class Offers(NamedTuple):
    """The entries, sorted by unit: where those of a unit start, group, cost and unit of each; and listed by group."""

    entry_start: Integers
    entry_group: Codes
    entry_cost: Floats
    group_start: Integers
    group_entry: Codes
    entry_unit: Codes


class Fillings(NamedTuple):
    """What it takes to fill groups up to k records.

    By group: the price of a record, how many records large classes can spare, the size of the smallest of these
    classes (0: there is none), and the records that are there already.
    """

    k: int
    price: Floats
    spare: Integers
    smallest: Integers
    there: Integers


@inner
def _filling(members: int, group: int, fillings: Fillings) -> float:
    """What it costs to fill the group up when it has so many members: spare records, else a class as a whole."""
    k, price, spare, smallest, there = fillings
    if members == 0 or members + there[group] >= k:
        return 0.0
    if spare[group] >= k - members:
        return float(price[group] * (k - members))
    if smallest[group] > 0:
        return float(price[group] * smallest[group])
    return np.inf


@inner
def _price(group: int, taken: Integers, offers: Offers, fillings: Fillings) -> tuple[float, int]:
    """What it costs when all units that have taken nothing yet form a group, and how many they are."""
    cost, free = 0.0, ZERO
    for position in range(offers.group_start[group], offers.group_start[group + 1]):
        if taken[offers.entry_unit[offers.group_entry[position]]] < 0:
            cost += offers.entry_cost[offers.group_entry[position]]
            free += 1
    return cost + _filling(free, group, fillings), free


@compiled
def gather(offers: Offers, fillings: Fillings) -> Integers:
    """Let the groups that are cheapest for each of their units form first; return the entry each unit takes."""
    taken = np.full(len(offers.entry_start) - 1, -1, dtype=np.int64)
    groups = len(offers.group_start) - 1
    queue = [(0.0, 0, 0) for _ in range(0)]
    for group in range(groups):
        cost, free = _price(group, taken, offers, fillings)
        if free and cost < np.inf:
            queue.append((cost / free, -free, group))
    heapq.heapify(queue)
    while queue:
        promise, count, group = heapq.heappop(queue)
        cost, free = _price(group, taken, offers, fillings)
        if free == 0 or cost == np.inf:
            continue
        if cost / free > promise or -free > count:
            heapq.heappush(queue, (cost / free, -free, group))
            continue
        for position in range(offers.group_start[group], offers.group_start[group + 1]):
            if taken[offers.entry_unit[offers.group_entry[position]]] < 0:
                taken[offers.entry_unit[offers.group_entry[position]]] = offers.group_entry[position]
    return taken


@compiled
def improve(taken: Integers, offers: Offers, fillings: Fillings, awake: Flags) -> float:
    """Move units while the whole gets cheaper: one at a time, a group given up, a group formed anew.

    ``taken`` is changed in place; what was saved is returned. The units that are ``awake`` look first, then those for
    whom something has changed, and so on.
    """
    units, groups = len(taken), len(offers.group_start) - 1
    members = np.zeros(groups, dtype=np.int64)
    for unit in range(units):
        members[offers.entry_group[taken[unit]]] += 1
    saved = 0.0
    log = np.zeros((units + 1, 2), dtype=np.int64)  # which unit was moved, and from which entry
    while awake.any():
        before = saved
        was = members.copy()
        concerned = np.zeros(groups, dtype=np.bool_)
        for unit in range(units):
            if awake[unit]:
                for entry in range(offers.entry_start[unit], offers.entry_start[unit + 1]):
                    concerned[offers.entry_group[entry]] = True
        for unit in range(units):
            if awake[unit]:
                saved += _move_one(unit, members, taken, offers, fillings)
        for group in range(groups):
            if concerned[group] and 0 < members[group] <= 2 * fillings.k:
                saved += _give_up(group, members, taken, offers, fillings, log)
        for group in range(groups):
            if concerned[group] and offers.group_start[group + 1] - offers.group_start[group] > 1:
                saved += _draw_in(group, members, taken, offers, fillings, log)
        if saved - before < _LESS:
            break
        awake[:] = False
        for group in range(groups):
            # Above k a record more or less changes nobody's price.
            if (
                members[group] != was[group]
                and min(members[group], was[group]) + fillings.there[group] <= fillings.k
            ):
                for position in range(offers.group_start[group], offers.group_start[group + 1]):
                    awake[offers.entry_unit[offers.group_entry[position]]] = True
    return saved


@inner
def _joining(entry: int, members: Integers, offers: Offers, fillings: Fillings) -> float:
    """What it costs, all in all, when a unit more takes this entry."""
    group = offers.entry_group[entry]
    if members[group] + fillings.there[group] >= fillings.k:
        return float(offers.entry_cost[entry])
    return float(
        offers.entry_cost[entry]
        + _filling(members[group] + 1, group, fillings)
        - _filling(members[group], group, fillings)
    )


@inner
def _leaving(entry: int, members: Integers, offers: Offers, fillings: Fillings) -> float:
    """What is saved, all in all, when a unit gives this entry up; minus infinity where the others need it."""
    group = offers.entry_group[entry]
    if members[group] - 1 + fillings.there[group] >= fillings.k:
        return float(offers.entry_cost[entry])
    left = _filling(members[group] - 1, group, fillings)
    if left == np.inf:
        return -np.inf
    now = _filling(members[group], group, fillings)
    return float(offers.entry_cost[entry] + now - left)


@inner
def _move_one(unit: int, members: Integers, taken: Integers, offers: Offers, fillings: Fillings) -> float:
    """Move a unit to the group where it costs least; return what that saves."""
    old = taken[unit]
    gain = _leaving(old, members, offers, fillings)
    best, best_cost = -1, gain - _LESS
    for entry in range(offers.entry_start[unit], offers.entry_start[unit + 1]):
        if entry != old:
            cost = _joining(entry, members, offers, fillings)
            if cost < best_cost:
                best, best_cost = entry, cost
    if best < 0:
        return 0.0
    members[offers.entry_group[old]] -= 1
    members[offers.entry_group[best]] += 1
    taken[unit] = best
    return float(gain - best_cost)


@inner
def _give_up(  # noqa: PLR0917 - compiled code takes arrays by position
    group: int, members: Integers, taken: Integers, offers: Offers, fillings: Fillings, log: Integers
) -> float:
    """Send all units of a group where they cost least, if that is cheaper; return what it saves."""
    saved = _filling(members[group], group, fillings)
    moved = ZERO
    for position in range(offers.group_start[group], offers.group_start[group + 1]):
        unit = offers.entry_unit[offers.group_entry[position]]
        if taken[unit] != offers.group_entry[position]:
            continue
        best, best_cost = -1, np.inf
        for entry in range(offers.entry_start[unit], offers.entry_start[unit + 1]):
            if offers.entry_group[entry] != group:
                cost = _joining(entry, members, offers, fillings)
                if cost < best_cost:
                    best, best_cost = entry, cost
        if best < 0:
            saved = -np.inf
            break
        saved += offers.entry_cost[taken[unit]] - best_cost
        log[moved, 0], log[moved, 1] = unit, taken[unit]
        moved += 1
        members[group] -= 1
        members[offers.entry_group[best]] += 1
        taken[unit] = best
    if saved > _LESS:
        return float(saved)
    _undo(moved, members, taken, offers, log)
    return 0.0


@inner
def _draw_in(  # noqa: PLR0917 - compiled code takes arrays by position
    group: int, members: Integers, taken: Integers, offers: Offers, fillings: Fillings, log: Integers
) -> float:
    """Let units come from other groups, those of small groups first, if that is cheaper; return what it saves."""
    saved = _filling(members[group], group, fillings)
    moved = ZERO
    for size in range(1, fillings.k + 2):
        for position in range(offers.group_start[group], offers.group_start[group + 1]):
            entry = offers.group_entry[position]
            unit = offers.entry_unit[entry]
            old = offers.entry_group[taken[unit]]
            if old == group or (members[old] != size if size <= fillings.k else members[old] < size):
                continue
            gain = _leaving(taken[unit], members, offers, fillings)
            # Until the group has k, one more costs nothing: it takes the place of a record that would fill it up.
            wanted = 0.0 if members[group] + fillings.there[group] < fillings.k else offers.entry_cost[entry]
            if gain < wanted - _LESS:
                continue
            saved += gain - offers.entry_cost[entry]
            log[moved, 0], log[moved, 1] = unit, taken[unit]
            moved += 1
            members[old] -= 1
            members[group] += 1
            taken[unit] = entry
    saved -= _filling(members[group], group, fillings)
    if saved > _LESS:
        return float(saved)
    _undo(moved, members, taken, offers, log)
    return 0.0


@inner
def _undo(moved: int, members: Integers, taken: Integers, offers: Offers, log: Integers) -> None:
    for move in range(moved - 1, -1, -1):
        unit, before = log[move, 0], log[move, 1]
        members[offers.entry_group[taken[unit]]] -= 1
        members[offers.entry_group[before]] += 1
        taken[unit] = before


@compiled
def fill_up(  # noqa: PLR0917 - compiled code takes arrays by position
    lenders: Codes, start: Integers, order: Integers, lacks: Integers, records: Integers, k: int
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
