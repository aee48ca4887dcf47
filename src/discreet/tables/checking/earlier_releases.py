"""What readers have to compute with: this table and all that was published before.

Earlier tables of the same people are combined with this one, whatever their layout: other dimensions, coarser codes,
another part of the codes. Cells with the same codes are the same cell. Tables of other people (last year's) cannot be
combined; they are compared cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.tables.table_cells import cell_places, inner_values

if TYPE_CHECKING:
    from discreet.tables.table import Table


@dataclass(frozen=True)
class Knowledge:
    """The columns readers can compute with, over the inner cells of this table and of earlier ones.

    Attributes
    ----------
    x
        Rows inner cells, those of this table first; columns the cells of this table, then everything else.
    inner
        The values of the inner cells.
    open
        Of the columns behind the cells of this table: whether readers have them.
    before
        Cells of this table that an earlier table of the same people published: readers have them already.
    last_time
        Cells of this table that an earlier table of other people published.
    others
        Earlier tables of other people, and their published cells.
    """

    x: Any
    inner: Floats
    open: Flags
    before: Flags
    last_time: Flags
    others: tuple[tuple[Table, Flags], ...]


def check_releases(previous: Sequence[Any]) -> None:
    """Refuse what is no earlier release: a table, and which of its cells were left out."""
    from discreet.tables.table import Table

    for item in previous:
        if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], Table):
            raise ParameterError(
                "previous must be results of Suppression, or pairs of a table and its suppressed cells."
            )


def knowledge(table: Table, previous: Sequence[tuple[Table, Any]] = ()) -> Knowledge:
    """Gather what readers of a table and of earlier ones have to compute with."""
    count = table.cells.height
    check_releases(previous)
    keys = _keys([table, *(earlier for earlier, _ in previous)])
    shown = [_published(earlier, left_out) for earlier, left_out in previous]
    same = [people_are_the_same(table, earlier) for earlier, _ in previous]
    tables = [table, *(earlier for (earlier, _), alike in zip(previous, same, strict=True) if alike)]
    masks = [mask for mask, alike in zip(shown, same, strict=True) if alike]
    rows, height = _rows(tables)
    parts = [_moved(one.x, at, height) for one, at in zip(tables, rows, strict=True)]
    ties = [
        _moved(one.joined.ties, at, height)
        for one, at in zip(tables, rows, strict=True)
        if one.joined is not None
    ]
    first = {key: (0, place) for place, key in enumerate(keys(table))}
    before = np.zeros(count, dtype=bool)
    for number, (earlier, part, mask) in enumerate(zip(tables[1:], parts[1:], masks, strict=True), 1):
        met = [first.setdefault(key, (number, place)) for place, key in enumerate(keys(earlier))]
        ties += [
            parts[other][:, [met[place][1] for place in here]] - part[:, here]
            for other in range(number)
            if (here := [place for place, (owner, _) in enumerate(met) if owner == other])
        ]
        before[[at for place, (owner, at) in enumerate(met) if owner == 0 and mask[place]]] = True
    tied = sparse.hstack(ties).tocsc() if ties else sparse.csc_matrix((height, 0), dtype=np.int64)
    tied.eliminate_zeros()
    tied = tied[:, np.diff(tied.indptr) > 0]
    inner = np.zeros(height)
    for one, at in reversed(list(zip(tables, rows, strict=True))):
        inner[at] = inner_values(one)
    last_time = np.zeros(count, dtype=bool)
    place = {key: at for at, key in enumerate(keys(table))}
    others = []
    for (earlier, _), mask, alike in zip(previous, shown, same, strict=True):
        if not alike:
            others.append((earlier, mask))
            names = keys(earlier)
            last_time[[place[names[i]] for i in np.flatnonzero(mask).tolist() if names[i] in place]] = True
    return Knowledge(
        sparse.hstack([parts[0], tied, *parts[1:]]).tocsc(),
        inner,
        np.concatenate([np.ones(tied.shape[1], dtype=bool), *masks]),
        before,
        last_time,
        tuple(others),
    )


def people_are_the_same(now: Table, before: Table) -> bool:
    """Do two tables say the same wherever they have the same cell, the inner cells included?"""
    pairs = shared_cells(now, before)
    if not pairs.height:
        raise ParameterError(
            "The earlier table shares no cell with this one, not even a total, so that the two cannot be compared. "
            "Check the names of the dimensions and the codes of the totals (total=)."
        )
    names = ["count", *([now.value] if now.value != "count" and now.value in before.cells.columns else [])]
    for name in names:
        one = now.cells[name].cast(pl.Float64).to_numpy()[pairs["now"].to_numpy()]
        other = before.cells[name].cast(pl.Float64).to_numpy()[pairs["before"].to_numpy()]
        if (np.abs(one - other) > 1e-6 * (1.0 + np.abs(one))).any():
            return False
    (ours, theirs), _ = _rows([now, before])
    _, one_row, other_row = np.intersect1d(ours, theirs, return_indices=True)
    inside, inside_before = (
        now.inner["count"].to_numpy()[one_row],
        before.inner["count"].to_numpy()[other_row],
    )
    return bool(np.allclose(inside.astype(float), inside_before.astype(float), rtol=1e-9))


def shared_cells(now: Table, before: Table) -> pl.DataFrame:
    """Positions of the cells that two tables have both: ``now`` and ``before``."""
    keys = _keys([now, before])
    place = {key: at for at, key in enumerate(keys(before))}
    found = [(at, place[key]) for at, key in enumerate(keys(now)) if key in place]
    return pl.DataFrame(found, schema={"now": pl.Int64, "before": pl.Int64}, orient="row")


def _keys(tables: Sequence[Table]) -> Any:
    """A function that gives the codes of all cells of a table over the dimensions of all tables."""
    totals: dict[str, str] = {}
    for table in tables:
        for name in table.dimensions:
            totals.setdefault(name, table.hierarchy[name].total)

    def of(table: Table) -> list[tuple[str, ...]]:
        return _laid_out(table.cells, totals).select(list(totals)).rows()

    return of


def _laid_out(frame: pl.DataFrame, totals: dict[str, str]) -> pl.DataFrame:
    return frame.with_columns(
        pl.lit(code).alias(name) for name, code in totals.items() if name not in frame.columns
    )


def _rows(tables: Sequence[Table]) -> tuple[list[Integers], int]:
    """Number the inner cells of all tables; those with the same codes are one."""
    totals: dict[str, str] = {}
    for table in tables:
        for name in table.dimensions:
            totals.setdefault(name, table.hierarchy[name].total)
    number: dict[tuple[str, ...], int] = {}
    rows = []
    for table in tables:
        keys = _laid_out(table.inner, totals).select(list(totals)).rows()
        rows.append(np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64))
    return rows, len(number)


def _moved(x: Any, rows: Integers, height: int) -> Any:
    given = sparse.coo_matrix(x)
    return sparse.csc_matrix(
        (given.data.astype(np.int64), (rows[given.row], given.col)), shape=(height, given.shape[1])
    )


def _published(table: Table, left_out: Any) -> Flags:
    published = np.ones(table.cells.height, dtype=bool)
    published[cell_places(table, left_out, "previous")] = False
    return published
