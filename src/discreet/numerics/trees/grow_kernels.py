"""The compiled growth of a tree, node by node, depth first.

The codes are copied once, column after column. When a node is split its records are moved so that each child is
one unbroken run in every column: all later passes read memory in order. The last step of growth therefore leaves
the training rows grouped by leaf, and every inner node is a run of rows too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Bytes, Codes, Flags, Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.numerics.trees.node_kernels import best_cut, describe, gain_by_chance, log_tail
from discreet.numerics.trees.split_kernels import CLEARER, Desk, Space, sort_by_key

FEATURE, CUT, MEMBERS_END, LEFT, RIGHT, START, STOP, DEPTH = range(8)
WEIGHT, VALUE, RISK, LEFT_SHARE = range(4)
ATTEMPTS = 2  # columns that a conditional inference tree tries when the best associated one has no cut


class Table(NamedTuple):
    """The columns a tree may use, and by column how many codes, and whether a category."""

    columns: Codes
    bins: Codes
    categorical: Flags


class Scores(NamedTuple):
    """The scores of the codes of numbers, and where those of a column begin."""

    scores: Floats
    starts: Integers


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


@inner
def next_random(state: npt.NDArray[np.uint64]) -> float:
    """Draw a number in [0, 1) and move the state on (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0


@inner
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


@compiled
def grow(  # noqa: PLR0917
    work: Array, space: Space, desk: Desk, table: Table, limits: Limits, tests: Scores | None
) -> tuple[int, int, Codes]:
    """Grow one tree; return how many nodes and members it has, and the members.

    ``tests`` of association, where columns are chosen by them, need scores; without these no test is compiled.

    The columns of ``work`` and the outcomes, weights and rows in ``space`` are moved about until they are grouped
    by leaf. Arrays come from the caller, because code that makes arrays takes long to compile.
    """
    order, outcome, w, held = space.rows, space.outcome, space.weights, space.classes
    goes, spare_floats, spare_rows = space.goes, space.spare_floats, space.spare_rows
    nodes, figures, totals, factors = space.nodes, space.figures, space.totals, space.factors
    best_levels, side, draw = space.best_levels, space.side, space.draw
    tails, stack = space.tails, space.stack
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
        node = describe(start, stop, space, limits.ordered)
        nodes[here, FEATURE] = -1
        figures[here, WEIGHT], figures[here, VALUE], figures[here, RISK] = node.weight, node.center, node.risk
        if here == 0:
            least = limits.cp * node.risk
        records = stop - start
        if records < min_split or records < 2 * min_leaf or depth >= max_depth or node.risk <= least:
            continue
        best, gain, chosen, cut, cut_code, size = 0.0, 0.0, -1, 0, 0, 0
        tries, tested = q, 0
        if tests is not None:
            for f in range(q):
                column = columns[f]
                scores = tests.scores[tests.starts[column] : tests.starts[column + 1]]
                tails[f] = log_tail(desk, work[f], space, node, bins[column], categorical[column], scores)
                if tails[f] <= 0.0:
                    tested += 1
            for k in range(node.n_classes):
                factors[k] = node.weight / totals[k]
            tries = min(ATTEMPTS, q)
        for attempt in range(tries):
            f = attempt
            if tests is not None:
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
                desk, work[f], space, node, bins[column], categorical[column], min_leaf, limits.ordered
            )
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
        nodes[count + 1, START], nodes[count + 1, STOP] = start + lefts, stop
        nodes[count + 1, DEPTH] = depth + 1
        stack[waiting], stack[waiting + 1] = count + 1, count
        waiting += 2
        count += 2
    return count, used, members
