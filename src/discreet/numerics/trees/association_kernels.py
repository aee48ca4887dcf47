"""The compiled tests of association that conditional inference trees choose their columns by.

Under the permutations of the outcomes the linear statistic of a column has a known mean and covariance (Strasser
and Weber 1999). Its quadratic form needs no matrix inverse in the four cases of numbers and categories: it is
(w - 1) times a squared correlation, a correlation ratio, or a chi-square over w.
"""

from __future__ import annotations

import math

from discreet.core.arrays import Floats
from discreet.core.compiling import compiled, inner
from discreet.numerics.trees.split_kernels import Desk


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
    desk: Desk, d: int, totals: Floats, n_classes: int, weight: float, categorical: bool, scores: Floats
) -> tuple[float, float]:
    """Statistic and degrees of freedom of the listed column with an outcome of several classes."""
    seen = desk.moved
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
