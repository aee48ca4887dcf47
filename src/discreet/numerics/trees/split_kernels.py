"""The compiled search for the best cut of one column in one node.

A column is tallied by code, the codes that occur are put in order (a number: ascending; a category: by mean
outcome, or along the first principal component of the class shares), and the cuts between neighbors are scanned.
Only codes that occur are ever visited, so that a node costs no more than its records, whatever the levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Bytes, Codes, Floats
from discreet.core.compiling import ZERO, inner

CELLS = 65536  # code-by-class cells kept at most; half a megabyte, so that they stay near the processor
ROUNDS = 12  # of power iteration: an order of levels needs no more digits
CLEARER = 1.0 + 1e-10  # a cut wins only clearly, so that rounding decides no tie
DIGITS = 1e9  # to which the means of levels are compared, for the same reason


class Desk(NamedTuple):
    """Arrays that the search writes on, all tallies zero between uses.

    ``tally`` holds by code the records, the sum of outcomes and the weight; ``cells`` the weight by code and class.
    ``levels`` gives the codes that occur, in the order of the scan. ``entry_*`` list classes and weights by level.
    """

    tally: Floats
    cells: Floats
    levels: Codes
    sequence: Codes
    keys: Floats
    spare_keys: Floats
    spare_items: Codes
    entry_starts: Codes
    entry_classes: Codes
    entry_weights: Floats
    axis: Floats
    moved: Floats


class Space(NamedTuple):
    """The records, which growth moves about, the nodes to be written, and room to work in."""

    rows: Codes
    outcome: Floats
    weights: Floats
    classes: Codes
    fine: Floats
    local: Codes
    goes: Bytes
    spare_codes: Array
    spare_floats: Floats
    spare_rows: Codes
    nodes: Codes
    figures: Floats
    relabel: Codes
    present: Codes
    totals: Floats
    factors: Floats
    best_levels: Codes
    side: Bytes
    draw: Codes
    tails: Floats
    stack: Codes
    state: npt.NDArray[np.uint64]


class Node(NamedTuple):
    """What the search needs to know of the node at hand."""

    start: int
    stop: int
    weight: float
    center: float
    risk: float
    n_classes: int
    free_classes: float


@inner
def sort_by_key(keys: Floats, items: Codes, spare_keys: Floats, spare_items: Codes, n: int) -> None:
    """Sort items by ascending keys; equal keys keep their order."""
    run = 16
    for low in range(0, n, run):
        for i in range(low + 1, min(low + run, n)):
            key, item, j = keys[i], items[i], i - 1
            while j >= low and keys[j] > key:
                keys[j + 1], items[j + 1] = keys[j], items[j]
                j -= 1
            keys[j + 1], items[j + 1] = key, item
    while run < n:
        for low in range(0, n, 2 * run):
            middle, high = min(low + run, n), min(low + 2 * run, n)
            i, j = low, middle
            for at in range(low, high):
                if i < middle and (j >= high or keys[i] <= keys[j]):
                    spare_keys[at], spare_items[at] = keys[i], items[i]
                    i += 1
                else:
                    spare_keys[at], spare_items[at] = keys[j], items[j]
                    j += 1
        for at in range(n):
            keys[at], items[at] = spare_keys[at], spare_items[at]
        run *= 2


@inner
def meet(desk: Desk, code: int, d: int) -> int:
    """Count a record of a code, and list the code when it is the first; return how many codes have occurred."""
    if desk.tally[code, 0] == 0.0:
        desk.levels[d] = code
        d += 1
    desk.tally[code, 0] += 1.0
    return d


@inner
def tally_outcomes(desk: Desk, codes: Codes, space: Space, node: Node) -> int:
    """Sum records, outcomes around the center and weights by code; return how many codes occur."""
    tally, levels, y, w = desk.tally, desk.levels, space.outcome, space.weights
    start, stop, center = node.start, node.stop, node.center
    d = 0
    if len(w) > 0:
        for i in range(start, stop):
            d = meet(desk, codes[i], d)
            tally[codes[i], 1] += w[i] * (y[i] - center)
            tally[codes[i], 2] += w[i]
    else:
        for i in range(start, stop):
            d = meet(desk, codes[i], d)
            tally[codes[i], 1] += y[i] - center
        for j in range(d):
            tally[levels[j], 2] = tally[levels[j], 0]
    return d


@inner
def mean_keys(desk: Desk, d: int, spread: float) -> None:
    """Key the levels by their mean outcomes, of so many digits that rounding puts equal ones in no order."""
    keys, tally, levels = desk.keys, desk.tally, desk.levels
    for j in range(d):
        keys[j] = np.rint(DIGITS / spread * tally[levels[j], 1] / tally[levels[j], 2])


@inner
def wipe(desk: Desk, d: int) -> None:
    """Set the tally back to zero."""
    tally, levels = desk.tally, desk.levels
    for j in range(d):
        code = levels[j]
        tally[code, 0] = 0.0
        tally[code, 1] = 0.0
        tally[code, 2] = 0.0


@inner
def cut_by_variance(desk: Desk, d: int, node: Node, min_leaf: int) -> tuple[float, int]:
    """Find the cut of the ordered levels that lowers the sum of squares most; return the gain and levels left."""
    tally, levels, records, weight = desk.tally, desk.levels, node.stop - node.start, node.weight
    total = 0.0
    for j in range(d):
        total += tally[levels[j], 1]
    best, cut = 0.0, 0
    n, s, v = 0.0, 0.0, 0.0
    for j in range(d - 1):
        code = levels[j]
        n += tally[code, 0]
        s += tally[code, 1]
        v += tally[code, 2]
        if n < min_leaf:
            continue
        if records - n < min_leaf:
            break
        rest = total - s
        gain = s * s / v + rest * rest / (weight - v)
        if gain > best * CLEARER:
            best, cut = gain, j + 1
    return best - total * total / weight, cut


@inner
def list_entries(desk: Desk, codes: Codes, space: Space, node: Node, bins: int) -> int:
    """List classes and weights by level, summed by class where that is shorter; return how many codes occur."""
    tally, cells, levels, w, classes = desk.tally, desk.cells, desk.levels, space.weights, space.local
    start, stop, n_classes, weighted = node.start, node.stop, node.n_classes, len(space.weights) > 0
    entry_starts, entry_classes, entry_weights = desk.entry_starts, desk.entry_classes, desk.entry_weights
    summed = bins * n_classes <= min(2 * (stop - start), CELLS)
    d = ZERO
    for i in range(start, stop):
        d = meet(desk, codes[i], d)
        weight = w[i] if weighted else 1.0
        tally[codes[i], 2] += weight
        if summed:
            cells[codes[i] * n_classes + classes[i]] += weight
    at = 0
    entry_starts[0] = 0
    if summed:
        for j in range(d):
            base = levels[j] * n_classes
            for k in range(n_classes):
                if cells[base + k] > 0.0:
                    entry_classes[at], entry_weights[at] = k, cells[base + k]
                    cells[base + k] = 0.0
                    at += 1
            entry_starts[j + 1] = at
        return d
    for j in range(d):
        tally[levels[j], 1] = at
        at += int(tally[levels[j], 0])
        entry_starts[j + 1] = at
    for i in range(start, stop):
        at = int(tally[codes[i], 1])
        tally[codes[i], 1] += 1.0
        entry_classes[at], entry_weights[at] = classes[i], w[i] if weighted else 1.0
    return d


@inner
def class_keys(desk: Desk, d: int, space: Space, node: Node, ordered: bool) -> None:
    """Key the levels by their classes: by mean rank where these are ordered, else along their principal component.

    The component is that of the class shares, found by power iteration from the commonest class against the rest.
    ``factors`` scale the classes (1: Gini; 1/share: chi-square).
    """
    axis, moved, keys, tally, levels = desk.axis, desk.moved, desk.keys, desk.tally, desk.levels
    totals, factors, n_classes, weight = space.totals, space.factors, node.n_classes, node.weight
    entry_starts, entry_classes, entry_weights = desk.entry_starts, desk.entry_classes, desk.entry_weights
    common, below = 0, 0.0
    for k in range(n_classes):
        if ordered:
            axis[k] = (below + totals[k] / 2.0) / weight
            below += totals[k]
            continue
        axis[k] = 0.1 * (((k + 1) * 0.6180339887498949) % 1.0 - 0.5)
        if totals[k] > totals[common]:
            common = k
    if not ordered:
        axis[common] += 1.0
    for _ in range(1 if ordered else ROUNDS):
        middle = 0.0
        for k in range(n_classes):
            middle += totals[k] * axis[k] / weight
            moved[k] = 0.0
        for j in range(d):
            mean = 0.0
            for e in range(entry_starts[j], entry_starts[j + 1]):
                mean += entry_weights[e] * axis[entry_classes[e]]
            mean = mean / tally[levels[j], 2] - middle
            keys[j] = mean
            for e in range(entry_starts[j], entry_starts[j + 1]):
                moved[entry_classes[e]] += entry_weights[e] * mean
        size, old_size, along = 0.0, 0.0, 0.0
        for k in range(n_classes):
            moved[k] *= factors[k]
            size += moved[k] * moved[k]
            old_size += axis[k] * axis[k]
            along += moved[k] * axis[k]
        if size == 0.0 or along * along >= (1.0 - 1e-8) * size * old_size:
            break
        for k in range(n_classes):
            axis[k] = moved[k] / np.sqrt(size)
    for j in range(d):
        keys[j] = np.rint(DIGITS * keys[j])


@inner
def cut_by_classes(  # noqa: PLR0917
    desk: Desk, d: int, space: Space, node: Node, min_leaf: int, ordered: bool
) -> tuple[float, int]:
    """Find the cut of the sequence of levels that lowers the (scaled) Gini risk most, or tells an order apart best.

    The risk of ordered classes is the sum of the Gini risks of all questions "up to this class, or above?", so that a
    shift of all classes by one counts, and a shift by many counts more: a record counts in its class and all above.
    """
    left, whole, sequence, tally, levels = desk.moved, desk.axis, desk.sequence, desk.tally, desk.levels
    totals, factors, n_classes, weight = space.totals, space.factors, node.n_classes, node.weight
    records = node.stop - node.start
    entry_starts, entry_classes, entry_weights = desk.entry_starts, desk.entry_classes, desk.entry_weights
    last, below, rest = n_classes - 1 if ordered else n_classes, 0.0, 0.0
    for k in range(last):
        below = below + totals[k] if ordered else totals[k]
        left[k], whole[k] = 0.0, below
        rest += (1.0 if ordered else factors[k]) * below * below
    everything = rest / weight
    best, cut = 0.0, 0
    n, v, squares = 0.0, 0.0, 0.0
    for j in range(d - 1):
        at = sequence[j]
        for e in range(entry_starts[at], entry_starts[at + 1]):
            first = entry_classes[e]
            for k in range(first, last if ordered else first + 1):
                more = entry_weights[e]
                scaled = more if ordered else factors[k] * more
                squares += scaled * (2.0 * left[k] + more)
                rest -= scaled * (2.0 * (whole[k] - left[k]) - more)
                left[k] += more
        n += tally[levels[at], 0]
        v += tally[levels[at], 2]
        if n < min_leaf:
            continue
        if records - n < min_leaf:
            break
        gain = squares / v + rest / (weight - v)
        if gain > best * CLEARER:
            best, cut = gain, j + 1
    return best - everything, cut
