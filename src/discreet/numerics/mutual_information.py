"""How much does one column tell about another? Mutual information of coded columns, in nats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri, owens_t

from discreet.core.arrays import Floats, Integers

#: Tables up to this size, or four cells a record, are counted cell by cell; in larger ones sorting is faster.
_DENSE = 100_000


def count_entropy(counts: Floats) -> float:
    """Entropy of counts or shares, in nats; empty cells add nothing.

    Examples
    --------
    >>> round(count_entropy(np.array([5.0, 5.0, 0.0])), 6)
    0.693147
    """
    shares = counts[counts > 0] / counts.sum()
    return abs(float((shares * np.log(shares)).sum()))


def entropy(codes: Integers, levels: int, weights: Floats | None = None) -> float:
    """Entropy of a coded column, in nats.

    Examples
    --------
    >>> round(entropy(np.array([0, 1, 0, 1]), 2), 4)
    0.6931
    """
    if levels > max(_DENSE, 4 * len(codes)):
        if weights is None:
            ordered = np.sort(codes)
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            mass = np.diff(np.append(starts, len(codes))).astype(float)
        else:
            _, inverse = np.unique(codes, return_inverse=True)
            mass = np.bincount(inverse, weights)
    else:
        mass = np.bincount(codes, weights, minlength=1).astype(float)
    mass = mass[mass > 0]
    total = mass.sum()
    return float(np.log(total) - (mass * np.log(mass)).sum() / total)


def mutual_information(x: Integers, y: Integers, weights: Floats | None = None) -> float:
    """Mutual information of two coded columns: sum of p log(p / (p_x p_y)).

    Examples
    --------
    >>> x = np.repeat([0, 0, 1, 1], [40, 10, 10, 40])
    >>> y = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    >>> round(mutual_information(x, y), 6)
    0.192745
    """
    a, b = int(x.max()) + 1, int(y.max()) + 1
    apart = entropy(x, a, weights) + entropy(y, b, weights)
    return max(apart - entropy(x * b + y, a * b, weights), 0.0)


def conditional_information(
    x: Integers, y: Integers, cells: Integers, weights: Floats | None = None
) -> float:
    """Mutual information of two coded columns within the cells of a third, averaged over the cells.

    Examples
    --------
    >>> cells = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> x, y = np.array([0, 0, 1, 1] * 2), np.array([0, 1, 0, 1, 0, 0, 1, 1])
    >>> round(conditional_information(x, y, cells), 4)
    0.3466
    """
    a, b, c = (int(codes.max()) + 1 for codes in (x, y, cells))
    with_x = entropy(cells * a + x, c * a, weights)
    with_y = entropy(cells * b + y, c * b, weights)
    both = entropy((cells * a + x) * b + y, c * a * b, weights)
    return max(with_x + with_y - both - entropy(cells, c, weights), 0.0)


def dense(codes: Integers) -> Integers:
    """Number the values that occur 0, 1, 2, …, so that products of codes stay small.

    Examples
    --------
    >>> dense(np.array([7, 3, 7])).tolist()
    [1, 0, 1]
    """
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def table_information(joint: Floats) -> float:
    """Mutual information of a table of cell probabilities.

    Examples
    --------
    >>> round(table_information(np.array([[0.4, 0.1], [0.1, 0.4]])), 6)
    0.192745
    """
    apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None, :]
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())


# Which latent correlation gives two columns the information they share?
#
# A Gaussian copula cuts two correlated normal variables at the quantiles of the columns. The correlation is the
# one at which the cut pair shares as much information as the columns do, found by Brent's bounded minimization of
# the squared difference, as in Jiang, Mosquera, Jiang, Kong and El Emam (2022).


#: The largest correlation that is tried.
BOUND = 0.9999


@dataclass(frozen=True)
class Match:
    """A correlation, the information it was to reach and whether it stands at the bound without reaching it."""

    correlation: float
    information: float
    reached: float
    at_bound: bool


def bivariate_normal_cdf(h: Floats, k: Floats, correlation: float) -> Floats:
    """Probability that two standard normal variables with this correlation are below h and below k.

    Owen's (1956) form, exact to rounding for every correlation. ``h`` and ``k`` broadcast; infinities are fine.

    Examples
    --------
    >>> round(float(bivariate_normal_cdf(np.array(0.0), np.array(0.0), 0.5)), 6)
    0.333333
    """
    # T jumps where its first argument is 0; a number that is 0 to rounding stands in for it.
    h = np.where(h == 0, 1e-300, np.clip(h, -40.0, 40.0))
    k = np.where(k == 0, 1e-300, np.clip(k, -40.0, 40.0))
    spread = np.sqrt((1 - correlation) * (1 + correlation))
    with np.errstate(over="ignore"):
        to_h, to_k = (k / h - correlation) / spread, (h / k - correlation) / spread
    apart = np.where((h > 0) == (k > 0), 0.0, 0.5)
    found = (ndtr(h) + ndtr(k)) / 2 - owens_t(h, to_h) - owens_t(k, to_k) - apart
    return np.asarray(np.clip(found, 0.0, 1.0))


def cut_table(x_shares: Floats, y_shares: Floats, correlation: float) -> Floats:
    """Cell probabilities of a bivariate normal cut at the quantiles of two lists of shares.

    Examples
    --------
    >>> cut_table(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.0).round(4).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    below_x, below_y = _below(x_shares), _below(y_shares)
    below = np.zeros((len(x_shares) + 1, len(y_shares) + 1))
    below[1:, -1], below[-1, 1:] = below_x, below_y
    below[-1, -1] = 1.0
    inner = bivariate_normal_cdf(ndtri(below_x[:-1])[:, None], ndtri(below_y[:-1])[None, :], correlation)
    below[1:-1, 1:-1] = inner
    return np.clip(np.diff(np.diff(below, axis=0), axis=1), 0.0, None)


def match_table(x_shares: Floats, y_shares: Floats, information: float, sign: int = 1) -> Match:
    """Find the correlation whose cut table has this information, by exact rectangle probabilities.

    Examples
    --------
    >>> halves = np.array([0.5, 0.5])
    >>> round(match_table(halves, halves, 0.192745).correlation, 3)
    0.809
    """
    return _search(lambda r: table_information(cut_table(x_shares, y_shares, sign * r)), information, sign)


def match_pairs(
    x_shares: Floats,
    y_shares: Floats,
    information: float,
    *,
    draws: int,
    rng: np.random.Generator,
    sign: int = 1,
) -> Match:
    """Find the correlation at which as many drawn pairs as there are records share this information.

    A sparse table shows more information than there is. Drawing as many pairs as there are records gives the
    model the same excess, so that the two are compared like with like. The same normal numbers serve every
    trial, which keeps the objective smooth enough for Brent.
    """
    first, second = rng.standard_normal(draws), rng.standard_normal(draws)
    x_cuts, y_cuts = ndtri(_below(x_shares)[:-1]), ndtri(_below(y_shares)[:-1])
    x = np.searchsorted(x_cuts, first).astype(np.int64)

    def shared(r: float) -> float:
        pulled = sign * r * first + np.sqrt(1 - r * r) * second
        return mutual_information(x, np.searchsorted(y_cuts, pulled).astype(np.int64))

    return _search(shared, information, sign, tolerance=1e-4)


def match_within(
    x: Integers, y: Integers, cells: Integers, *, rng: np.random.Generator, sign: int = 1
) -> Match:
    """Find the correlation that gives two columns the information they share within the observed cells.

    Each record keeps its cell; its pair is drawn with the correlation and read off the two columns' own
    distributions in that cell. The model has then the same excess of information in sparse cells as the data.
    """
    information = conditional_information(x, y, cells)
    order_x, order_y = np.lexsort((x, cells)), np.lexsort((y, cells))
    sizes = np.bincount(cells)
    sizes = sizes[sizes > 0]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    widths = np.repeat(sizes, sizes)
    here = cells[order_x]
    sorted_x, sorted_y = x[order_x], y[order_y]
    first, second = rng.standard_normal(len(x)), rng.standard_normal(len(x))
    drawn_x = sorted_x[starts + _position(first, widths)]
    a, b, c = (int(codes.max()) + 1 for codes in (x, y, cells))
    with_x = here * a + drawn_x
    fixed = entropy(with_x, c * a) - entropy(here, c)

    def shared(r: float) -> float:
        drawn_y = sorted_y[starts + _position(sign * r * first + np.sqrt(1 - r * r) * second, widths)]
        return fixed + entropy(here * b + drawn_y, c * b) - entropy(with_x * b + drawn_y, c * a * b)

    return _search(shared, information, sign, tolerance=1e-4)


def _search(
    shared: Callable[[float], float], information: float, sign: int, tolerance: float = 1e-7
) -> Match:
    found = minimize_scalar(
        lambda r: (shared(r) - information) ** 2,
        bounds=(0.0, BOUND),
        method="bounded",
        options={"xatol": tolerance},
    )
    r = float(found.x)
    reached = shared(r)
    # Brent's bounded method never tries the ends of its interval.
    for end in (0.0, BOUND):
        at_end = shared(end)
        if (at_end - information) ** 2 <= (reached - information) ** 2:
            r, reached = end, at_end
    at_bound = r > BOUND - 1e-3 and reached < information - 1e-9
    return Match(sign * r if r else 0.0, information, reached, at_bound)


def _below(shares: Floats) -> Floats:
    return np.minimum(np.cumsum(shares), 1.0)


def _position(normal: Floats, widths: Integers) -> Integers:
    at: Integers = (ndtr(normal) * widths).astype(np.int64)
    return np.minimum(at, widths - 1)
