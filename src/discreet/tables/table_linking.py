"""Tables that were made apart and are published together: one table, in which a cell that several share occurs once.

Nothing is known of the crossing of all their dimensions, and nothing needs to be: the inner cells of every table stand
side by side, and for every cell that two tables share a *tie* says that its parts in the one add up to the same as its
parts in the other. What can be computed from linked tables follows from the sums inside each of them and from the ties.
The crossing of all dimensions says more in one case only: where tables overlap in a ring (a by b, b by c, c by a) and
the empty combinations of one rule out combinations in the others. There, further ties are found (`crossing_ties`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.formula import Formula
from discreet.tables.dimension import TOTAL, Chain, Dimension, dimension_of, places_of
from discreet.tables.dimension_sources import branch_order
from discreet.tables.gauss.problem import moved_rows
from discreet.tables.table_cells import equations
from discreet.tables.table_ties import Remainders, crossing_ties, one_person_across, remainders_of

if TYPE_CHECKING:
    from discreet.tables.table import Table


_TOLERANCE = 1e-9


@dataclass(frozen=True)
class View:
    """The cells of one of the linked tables: their positions, and the inner cells they are made of there."""

    cells: Integers
    x: Any


@dataclass(frozen=True)
class Joined:
    """How the cells of linked tables hang together.

    Attributes
    ----------
    x
        Which inner cell (row) is part of which cell (column). A shared cell is written out as in the first table.
    ties
        One column a sum of inner cells that everybody knows to be zero, because tables share cells.
    sums
        The sums that hold between cells inside the tables: rows equations, columns cells.
    views
        One a table: its cells, made of its own inner cells.
    members
        By name of a table the cells that belong to it.
    ring
        Whether tables overlap in a ring, and what their empty combinations say about each other is not known.
    """

    x: Any
    ties: Any
    sums: Any
    views: tuple[View, ...]
    members: Mapping[str, Flags]
    ring: bool


def linked(
    tables: Sequence[Table], *, total: Mapping[str, str] | None = None, tolerance: float | None = None
) -> Table:
    """Put tables together; see `Table.link`."""
    from discreet.tables.table import Table

    _check(tables)
    dimensions = merged_dimensions(tables, total or {})
    totals = {name: dimension.total for name, dimension in dimensions.items()}
    measures = tuple(m for m in tables[0].measures if all(m in table.measures for table in tables))
    sums = [n for n in ("count", "weighted", *measures) if all(n in table.cells.columns for table in tables)]
    named = [laid_out(table.cells, totals) for table in tables]
    keys, places = _numbered(named, totals, dimensions)
    inner_keys, rows = _numbered([laid_out(table.inner, totals) for table in tables], totals)
    views = [
        View(at, moved_rows(table.x, row, inner_keys.height))
        for table, at, row in zip(tables, places, rows, strict=True)
    ]
    x, owner = _written_out(views, keys.height)
    ties = [_filled(x[:, view.cells] - view.x) for view in views]
    ties += [
        moved_rows(table.joined.ties, row, inner_keys.height)
        for table, row in zip(tables, rows, strict=True)
        if table.joined is not None
    ]
    inner = _gathered([t.inner.select(sums) for t in tables], rows, inner_keys)
    inner = inner.with_columns(one_person_across(tables, rows, inner, measures, dimensions))
    cells = _gathered([frame.drop(list(totals)) for frame in named], places, keys)
    agree = _agreement(named, places, cells, sums, tolerance)
    circle = ring([frozenset(table.dimensions) for table in tables])
    more = crossing_ties(tables, dimensions, rows, sparse.hstack(ties).tocsc()) if circle else None
    if more is not None:
        ties.append(more)
    rest = remainders_of(tables, dimensions, cells, views, x, sums)
    made = Joined(
        sparse.csc_array(_deepened(x, rest)),
        sparse.hstack([*(_deepened(block, rest) for block in ties), rest.ties]).tocsc(),
        _sums(tables, places, keys.height),
        tuple(View(view.cells, _deepened(view.x, rest)) for view in views),
        _members(tables, places, keys.height),
        circle and more is None,
    )
    notes = [note for table in tables for note in table.notes]
    return Table(
        pl.concat([inner, rest.inner.select(inner.columns)], how="vertical_relaxed"),
        _finished(cells, dimensions, sums, owner, agree, made.x),
        tables[0].value,
        measures,
        Formula(tuple(dict.fromkeys(term for table in tables for term in table.formula.terms))),
        dimensions,
        (*notes, *_said(agree, places, rest, made)),
        tables[0].weight,
        joined=made,
        rules=tuple(dict.fromkeys(rule for table in tables for rule in table.rules)),
    )


def merged_dimensions(tables: Sequence[Table], totals: Mapping[str, str]) -> dict[str, Dimension]:
    """The dimensions of all tables together, each with the codes of all of them."""
    names = dict.fromkeys(name for table in tables for name in table.dimensions)
    for name in totals:
        if name not in names:
            raise ParameterError(unknown_name(name, list(names), what="dimension"))
    return {
        name: merged_dimension([t.hierarchy[name] for t in tables if name in t.dimensions], totals.get(name))
        for name in names
    }


def laid_out(frame: pl.DataFrame, totals: Mapping[str, str]) -> pl.DataFrame:
    """Give a frame of cells all dimensions: those a table lacks are at their total."""
    lacking = [pl.lit(code).alias(name) for name, code in totals.items() if name not in frame.columns]
    return frame.with_columns(lacking).select(*totals, *(n for n in frame.columns if n not in totals))


def ring(edges: Sequence[frozenset[str]]) -> bool:
    """Do tables overlap in a ring?

    They do not where one after the other can be taken away whose columns shared with the rest all lie in one other
    table.

    Examples
    --------
    >>> ring([frozenset("ab"), frozenset("bc")]), ring([frozenset("ab"), frozenset("bc"), frozenset("ca")])
    (False, True)
    """
    left = list(dict.fromkeys(edges))
    while len(left) > 1:
        for edge in left:
            others = [other for other in left if other is not edge]
            shared = edge & frozenset().union(*others)
            if any(shared <= other for other in others):
                left = others
                break
        else:
            return True
    return False


def _check(tables: Sequence[Table]) -> None:
    from discreet.tables.table import Table

    if len(tables) < 2 or not all(isinstance(table, Table) for table in tables):
        raise ParameterError("Table.link needs two or more tables, in a list.")
    values = {table.value for table in tables}
    if len(values) > 1:
        raise ParameterError(
            f"The tables publish different columns ({', '.join(sorted(values))}). Tables of one measure are linked, "
            "each measure by itself; rename the columns where they mean the same."
        )


def _numbered(
    frames: Sequence[pl.DataFrame], totals: Mapping[str, str], order: Mapping[str, Dimension] | None = None
) -> tuple[pl.DataFrame, list[Integers]]:
    """All combinations of codes, each once, and for every frame which of them its rows are."""
    names = list(totals)
    every = pl.concat([frame.select(names) for frame in frames]).unique(maintain_order=True)
    if order is not None:
        every = every[np.lexsort([places_of(every[name], order[name].codes) for name in reversed(names)])]
    numbers = every.with_row_index("discreet place")
    places = [
        frame.select(names).join(numbers, on=names, how="left", maintain_order="left")["discreet place"]
        for frame in frames
    ]
    return every, [place.cast(pl.Int64).to_numpy() for place in places]


def _written_out(views: Sequence[View], count: int) -> tuple[Any, Integers]:
    """Every cell made of the inner cells of the first table that has it, and which table that is."""
    owner = np.full(count, -1, dtype=np.int64)
    at = np.zeros(count, dtype=np.int64)
    start = 0
    for number, view in enumerate(views):
        new = np.flatnonzero(owner[view.cells] < 0)
        owner[view.cells[new]] = number
        at[view.cells[new]] = start + new
        start += view.x.shape[1]
    return sparse.hstack([view.x for view in views]).tocsc()[:, at], owner


def _filled(columns: Any) -> Any:
    columns = columns.tocsc()
    columns.eliminate_zeros()
    return columns[:, np.diff(columns.indptr) > 0]


def _deepened(x: Any, rest: Remainders) -> Any:
    """Add empty rows for the remainders."""
    more = sparse.csc_matrix((rest.inner.height, x.shape[1]), dtype=np.int64)
    return sparse.vstack([x, more]).tocsc()


def _gathered(frames: Sequence[pl.DataFrame], places: Sequence[Integers], keys: pl.DataFrame) -> pl.DataFrame:
    """What the tables say of every cell; where several do, the first, but sensitive in one is sensitive."""
    placed = [
        frame.with_columns(pl.Series("discreet place", at)) for frame, at in zip(frames, places, strict=True)
    ]
    stacked = pl.concat(placed, how="diagonal_relaxed")
    spoken = {
        "primary": pl.col("primary").any(),
        "rule": pl.col("rule").drop_nulls().unique(maintain_order=True).str.join(" + "),
        "protection": pl.col("protection").max(),
        "additive": pl.col("additive").all(),
    }
    said = [
        spoken.get(name, pl.col(name).drop_nulls().first())
        for name in stacked.columns
        if name != "discreet place"
    ]
    found = stacked.group_by("discreet place").agg(said).sort("discreet place").drop("discreet place")
    if "rule" in found.columns:
        found = found.with_columns(pl.when(pl.col("rule") != "").then(pl.col("rule")).alias("rule"))
    return keys.hstack(found)


def _agreement(
    frames: Sequence[pl.DataFrame],
    places: Sequence[Integers],
    cells: pl.DataFrame,
    sums: Sequence[str],
    tolerance: float | None,
) -> Flags:
    """Do the tables say the same of every cell they share?"""
    agree = np.ones(cells.height, dtype=bool)
    for name in sums:
        told = cells[name].cast(pl.Float64).to_numpy()
        allowed = tolerance if tolerance is not None else _TOLERANCE * np.maximum(np.abs(told), 1.0)
        for frame, at in zip(frames, places, strict=True):
            apart = np.abs(frame[name].cast(pl.Float64).to_numpy() - told[at])
            agree[at[apart > np.broadcast_to(allowed, told.shape)[at]]] = False
    return agree


def _sums(tables: Sequence[Table], places: Sequence[Integers], count: int) -> Any:
    found = []
    for table, at in zip(tables, places, strict=True):
        own = sparse.coo_matrix(equations(table))
        found.append(sparse.csr_matrix((own.data, (own.row, at[own.col])), shape=(own.shape[0], count)))
    every = sparse.vstack(found).tocsr()
    every.sort_indices()
    marks: dict[tuple[bytes, bytes], int] = {}
    for row in range(every.shape[0]):
        here = slice(every.indptr[row], every.indptr[row + 1])
        marks.setdefault((every.indices[here].tobytes(), every.data[here].tobytes()), row)
    return every[sorted(marks.values())]


def _members(tables: Sequence[Table], places: Sequence[Integers], count: int) -> dict[str, Flags]:
    found: dict[str, Flags] = {}
    for table, at in zip(tables, places, strict=True):
        for name in table.tables:
            mine = found.setdefault(name, np.zeros(count, dtype=bool))
            mine[at[table.in_table(name)]] = True
    return found


def _finished(  # noqa: PLR0917
    cells: pl.DataFrame,
    dimensions: Mapping[str, Dimension],
    sums: Sequence[str],
    owner: Integers,
    agree: Flags,
    x: Any,
) -> pl.DataFrame:
    level = np.zeros(cells.height, dtype=np.int64)
    for name, dimension in dimensions.items():
        level += dimension.depth[places_of(cells[name], dimension.codes)]
    cells = cells.with_columns(
        level=pl.Series(level),
        inner_cells=pl.Series(np.diff(x.indptr), dtype=pl.Int64),
        agree=pl.Series(agree),
    )
    flags = {"primary": False, "additive": True, "protection": 0.0}
    cells = cells.with_columns(pl.col(n).fill_null(v) for n, v in flags.items() if n in cells.columns)
    first = [*dimensions, *sums]
    last = ["table", "level", "inner_cells"]
    return cells.select(*first, *(n for n in cells.columns if n not in (*first, *last)), *last)


def _said(agree: Flags, places: Sequence[Integers], rest: Remainders, made: Joined) -> list[str]:
    shared = int((np.bincount(np.concatenate(places), minlength=len(agree)) > 1).sum())
    if not shared and not rest.ties.shape[1]:
        raise InputError(
            "The tables share no cell, not even a total, so that there is nothing to link. Check the codes of the "
            "totals (total=), or protect each table by itself."
        )
    notes = [f"{shared:,} cells are shared by several tables and occur once."]
    torn = int((~agree).sum())
    if torn or rest.negative:
        told = (
            f"The tables do not agree on {torn:,} of {shared:,} shared cells"
            + (f", and {rest.negative:,} parts are larger than their whole" if rest.negative else "")
            + "; the value of the first table is kept. See the column agree."
        )
        notes.append(told)
        warnings.warn(
            f"{told} Check that they were made from the same records, or raise tolerance if they were rounded.",
            DiscreetWarning,
            stacklevel=5,
        )
    if made.ring:
        notes.append(
            "The tables overlap in a ring: what their empty combinations say about each other is not used. Build them "
            "from the records with one formula where you can."
        )
    return notes


# One dimension of several tables: the codes of all of them in one hierarchy.
#
# Tables that were made apart rarely list the same codes: one stops at a coarser level, another covers a part of the
# country, a third has no cell for a branch. Their codes are put together by who stands right above whom.


Parents = dict[str, str | None]


def merged_dimension(dimensions: Sequence[Dimension], whole: str | None = None) -> Dimension:
    """Put the codes of one column of several tables into one dimension.

    A code that is a leaf in one table and a group in another is a group. The total of a table that covers only a
    part of the codes becomes a group of its own. Where two tables group the same codes differently the hierarchies
    overlap. ``whole`` names the total where every table covers a part.

    Examples
    --------
    >>> coarse = dimension_of("place", ["X", "Y"])
    >>> fine = dimension_of("place", ["a", "b"], [[["a", "b"], ["X", "X"]]])
    >>> merged_dimension([coarse, fine]).codes
    ('Total', 'X', 'a', 'b', 'Y')
    """
    first = dimensions[0]
    if whole in (None, first.total) and all(other == first for other in dimensions[1:]):
        return first
    held = _codes_under(dimensions)
    leaves = list(
        dict.fromkeys(leaf for one in dimensions for code in one.codes[1:] for leaf in _covered(code, held))
    )
    total = whole or _total(first.name, dimensions, held, set(leaves))
    merged: list[Parents] = []
    for one in dimensions:
        for chain in range(len(one.chains)):
            _taken_in(merged, _parents(one, chain, total))
    chains = [_levels(parents, leaves) for parents in merged]
    order = branch_order(chains[0])
    return dimension_of(
        first.name,
        [leaves[at] for at in order],
        [tuple(tuple(level[at] for at in order) for level in chain) for chain in chains],
        total=total,
    )


def _codes_under(dimensions: Sequence[Dimension]) -> dict[str, dict[str, None]]:
    """What each group holds right below it, in any table."""
    held: dict[str, dict[str, None]] = {}
    for one in dimensions:
        for chain in range(len(one.chains)):
            for group, below in one.children(chain).items():
                held.setdefault(group, {}).update(dict.fromkeys(below))
    return held


def _covered(code: str, held: Mapping[str, dict[str, None]]) -> list[str]:
    """The lowest codes below a code, in order."""
    below = held.get(code)
    if below is None:
        return [code]
    return list(dict.fromkeys(leaf for part in below for leaf in _covered(part, held)))


def _total(
    name: str, dimensions: Sequence[Dimension], held: Mapping[str, dict[str, None]], leaves: set[str]
) -> str:
    """The total that covers every code; those of tables that cover a part are groups."""
    whole = [
        code for code in dict.fromkeys(one.total for one in dimensions) if set(_covered(code, held)) >= leaves
    ]
    if len(whole) > 1:
        raise ParameterError(
            f"The total of column '{name}' has different codes in the tables. Give it one code, with total= where they "
            "are built."
        )
    return whole[0] if whole else TOTAL


def _parents(one: Dimension, chain: int, total: str) -> Parents:
    found: Parents = {}
    for group, below in one.children(chain).items():
        for code in below:
            found[code] = None if group == total else group
    if one.total != total:
        found[one.total] = None
    return found


def _taken_in(merged: list[Parents], parents: Parents) -> None:
    """Add a hierarchy to the first one that does not contradict it; right below the total contradicts nothing."""
    for known in merged:
        if all(known.get(code) in (None, above) or above is None for code, above in parents.items()):
            for code, above in parents.items():
                known[code] = known.get(code) or above
            return
    merged.append(dict(parents))


def _levels(parents: Parents, leaves: Sequence[str]) -> Chain:
    paths = []
    for leaf in leaves:
        path = [leaf]
        while (above := parents.get(path[-1])) is not None:
            path.append(above)
            if len(path) > len(parents) + 1:
                raise ParameterError(
                    "The hierarchies of the tables contradict each other: a code is above itself. Give all tables the "
                    "same hierarchies."
                )
        paths.append(path)
    depth = max(map(len, paths))
    padded = [[*path, *[path[-1]] * (depth - len(path))] for path in paths]
    return tuple(tuple(path[level] for path in padded) for level in range(depth))
