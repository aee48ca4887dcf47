"""The loop of record swapping: find each household a partner in another area that looks like it."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.protect.swapping.rank_kernels import count_before, nth, take_out


@njit(cache=True, nogil=True)
def free_tree(free):  # type: ignore[no-untyped-def]
    """Make a Fenwick tree of the places that are free."""
    tree = np.zeros(len(free) + 1, np.int64)
    for i in range(len(free)):
        tree[i + 1] += free[i]
        above = (i + 1) + ((i + 1) & -(i + 1))
        if above < len(tree):
            tree[above] += tree[i + 1]
    return tree


@njit(cache=True, nogil=True)
def common_there(area, members, known, counts, combinations, least):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Say whether every member has a combination of key values that is common enough in an area."""
    for i in range(len(members)):
        wanted = area * combinations + members[i]
        at = np.searchsorted(known, wanted)
        if at == len(known) or known[at] != wanted or counts[at] < least:
            return False
    return True


@njit(cache=True, nogil=True)
def find_partners(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    rng,
    targets,
    most,
    order,
    place,
    like,
    near,
    partner,
    lowest,
    member_starts,
    members,
    known,
    counts,
    combinations,
    least,
    tries,
):
    """Pair targets with free households that look like them and live in another area; ``partner`` is filled in.

    Parameters
    ----------
    rng
        The random generator.
    targets
        Households that need a partner, in the order in which they are served.
    most
        Stop when this many households have been swapped; negative for no limit.
    order, place
        Households sorted by likeness and area, and the place of each.
    like, near
        For each place the begin and end of the places that look alike, and of those in the same area among them.
    lowest
        The area of each household at the lowest level.
    member_starts, members
        The combinations of key values of the members of each household.
    known, counts
        Sorted codes of (area, combination) that occur at the lowest level, and how often.
    least
        How often a combination must occur in an area not to be at risk; below 1 every area will do.
    tries
        How many candidates are looked at for one in whose area the household is not at risk.

    Returns
    -------
    int, int
        Households swapped, and targets that came to an area where they are not at risk.
    """
    free = np.zeros(len(order), np.int64)
    for i in range(len(order)):
        if partner[order[i]] < 0:
            free[i] = 1
    tree = free_tree(free)
    swapped, safe = 0, 0
    for number in range(len(targets)):
        if 0 <= most <= swapped:
            break
        household = targets[number]
        if partner[household] >= 0:
            continue
        at = place[household]
        before = count_before(tree, like[at, 0])
        below = count_before(tree, near[at, 0]) - before
        after = count_before(tree, near[at, 1])
        candidates = below + count_before(tree, like[at, 1]) - after
        if candidates == 0:
            continue
        own = members[member_starts[household] : member_starts[household + 1]]
        chosen = -1
        for attempt in range(tries):
            drawn = min(int(rng.random() * candidates), candidates - 1)
            other = order[nth(tree, before + drawn if drawn < below else after + drawn - below)]
            if attempt == 0:
                chosen = other
            if least < 1 or common_there(lowest[other], own, known, counts, combinations, least):
                chosen = other
                safe += 1
                break
        partner[household] = chosen
        partner[chosen] = household
        take_out(tree, at)
        take_out(tree, place[chosen])
        swapped += 2
    return swapped, safe
