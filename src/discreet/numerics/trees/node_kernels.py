"""The compiled look at one node of a tree: what it predicts, and where each column would cut it best."""

from __future__ import annotations

import math

import numpy as np

from discreet.core.arrays import Codes, Floats
from discreet.core.compiling import compiled, inner
from discreet.numerics.trees.split_kernels import (
    Desk,
    Node,
    Space,
    class_keys,
    cut_by_classes,
    cut_by_variance,
    list_entries,
    mean_keys,
    sort_by_key,
    tally_outcomes,
    wipe,
)

# Of the variance of shares up to each of many equal classes, that from low to high.
FIRST_OF_ORDERED = 6.0 / np.pi**2
OF_SIDES, OF_CUTS = 0.36, 0.75  # what finding the side of a level, and one cut among many, gain on noise


@inner
def describe(start: int, stop: int, space: Space, ordered: bool) -> Node:
    """Weigh a node: its mean and sum of squares, or its classes, numbered afresh in the order of the records.

    Classes that are ``ordered`` keep their order, and their risk is that of all shares up to a class. A node of one
    class is weighed by its ``fine`` outcomes where there are any.
    """
    y, w, classes, fine, local = space.outcome, space.weights, space.classes, space.fine, space.local
    relabel, present, totals = space.relabel, space.present, space.totals
    weighted = len(w) > 0
    weight = 0.0
    if len(classes) > 0:
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


@inner
def best_cut(  # noqa: PLR0917
    desk: Desk,
    codes: Codes,
    space: Space,
    node: Node,
    bins: int,
    categorical: bool,
    min_leaf: int,
    ordered: bool,
) -> tuple[float, int, int]:
    """Search one column; return the gain, the levels left of the cut and all levels (in order on the desk)."""
    several, keys, levels, sequence = node.n_classes > 2, desk.keys, desk.levels, desk.sequence
    d = list_entries(desk, codes, space, node, bins) if several else tally_outcomes(desk, codes, space, node)
    gain, cut = 0.0, 0
    for j in range(d):
        sequence[j], keys[j] = j, levels[j]
    if d > 1:
        if categorical and not several:
            mean_keys(desk, d, np.sqrt(node.risk / node.weight))
        elif categorical and (d > 2 or ordered):
            class_keys(desk, d, space, node, ordered)
        if d > 2 or ordered or not (several and categorical):  # two levels have one cut, whatever their order
            sort_by_key(keys, sequence if several else levels, desk.spare_keys, desk.spare_items, d)
        if several:
            gain, cut = cut_by_classes(desk, d, space, node, min_leaf, ordered)
        else:
            # For two classes the Gini risk is twice the sum of squares of either indicator.
            gain, cut = cut_by_variance(desk, d, node, min_leaf)
            gain *= 2.0 if node.n_classes == 2 and not ordered else 1.0
    wipe(desk, d)
    if several:
        for j in range(d):
            desk.spare_items[j] = levels[sequence[j]]
        for j in range(d):
            levels[j] = desk.spare_items[j]
    return gain, cut, d


@inner
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


@inner
def log_tail(  # noqa: PLR0917
    desk: Desk, codes: Codes, space: Space, node: Node, bins: int, categorical: bool, scores: Floats
) -> float:
    """Log p-value of one column in a node; 1, which is no logarithm of one, where the column is constant."""
    statistic, df = 0.0, 0.0
    if node.n_classes <= 2:
        d = tally_outcomes(desk, codes, space, node)
        squares = node.risk / 2.0 if node.n_classes == 2 else node.risk
        if d > 1:
            statistic, df = association_with_number(desk, d, node.weight, squares, categorical, scores)
    else:
        d = list_entries(desk, codes, space, node, bins)
        if d > 1:
            statistic, df = association_with_classes(desk, d, space.totals, node, categorical, scores)
    wipe(desk, d)
    if df == 0.0:
        return 1.0
    tail: float = log_chi2_tail(statistic, df)
    return tail


# The compiled tests of association that conditional inference trees choose their columns by.
#
# Under the permutations of the outcomes the linear statistic of a column has a known mean and covariance (Strasser
# and Weber 1999). Its quadratic form needs no matrix inverse in the four cases of numbers and categories: it is
# (w - 1) times a squared correlation, a correlation ratio, or a chi-square over w.


@compiled
def log_chi2_tail(statistic: float, df: float) -> float:
    """Logarithm of the chance that a chi-square variable exceeds the statistic."""
    if statistic <= 0.0:
        return 0.0
    a, x = df / 2.0, statistic / 2.0
    scale = a * math.log(x) - x - math.lgamma(a)
    if x < a + 1.0:
        term = 1.0 / a
        total = term
        step = a
        while term > total * 1e-16:
            step += 1.0
            term *= x / step
            total += term
        below = math.exp(scale + math.log(total))
        return math.log1p(-min(below, 1.0 - 1e-16))
    # The continued fraction of the upper incomplete gamma function, by Lentz's method.
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    h = d
    for i in range(1, 100_000):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return scale + math.log(h)


@inner
def association_with_number(  # noqa: PLR0917
    desk: Desk, d: int, weight: float, squares: float, categorical: bool, scores: Floats
) -> tuple[float, float]:
    """Statistic and degrees of freedom of the tallied column with a numeric or two-class outcome."""
    tally, levels = desk.tally, desk.levels
    if categorical:
        between = 0.0
        for j in range(d):
            between += tally[levels[j], 1] ** 2 / tally[levels[j], 2]
        return (weight - 1.0) * between / squares, d - 1.0
    middle, across, spread = 0.0, 0.0, 0.0
    for j in range(d):
        middle += tally[levels[j], 2] * scores[levels[j]] / weight
    for j in range(d):
        gap = scores[levels[j]] - middle
        across += gap * tally[levels[j], 1]
        spread += gap * gap * tally[levels[j], 2]
    if spread <= 0.0:
        return 0.0, 1.0
    return (weight - 1.0) * across * across / (spread * squares), 1.0


@inner
def association_with_classes(  # noqa: PLR0917
    desk: Desk, d: int, totals: Floats, node: Node, categorical: bool, scores: Floats
) -> tuple[float, float]:
    """Statistic and degrees of freedom of the listed column with an outcome of several classes."""
    seen, n_classes, weight = desk.moved, node.n_classes, node.weight
    for k in range(n_classes):
        seen[k] = 0.0
    if categorical:
        squares = 0.0
        for j in range(d):
            part = 0.0
            for e in range(desk.entry_starts[j], desk.entry_starts[j + 1]):
                k, more = desk.entry_classes[e], desk.entry_weights[e]
                part += more * (2.0 * seen[k] + more) / totals[k]
                seen[k] += more
            for e in range(desk.entry_starts[j], desk.entry_starts[j + 1]):
                seen[desk.entry_classes[e]] = 0.0
            squares += part / desk.tally[desk.levels[j], 2]
        return (weight - 1.0) * (squares - 1.0), (d - 1.0) * (n_classes - 1.0)
    middle, spread, between = 0.0, 0.0, 0.0
    for j in range(d):
        middle += desk.tally[desk.levels[j], 2] * scores[desk.levels[j]] / weight
    for j in range(d):
        gap = scores[desk.levels[j]] - middle
        spread += gap * gap * desk.tally[desk.levels[j], 2]
        for e in range(desk.entry_starts[j], desk.entry_starts[j + 1]):
            seen[desk.entry_classes[e]] += gap * desk.entry_weights[e]
    for k in range(n_classes):
        between += seen[k] ** 2 / totals[k]
    if spread <= 0.0:
        return 0.0, n_classes - 1.0
    return (weight - 1.0) * between / spread, n_classes - 1.0
