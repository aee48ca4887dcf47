"""Compiled loops that find the smallest tolerance at which a record matches some candidate.

The candidates of a block are split at medians into a tree of boxes. A box whose nearest corner needs more than what has
been found is never opened; what "more" means differs from record to record, because each brings its own units.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.numerics.distance.order_kernels import ROOM, put_in_order

_LEAF = 16


@compiled
def grow_boxes(
    others: Floats, order: Integers, starts: Integers, stops: Integers, scales: Floats
) -> tuple[Integers, Floats, Floats]:
    """Order the candidates of each block (between its start and stop in ``order``) into a tree of boxes.

    Returns, a row a box, its start, stop, and two children (-1 for a leaf), and its lowest and highest corner. Block b
    has box b as its root. ``order`` is rearranged within the blocks.
    """
    width = others.shape[1]
    room = len(starts) + 4 * (len(order) // _LEAF + 1)
    boxes = np.full((room, 4), -1, np.int64)
    low, high = np.empty((room, width)), np.empty((room, width))
    for b in range(len(starts)):
        boxes[b, 0], boxes[b, 1] = starts[b], stops[b]
    mine, places, keys = np.empty(len(order), np.int64), np.empty(len(order), np.int64), np.empty(len(order))
    stack = np.empty(ROOM, np.int64)
    used, box = len(starts), 0
    while box < used:
        first, last = boxes[box, 0], boxes[box, 1]
        widest, span = 0, -1.0
        for j in range(width):
            low[box, j], high[box, j] = np.inf, -np.inf
            for c in range(first, last):
                value = others[order[c], j]
                low[box, j] = min(low[box, j], value)
                high[box, j] = max(high[box, j], value)
            here = (high[box, j] - low[box, j]) / scales[j]
            if here > span:
                widest, span = j, here
        if last - first > _LEAF and span > 0.0:
            for c in range(last - first):
                mine[c] = order[first + c]
                keys[c] = others[mine[c], widest]
            put_in_order(keys, places, last - first, stack)
            for c in range(last - first):
                order[first + c] = mine[places[c]]
            middle = (first + last) // 2
            boxes[box, 2], boxes[box, 3] = used, used + 1
            boxes[used, 0], boxes[used, 1] = first, middle
            boxes[used + 1, 0], boxes[used + 1, 1] = middle, last
            used += 2
        box += 1
    return boxes[:used], low[:used], high[:used]


@inner
def _to_box(number: Floats, unit: Floats, low: Floats, high: Floats, best: float) -> float:
    needed = 0.0
    for j in range(len(number)):
        away = max(low[j] - number[j], number[j] - high[j])
        if away > 0.0:
            needed = max(needed, away / unit[j] if unit[j] > 0.0 else np.inf)
            if needed >= best:
                break
    return needed


@compiled
def smallest_tolerances(  # noqa: PLR0917
    numbers: Floats,
    units: Floats,
    roots: Integers,
    others: Floats,
    order: Integers,
    boxes: Integers,
    low: Floats,
    high: Floats,
    found: Floats,
    nearest: Integers,
) -> None:
    """Find, for each record, the candidate of its block that takes the smallest tolerance in the worst column.

    ``units`` is what a difference is divided by, record by record and column by column; where it is 0 only equal
    numbers match. A root of -1 means that there is no candidate.
    """
    stack = np.empty(128, np.int64)
    for i in range(len(numbers)):
        best, which = np.inf, -1
        depth = 0
        if roots[i] >= 0:
            stack[0] = roots[i]
            depth = 1
        while depth > 0 and best > 0.0:
            depth -= 1
            box = stack[depth]
            if _to_box(numbers[i], units[i], low[box], high[box], best) >= best:
                continue
            if boxes[box, 2] >= 0:
                one, other = boxes[box, 2], boxes[box, 3]
                to_one = _to_box(numbers[i], units[i], low[one], high[one], best)
                to_other = _to_box(numbers[i], units[i], low[other], high[other], best)
                # The nearer box lies on top.
                stack[depth] = other if to_one <= to_other else one
                stack[depth + 1] = one if to_one <= to_other else other
                depth += 2
                continue
            for place in range(boxes[box, 0], boxes[box, 1]):
                c = order[place]
                needed = 0.0
                for j in range(numbers.shape[1]):
                    away = abs(numbers[i, j] - others[c, j])
                    if away > 0.0:
                        needed = max(needed, away / units[i, j] if units[i, j] > 0.0 else np.inf)
                        if needed > best:
                            break
                if needed < best or (needed == best and c < which and needed < np.inf):
                    best, which = needed, c
        found[i], nearest[i] = best, which
