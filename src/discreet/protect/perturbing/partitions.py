"""Which records go together? The ways to cut a file into groups of at least k similar records."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.numerics.distance.space import Points
from discreet.numerics.mdav import groups_of_variable_size, mixed_groups_of_at_least

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


Method = Literal["mdav", "v-mdav", "univariate", "ranking", "projection", "clustering", "random", "labels"]
Axis = Literal["pca", "sum"]

METHODS = ("mdav", "v-mdav", "univariate", "ranking", "projection", "clustering", "random", "labels")
ONE_BY_ONE = ("univariate", "ranking")
"""Methods that look at one column at a time."""


@dataclass(frozen=True)
class Partition:
    """How records of several columns are put into groups."""

    method: Method
    k: int
    gamma: float = 0.2
    axis: Axis = "pca"
    clusters: int | None = None

    def groups(self, points: Points, metric: Metric, rng: np.random.Generator) -> Integers:
        """Number the group of each record, from 0."""
        if self.method == "mdav":
            return mixed_groups_of_at_least(points, metric, self.k)
        if self.method == "v-mdav":
            return groups_of_variable_size(points, metric, self.k, self.gamma)
        if self.method == "projection":
            return along_an_axis(_embedded(points, metric), self.k, self.axis)
        if self.method == "clustering":
            return self._inside_clusters(points, metric, rng)
        return runs_of_k(rng.permutation(len(points)), self.k)

    def _inside_clusters(self, points: Points, metric: Metric, rng: np.random.Generator) -> Integers:
        rows = _embedded(points, metric)
        wanted = self.clusters or int(np.ceil(np.sqrt(len(points) / (2 * self.k))))
        clusters = clusters_of_at_least(rows, self.k, wanted, rng)
        groups, formed = np.empty(len(points), dtype=np.int64), 0
        for cluster in range(int(clusters.max()) + 1):
            inside = np.flatnonzero(clusters == cluster)
            found = mixed_groups_of_at_least(points.take(inside), metric, self.k)
            groups[inside] = found + formed
            formed += int(found.max()) + 1
        return groups


def best_of_one_column(values: Floats, k: int) -> Integers:
    """Number the groups of k to 2k-1 values with the least sum of squares (Hansen and Mukherjee 2003).

    Examples
    --------
    >>> best_of_one_column(np.array([1.0, 50.0, 2.0, 49.0, 3.0]), k=2).tolist()
    [0, 1, 0, 1, 0]
    """
    from discreet.protect.perturbing.partition_kernels import cheapest_cuts

    order = np.argsort(values, kind="stable")
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = cheapest_cuts(np.ascontiguousarray(values[order, None], dtype=np.float64), k)
    return groups


def ranks_of_one_column(values: Floats, k: int) -> Integers:
    """Number runs of k values in their order, the last with what is left: individual ranking.

    Examples
    --------
    >>> ranks_of_one_column(np.array([1.0, 50.0, 2.0, 49.0, 3.0]), k=2).tolist()
    [0, 1, 0, 1, 1]
    """
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return runs_of_k(ranks, k)


def runs_of_k(ranks: Integers, k: int) -> Integers:
    """Number runs of k by rank; what is left at the end joins the last run."""
    groups: Integers = np.minimum(ranks // k, max(len(ranks) // k, 1) - 1)
    return groups


def along_an_axis(rows: Floats, k: int, axis: Axis) -> Integers:
    """Order the records along an axis and cut the order where the squares around the means are least.

    The axis is the first principal component (``pca``) or the sum of the columns (``sum``). The cut is optimal for
    the order, over all columns together (Domingo-Ferrer et al. 2006).
    """
    from discreet.protect.perturbing.partition_kernels import cheapest_cuts

    centered = rows - rows.mean(axis=0)
    if axis == "pca" and rows.shape[1]:
        loadings = np.linalg.svd(centered, full_matrices=False)[2][0]
        # A component has no sign of its own; without one the order could differ from machine to machine.
        scores = centered @ (loadings * np.sign(loadings[np.abs(loadings).argmax()]))
    else:
        scores = centered.sum(axis=1)
    order = np.argsort(scores, kind="stable")
    groups = np.empty(len(rows), dtype=np.int64)
    groups[order] = cheapest_cuts(np.ascontiguousarray(rows[order]), k)
    return groups


def clusters_of_at_least(rows: Floats, k: int, wanted: int, rng: np.random.Generator) -> Integers:
    """Number k-means clusters; the records of a cluster of fewer than k go to the nearest of the others."""
    from scipy.cluster.vq import kmeans2, vq

    wanted = min(wanted, len(rows) // k, len(np.unique(rows, axis=0)))
    if wanted < 2:
        return np.zeros(len(rows), dtype=np.int64)
    with warnings.catch_warnings():
        # An empty cluster is no loss here: those that are too small are dissolved anyway.
        warnings.simplefilter("ignore", UserWarning)
        centers, found = kmeans2(rows, wanted, iter=20, minit="++", rng=rng)
    sizes = np.bincount(found, minlength=wanted)
    if (sizes < k).any():
        large = sizes >= k
        if not large.any():
            return np.zeros(len(rows), dtype=np.int64)
        lost = ~large[found]
        found[lost] = np.flatnonzero(large)[vq(rows[lost], centers[large])[0]]
    clusters: Integers = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return clusters


def _embedded(points: Points, metric: Metric) -> Floats:
    """Write categories as columns of 0 and 1, so that two different ones are as far apart as the metric says."""
    indicators = [
        (points.codes[:, [j]] == np.unique(points.codes[:, j])) * np.sqrt(metric.costs[j] / 2)
        for j in range(points.codes.shape[1])
    ]
    return np.hstack([points.numbers, *indicators])
