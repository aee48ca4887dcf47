"""The loop of record swapping on classes: how many records of which classes change places with which others?"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner
from discreet.protect.swapping.rank_kernels import count_before, nth, take_out
from discreet.protect.swapping.record_swap_kernels import find_partner, free_tree


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
