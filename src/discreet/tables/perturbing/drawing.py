"""Uniform numbers for the cells of a table, from a secret key and the people in the cell.

The same people have the same number in whatever table they stand together, however it was filtered and on whatever
level: nobody can average the draws away. A table made from cells does not know its people; there a cell is known by its
definition, the codes that are not totals.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.secret_keys import definitions, keyed_uniforms
from discreet.tables.dimension import MISSING
from discreet.tables.perturbing.record_keys import KEYS, record_sums

if TYPE_CHECKING:
    from discreet.tables.table import Table


BY_RECORDS_WITHOUT_ID = (
    "Records are told apart by all their columns. Name the column that identifies them (id=), so that the same people "
    "are drawn for alike in files with other columns, too."
)
BY_DEFINITION = (
    "The table was made from cells, whose people are not known: a cell is drawn for alike wherever it has the same "
    "codes and the same subset=. Tables made from the records, or of a part that subset= does not name, draw anew, and "
    "two draws for the same people can be averaged: publish one of them."
)


def knows_records(table: Table) -> bool:
    """Whether every row behind the table is one record, so that the people in a cell are known."""
    return table.contributing is not None and table.counted is None


def drawn_for_cells(
    table: Table, key: bytes, *, id: str | None = None, subset: str = "", run: str = "", margins: bool = True
) -> tuple[Floats, Floats]:
    """Draw a uniform number for every cell and for every inner cell.

    Parameters
    ----------
    table, key
        The table and the secret key.
    id
        The column that identifies a record.
    subset
        A name for the part of the population, where the table was made from cells.
    run
        The run of a simulation, whose draws are its own.
    margins
        Whether the published cells need numbers of their own; else there are none for them.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"place": ["a", "b", "a"], "sex": ["f", "m", "m"]})
    >>> small, large = Table.from_microdata(people, "place"), Table.from_microdata(people, "place*sex")
    >>> key = b"a secret of at least sixteen bytes"
    >>> one, other = drawn_for_cells(small, key)[0], drawn_for_cells(large, key)[0]
    >>> bool(one[small.find(place="a")] == other[large.find(place="a")])
    True
    """
    if not isinstance(run, str) or not isinstance(subset, str):
        raise ParameterError("run and subset must be texts.")
    if not knows_records(table):
        if id is not None:
            raise ParameterError(
                "id names the column that identifies a record, and this table was made from cells or counts. Leave it "
                "out, or build the table from the records."
            )
        defined = partial(_by_definition, table, key, subset=subset, run=run)
        return defined(table.cells) if margins else np.zeros(0), defined(table.inner)
    inner = record_sums(table, key, id)
    small = _by_records(inner, table.inner["count"], key, run)
    if not margins:
        return np.zeros(0), small
    return _by_records(np.asarray(table.x.T @ inner) % KEYS, table.cells["count"], key, run), small


def _by_records(sums: Integers, counts: pl.Series, key: bytes, run: str) -> Floats:
    texts = pl.DataFrame({"a": sums[:, 0], "b": sums[:, 1], "n": counts}).select(
        pl.format("people{}:{}{}:{}:{}", pl.lit(len(run)), pl.lit(run), "n", "a", "b")
    )
    return keyed_uniforms(texts.to_series(), key)


def _by_definition(table: Table, key: bytes, frame: pl.DataFrame, *, subset: str, run: str) -> Floats:
    """A cell is defined by its codes that are not totals; a group of one code, or a total of one, is that code."""
    finest = frame.select(
        frame[name].replace(_groups_of_one(table, name)).alias(name) for name in table.dimensions
    )
    named = {name: finest[name] != table.hierarchy[name].total for name in table.dimensions}
    pattern = np.zeros(frame.height, dtype=np.int64)
    for bit, flags in enumerate(named.values()):
        pattern |= flags.to_numpy().astype(np.int64) << bit
    drawn = np.empty(frame.height)
    # In a file of counts a missing code is missing.
    codes = finest.with_columns(pl.when(pl.all() != MISSING).then(pl.all()), discreet_run=pl.lit(run))
    for which in np.unique(pattern):
        rows = np.flatnonzero(pattern == which)
        columns = [name for bit, name in enumerate(table.dimensions) if which >> bit & 1]
        runs = ["discreet_run"] if run else []
        texts = definitions(codes[rows], columns, runs, subset=subset, measure=table.counted or "count")
        # Without any column there is one text for the grand total.
        drawn[rows] = keyed_uniforms(texts.extend_constant(texts[0], len(rows) - len(texts)), key)
    return drawn


def _groups_of_one(table: Table, name: str) -> dict[str, str]:
    dimension = table.hierarchy[name]
    return {
        code: dimension.leaves[next(iter(leaves))]
        for code, leaves in dimension.leaf_sets.items()
        if len(leaves) == 1 and code != dimension.leaves[next(iter(leaves))]
    }
