"""Which records are alike enough to be shown as one? Groups of at least k, by MDAV and V-MDAV.

Maximum distance to average vector (Domingo-Ferrer and Torra 2005): from the record farthest from the center, and
from the one farthest from that, gather the nearest k-1 others, until too few are left. Everything that replaces
records by the mean of a group stands on it: microaggregation, and the aggregation of load curves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError
from discreet.numerics.distance.space import Points

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


def groups_of_at_least(points: npt.ArrayLike, k: int) -> Integers:
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
    from discreet.numerics.distance.distance_kernels import Metric

    rows = np.ascontiguousarray(points, dtype=np.float64)
    if rows.ndim != 2:
        raise ParameterError("points must be a table of numbers: one row a record, one column a variable.")
    metric = Metric(np.ones(rows.shape[1]), np.empty(0), True, False)
    return mixed_groups_of_at_least(Points(rows, np.empty((len(rows), 0), dtype=np.int32)), metric, k)


def mixed_groups_of_at_least(points: Points, metric: Metric, k: int) -> Integers:
    """Number the MDAV group of each record of mixed columns; the center is the mean, or the most frequent category.

    Parameters
    ----------
    points, metric
        Records placed in a `discreet.numerics.distance.space.MixedSpace`, and its ``metric``; no missing values.
    k
        The smallest size of a group.
    """
    from discreet.numerics.mdav_kernels import mdav

    _check(points, k)
    numbers, codes = np.ascontiguousarray(points.numbers), np.ascontiguousarray(points.codes)
    levels = int(codes.max()) + 1 if codes.size else 1
    groups: Integers = mdav(numbers, codes, metric.costs, metric.squared, levels, k)
    return groups


def groups_of_variable_size(points: Points, metric: Metric, k: int, gamma: float) -> Integers:
    """Number the V-MDAV group of each record (Solanas and Martínez-Ballesté 2006).

    The record farthest from the center of the file and its k-1 nearest form a group. The group then takes in, up
    to 2k-1 records, whoever is nearest to one of its members, as long as that distance is under ``gamma`` times
    the distance of the newcomer to the nearest record without a group. At the end fewer than k are left; each
    joins the group of the grouped record it is nearest to, so that groups can pass 2k-1. Ties go to the lowest
    position.

    Parameters
    ----------
    points, metric
        Records placed in a `discreet.numerics.distance.space.MixedSpace`, and its ``metric``; no missing values.
    k
        The smallest size of a group.
    gamma
        How willingly groups grow: about 0.2 where records are scattered, about 1.1 where they are clustered.
    """
    from discreet.numerics.mdav_kernels import variable_mdav

    _check(points, k)
    apart = np.zeros(len(points))
    for j in range(points.numbers.shape[1]):
        gap = points.numbers[:, j] - points.numbers[:, j].mean()
        apart += gap * gap if metric.squared else np.abs(gap)
    for j in range(points.codes.shape[1]):
        apart += metric.costs[j] * (points.codes[:, j] != np.bincount(points.codes[:, j]).argmax())
    numbers, codes = np.ascontiguousarray(points.numbers), np.ascontiguousarray(points.codes)
    farthest_first = np.argsort(-apart, kind="stable").astype(np.int64)
    groups: Integers = variable_mdav(numbers, codes, metric.costs, metric.squared, farthest_first, k, gamma)
    return groups


def _check(points: Points, k: int) -> None:
    if not 1 <= k <= len(points):
        raise ParameterError(f"k must lie between 1 and the number of records ({len(points):,}).")
    if not np.isfinite(points.numbers).all() or (points.codes < 0).any():
        raise ParameterError("points must not have missing or infinite values. Fill or leave them out first.")
