"""The compiled growth of a tree, node by node, depth first.

The codes are copied once, column after column. When a node is split its records are moved so that each child is
one unbroken run in every column: all later passes read memory in order. The last step of growth therefore leaves
the training rows grouped by leaf, and every inner node is a run of rows too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from discreet.arrays import Array, Bytes, Codes, Flags, Floats, Integers
from discreet.trees.association_kernels import (
    association_with_classes,
    association_with_number,
    log_chi2_tail,
)
from discreet.trees.split_kernels import (
    CLEARER,
    Desk,
    ascending,
    compiled,
    cut_by_classes,
    cut_by_variance,
    list_entries,
    order_by_component,
    order_by_mean,
    order_by_rank,
    sort_by_key,
    tally_outcomes,
    wipe,
)

FEATURE, CUT, MEMBERS_END, LEFT, RIGHT, START, STOP, DEPTH = range(8)
WEIGHT, VALUE, RISK, LEFT_SHARE = range(4)
FIRST_OF_ORDERED = (
    6.0 / np.pi**2
)  # of the variance of shares up to each of many equal classes, that from low to high
OF_SIDES, OF_CUTS = 0.36, 0.75  # what finding the side of a level, and one cut among many, gain on noise
ATTEMPTS = 2  # columns that a conditional inference tree tries when the best associated one has no cut


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


class Table(NamedTuple):
    """The columns a tree may use, and by column how many codes, whether a category, and where its scores are."""

    columns: Codes
    bins: Codes
    categorical: Flags
    scores: Floats
    score_starts: Integers


class Limits(NamedTuple):
    """When to stop; a positive criterion asks for conditional inference instead of the greatest gain."""

    min_leaf: int
    min_split: int
    cp: float
    max_depth: int
    per_split: int
    criterion: float
    level_penalty: float
    ordered: bool


class Node(NamedTuple):
    """What the search needs to know of the node at hand."""

    start: int
    stop: int
    weight: float
    center: float
    risk: float
    n_classes: int
    free_classes: float


@compiled
def next_random(state: npt.NDArray[np.uint64]) -> float:
    """Draw a number in [0, 1) and move the state on (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0


@compiled
def describe(  # noqa: PLR0917
    start: int,
    stop: int,
    y: Floats,
    w: Floats,
    weighted: bool,
    classes: Codes,
    fine: Floats,
    local: Codes,
    relabel: Codes,
    present: Codes,
    totals: Floats,
    several: bool,
    ordered: bool,
) -> Node:
    """Weigh a node: its mean and sum of squares, or its classes, numbered afresh in the order of the records.

    Classes that are ``ordered`` keep their order, and their risk is that of all shares up to a class. A node of one
    class is weighed by its ``fine`` outcomes where there are any.
    """
    weight = 0.0
    if several:
        m = 0
        if ordered:
            for i in range(start, stop):
                relabel[classes[i]] = 0
            for k in range(len(relabel)):
                if relabel[k] == 0:
                    relabel[k], present[m], totals[m] = m, k, 0.0
                    m += 1
        for i in range(start, stop):
            k = classes[i]
            if relabel[k] < 0:
                relabel[k], present[m], totals[m] = m, k, 0.0
                m += 1
            local[i] = relabel[k]
            totals[relabel[k]] += w[i] if weighted else 1.0
        squares, cubes, free = 0.0, 0.0, 1.0
        for k in range(m):
            relabel[present[k]] = -1
            weight += totals[k]
            squares += totals[k] ** 2
            cubes += totals[k] ** 3
        if m == 2:
            for i in range(start, stop):
                y[i] = local[i]
        risk = weight - squares / weight if m > 1 else 0.0
        if ordered:
            risk, below = 0.0, 0.0
            for k in range(m - 1):
                below += totals[k]
                risk += below * (weight - below) / weight
            free = FIRST_OF_ORDERED if m > 2 else 1.0
        elif m > 2:
            # How many equal directions would vary as much: squared sum over sum of squares of the eigenvalues.
            share = squares / weight**2
            free = (1.0 - share) ** 2 / (share - 2.0 * cubes / weight**3 + share**2)
        if m > 1 or len(fine) == 0:
            return Node(start, stop, weight, totals[1] / weight if m == 2 else 0.0, risk, m, free)
        weight = 0.0
        for i in range(start, stop):
            y[i] = fine[i]
    total, low, high = 0.0, y[start], y[start]
    for i in range(start, stop):
        weight += w[i] if weighted else 1.0
        total += w[i] * y[i] if weighted else y[i]
        low, high = min(low, y[i]), max(high, y[i])
    center, risk = total / weight, 0.0
    if low < high:
        for i in range(start, stop):
            gap = y[i] - center
            risk += w[i] * gap * gap if weighted else gap * gap
    return Node(start, stop, weight, center, risk, 0, 1.0)


@compiled
def best_cut(  # noqa: PLR0917
    desk: Desk,
    codes: Codes,
    y: Floats,
    local: Codes,
    w: Floats,
    weighted: bool,
    node: Node,
    totals: Floats,
    factors: Floats,
    bins: int,
    categorical: bool,
    min_leaf: int,
    ordered: bool,
) -> tuple[float, int, int]:
    """Search one column; return the gain, the levels left of the cut and all levels (in order on the desk)."""
    records = node.stop - node.start
    if node.n_classes <= 2:
        d = tally_outcomes(desk, codes, y, w, weighted, node.start, node.stop, node.center)
        gain, cut = 0.0, 0
        if d > 1:
            if categorical:
                order_by_mean(desk, d, np.sqrt(node.risk / node.weight))
            else:
                ascending(desk, d, bins)
            gain, cut = cut_by_variance(desk, d, records, node.weight, min_leaf)
        wipe(desk, d)
        # For two classes the Gini risk is twice the sum of squares of either indicator.
        return gain * (2.0 if node.n_classes == 2 and not ordered else 1.0), cut, d
    d = list_entries(
        desk, codes, local, w, weighted, node.start, node.stop, node.n_classes, bins, categorical
    )
    gain, cut = 0.0, 0
    for j in range(d):
        desk.sequence[j] = j
    if d > 1:
        if categorical and ordered:
            order_by_rank(desk, d, totals, node.n_classes, node.weight)
        elif categorical and d > 2:
            order_by_component(desk, d, totals, factors, node.n_classes, node.weight)
        gain, cut = cut_by_classes(
            desk, d, totals, factors, node.n_classes, records, node.weight, min_leaf, ordered
        )
    wipe(desk, d)
    if categorical:
        for j in range(d):
            desk.spare_items[j] = desk.levels[desk.sequence[j]]
        for j in range(d):
            desk.levels[j] = desk.spare_items[j]
    return gain, cut, d


@compiled
def gain_by_chance(node: Node, d: int, categorical: bool) -> float:
    """Expected gain of the best cut of d codes that have nothing to do with the outcome, beyond that of a single cut.

    Sets of levels: standardized level means are then normal, and the best set is about those on one side of zero, so
    that each level adds the squared mean of a half-normal, 2/pi, and finding the side a little more. With several
    classes the direction is chosen as well: the largest singular value of a random matrix of levels by free classes.
    Cuts in an order: the largest of correlated chi-squares, which grows with the logarithm of their number. Ordered
    classes have one direction that counts, low to high. The constants were read off simulated noise.
    """
    records = node.stop - node.start
    free = max(node.free_classes, 1.0)
    if categorical:
        wide = np.sqrt(d - 1.0) - 1.0
        more = (2.0 / np.pi * (d - 2.0 + 2.0 * np.sqrt(free - 1.0) * wide) + OF_SIDES * wide) / free
    else:
        more = OF_CUTS * np.log(min(float(d), records / 2.0) - 1.0) / np.sqrt(free)
    gain: float = min(node.free_classes, 1.0) * more * node.risk / records
    return gain


@compiled
def log_tail(  # noqa: PLR0917
    desk: Desk,
    codes: Codes,
    y: Floats,
    local: Codes,
    w: Floats,
    weighted: bool,
    node: Node,
    totals: Floats,
    bins: int,
    categorical: bool,
    scores: Floats,
) -> float:
    """Log p-value of one column in a node; 1, which is no logarithm of one, where the column is constant."""
    statistic, df = 0.0, 0.0
    if node.n_classes <= 2:
        d = tally_outcomes(desk, codes, y, w, weighted, node.start, node.stop, node.center)
        squares = node.risk / 2.0 if node.n_classes == 2 else node.risk
        if d > 1:
            statistic, df = association_with_number(desk, d, node.weight, squares, categorical, scores)
    else:
        d = list_entries(
            desk, codes, local, w, weighted, node.start, node.stop, node.n_classes, bins, categorical
        )
        if d > 1:
            statistic, df = association_with_classes(
                desk, d, totals, node.n_classes, node.weight, categorical, scores
            )
    wipe(desk, d)
    if df == 0.0:
        return 1.0
    tail: float = log_chi2_tail(statistic, df)
    return tail


@compiled
def part(column: Any, goes: Bytes, spare: Any, start: int, stop: int) -> None:
    """Move the values that go left to the front of the run; both sides keep their order."""
    at, aside = start, 0
    for i in range(start, stop):
        value, left = column[i], goes[i]
        column[at] = value
        spare[aside] = value
        at += left
        aside += 1 - left
    for i in range(aside):
        column[at + i] = spare[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def grow(work: Array, space: Space, desk: Desk, table: Table, limits: Limits) -> tuple[int, int, Codes]:
    """Grow one tree; return how many nodes and members it has, and the members.

    The columns of ``work`` and the outcomes, weights and rows in ``space`` are moved about until they are grouped
    by leaf. Arrays come from the caller, because code that makes arrays takes long to compile.
    """
    order, outcome, w, held, local = space.rows, space.outcome, space.weights, space.classes, space.local
    goes, spare_floats, spare_rows = space.goes, space.spare_floats, space.spare_rows
    nodes, figures, totals, factors = space.nodes, space.figures, space.totals, space.factors
    best_levels, side, draw, tails, stack = (
        space.best_levels,
        space.side,
        space.draw,
        space.tails,
        space.stack,
    )
    columns, bins, categorical = table.columns, table.bins, table.categorical
    min_leaf, min_split, max_depth = limits.min_leaf, limits.min_split, limits.max_depth
    q = len(columns)
    weighted, several = len(w) > 0, len(held) > 0
    members, used = np.empty(1024, np.int32), 0
    stack[0], waiting, count = 0, 1, 1
    nodes[0, START], nodes[0, STOP], nodes[0, DEPTH] = 0, len(order), 0
    least = 0.0
    while waiting > 0:
        waiting -= 1
        here = stack[waiting]
        start, stop, depth = nodes[here, START], nodes[here, STOP], nodes[here, DEPTH]
        node = describe(
            start,
            stop,
            outcome,
            w,
            weighted,
            held,
            space.fine,
            local,
            space.relabel,
            space.present,
            totals,
            several,
            limits.ordered,
        )
        nodes[here, FEATURE] = -1
        figures[here, WEIGHT], figures[here, VALUE], figures[here, RISK] = node.weight, node.center, node.risk
        if here == 0:
            least = limits.cp * node.risk
        records = stop - start
        if records < min_split or records < 2 * min_leaf or depth >= max_depth or node.risk <= least:
            continue
        best, gain, chosen, cut, cut_code, size = 0.0, 0.0, -1, 0, 0, 0
        tries, tested = q, 0
        if limits.criterion > 0.0:
            for f in range(q):
                column = columns[f]
                scores = table.scores[table.score_starts[column] : table.score_starts[column + 1]]
                tails[f] = log_tail(
                    desk, work[f], outcome, local, w, weighted, node, totals, bins[column], categorical[column],
                    scores,
                )  # fmt: skip
                if tails[f] <= 0.0:
                    tested += 1
            for k in range(node.n_classes):
                factors[k] = node.weight / totals[k]
            tries = min(ATTEMPTS, q)
        for attempt in range(tries):
            f = attempt
            if limits.criterion > 0.0:
                for other in range(q):
                    if tails[other] < tails[f]:
                        f = other
                # The chance that none of the tested columns looks so associated by accident (Sidak's correction).
                surely = tested * np.log1p(-np.exp(tails[f])) > np.log(limits.criterion)
                if tails[f] > 0.0 or not surely or chosen >= 0:
                    break
                tails[f] = 2.0
            elif limits.per_split < q:
                # Columns beyond the quota are only looked at while none of those before has a cut.
                if attempt >= limits.per_split and chosen >= 0:
                    break
                other = attempt + int(next_random(space.state) * (q - attempt))
                draw[attempt], draw[other] = draw[other], draw[attempt]
                f = draw[attempt]
            column = columns[f]
            new_gain, new_cut, d = best_cut(
                desk, work[f], outcome, local, w, weighted, node, totals, factors, bins[column],
                categorical[column], min_leaf, limits.ordered,
            )  # fmt: skip
            if new_cut == 0 or new_gain <= 1e-12 * node.risk:
                continue
            # Columns are compared by what they gain beyond chance; whether to split at all is decided by the gain.
            worth = new_gain
            if limits.level_penalty > 0.0 and d > 2 and records > 6:
                worth -= limits.level_penalty * gain_by_chance(node, d, categorical[column])
            if chosen < 0 or worth > best + (CLEARER - 1.0) * gain:
                best, gain, chosen, cut, size = worth, new_gain, f, new_cut, d
                if categorical[column]:
                    for j in range(d):
                        best_levels[j] = desk.levels[j]
                else:
                    cut_code = (desk.levels[cut - 1] + desk.levels[cut] - 1) // 2
        if chosen < 0 or gain < least:
            continue
        run, lefts, heavy = work[chosen], 0, 0.0
        if categorical[columns[chosen]]:
            if used + size > len(members):
                longer = np.empty(2 * (used + size), np.int32)
                for j in range(used):
                    longer[j] = members[j]
                members = longer
            for j in range(size):
                desk.keys[j] = best_levels[j]
                side[best_levels[j]] = 1 if j < cut else 0
            sort_by_key(desk.keys, best_levels, desk.spare_keys, desk.spare_items, size)
            nodes[here, CUT] = used
            for j in range(size):
                members[used] = 2 * best_levels[j] + 1 - side[best_levels[j]]
                used += 1
            nodes[here, MEMBERS_END] = used
            for i in range(start, stop):
                goes[i] = side[run[i]]
        else:
            nodes[here, CUT], nodes[here, MEMBERS_END] = cut_code, 0
            for i in range(start, stop):
                goes[i] = 1 if run[i] <= cut_code else 0
        for i in range(start, stop):
            lefts += goes[i]
            if weighted and goes[i]:
                heavy += w[i]
        if max(lefts, records - lefts) >= min_split and depth + 1 < max_depth:
            # Children that cannot be split again need no columns.
            for f in range(q):
                part(work[f], goes, space.spare_codes, start, stop)
        part(order, goes, spare_rows, start, stop)
        if weighted:
            part(w, goes, spare_floats, start, stop)
        if several:
            part(held, goes, spare_rows, start, stop)
            if len(space.fine) > 0:
                part(space.fine, goes, spare_floats, start, stop)
        else:
            part(outcome, goes, spare_floats, start, stop)
        nodes[here, FEATURE] = columns[chosen]
        nodes[here, LEFT], nodes[here, RIGHT] = count, count + 1
        figures[here, LEFT_SHARE] = heavy / node.weight if weighted else lefts / records
        nodes[count, START], nodes[count, STOP], nodes[count, DEPTH] = start, start + lefts, depth + 1
        nodes[count + 1, START], nodes[count + 1, STOP], nodes[count + 1, DEPTH] = (
            start + lefts,
            stop,
            depth + 1,
        )
        stack[waiting], stack[waiting + 1] = count + 1, count
        waiting += 2
        count += 2
    return count, used, members
