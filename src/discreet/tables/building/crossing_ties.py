"""What the empty combinations of tables that overlap in a ring say about each other.

Of three tables a by b, b by c and c by a, the empty combinations of each rule out crossings of all dimensions. Where
few crossings are left, sums of the tables can be bound to be equal that share no cell. These sums are found from the
crossings that are possible, and are known to every reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Array, Integers
from discreet.tables.building.dimension import Dimension
from discreet.tables.table_cells import possible_cells

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


_MOST_CROSSINGS = 1_000_000
_MOST_CELLS = 2_500
_PRIME = 2**31 - 1
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12)


def crossing_ties(
    tables: Sequence[Table], dimensions: Mapping[str, Dimension], rows: Sequence[Integers], ties: Any
) -> Any | None:
    """The sums of inner cells that are zero in every possible crossing and do not follow from the ties.

    None where that cannot be said: a table covers a part of a dimension or stops at a coarser level, or there are too
    many crossings.
    """
    if any(
        table.joined is not None
        or table.hierarchy[name].total != dimensions[name].total
        or not set(table.hierarchy[name].leaves) <= set(dimensions[name].leaves)
        for table in tables
        for name in table.dimensions
    ):
        return None
    height = ties.shape[0]
    possible = _crossings(tables)
    if possible is None or height > _MOST_CELLS:
        return None
    x = sparse.lil_matrix((possible.height, height), dtype=np.int64).tocsc()
    for table, at in zip(tables, rows, strict=True):
        on = list(table.dimensions)
        mine = table.inner.select(on).with_columns(row=pl.Series(at))
        row = possible.select(on).join(mine, on=on, how="left", maintain_order="left")["row"].to_numpy()
        x = x + sparse.csc_matrix(
            (np.ones(len(row), dtype=np.int64), (np.arange(len(row)), row)), shape=x.shape
        )
    # A row that stands for a cell of two tables is one unknown.
    x.data[:] = 1
    gram = (x.T @ x).toarray()
    free = height - _rank(gram)
    known = _rank((ties @ ties.T).toarray()) if ties.shape[1] else 0
    if free <= known:
        return sparse.csc_matrix((height, 0), dtype=np.int64)
    found = _whole_null_vectors(gram, x)
    if found is None or found.shape[1] < free:
        return None
    return _beyond(found, ties)


def _crossings(tables: Sequence[Table]) -> pl.DataFrame | None:
    """All crossings whose part in every table is a cell; a zero that is listed may be a secret."""
    possible: pl.DataFrame | None = None
    for table in sorted(tables, key=lambda one: one.inner.height):
        keys = table.inner.select(table.dimensions)
        if possible is None:
            possible = keys
            continue
        on = [name for name in keys.columns if name in possible.columns]
        new = (
            keys.height
            if not on
            else int(keys.group_by(on).agg(pl.len().alias("·many"))["·many"].to_numpy().max(initial=0))
        )
        if possible_cells([possible.height, new]) > 20 * _MOST_CROSSINGS:
            return None
        possible = possible.join(keys, on=on, how="inner") if on else possible.join(keys, how="cross")
        if possible.height > _MOST_CROSSINGS:
            return None
    return possible


def _rank(gram: Array) -> int:
    """The rank of a matrix of squares, from its spectrum in units of its diagonal."""
    size = np.sqrt(np.maximum(np.diag(gram).astype(float), 1.0))
    return int((np.linalg.eigvalsh(gram / np.outer(size, size)) > 1e-9).sum())


def _whole_null_vectors(gram: Array, x: Any) -> Any | None:
    """Whole-number combinations of columns that vanish in every crossing; None where they are not small."""
    reduced, pivots = _echelon(np.asarray(gram, dtype=np.int64) % _PRIME)
    free = np.setdiff1d(np.arange(gram.shape[0]), pivots)
    found = []
    for column in free.tolist():
        vector = np.zeros(gram.shape[0], dtype=np.int64)
        vector[column] = 1
        vector[pivots] = -reduced[: len(pivots), column] % _PRIME
        whole = _lifted(vector, x)
        if whole is None:
            return None
        found.append(whole)
    return (
        sparse.csc_matrix(np.stack(found, axis=1))
        if found
        else sparse.csc_matrix((gram.shape[0], 0), dtype=np.int64)
    )


def _lifted(vector: Integers, x: Any) -> Integers | None:
    """Turn a combination known up to a prime into whole numbers, and make sure that it vanishes exactly."""
    for denominator in _DENOMINATORS:
        lifted = vector * denominator % _PRIME
        lifted = np.where(lifted > _PRIME // 2, lifted - _PRIME, lifted)
        if np.abs(lifted).max() < 10_000 and not (x @ lifted).any():
            return np.asarray(lifted // np.gcd.reduce(lifted), dtype=np.int64)
    return None


def _echelon(matrix: Integers) -> tuple[Integers, Integers]:
    """Reduce a matrix to echelon form, in whole numbers up to a prime; also the columns of the pivots."""
    a = matrix.copy()
    pivots: list[int] = []
    for column in range(a.shape[1]):
        row = len(pivots)
        below = np.flatnonzero(a[row:, column])
        if not len(below):
            continue
        a[[row, row + below[0]]] = a[[row + below[0], row]]
        a[row] = a[row] * pow(int(a[row, column]), -1, _PRIME) % _PRIME
        others = np.flatnonzero(a[:, column])
        others = others[others != row]
        a[others] = (a[others] - a[others, column][:, None] * a[row]) % _PRIME
        pivots.append(column)
        if len(pivots) == a.shape[0]:
            break
    return a, np.array(pivots, dtype=np.int64)


def _beyond(found: Any, ties: Any) -> Any:
    """The combinations that do not follow from the ties."""
    _, pivots = _echelon(sparse.hstack([ties, found]).toarray() % _PRIME)
    return found[:, pivots[pivots >= ties.shape[1]] - ties.shape[1]]
