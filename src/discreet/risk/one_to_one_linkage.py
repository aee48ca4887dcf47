"""Two files and who is who in them: by their rows, by a column of both, or by pairing everybody once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.randomness import Seed, generator
from discreet.engine.frames import has_row_order
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace, Points


@dataclass(frozen=True)
class LinkedFiles:
    """Two files and, for each released record, the original it belongs to (-1: none)."""

    released: Microdata
    ours: pl.DataFrame
    theirs: pl.DataFrame
    truth: Integers
    notes: tuple[str, ...] = ()

    @property
    def caveats(self) -> list[str]:
        """What was left out of the comparison: columns, and records without a counterpart."""
        return [*self.notes, *unlinked(self.truth)]

    @property
    def linkable(self) -> int:
        """Released records that have an original."""
        return int((self.truth >= 0).sum())


def true_originals(
    original: Microdata, released: Microdata, ids: str | None, ours: int, theirs: int
) -> Integers:
    """Say for each released record which original it belongs to; -1 where there is none."""
    if ids is None:
        if ours != theirs:
            raise ParameterError(
                f"The original has {ours:,} records and the release {theirs:,}, so rows cannot correspond. Name the "
                "column that says who is who with ids='id', or use risk.neighbors for files that are not linked."
            )
        for data in (original, released):
            if not has_row_order(data):
                raise ParameterError(
                    f"Records in {engine.engine_name(data)} have no order, so rows cannot correspond. Name the column "
                    "that says who is who with ids='id'."
                )
        return np.arange(ours, dtype=np.int64)
    for data in (original, released):
        if ids not in data.schema:
            raise ColumnError(f"The column '{ids}' that links the files must be in both of them.")
    left = engine.collect(original, [ids])[ids].cast(pl.String)
    right = engine.collect(released, [ids])[ids].cast(pl.String)
    for column, which in ((left, "original"), (right, "released")):
        if column.null_count() or column.n_unique() < len(column):
            raise ColumnError(
                f"The column '{ids}' that links the files is missing or not unique for some records of the {which} "
                "file. It must name each record once."
            )
    known = pl.DataFrame({"id": left, "at": np.arange(ours)})
    lined = pl.DataFrame({"id": right}).join(known, on="id", how="left", maintain_order="left")
    truth = lined["at"].fill_null(-1).to_numpy().astype(np.int64)
    if not (truth >= 0).any():
        raise ColumnError(f"No record of the release has a counterpart in the original by '{ids}'.")
    return truth


def unlinked(truth: Integers) -> list[str]:
    """Say how many released records belong to nobody."""
    alone = int((truth < 0).sum())
    return [f"{alone:,} released records have no original and cannot be linked rightly."] if alone else []


# Who belongs to whom if everybody is paired once? The cheapest one-to-one pairing of two files.


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
