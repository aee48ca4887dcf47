"""One person in several linked tables: who stands alone in a cell of one may stand alone in a cell of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.arrays import Integers
from discreet.tables.building.dimension import Dimension
from discreet.tables.table_cells import single_contributors

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


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
                _meet(dimension, a, b)
                for dimension, a, b in zip(dimensions.values(), keys[one], keys[other], strict=True)
            ):
                old, new = who[other], who[one]
                for row in group:
                    who[row] = new if who[row] == old else who[row]


def _meet(dimension: Dimension, one: str, other: str) -> bool:
    return bool(dimension.leaf_sets[one] & dimension.leaf_sets[other])
