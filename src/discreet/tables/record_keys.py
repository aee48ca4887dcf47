"""Who is in a cell? Numbers of records that only the holder of the secret key can make, their sums, and draws by them.

The sum over the records of a cell says which records it holds, in whatever table, under whatever filter and on whatever
level the cell stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers, Words
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.secret_keys import definitions, keyed_numbers, keyed_uniforms
from discreet.engine.classes import key_names
from discreet.microdata import Microdata
from discreet.tables.dimension import MISSING
from discreet.tables.table_counting import check_columns, code_texts, plain_texts

if TYPE_CHECKING:
    from discreet.tables.table import Table


# Keys are whole numbers below this, so that their sums are exact in any order of the records.
KEYS = 1 << 32


def check_identifier(data: Microdata, column: str) -> None:
    """Refuse a column that leaves records without an identifier, or does not tell them apart."""
    check_known(data, column)
    rows = engine.overview(data, [column]).rows
    different = engine.scan(data, {"who": column}).unique().select(nw.len().cast(nw.Int64))
    repeated = rows - int(engine.collect(different).item())
    if repeated:
        raise ColumnError(
            f"Column '{column}' does not tell the records apart: {repeated:,} repeat another's. Use one that does."
        )


def check_known(data: Microdata, column: str) -> None:
    """Refuse a column from which keys are made and that is missing in some records."""
    gone = engine.overview(data, [column]).missing[column]
    if gone:
        raise ColumnError(f"Column '{column}' is missing in {gone:,} records, which have no key then.")


@dataclass(frozen=True)
class NumbersOfTexts:
    """Numbers below 2^32 for records, from the secret key and a text: an identifier, or all that a record says."""

    key: bytes
    purpose: bytes
    words: int
    id: str | None = None

    def __call__(self, rows: pl.DataFrame) -> Integers:
        """Draw for the records of a batch."""
        texts = plain_texts(rows[self.id]) if self.id is not None else definitions(rows, rows.columns)
        return keyed_numbers(texts, self.key, self.purpose, self.words)


@dataclass(frozen=True)
class _Words:
    """The numbers as columns, as the engine wants them."""

    numbers: Callable[[pl.DataFrame], Integers]
    names: tuple[str, ...]

    def __call__(self, rows: pl.DataFrame, _: Words) -> dict[str, pl.Series]:
        made = self.numbers(rows)
        return {name: pl.Series(name, made[:, place]) for place, name in enumerate(self.names)}


def summed_by_inner_cell(
    table: Table,
    data: Microdata,
    reads: Sequence[str],
    numbers: Callable[[pl.DataFrame], Integers],
    words: int = 1,
) -> Integers:
    """Make numbers of the records, from the columns that are read, and add them up to the inner cells.

    A query makes and adds them up where the data is, and hands over cells.
    """
    names = tuple(f"discreet word {i}" for i in range(words))
    dimensions = key_names(table.dimensions)
    work = engine.ByRecord(tuple(reads), dict.fromkeys(names, pl.Int64()), _Words(numbers, names))
    if engine.is_lazy(data):
        data.need_plain_names()
        drop = [name for name in data.columns if name not in table.dimensions]
        frame = engine.made_lazily(data, work, drop=drop, purpose="the sum of record keys")
        codes = engine.scan(
            Microdata(frame), {**dimensions, **{f"w{i}": name for i, name in enumerate(names)}}
        )
        rows = engine.collect(codes.group_by(*dimensions).agg(nw.col(f"w{i}").sum() for i in range(words)))
        made = [rows[f"w{i}"].cast(pl.Int64).alias(name) for i, name in enumerate(names)]
    else:
        rows = engine.collect(
            engine.scan(data, {**dimensions, **{f"c{i}": name for i, name in enumerate(reads)}})
        )
        read = pl.DataFrame([rows[f"c{i}"].alias(name) for i, name in enumerate(reads)])
        made = list(work.work(read, np.zeros(0, dtype=np.uint64)).values())
    codes_of = [code_texts(rows[k]).alias(name) for k, name in dimensions.items()]
    on = list(table.dimensions)
    sums = pl.DataFrame([*codes_of, *made]).group_by(on).agg(pl.col(names).sum())
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
    numbers = NumbersOfTexts(key, b"record:", 2, id)
    if id is not None:
        check_columns(data, [id], "id")
        check_identifier(data, id)
        return summed_by_inner_cell(table, data, [id], numbers, 2)
    nested = [name for name in data.columns if data.schema[name].is_nested()]
    if nested:
        raise ColumnError(
            f"Column '{nested[0]}' holds lists or records, by which nobody can be told apart. Name the column that "
            "identifies a record with id=."
        )
    return summed_by_inner_cell(table, data, sorted(data.columns), numbers, 2)


# Uniform numbers for the cells of a table, from a secret key and the people in the cell.
#
# The same people have the same number in whatever table they stand together, however it was filtered and on whatever
# level: nobody can average the draws away. A table made from cells does not know its people; there a cell is known by
# its definition, the codes that are not totals.


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
