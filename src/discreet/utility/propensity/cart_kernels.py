"""Which splits of a large tree are worth their cost, decided in the order in which rpart grows one.

Plain cost-complexity pruning looks at the finished tree. The reference software of the published figures decides
while it grows, left branch before right: a right branch is not entered once the left one has used up what the node
can still gain. Its trees are about a fifth smaller, and so are the distances, which is why it is followed here.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled

DEAD, LEAF, SPLIT = 0, 1, 2


@compiled
def worthwhile(errors: Floats, left: Integers, right: Integers, price: float) -> Integers:
    """Say of each node whether it splits, ends as a leaf, or is no longer there.

    Parameters
    ----------
    errors
        Weight of the misclassified records of each node, were it a leaf.
    left, right
        Children; 0 for a node that is a leaf already.
    price
        Errors that a split must save to be worth it.
    """
    size = len(errors)
    fate = np.zeros(size, np.int64)
    hope = np.full(size, errors[0])
    strength = np.full(size, price)
    below = errors.copy()
    splits = np.zeros(size, np.int64)
    step = np.zeros(size, np.int64)
    way = np.empty(size, np.int64)
    way[0] = 0
    at = 0
    while at >= 0:
        node = way[at]
        one, other = left[node], right[node]
        if step[node] == 0:
            likely = min(errors[node], hope[node])
            if one == 0 or likely <= price:
                fate[node] = LEAF
                at -= 1
                continue
            hope[one] = likely - price
            step[node] = 1
            at += 1
            way[at] = one
        elif step[node] == 1:
            best = max((errors[node] - below[one]) / (splits[one] + 1), errors[node] - errors[one])
            hope[other] = min(best, hope[node]) - price
            step[node] = 2
            at += 1
            way[at] = other
        else:
            weak, strong = (one, other) if strength[other] > strength[one] else (other, one)
            weak_errors, weak_splits = below[weak], splits[weak]
            strong_errors, strong_splits = below[strong], splits[strong]
            gain = (errors[node] - weak_errors - strong_errors) / (weak_splits + strong_splits + 1)
            if gain > strength[weak]:
                weak_errors, weak_splits = errors[weak], 0
                gain = (errors[node] - weak_errors - strong_errors) / (strong_splits + 1)
                if gain > strength[strong]:
                    strong_errors, strong_splits = errors[strong], 0
                    gain = errors[node] - weak_errors - strong_errors
            strength[node] = gain
            if gain <= price:
                fate[node] = LEAF
            else:
                fate[node] = SPLIT
                below[node] = weak_errors + strong_errors
                splits[node] = weak_splits + strong_splits + 1
            at -= 1
    # Nodes under a leaf were decided on the way; they are gone.
    alive = np.zeros(size, np.int64)
    way[0] = 0
    at = 0
    while at >= 0:
        node = way[at]
        at -= 1
        alive[node] = fate[node]
        if fate[node] == SPLIT:
            way[at + 1] = left[node]
            way[at + 2] = right[node]
            at += 2
    return alive
