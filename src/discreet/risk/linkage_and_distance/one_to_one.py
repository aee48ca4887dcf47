"""Who belongs to whom if everybody is paired once? The cheapest one-to-one pairing of two files."""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.randomness import Seed, generator
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace, Points

FULL_ASSIGNMENT = 5_000  # records on the longer side for which all pairs are weighed
CANDIDATES = 20  # nearest originals (and released records) that are weighed beyond that


def cheapest_pairs(
    space: MixedSpace, points: Points, queries: Points, truth: Integers, *, progress: bool, seed: Seed
) -> tuple[pl.DataFrame, str]:
    """Pair all records at the lowest total distance; the order of the originals is shuffled, as it may be the truth."""
    order = generator(seed, "linkage", "assignment").permutation(len(points)).astype(np.int64)
    shuffled = points.take(order)
    if max(len(points), len(queries)) <= FULL_ASSIGNMENT:
        from scipy.optimize import linear_sum_assignment

        costs = space.matrix(queries, shuffled)
        costs[~np.isfinite(costs)] = 1 + costs[np.isfinite(costs)].max(initial=0.0)
        rows, partners = linear_sum_assignment(costs)
        how = "on all pairs"
    else:
        rows, partners = _sparse_assignment(space, shuffled, queries, progress)
        how = (
            f"among the {CANDIDATES} nearest of each record on either side, not all pairs; records that could not be "
            "paired that way stay unlinked"
        )
    assigned = np.full(len(queries), -1, dtype=np.int64)
    assigned[rows] = order[partners]
    both = (assigned >= 0) & (truth >= 0)
    pairs = np.flatnonzero(both)
    # An original that looks exactly like the true one is as good a guess: its class shares the hit.
    apart = np.full(len(queries), np.inf)
    apart[pairs] = space.between(points.take(assigned[pairs]), points.take(truth[pairs]))
    same = np.flatnonzero(apart == 0)
    twins = np.ones(len(queries))
    twins[same] = ties_within(space, points.take(truth[same]), points, np.zeros(len(same)), progress=progress)
    distances = np.full(len(queries), np.nan)
    placed_rows = np.flatnonzero(assigned >= 0)
    distances[placed_rows] = space.between(queries.take(placed_rows), points.take(assigned[placed_rows]))
    return pl.DataFrame(
        {
            "record": np.arange(len(queries)),
            "linked_to": assigned,
            "true_original": truth,
            "distance": distances,
            "probability": np.where(apart == 0, 1 / np.maximum(twins, 1), 0.0),
        }
    ), how


def _sparse_assignment(
    space: MixedSpace, points: Points, queries: Points, progress: bool
) -> tuple[Integers, Integers]:
    """Pair records among near candidates; one costly stand-in a record makes a full pairing possible."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    k = min(CANDIDATES, len(points), len(queries))
    ahead = nearest(space, queries, points, k=k, progress=progress, description="Candidates")
    back = nearest(space, points, queries, k=k, progress=progress, description="Candidates, the other way")
    n, m = len(queries), len(points)
    left = np.concatenate([np.repeat(np.arange(n), k), back.index.ravel()])
    right = np.concatenate([ahead.index.ravel(), np.repeat(np.arange(m), k)])
    cost = np.concatenate([ahead.distance.ravel(), back.distance.ravel()])
    real = np.isfinite(cost) & (left >= 0) & (right >= 0)
    cells, first = np.unique(left[real] * m + right[real], return_index=True)
    near = cost[real][first]
    # A stored zero reads as "no edge", hence the one on top of every cost.
    stand_in = np.full(n, 1 + (near.max(initial=1.0) + 1) * 4)
    weights = coo_array(
        (
            np.concatenate([near + 1, stand_in]),
            (np.concatenate([cells // m, np.arange(n)]), np.concatenate([cells % m, m + np.arange(n)])),
        ),
        shape=(n, m + n),
    )
    rows, partners = min_weight_full_bipartite_matching(weights.tocsr())
    kept = partners < m
    return rows[kept].astype(np.int64), partners[kept].astype(np.int64)
