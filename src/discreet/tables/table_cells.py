"""The cells of a table: how they are named, how they are summed from the inner cells, and how they hang together.

Cells are named by position, by mask, or by their codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError, refuse_too_many_cells, unknown_name
from discreet.core.parameters import checked
from discreet.formula import Formula, Term
from discreet.tables.dimension import Dimension
from discreet.tables.table_counting import code_texts, entries_by_contributor, only_contributors

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

    from discreet.tables.table import Table


MOST_SOLVED = 150_000
"""Cells of a table whose sums are solved without being asked twice: minutes, at worst, on a small machine."""


def need_few_cells(table: Table, most: int) -> None:
    """Refuse to solve the sums of a table with more cells than that."""
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
    from discreet.tables.gauss.problem import positions

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


# From inner cells to published cells: sums up the hierarchies, and the matrix.
#
# Rolling up one dimension at a time touches each cell once per dimension, where summing every combination of levels
# from the inner cells would touch them once per combination; the matrix is made only when somebody asks for it.


Codes = Mapping[str, Integers]
Gather = Callable[[pl.DataFrame], pl.DataFrame]
_LARGEST = 2**62
_DENSE = 2**26
MOST_CELLS = 50_000_000
"""More cells than this are not made."""


def published_cells(
    formula: Formula,
    dimensions: Mapping[str, Dimension],
    leaves: Codes,
    sums: pl.DataFrame,
    *,
    gather: Gather | None = None,
) -> pl.DataFrame:
    """Gather the inner cells into every published cell.

    Parameters
    ----------
    formula
        Which tables are published.
    dimensions
        The dimensions of all columns of the formula.
    leaves
        For each column the place of the leaf of every inner cell.
    sums
        What is to be summed, one row an inner cell.
    gather
        What is done with the rows of one ``key``; by default they are summed. It is called after every dimension, so
        it must give the same whether it sees all rows at once or in parts.

    Returns
    -------
    DataFrame
        ``d0``, ``d1``… (place of the code in each dimension), the sums, ``inner_cells`` and ``term`` (the first
        term a cell belongs to), each cell once, in the order of the codes.
    """
    columns = formula.columns
    gather = gather or summed
    values = sums.with_columns(inner_cells=pl.lit(1, dtype=pl.Int64)) if gather is summed else sums
    parts = []
    for number, term in enumerate(formula.terms):
        strides = _strides(term, dimensions)
        frame = values.with_columns(key=pl.Series(_leaf_keys(term, dimensions, leaves, strides)))
        if set(term.columns) != set(columns):
            frame = gather(frame)
        for column in term.columns:
            layers = dimensions[column].layers()
            refuse_too_many_cells(
                frame.height * len(layers),
                MOST_CELLS,
                what=f"Adding up the table {term.name} over '{column}' takes",
                instead="Cross fewer columns, or publish them as several tables: 'a*b + b*c'.",
            )
            frame = gather(_raised(frame, layers, *strides[column]))
        codes = _unpacked(frame["key"].to_numpy(), term, strides)
        kept = _wanted(formula, term, codes)
        places = {
            f"d{i}": codes.get(column, np.zeros(frame.height, dtype=np.int64))
            for i, column in enumerate(columns)
        }
        term_number = pl.lit(number, dtype=pl.Int64).alias("term")
        parts.append(
            pl.DataFrame(places)
            .hstack(frame.drop("key").get_columns())
            .with_columns(term_number)
            .filter(kept)
        )
    names = [f"d{i}" for i in range(len(columns))]
    cells = pl.concat(parts)
    if len(parts) > 1:
        # A margin that several terms share is complete in each of them.
        cells = cells.filter(pl.col("term") == pl.col("term").min().over(names))
    return cells.sort(names, maintain_order=True)


def cell_matrix(
    formula: Formula, dimensions: Mapping[str, Dimension], leaves: Codes, cells: pl.DataFrame
) -> csc_array:
    """Say which inner cell is part of which published cell: rows inner cells, columns published cells, 0 and 1.

    ``cells`` has ``d0``… and ``term``, as `published_cells` gives them; a cell that does not belong to any term keeps
    an empty column.
    """
    from scipy.sparse import csr_array

    columns = formula.columns
    rows = len(leaves[columns[0]])
    matrix = csr_array((rows, cells.height), dtype=np.int32)
    terms = cells["term"].to_numpy()
    for number, term in enumerate(formula.terms):
        mine = np.flatnonzero(terms == number)
        if not len(mine):
            continue
        strides = _strides(term, dimensions)
        codes = {c: cells[f"d{columns.index(c)}"].to_numpy()[mine] for c in term.columns}
        distinct, back = np.unique(_leaf_keys(term, dimensions, leaves, strides), return_inverse=True)
        keys, combination = distinct, np.arange(len(distinct), dtype=np.int64)
        for column in term.columns:
            keys, combination = _fanned(keys, combination, dimensions[column], *strides[column])
        place = _found(keys, _packed(term, strides, codes))
        hit = place >= 0
        column_of, combination = mine[place[hit]], combination[hit]
        # Fanning keeps the order of the rows, so that the pieces of a combination lie together.
        starts = np.searchsorted(combination, np.arange(len(distinct) + 1))
        many = np.diff(starts)[back]
        ends = np.cumsum(many)
        entry = np.repeat(starts[back] - (ends - many), many) + np.arange(ends[-1] if len(ends) else 0)
        indices = column_of[entry].astype(np.int32)
        part = csr_array(
            (np.ones(len(indices), dtype=np.int32), indices, np.concatenate([[0], ends])),
            shape=(rows, cells.height),
        )
        matrix = part if not matrix.nnz else matrix + part
    made = matrix.tocsc()
    made.sort_indices()
    return made


def _found(keys: Integers, wanted: Integers) -> Integers:
    """The place of each key among the wanted ones, -1 where it is not wanted."""
    span = int(max(keys.max(initial=0), wanted.max(initial=0))) + 1
    if span <= _DENSE:
        places = np.full(span, -1, dtype=np.int64)
        places[wanted] = np.arange(len(wanted))
        return places[keys]
    order = np.argsort(wanted)
    at = np.searchsorted(wanted[order], keys)
    at[at == len(wanted)] = 0
    return np.where(wanted[order][at] == keys, order[at], -1)


def _fanned(
    keys: Integers, rows: Integers, dimension: Dimension, stride: int, radix: int
) -> tuple[Integers, Integers]:
    """Replace the leaf of one dimension by every code above it, one entry each."""
    leaf = keys // stride % radix
    many = np.diff(dimension.starts)[leaf]
    entry = np.repeat(np.arange(len(keys)), many)
    offset = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many)
    code = dimension.covering[dimension.starts[leaf[entry]] + offset]
    return keys[entry] + (code - leaf[entry]) * stride, rows[entry]


def _raised(frame: pl.DataFrame, layers: Sequence[Integers], stride: int, radix: int) -> pl.DataFrame:
    keys = frame["key"].to_numpy()
    leaf = keys // stride % radix
    parts = []
    for layer in layers:
        code = layer[leaf]
        raised = frame.with_columns(key=pl.Series(keys + (code - leaf) * stride))
        parts.append(raised if (code >= 0).all() else raised.filter(pl.Series(code >= 0)))
    return pl.concat(parts, rechunk=False)


def summed(frame: pl.DataFrame) -> pl.DataFrame:
    """Add up the rows of every key."""
    return frame.group_by("key", maintain_order=True).agg(pl.exclude("key").sum())


def _strides(term: Term, dimensions: Mapping[str, Dimension]) -> dict[str, tuple[int, int]]:
    """How far apart two neighboring codes of each column lie in a packed key, and how many codes there are."""
    found: dict[str, tuple[int, int]] = {}
    stride = 1
    for column in reversed(term.columns):
        radix = max(len(dimensions[column].codes), 1)
        found[column] = (stride, radix)
        stride *= radix
    if stride >= _LARGEST:
        sizes = ", ".join(f"'{column}' {len(dimensions[column].codes):,}" for column in term.columns)
        raise ParameterError(
            f"The table {term.name} could have {stride:.1e} cells (codes: {sizes}), too many to number. "
            "Cross fewer columns, or publish them as several tables: 'a*b*c + c*d*e'."
        )
    return found


def _packed(term: Term, strides: Mapping[str, tuple[int, int]], codes: Codes) -> Integers:
    packed = np.zeros(len(codes[term.columns[0]]), dtype=np.int64)
    for column in term.columns:
        packed += codes[column].astype(np.int64) * strides[column][0]
    return packed


def _leaf_keys(
    term: Term, dimensions: Mapping[str, Dimension], leaves: Codes, strides: Mapping[str, tuple[int, int]]
) -> Integers:
    """Pack the leaves; there are fewer leaves than codes, so that the same strides fit."""
    return _packed(term, strides, {column: leaves[column] for column in term.columns})


def _unpacked(keys: Integers, term: Term, strides: Mapping[str, tuple[int, int]]) -> dict[str, Integers]:
    return {
        column: keys // stride % radix
        for column, (stride, radix) in strides.items()
        if column in term.columns
    }


def _wanted(formula: Formula, term: Term, codes: Codes) -> pl.Series:
    """Keep the cells of the margins that are published; a margin is a set of columns that are not at their total."""
    pattern = np.zeros(len(codes[term.columns[0]]), dtype=np.int64)
    for bit, column in enumerate(term.columns):
        pattern |= (codes[column] > 0).astype(np.int64) << bit
    wanted = [sum(1 << term.columns.index(column) for column in margin) for margin in formula.published(term)]
    return pl.Series(np.isin(pattern, wanted))


def possible_cells(radices: Sequence[int]) -> int:
    """How many combinations there are."""
    return math.prod(radices)


# How the published cells hang together: which cell lies right above which, and the sums everybody can see.


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
