"""Loops of propensity models: rows of the design matrix, and the splits of a tree that are worth their cost.

Of a row of the matrix only the few entries that are not zero are made, when they are needed, and never stored.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers
from discreet.core.compiling import compiled, inner

Rows = tuple[Codes, Codes, Codes, Floats, Codes, Codes, Codes]
"""Codes (a line for each source), where the levels of each begin, the column of each level, numbers (a line for each),
their columns, the column of each pair of columns, and the place of each column among those that are kept."""


@inner
def _entries(i: int, rows: Rows, at: Integers, value: Floats) -> int:
    """Write the columns and values of row i that are not zero, and return how many."""
    codes, begins, code_column, numbers, number_column, pair_column, place = rows
    at[0] = 0
    value[0] = 1.0
    n = 1
    for j in range(len(codes)):
        column = code_column[begins[j] + codes[j, i]]
        if column >= 0:
            at[n] = column
            value[n] = 1.0
            n += 1
    for j in range(len(numbers)):
        at[n] = number_column[j]
        value[n] = numbers[j, i]
        n += 1
    mains = n
    if pair_column.shape[0] > 0:
        for a in range(1, mains):
            for b in range(a + 1, mains):
                column = pair_column[at[a], at[b]]
                if column >= 0:
                    at[n] = column
                    value[n] = value[a] * value[b]
                    n += 1
    kept = 0
    for e in range(n):
        column = place[at[e]]
        if column >= 0:
            at[kept] = column
            value[kept] = value[e]
            kept += 1
    return kept


@compiled
def products(  # noqa: PLR0917
    first: int, last: int, most: int, size: int, mass: Floats, pull: Floats, rows: Rows, crossed: bool
) -> tuple[Floats, Floats]:
    """Sum z z' mass (unless products are not to be ``crossed``: then none) and z pull over some rows z."""
    squares = np.zeros((size, size) if crossed else (0, 0))
    pulled = np.zeros(size)
    at = np.empty(most, np.int64)
    value = np.empty(most)
    for i in range(first, last):
        n = _entries(i, rows, at, value)
        for a in range(n):
            pulled[at[a]] += value[a] * pull[i]
            if crossed:
                weighted = value[a] * mass[i]
                line = squares[at[a]]
                for b in range(a, n):
                    line[at[b]] += weighted * value[b]
    for a in range(len(squares)):
        for b in range(a):
            squares[a, b] += squares[b, a]
            squares[b, a] = squares[a, b]
    return squares, pulled


@compiled
def predictions(first: int, last: int, most: int, beta: Floats, out: Floats, rows: Rows) -> None:  # noqa: PLR0917
    """Write z'beta of some rows z."""
    at = np.empty(most, np.int64)
    value = np.empty(most)
    for i in range(first, last):
        n = _entries(i, rows, at, value)
        total = 0.0
        for a in range(n):
            total += value[a] * beta[at[a]]
        out[i] = total


@compiled
def filled(first: int, last: int, most: int, out: Floats, rows: Rows) -> None:
    """Write some rows as they are, zeros and all."""
    at = np.empty(most, np.int64)
    value = np.empty(most)
    for i in range(first, last):
        n = _entries(i, rows, at, value)
        line = out[i - first]
        line[:] = 0.0
        for a in range(n):
            line[at[a]] += value[a]


# Which splits of a large tree are worth their cost, decided in the order in which rpart grows one.
#
# Plain cost-complexity pruning looks at the finished tree. The reference software of the published figures decides
# while it grows, left branch before right: a right branch is not entered once the left one has used up what the node
# can still gain. Its trees are about a fifth smaller, and so are the distances, which is why it is followed here.


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
