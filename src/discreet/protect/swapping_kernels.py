"""The loops of swapping: find each record, household or class a partner that is still free and alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner


@inner
def full_tree(size: Any) -> Any:
    """Make a Fenwick tree in which every place counts one."""
    tree = np.empty(size + 1, np.int64)
    tree[0] = 0
    for i in range(1, size + 1):
        tree[i] = i & -i
    return tree


@inner
def take_out(tree: Any, place: Any) -> Any:
    """Let a place count no more."""
    i = place + 1
    while i < len(tree):
        tree[i] -= 1
        i += i & -i


@inner
def count_before(tree: Any, place: Any) -> Any:
    """Count the places before this one that still count."""
    total = 0
    i = place
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@inner
def nth(tree: Any, number: Any) -> Any:
    """Find the place that has exactly ``number`` counting places before it and counts itself."""
    step = 1
    while 2 * step < len(tree):
        step *= 2
    at = 0
    while step > 0:
        if at + step < len(tree) and tree[at + step] <= number:
            at += step
            number -= tree[at]
        step //= 2
    return at


@compiled
def rank_partners(starts: Any, windows: Any, uniforms: Any) -> Any:
    """Pair ranks at random, never further apart than the window of their group allows.

    From the lowest rank up, each one that has no partner yet takes one evenly from the free ranks above it within
    the window. All below are settled by then, so the free ones up to the end of the window are the candidates.

    Parameters
    ----------
    starts
        Where each group of ranks begins, and the end of the last.
    windows
        The largest difference of ranks, by group.
    uniforms
        A random number for each rank.
    """
    size = starts[-1]
    partner = np.full(size, -1, np.int64)
    tree = full_tree(size)
    for group in range(len(windows)):
        for i in range(starts[group], starts[group + 1]):
            if partner[i] >= 0:
                continue
            take_out(tree, i)
            free = count_before(tree, min(i + windows[group] + 1, starts[group + 1]))
            if free == 0:
                partner[i] = i
                continue
            j = nth(tree, min(int(uniforms[i] * free), free - 1))
            take_out(tree, j)
            partner[i] = j
            partner[j] = i
    return partner


# The loop of record swapping: find each household a partner in another area that looks like it.


@inner
def free_tree(free: Any) -> Any:
    """Make a Fenwick tree of the places that are free."""
    tree = np.zeros(len(free) + 1, np.int64)
    for i in range(len(free)):
        tree[i + 1] += free[i]
        above = (i + 1) + ((i + 1) & -(i + 1))
        if above < len(tree):
            tree[above] += tree[i + 1]
    return tree


@inner
def _common_there(area: Any, members: Any, company: Any) -> Any:
    """Say whether every member has a combination of key values that is common enough in an area."""
    for i in range(len(members)):
        wanted = area * company.combinations + members[i]
        at = np.searchsorted(company.known, wanted)
        if at == len(company.known) or company.known[at] != wanted or company.counts[at] < company.least:
            return False
    return True


@inner
def find_partner(rng: Any, tree: Any, at: Any, own: Any, alike: Any, company: Any) -> Any:  # noqa: PLR0917
    """Draw one of the free who look like the one at a place and live in another area; -1 where there is none.

    The first drawn in whose area the combinations of key values (``own``) are common enough; else the first drawn.
    """
    before = count_before(tree, alike.like[at, 0])
    below = count_before(tree, alike.near[at, 0]) - before
    after = count_before(tree, alike.near[at, 1])
    candidates = below + count_before(tree, alike.like[at, 1]) - after
    first = -1
    for _ in range(company.tries if candidates > 0 else 0):
        drawn = min(int(rng.random() * candidates), candidates - 1)
        other = alike.order[nth(tree, before + drawn if drawn < below else after + drawn - below)]
        if company.least < 1 or _common_there(company.lowest[other], own, company):
            return other
        if first < 0:
            first = other
    return first


@compiled
def find_partners(  # noqa: PLR0917
    rng: Any,
    targets: Any,
    most: Any,
    alike: Any,
    company: Any,
    partner: Any,
    member_starts: Any,
    members: Any,
) -> Any:
    """Pair targets with free households that look like them and live in another area; ``partner`` is filled in.

    Parameters
    ----------
    rng
        The random generator.
    targets
        Households that need a partner, in the order in which they are served.
    most
        Stop when this many households have been swapped; negative for no limit.
    alike, company
        Who looks like whom, and the company that combinations of key values have (see `standing_out`).
    member_starts, members
        The combinations of key values of the members of each household.
    """
    order, place = alike.order, alike.place
    free = np.zeros(len(order), np.int64)
    for i in range(len(order)):
        if partner[order[i]] < 0:
            free[i] = 1
    tree = free_tree(free)
    swapped = 0
    for number in range(len(targets)):
        if 0 <= most <= swapped:
            break
        household = targets[number]
        if partner[household] >= 0:
            continue
        at = place[household]
        own = members[member_starts[household] : member_starts[household + 1]]
        chosen = find_partner(rng, tree, at, own, alike, company)
        if chosen < 0:
            continue
        partner[household] = chosen
        partner[chosen] = household
        take_out(tree, at)
        take_out(tree, place[chosen])
        swapped += 2


# The loop of record swapping on classes: how many records of which classes change places with which others?


@inner
def take_many(tree: Any, place: Any, many: Any) -> Any:
    """Let a place count for so many less."""
    i = place + 1
    while i < len(tree):
        tree[i] -= many
        i += i & -i


@compiled
def swap_classes(rng: Any, targets: Any, most: Any, alike: Any, company: Any, free: Any, members: Any) -> Any:  # noqa: PLR0917
    """Pair records of classes with free records of classes that look alike in another area; ``free`` is used up.

    Parameters
    ----------
    rng
        The random generator.
    targets
        A class for every record that needs a partner, in the order in which they are served; without any, records are
        drawn from all that are free, each with the same chance.
    most
        Stop when this many records have been swapped; negative for no limit.
    alike, company
        Who looks like whom, and the company that combinations of key values have (see `standing_out`).
    free
        The records of each class that have no partner yet.
    members
        The combination of key values of each class.

    Returns
    -------
    array
        A row for each exchange: the two classes.
    """
    order, place = alike.order, alike.place
    tree = free_tree(free[order])
    drawing = len(targets) == 0
    total = count_before(tree, len(order))
    ends = (min(total, most + 1) if most >= 0 else total) if drawing else len(targets)
    pairs = np.empty((ends, 2), np.int64)
    made, number = 0, 0
    while number < ends and not 0 <= most <= 2 * made:
        if drawing:
            if total == 0:
                break
            target = order[nth(tree, min(int(rng.random() * total), total - 1))]
        else:
            target = targets[number]
            number += 1
            if free[target] == 0:
                continue
        at = place[target]
        chosen = find_partner(rng, tree, at, members[target : target + 1], alike, company)
        if chosen < 0:
            # Who finds nobody is found by nobody either: all that look alike live in one area.
            if drawing:
                take_many(tree, at, free[target])
                total -= free[target]
            continue
        for each in (target, chosen):
            take_out(tree, place[each])
            free[each] -= 1
        total -= 2
        pairs[made] = target, chosen
        made += 1
    return pairs[:made]
