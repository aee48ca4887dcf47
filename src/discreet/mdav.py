"""Which records are alike enough to be shown as one? Groups of at least k, by MDAV.

Maximum distance to average vector (Domingo-Ferrer and Torra 2005): from the record farthest from the center, and
from the one farthest from that, gather the nearest k-1 others, until too few are left. Everything that replaces
records by the mean of a group stands on it: microaggregation, and the aggregation of load curves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def groups_of_at_least(points: npt.ArrayLike, k: int) -> Ints:
    """Number the MDAV group of each point.

    While 3k or more are left: the point farthest from their mean and its k-1 nearest form a group, then the
    point farthest from that one and its k-1 nearest. Of 2k to 3k-1 left, the farthest from the mean gathers one
    more group and the others are the last; fewer are the last group. There are floor(n/k) groups of k to 2k-1
    points (one group where n < 2k). Distances are Euclidean, on the points as they are: standardize them first
    where scales differ. Of equal distances the lowest position wins.

    Parameters
    ----------
    points
        One row a record, one column a variable; no missing values.
    k
        The smallest size of a group.

    Returns
    -------
    numpy.ndarray
        The number of each point's group, from 0 in the order in which they were formed.

    Examples
    --------
    >>> groups_of_at_least([[0.0], [1.0], [2.0], [50.0], [51.0], [90.0]], k=2).tolist()
    [1, 1, 2, 2, 0, 0]
    """
    rows = np.ascontiguousarray(points, dtype=np.float64)
    if rows.ndim != 2:
        raise ParameterError("points must be a table of numbers: one row a record, one column a variable.")
    if not 1 <= k <= len(rows):
        raise ParameterError(f"k must lie between 1 and the number of records ({len(rows):,}).")
    if not np.isfinite(rows).all():
        raise ParameterError("points must not have missing or infinite values. Fill or leave them out first.")
    groups = np.empty(len(rows), dtype=np.int64)
    left, formed = np.arange(len(rows)), 0

    def gather(start: int) -> None:
        nonlocal rows, left, formed
        near = _nearest(rows, start, k)
        groups[left[near]] = formed
        formed += 1
        kept = np.ones(len(left), dtype=bool)
        kept[near] = False
        rows, left = rows[kept], left[kept]

    while len(left) >= 3 * k:
        first = int(_squared_distances(rows, rows.mean(axis=0)).argmax())
        from_first = rows[first].copy()
        gather(first)
        gather(int(_squared_distances(rows, from_first).argmax()))
    if len(left) >= 2 * k:
        gather(int(_squared_distances(rows, rows.mean(axis=0)).argmax()))
    groups[left] = formed
    return groups


def _nearest(rows: Floats, start: int, k: int) -> Ints:
    distances = _squared_distances(rows, rows[start])
    # The point itself comes first even where others coincide with it.
    distances[start] = -1.0
    limit = np.partition(distances, k - 1)[k - 1]
    closer, equal = np.flatnonzero(distances < limit), np.flatnonzero(distances == limit)
    return np.concatenate([closer, equal[: k - len(closer)]])


def _squared_distances(rows: Floats, center: Floats) -> Floats:
    gaps = rows - center
    distances: Floats = np.einsum("ij,ij->i", gaps, gaps)
    return distances
