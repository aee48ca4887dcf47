"""How the published cells hang together: which cell lies right above which, and the sums everybody can see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.parameters import checked

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from discreet.tables.building.table import Table


def steps_up(table: Table, dimension: str) -> Iterator[tuple[Integers, Integers]]:
    """Pair every cell with the published cell right above it along one dimension, hierarchy by hierarchy.

    Yields the positions of the cells and of the cells above, sorted by cell.
    """
    codes = table.hierarchy[dimension]
    groups = pl.DataFrame({name: table.codes[name] for name in table.dimensions}).with_row_index(
        "discreet group"
    )
    cells = groups.rename({"discreet group": "discreet cell"})
    for chain in range(len(codes.chains)):
        above = np.full(len(codes.codes), -1, dtype=np.int64)
        for group, below in codes.children(chain).items():
            above[[codes.place[code] for code in below]] = codes.place[group]
        raised = cells.with_columns(pl.Series(dimension, above[table.codes[dimension]]))
        found = raised.join(groups, on=list(table.dimensions), how="inner").sort("discreet cell")
        yield (
            found["discreet cell"].cast(pl.Int64).to_numpy(),
            found["discreet group"].cast(pl.Int64).to_numpy(),
        )


@checked
def equations(table: Table) -> csr_array:
    """The sums that hold between published cells: rows are equations, columns cells, -1 the sum and 1 its parts.

    An equation is listed where all parts that are not structurally empty are published, so that the parts have as
    many inner cells as the sum. Repeated equations are listed once.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a", "b", "b"]}), "place")
    >>> equations(table).toarray().tolist()
    [[-1, 1, 1]]
    """
    from scipy.sparse import csr_array

    if table.joined is not None:
        return csr_array(table.joined.sums)
    sizes = table.cells["inner_cells"].to_numpy()
    rows, columns, entries = [], [], []
    known: set[bytes] = set()
    many = 0
    for name in table.dimensions:
        for below, over in steps_up(table, name):
            order = np.argsort(over, kind="stable")
            cell, group = below[order], over[order]
            above, starts = np.unique(group, return_index=True)
            ends = np.append(starts[1:], len(group))
            whole = (
                np.add.reduceat(sizes[cell], starts) == sizes[above] if len(cell) else np.empty(0, dtype=bool)
            )
            for at in np.flatnonzero(whole):
                parts = cell[starts[at] : ends[at]]
                mark = np.append(above[at], parts).tobytes()
                if mark in known:
                    continue
                known.add(mark)
                rows.append(np.full(len(parts) + 1, many))
                columns.append(np.append(above[at], parts))
                entries.append(np.append(-1, np.ones(len(parts), dtype=np.int64)))
                many += 1
    if not many:
        return csr_array((0, table.cells.height), dtype=np.int32)
    place = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(entries).astype(np.int32), place), shape=(many, table.cells.height))
