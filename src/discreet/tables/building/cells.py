"""Naming cells of a table: by position, by mask, or by their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError, refuse_too_many_cells, unknown_name
from discreet.tables.gauss.problem import positions
from discreet.tables.table_counting import code_texts, entries_by_contributor, only_contributors

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


MOST_SOLVED = 150_000
"""Cells of a table whose sums are solved without being asked twice: minutes, at worst, on a small machine."""


def need_few_cells(table: Table, most: int) -> None:
    """Refuse to solve the sums of a table with more cells than that."""
    if most < 1:
        raise ParameterError("max_cells must be 1 or more.")
    refuse_too_many_cells(
        table.cells.height,
        most,
        what="The table has",
        instead="Cross fewer or coarser columns, or publish several smaller tables; raise max_cells where you can "
        "wait.",
    )


def cell_numbers(table: Table, column: str, name: str, *, missing: float = 0.0) -> Floats:
    """Read a column of the cells that a parameter names; refuse one that holds no numbers."""
    if column not in table.cells.columns:
        raise ParameterError(
            f"{name}: {unknown_name(column, table.cells.columns, what='column of table.cells')}"
        )
    if not table.cells.schema[column].is_numeric():
        raise ParameterError(f"{name} names the column '{column}' of table.cells, which holds no numbers.")
    return table.cells[column].cast(pl.Float64).fill_null(missing).to_numpy()


def cell_places(table: Table, given: Any, name: str) -> Integers:
    """Read cells given as positions, as a mask, as the name of a flag column, or as codes.

    Codes are tuples in the order of the dimensions, or mappings that leave out dimensions at their total.
    """
    if given is None:
        return np.zeros(0, dtype=np.int64)
    count = table.cells.height
    if isinstance(given, str):
        if given not in table.cells.columns and given == "primary":
            raise ParameterError(
                "The table has no primary cells yet. Flag them first, e.g. tables.primary(table, Threshold(3))."
            )
        if given not in table.cells.columns:
            raise ParameterError(f"{name} names the column '{given}', and table.cells has no such column.")
        if table.cells.schema[given] != pl.Boolean:
            raise ParameterError(
                f"{name} names the column '{given}' of table.cells, which is not true or false."
            )
        return np.flatnonzero(table.cells[given].fill_null(False).to_numpy())
    if isinstance(given, list | tuple | set | frozenset):
        given = list(given)
    if isinstance(given, list) and given and isinstance(given[0], tuple | Mapping):
        totals = [table.hierarchy[dimension].total for dimension in table.dimensions]
        wanted = [
            tuple(str(key.get(d, t)) for d, t in zip(table.dimensions, totals, strict=True))
            if isinstance(key, Mapping)
            else tuple(str(code) for code in key)
            for key in given
        ]
        place = {key: i for i, key in enumerate(table.keys)}
        lacking = sum(key not in place for key in wanted)
        if lacking:
            raise ParameterError(
                f"{name} names {lacking} cells that the table does not have; see table.cells for those it has."
            )
        return np.array(sorted({place[key] for key in wanted}), dtype=np.int64)
    return positions(given, count, name)


def inner_values(table: Table) -> Floats:
    """The published value of every inner cell."""
    return table.inner[table.value].cast(float).fill_null(0.0).to_numpy()


def counts_only(table: Table) -> bool:
    """Does the table publish counts of records or units, not sums?"""
    return table.value == "count"


def known_zero_rows(x: Any, inner: Floats, published: Flags) -> Integers:
    """Inner cells that a published zero gives away, where no value is negative.

    A published difference (a column with a -1) that is zero gives nothing away by itself.
    """
    if (inner < 0).any():
        return np.zeros(0, dtype=np.int64)
    x = x.tocsc()
    zeros = np.flatnonzero(published & (np.asarray(inner @ abs(x)).ravel() == 0))
    columns = x[:, zeros]
    sums = np.diff((columns < 0).tocsc().indptr) == 0
    return np.unique(columns[:, sums].indices).astype(np.int64)


def empty_rows(table: Table, height: int) -> Flags:
    """Which of ``height`` inner cells, those of the table first, nobody contributes to."""
    empty = np.zeros(height, dtype=bool)
    empty[: table.inner.height] = table.inner["count"].to_numpy() == 0
    return empty


def single_contributors(table: Table) -> list[Any]:
    """For each inner cell its only contributor, else None.

    Without a contributor column every record is a contributor of its own, so that inner cells of one record count.
    """
    if table.joined is not None:
        return table.inner["single"].to_list()
    counts = table.inner["count"].to_numpy()
    if not table.knows_contributors:
        return [row if count == 1 else None for row, count in enumerate(counts.tolist())]
    records = table.records("Protection against contributors")
    assert records.contributor is not None
    if engine.is_lazy(records.data):
        return only_contributors(records.data, table, records.contributor)
    entries = entries_by_contributor(records.data, table.dimensions, records.contributor, None, weight=None)
    keys = [code_texts(entries[f"k{i}"]).alias(name) for i, name in enumerate(table.dimensions)]
    # A record without a contributor is one of its own.
    who = entries.select(
        pl.coalesce("contributor", pl.format("record {}", pl.int_range(pl.len()))).alias("who")
    )
    alone = (
        pl.DataFrame(keys)
        .with_columns(who)
        .group_by(table.dimensions)
        .agg(pl.col("who").n_unique().alias("many"), pl.col("who").first())
        .filter(pl.col("many") == 1)
    )
    rows = table.inner.select(table.dimensions)
    return rows.join(alone, on=list(table.dimensions), how="left", maintain_order="left")["who"].to_list()
