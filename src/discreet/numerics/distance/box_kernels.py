"""Compiled loops over candidates in a box, and over the letters of two words."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Bytes, Codes, Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.numerics.distance.distance_kernels import ROOM, first_beyond, put_in_order


@compiled
def matches_in_boxes(  # noqa: PLR0917
    numbers: Floats,
    fuzzy: Codes,
    starts: Integers,
    stops: Integers,
    others: Floats,
    other_fuzzy: Codes,
    tolerances: Floats,
    allowed: Bytes,
    offsets: Integers,
    widths: Integers,
    counts: Integers,
    back: Integers,
    only: Integers,
    pairs: Integers,
    first_only: bool,
) -> int:
    """Count the records in each box; note the last one found and, if there is room, every pair.

    The candidates of a record stand between ``starts`` and ``stops``, sorted by their first number.
    """
    found = 0
    for i in range(len(numbers)):
        if stops[i] <= starts[i]:
            continue
        first, last = starts[i], stops[i]
        if numbers.shape[1]:
            first = first_beyond(others, starts[i], stops[i], numbers[i, 0] - tolerances[0], True)
            last = first_beyond(others, starts[i], stops[i], numbers[i, 0] + tolerances[0], False)
        for c in range(first, last):
            inside = True
            for j in range(1, numbers.shape[1]):
                if abs(numbers[i, j] - others[c, j]) > tolerances[j]:
                    inside = False
                    break
            if not inside:
                continue
            for j in range(fuzzy.shape[1]):
                if not allowed[offsets[j] + fuzzy[i, j] * widths[j] + other_fuzzy[c, j]]:
                    inside = False
                    break
            if inside:
                counts[i] += 1
                back[c] += 1
                only[i] = c
                if found < len(pairs):
                    pairs[found, 0] = i
                    pairs[found, 1] = c
                found += 1
                if first_only:
                    break
    return found


@inner
def edit_similarity(a: Codes, b: Codes) -> float:
    """Levenshtein: one minus the edits from one word to the other over the length of the longer."""
    if len(a) == 0 and len(b) == 0:
        return 1.0
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            changed = corner + (a[i] != b[j])
            corner = row[j + 1]
            row[j + 1] = min(changed, min(row[j], row[j + 1]) + 1)
    return float(1.0 - row[len(b)] / max(len(a), len(b)))


@inner
def jaro_winkler_similarity(a: Codes, b: Codes) -> float:
    """Jaro-Winkler (Winkler 1990): shared letters in about the same place, with a bonus for a common start."""
    if len(a) == 0 and len(b) == 0:
        return 1.0
    window = max(max(len(a), len(b)) // 2 - 1, 0)
    taken_a, taken_b = np.zeros(len(a), np.uint8), np.zeros(len(b), np.uint8)
    shared = 0
    for i in range(len(a)):
        for j in range(max(0, i - window), min(len(b), i + window + 1)):
            if not taken_b[j] and a[i] == b[j]:
                taken_a[i] = 1
                taken_b[j] = 1
                shared += 1
                break
    if shared == 0:
        return 0.0
    swapped, j = 0, 0
    for i in range(len(a)):
        if taken_a[i]:
            while not taken_b[j]:
                j += 1
            swapped += a[i] != b[j]
            j += 1
    jaro = (shared / len(a) + shared / len(b) + (shared - swapped / 2) / shared) / 3
    start = 0
    while start < min(4, len(a), len(b)) and a[start] == b[start]:
        start += 1
    return jaro + start * 0.1 * (1 - jaro)


@compiled
def similar_words(
    letters: Codes, starts: Integers, others: Codes, other_starts: Integers, winkler: bool
) -> Floats:
    """Compare each word with each word of the other list; words are given as their letters, end to end."""
    found = np.empty((len(starts) - 1, len(other_starts) - 1))
    for i in range(len(starts) - 1):
        a = letters[starts[i] : starts[i + 1]]
        for j in range(len(other_starts) - 1):
            b = others[other_starts[j] : other_starts[j + 1]]
            found[i, j] = jaro_winkler_similarity(a, b) if winkler else edit_similarity(a, b)
    return found


# Compiled loops that find the smallest tolerance at which a record matches some candidate.
#
# The candidates of a block are split at medians into a tree of boxes. A box whose nearest corner needs more than what
# has been found is never opened; what "more" means differs from record to record, because each brings its own units.


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
