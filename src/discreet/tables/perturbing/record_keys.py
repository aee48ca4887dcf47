"""Who is in a cell? A number for every record that only the holder of the secret key can make, and sums of them.

The sum over the records of a cell says which records it holds, in whatever table, under whatever filter and on whatever
level the cell stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet import engine
from discreet.arrays import Integers
from discreet.engine.classes import key_names
from discreet.errors import ColumnError
from discreet.secret_keys import definitions, keyed_numbers
from discreet.tables.building.counting import check_columns
from discreet.tables.building.dimension import MISSING
from discreet.value_text import canonical_text

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


# Keys are whole numbers below this, so that their sums are exact in any order of the records.
KEYS = 1 << 32


def identifier_texts(ids: pl.Series, column: str) -> pl.Series:
    """The identifiers as texts; refuse a column that leaves records without one, or does not tell them apart."""
    if ids.null_count():
        raise ColumnError(
            f"Column '{column}' is missing in {ids.null_count():,} records, which have no key then."
        )
    texts = canonical_text(ids.cast(pl.String) if ids.dtype == pl.Categorical else ids)
    repeated = len(texts) - texts.n_unique()
    if repeated:
        raise ColumnError(
            f"Column '{column}' does not tell the records apart: {repeated:,} repeat another's. Use one that does."
        )
    return texts


def summed_by_inner_cell(table: Table, rows: pl.DataFrame, numbers: Integers) -> Integers:
    """Add numbers of records up to the inner cells; ``rows`` has the codes of the records as ``k0``, ``k1``…"""
    codes = [
        canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)
        .fill_null(MISSING)
        .alias(name)
        for name, values in ((name, rows[f"k{i}"]) for i, name in enumerate(table.dimensions))
    ]
    words = [pl.Series(f"word {i}", numbers[:, i]) for i in range(numbers.shape[1])]
    names = [word.name for word in words]
    on = list(table.dimensions)
    sums = pl.DataFrame([*codes, *words]).group_by(on).agg(pl.col(names).sum())
    joined = table.inner.select(on).join(sums, on=on, how="left", maintain_order="left")
    return np.asarray(joined.select(pl.col(names).fill_null(0)).to_numpy() % KEYS)


def record_sums(table: Table, key: bytes, id: str | None) -> Integers:
    """For every inner cell the sums of two numbers of each of its records.

    Records are known by ``id``, else by all they say: in a file without an identifier equal records are alike.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"id": range(4), "sex": ["f", "f", "m", "m"], "place": ["a", "b", "a", "b"]})
    >>> women = Table.from_microdata(people.filter(pl.col("sex") == "f"), "place")
    >>> everybody = Table.from_microdata(people, "place*sex")
    >>> key = b"a secret of at least sixteen bytes"
    >>> bool((record_sums(women, key, "id") == record_sums(everybody, key, "id")[[0, 2]]).all())
    True
    """
    data = table.records("A draw by the records of a cell").data
    dimensions = key_names(table.dimensions)
    if id is not None:
        check_columns(data, [id], "id")
        rows = engine.collect(engine.scan(data, {**dimensions, "who": id}))
        texts = identifier_texts(rows["who"], id)
    else:
        said = {f"c{i}": name for i, name in enumerate(sorted(data.columns))}
        rows = engine.collect(engine.scan(data, {**dimensions, **said}))
        nested = [said[name] for name in said if rows.schema[name].is_nested()]
        if nested:
            raise ColumnError(
                f"Column '{nested[0]}' holds lists or records, by which nobody can be told apart. Name the column that "
                "identifies a record with id=."
            )
        texts = definitions(rows.select(pl.col(name).alias(said[name]) for name in said), list(said.values()))
    return summed_by_inner_cell(table, rows, keyed_numbers(texts, key, b"record:", 2))
