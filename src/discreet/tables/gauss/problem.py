"""From cells and roles to the columns that the elimination goes through.

Here equal columns are brought together, virtual cells are added, rows are given their kind, and the order of
the candidates is fixed. Nothing is eliminated yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.arrays import Array, Flags, Integers
from discreet.randomness import generator
from discreet.tables.gauss.codes import LABELED, ORDINARY, SPECIAL


@dataclass(frozen=True)
class Problem:
    """Columns to publish in order (the forced ones first), columns to protect, and what is known of the rows.

    ``method`` is one of the kernel's codes; ``owner`` names the contributor whom a primary column belongs to
    (-1 nobody), ``guarded`` says whether it is protected against contributors.
    """

    columns: Any
    n_forced: int
    primaries: Any
    kind: npt.NDArray[np.int8]
    label: Integers
    order: Integers
    method: int
    within: bool
    parallel: bool
    combinations: bool
    owner: Integers
    guarded: Flags


def default_order(x: Any, values: Array | None, cells: Integers) -> Integers:
    """Most valuable first: by size of the value, margins before inner cells, larger before smaller margins."""
    sizes = np.diff(x.indptr)[cells]
    worth = np.zeros(len(cells)) if values is None else -np.abs(np.asarray(values, dtype=float)[cells])
    return cells[np.lexsort((cells, -sizes, sizes == 1, worth))]


def equal_columns(x: Any) -> Integers:
    """For each column the first column that is equal to it."""
    n = x.shape[1]
    first = np.arange(n)
    if n == 0:
        return first
    weights = generator(20010911, "tables/gauss/columns").integers(
        1, 2**63 - 1, size=(x.shape[0], 2), dtype=np.int64
    )
    with np.errstate(over="ignore"):
        marks = x.T.astype(np.int64) @ weights
    _, representative, group = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    first = representative[group.ravel()]
    doubles = np.flatnonzero(first != np.arange(n))
    if len(doubles):
        apart = x[:, doubles] - x[:, first[doubles]]
        apart.eliminate_zeros()
        differ = doubles[np.diff(apart.tocsc().indptr) > 0]
        first[differ] = differ
    return np.asarray(first, dtype=np.int64)


def merged_rows(x: Any, kind: npt.NDArray[np.int8]) -> Integers:
    """The rows to keep: of ordinary rows that occur in the same columns one is enough."""
    first = equal_columns(x.T.tocsc())
    own = np.arange(x.shape[0])
    keep = (first == own) | (kind != ORDINARY) | (kind[first] != ORDINARY)
    filled = np.diff(x.tocsr().indptr) > 0
    return np.flatnonzero(keep & filled)


def unit_columns(rows: Array, height: int) -> Any:
    """One column a row, with a one in it."""
    count = len(rows)
    return sparse.csc_matrix(
        (np.ones(count, dtype=np.int64), (rows, np.arange(count))), shape=(height, count)
    )


def zero_sums(x: Any, cells: Integers, special: Flags) -> Any:
    """For each of these cells the sum of its special rows, where there are at least two."""
    sums = x[:, cells].multiply(special[:, None])
    sums = sums.tocsc()
    sums.eliminate_zeros()
    sums = sums[:, np.diff(sums.indptr) >= 2]
    return sums[:, np.unique(equal_columns(sums))]


def owners(x: Any, label: Integers, empty: Flags | None = None) -> Integers:
    """The contributor to whom all rows of a column belong that anybody contributes to, else -1."""
    x = x.tocsc()
    if empty is not None and empty.any():
        x = x.multiply(~empty[:, None]).tocsc()
        x.eliminate_zeros()
    owner = np.full(x.shape[1], -1, dtype=np.int64)
    filled = np.flatnonzero(np.diff(x.indptr) > 0)
    if len(filled):
        labels = label[x.indices]
        starts = x.indptr[:-1][filled]
        low, high = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
        owner[filled] = np.where(low == high, low, -1)
    return owner


def pair_sums(x: Any, primary: Integers, cells: Integers, label: Integers) -> Any:
    """Sums of two primary cells that are alone in a cell to publish, one of them a singleton.

    Of the primary cells inside a cell those count that lie in no other of them; where these are exactly two,
    disjoint, and one has a single contributor, that contributor could take its own figure off their sum.
    """
    nothing = sparse.csc_matrix((x.shape[0], 0), dtype=np.int64)
    if len(primary) < 2 or not len(cells):
        return nothing
    p = x[:, primary].astype(np.int64)
    single = owners(p, label) >= 0
    sizes = np.diff(p.indptr)
    ones = p.copy()
    ones.data[:] = 1
    among = _contained(ones, ones, sizes)
    among.setdiag(False)
    among.eliminate_zeros()
    cover = x[:, cells].astype(np.int64)
    cover.data[:] = 1
    inside = _contained(ones, cover, sizes)
    # A primary cell inside another primary cell that is itself inside counts once, as the larger one.
    within = (among.astype(np.int32) @ inside.astype(np.int32)).multiply(inside) > 0
    top = (inside.astype(np.int8) - within.astype(np.int8)).tocsc()
    top.eliminate_zeros()
    two = np.flatnonzero(np.diff(top.indptr) == 2)
    if not len(two):
        return nothing
    pairs = np.unique(
        np.sort(np.stack([top.indices[top.indptr[two]], top.indices[top.indptr[two] + 1]]), axis=0).T, axis=0
    )
    pairs = pairs[single[pairs].any(axis=1)]
    if not len(pairs):
        return nothing
    sums = (p[:, pairs[:, 0]] + p[:, pairs[:, 1]]).tocsc()
    disjoint = np.diff(sums.indptr) == sizes[pairs[:, 0]] + sizes[pairs[:, 1]]
    return sums[:, disjoint]


def _contained(inner: Any, outer: Any, sizes: Array) -> Any:
    """Which columns of ``inner`` lie in which columns of ``outer``."""
    shared = (inner.T @ outer).tocoo()
    full = shared.data == sizes[shared.row]
    return sparse.csc_matrix(
        (np.ones(int(full.sum()), dtype=bool), (shared.row[full], shared.col[full])), shape=shared.shape
    )


def row_kinds(
    height: int, special: Flags | None, label: Integers | None
) -> tuple[npt.NDArray[np.int8], Integers]:
    """What each row is, and its label (-1 none)."""
    kind = np.full(height, ORDINARY, dtype=np.int8)
    labels = np.full(height, -1, dtype=np.int64)
    if special is not None:
        kind[special] = SPECIAL
    if label is not None:
        labels = label
        kind[label >= 0] = LABELED
    return kind, labels
