"""What lies outside a table that covers only a part: the whole of one table minus the part of another.

A table of the East and a table of the whole country give the West away by subtraction. The West is an inner cell like
any other, though nobody publishes it: it cannot be negative, which bounds the East.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.tables.building.dimension import Dimension

if TYPE_CHECKING:
    from discreet.tables.building.linked_tables import View
    from discreet.tables.building.table import Table


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
