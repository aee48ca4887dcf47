"""From inner cells to published cells: sums up the hierarchies, one dimension after the other, and the matrix.

Rolling up one dimension at a time touches each cell once per dimension, where summing every combination of levels
from the inner cells would touch them once per combination; the matrix is made only when somebody asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError, refuse_too_many_cells
from discreet.formula import Formula, Term
from discreet.tables.building.dimension import Dimension

if TYPE_CHECKING:
    from scipy.sparse import csc_array


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
