"""The loop of record swapping: find each household a partner in another area that looks like it."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner
from discreet.protect.swapping.rank_kernels import count_before, nth, take_out


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
