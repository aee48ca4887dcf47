"""How much does one column tell about another? Mutual information of coded columns, in nats."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers

#: Tables up to this size, or four cells a record, are counted cell by cell; in larger ones sorting is faster.
_DENSE = 100_000


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
