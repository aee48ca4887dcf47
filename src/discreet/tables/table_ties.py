"""What linked tables say about each other: in a ring, by what one leaves out of another, and by people they share.

Of three tables a by b, b by c and c by a, the empty combinations of each rule out crossings of all dimensions. Where
few crossings are left, sums of the tables can be bound to be equal that share no cell. These sums are found from the
crossings that are possible, and are known to every reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Array, Integers
from discreet.tables.dimension import Dimension
from discreet.tables.table_cells import possible_cells, single_contributors

if TYPE_CHECKING:
    from discreet.tables.table import Table
    from discreet.tables.table_linking import View


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


# What lies outside a table that covers only a part: the whole of one table minus the part of another.
#
# A table of the East and a table of the whole country give the West away by subtraction. The West is an inner cell
# like any other, though nobody publishes it: it cannot be negative, which bounds the East.


@dataclass(frozen=True)
class Remainders:
    """Further inner cells, the ties that define them, and how many would be negative (the tables contradict)."""

    inner: pl.DataFrame
    ties: Any
    negative: int


def remainders_of(  # noqa: PLR0917
    tables: Sequence[Table],
    dimensions: Mapping[str, Dimension],
    cells: pl.DataFrame,
    views: Sequence[View],
    x: Any,
    sums: Sequence[str],
) -> Remainders:
    """For every table that covers a part of some dimension: its lowest cells at that part, taken off the whole."""
    names = list(dimensions)
    wholes, parts, labels = [], [], []
    places = cells.select(names).with_row_index("whole")
    for table, view in zip(tables, views, strict=True):
        for name in table.dimensions:
            part, total = table.hierarchy[name].total, dimensions[name].total
            if part == total:
                continue
            lowest = np.ones(len(view.cells), dtype=bool)
            for other in table.dimensions:
                own = table.hierarchy[other]
                lowest &= table.codes[other] == 0 if other == name else own.is_leaf[table.codes[other]]
            mine = cells.select(names)[view.cells[lowest]].with_columns(
                part=pl.Series(view.cells[lowest]), **{name: pl.lit(total)}
            )
            found = mine.join(places, on=names, how="inner", maintain_order="left")
            wholes.append(found["whole"].cast(pl.Int64).to_numpy())
            parts.append(found["part"].to_numpy())
            labels.append(found.select(names).with_columns(pl.lit(f"not {part}").alias(name)))
    if not wholes:
        empty = (
            cells.select(*names, *sums).clear().with_columns(pl.lit(None, dtype=pl.String).alias("single"))
        )
        return Remainders(empty, sparse.csc_matrix((x.shape[0], 0), dtype=np.int64), 0)
    whole, covered = np.concatenate(wholes), np.concatenate(parts)
    left = {name: cells[name].to_numpy()[whole] - cells[name].to_numpy()[covered] for name in sums}
    some = np.logical_or.reduce([np.abs(amount) > 1e-9 for amount in left.values()])
    low = np.logical_or.reduce(
        [amount < -1e-6 * (1.0 + np.abs(cells[name].to_numpy()[whole])) for name, amount in left.items()]
    )
    # A remainder of nothing is no cell: there the part is the whole, as a reader may guess.
    height = int(some.sum())
    slack = sparse.csc_matrix(
        (np.full(height, -1, dtype=np.int64), (np.arange(height), np.flatnonzero(some))),
        shape=(height, len(whole)),
    )
    inner = pl.concat(labels).with_columns(pl.Series(n, np.maximum(v, 0)) for n, v in left.items())
    alone = pl.when(pl.col("count") == 1).then(pl.format("remainder {}", pl.int_range(pl.len())))
    return Remainders(
        inner.filter(pl.Series(some)).with_columns(alone.alias("single")),
        sparse.vstack([x[:, whole] - x[:, covered], slack]).tocsc(),
        int(low.sum()),
    )


# One person in several linked tables: who stands alone in a cell of one may stand alone in a cell of another.


def one_person_across(
    tables: Sequence[Table],
    rows: Sequence[Integers],
    inner: pl.DataFrame,
    measures: Sequence[str],
    dimensions: Mapping[str, Dimension],
) -> pl.Series:
    """For every inner cell of linked tables its only contributor, else null: the column ``single``.

    Contributors known by name keep it. Others are taken for the same where they have the same figure and their codes
    do not rule it out. A file that does not say how many stand in a cell names nobody.
    """
    who: list[Any] = [None] * inner.height
    nameless = []
    for number, (table, at) in enumerate(zip(tables, rows, strict=True)):
        silent = (
            not table.knows_contributors
            and bool((table.inner["count"] == 1).all())
            and table.inner.height > 1
        )
        if silent or not measures:
            continue
        for row, name in zip(at.tolist(), single_contributors(table), strict=True):
            if name is None or who[row] is not None:
                continue
            who[row] = str(name) if table.knows_contributors else f"table {number + 1} cell {row}"
            if not table.knows_contributors:
                nameless.append(row)
    if nameless:
        _brought_together(who, nameless, inner, measures[0], dimensions)
    return pl.Series("single", who, dtype=pl.String)


def _brought_together(
    who: list[Any],
    nameless: Sequence[int],
    inner: pl.DataFrame,
    measure: str,
    dimensions: Mapping[str, Dimension],
) -> None:
    """Give the same name, in place, to those with the same figure whose codes allow that they are one."""
    figures = inner[measure].to_numpy().astype(float)
    alike: dict[str, list[int]] = {}
    for row in nameless:
        alike.setdefault(f"{figures[row]:.9g}", []).append(row)
    keys = inner.select(list(dimensions)).rows()
    for group in alike.values():
        for one, other in combinations(group, 2):
            if who[one] != who[other] and all(
                dimension.leaf_sets[a] & dimension.leaf_sets[b]
                for dimension, a, b in zip(dimensions.values(), keys[one], keys[other], strict=True)
            ):
                old, new = who[other], who[one]
                for row in group:
                    who[row] = new if who[row] == old else who[row]
