"""What can be computed exactly from the published cells, by everybody or by a contributor?

A cell is computable when its column is a combination of published columns. This is decided in whole numbers, so
that no rounding hides or invents a disclosure. Readers compute with this table and all that was published before, and
contributors with their own figures as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.tables.gauss import problem as setup
from discreet.tables.gauss.elimination_runs import Left, primitive, run, taken_off
from discreet.tables.table_cells import cell_places, inner_values

if TYPE_CHECKING:
    from discreet.tables.table import Table


@dataclass(frozen=True)
class Computable:
    """What can be computed: cells by everybody, (cell, contributor) pairs, and contributors with a known sum.

    ``sums`` names contributors some sum or difference of whose own cells everybody can compute, though perhaps
    none of the cells.
    """

    cells: Integers
    by_contributors: tuple[tuple[int, Hashable], ...]
    sums: tuple[Hashable, ...]


def computable(
    x: Any,
    published: Array | Sequence[int],
    targets: Array | Sequence[int],
    *,
    contributors: Sequence[Hashable | None] | None = None,
    known_rows: Array | Sequence[int] = (),
    empty_rows: Flags | None = None,
) -> Computable:
    """Which target cells can be computed from the published ones?

    Parameters
    ----------
    x
        Which inner cells (rows) add up to which cell (columns), in whole numbers.
    published, targets
        Cells, as positions or masks.
    contributors
        For each inner cell its only contributor, else None: each of them adds what it knows of itself.
    known_rows
        Inner cells that everybody knows, such as the zeros of a table whose zeros are published.
    empty_rows
        True for inner cells that nobody contributes to: a cell whose other inner cells all belong to one contributor is
        that contributor's own, and no news to it.

    Examples
    --------
    >>> x = np.array([[1, 0, 1], [0, 1, 1]])
    >>> computable(x, published=[1, 2], targets=[0]).cells
    array([0])
    """
    x = setup.whole_numbers(x, "x")
    height, count = x.shape
    open_cells = setup.positions(published, count, "published")
    wanted = setup.positions(targets, count, "targets")
    label, names = (
        setup.labels_of(contributors, height, {"within"}) if contributors is not None else (None, [])
    )
    x, unknown = _of_unknown(x, setup.positions(known_rows, height, "known_rows", what="inner cells"))
    own = np.flatnonzero((label >= 0) & unknown) if label is not None else np.zeros(0, dtype=np.int64)
    columns = _shortest_first(x[:, open_cells])
    every = sparse.hstack([columns, x[:, wanted], setup.unit_columns(own, height)]).tocsc()
    kind, labels = setup.row_kinds(height, None, label)
    rows = setup.merged_rows(every, kind)
    every = every[rows].tocsc()
    width = columns.shape[1]
    left = _left_over(every[:, :width], every[:, width:], kind[rows], labels[rows])
    gone = left.sizes[: len(wanted)] == 0
    if label is None:
        return Computable(wanted[gone], (), ())
    owner = setup.owners(x[:, wanted], label, empty_rows)
    pairs, sums = _contributors(left, len(rows), owner, gone, label[own])
    return Computable(
        wanted[gone],
        tuple((int(wanted[b]), names[who]) for b, who in pairs),
        tuple(names[who] for who in sums),
    )


def _contributors(
    left: Left, height: int, owner: Integers, gone: Flags, own: Integers
) -> tuple[list[tuple[int, int]], list[int]]:
    """Let every contributor add its own cells, and see what then falls to it, and what of it falls to others.

    ``left`` holds the targets and after them one column an own cell, with everything published taken off.
    """
    n = len(owner)
    sizes = left.sizes
    members = sparse.csc_matrix(
        (np.ones(len(left.rows), dtype=np.int64), left.rows, left.indptr), shape=(height, len(sizes))
    )
    owned, targets = members[:, n:], members[:, :n]
    who, group = np.unique(own, return_inverse=True)
    gather = sparse.csc_matrix(
        (np.ones(len(own), dtype=np.int64), (np.arange(len(own)), group)), shape=(len(own), len(who))
    )
    reach = (owned @ gather).tocsc()
    reach.data[:] = 1
    covered = (targets.T @ reach).tocoo()
    # Only a target whose rows all lie within reach of the contributor can be one of its combinations.
    near = (
        (covered.data == sizes[covered.row]) & ~gone[covered.row] & (owner[covered.row] != who[covered.col])
    )
    order = np.argsort(group, kind="stable")
    cells_of = np.split(order, np.cumsum(np.bincount(group, minlength=len(who)))[:-1])
    spaces: dict[int, Pivots] = {}
    pairs = []
    for b, g in zip(covered.row[near].tolist(), covered.col[near].tolist(), strict=True):
        if g not in spaces:
            spaces[g] = _pivots(left, (n + cells_of[g]).tolist())
        if not _without(left.column(b), spaces[g]):
            pairs.append((b, int(who[g])))
    sums = []
    for g in np.flatnonzero(np.bincount(group, minlength=len(who)) >= 2).tolist():
        space = spaces.get(g) or _pivots(left, (n + cells_of[g]).tolist())
        alone = int((sizes[n + cells_of[g]] == 0).sum())
        if len(space) < len(cells_of[g]) - alone:
            sums.append(int(who[g]))
    return pairs, sums


Pivots = list[tuple[int, dict[int, int]]]
"""What spans a space of columns: for each of them a row that is taken off the others by it."""


# What readers have to compute with: this table and all that was published before.
#
# Earlier tables of the same people are combined with this one, whatever their layout: other dimensions, coarser codes,
# another part of the codes. Cells with the same codes are the same cell. Tables of other people (last year's) cannot be
# combined; they are compared cell by cell.


@dataclass(frozen=True)
class Knowledge:
    """The columns readers can compute with, over the inner cells of this table and of earlier ones.

    Attributes
    ----------
    x
        Rows inner cells, those of this table first; columns the cells of this table, then everything else.
    inner
        The values of the inner cells.
    open
        Of the columns behind the cells of this table: whether readers have them.
    before
        Cells of this table that an earlier table of the same people published: readers have them already.
    last_time
        Cells of this table that an earlier table of other people published.
    others
        Earlier tables of other people, and their published cells.
    """

    x: Any
    inner: Floats
    open: Flags
    before: Flags
    last_time: Flags
    others: tuple[tuple[Table, Flags], ...]


def check_releases(previous: Sequence[Any]) -> None:
    """Refuse what is no earlier release: a table, and which of its cells were left out."""
    from discreet.tables.table import Table

    for item in previous:
        if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], Table):
            raise ParameterError(
                "previous must be results of Suppression, or pairs of a table and its suppressed cells."
            )


def knowledge(table: Table, previous: Sequence[tuple[Table, Any]] = ()) -> Knowledge:
    """Gather what readers of a table and of earlier ones have to compute with."""
    count = table.cells.height
    check_releases(previous)
    keys = _keys([table, *(earlier for earlier, _ in previous)])
    shown = [_published(earlier, left_out) for earlier, left_out in previous]
    same = [people_are_the_same(table, earlier) for earlier, _ in previous]
    tables = [table, *(earlier for (earlier, _), alike in zip(previous, same, strict=True) if alike)]
    masks = [mask for mask, alike in zip(shown, same, strict=True) if alike]
    rows, height = _rows(tables)
    parts = [setup.moved_rows(one.x, at, height) for one, at in zip(tables, rows, strict=True)]
    ties = [
        setup.moved_rows(one.joined.ties, at, height)
        for one, at in zip(tables, rows, strict=True)
        if one.joined is not None
    ]
    first = {key: (0, place) for place, key in enumerate(keys(table))}
    before = np.zeros(count, dtype=bool)
    for number, (earlier, part, mask) in enumerate(zip(tables[1:], parts[1:], masks, strict=True), 1):
        met = [first.setdefault(key, (number, place)) for place, key in enumerate(keys(earlier))]
        ties += [
            parts[other][:, [met[place][1] for place in here]] - part[:, here]
            for other in range(number)
            if (here := [place for place, (owner, _) in enumerate(met) if owner == other])
        ]
        before[[at for place, (owner, at) in enumerate(met) if owner == 0 and mask[place]]] = True
    tied = sparse.hstack(ties).tocsc() if ties else sparse.csc_matrix((height, 0), dtype=np.int64)
    tied.eliminate_zeros()
    tied = tied[:, np.diff(tied.indptr) > 0]
    inner = np.zeros(height)
    for one, at in reversed(list(zip(tables, rows, strict=True))):
        inner[at] = inner_values(one)
    last_time = np.zeros(count, dtype=bool)
    place = {key: at for at, key in enumerate(keys(table))}
    others = []
    for (earlier, _), mask, alike in zip(previous, shown, same, strict=True):
        if not alike:
            others.append((earlier, mask))
            names = keys(earlier)
            last_time[[place[names[i]] for i in np.flatnonzero(mask).tolist() if names[i] in place]] = True
    return Knowledge(
        sparse.hstack([parts[0], tied, *parts[1:]]).tocsc(),
        inner,
        np.concatenate([np.ones(tied.shape[1], dtype=bool), *masks]),
        before,
        last_time,
        tuple(others),
    )


def people_are_the_same(now: Table, before: Table) -> bool:
    """Do two tables say the same wherever they have the same cell, the inner cells included?"""
    pairs = shared_cells(now, before)
    if not pairs.height:
        raise ParameterError(
            "The earlier table shares no cell with this one, not even a total, so that the two cannot be compared. "
            "Check the names of the dimensions and the codes of the totals (total=)."
        )
    names = ["count", *([now.value] if now.value != "count" and now.value in before.cells.columns else [])]
    for name in names:
        one = now.cells[name].cast(pl.Float64).to_numpy()[pairs["now"].to_numpy()]
        other = before.cells[name].cast(pl.Float64).to_numpy()[pairs["before"].to_numpy()]
        if (np.abs(one - other) > 1e-6 * (1.0 + np.abs(one))).any():
            return False
    (ours, theirs), _ = _rows([now, before])
    _, one_row, other_row = np.intersect1d(ours, theirs, return_indices=True)
    inside, inside_before = (
        now.inner["count"].to_numpy()[one_row],
        before.inner["count"].to_numpy()[other_row],
    )
    return bool(np.allclose(inside.astype(float), inside_before.astype(float), rtol=1e-9))


def shared_cells(now: Table, before: Table) -> pl.DataFrame:
    """Positions of the cells that two tables have both: ``now`` and ``before``."""
    keys = _keys([now, before])
    place = {key: at for at, key in enumerate(keys(before))}
    found = [(at, place[key]) for at, key in enumerate(keys(now)) if key in place]
    return pl.DataFrame(found, schema={"now": pl.Int64, "before": pl.Int64}, orient="row")


def _keys(tables: Sequence[Table]) -> Any:
    """A function that gives the codes of all cells of a table over the dimensions of all tables."""
    totals = _totals(tables)

    def of(table: Table) -> list[tuple[str, ...]]:
        return _coded(table.cells, totals)

    return of


def _totals(tables: Sequence[Table]) -> dict[str, str]:
    """Code the total of every dimension, by the first table that has it."""
    totals: dict[str, str] = {}
    for table in tables:
        for name in table.dimensions:
            totals.setdefault(name, table.hierarchy[name].total)
    return totals


def _coded(frame: pl.DataFrame, totals: dict[str, str]) -> list[tuple[str, ...]]:
    missing = [pl.lit(code).alias(name) for name, code in totals.items() if name not in frame.columns]
    return frame.with_columns(missing).select(list(totals)).rows()


def _rows(tables: Sequence[Table]) -> tuple[list[Integers], int]:
    """Number the inner cells of all tables; those with the same codes are one."""
    totals = _totals(tables)
    number: dict[tuple[str, ...], int] = {}
    rows = []
    for table in tables:
        keys = _coded(table.inner, totals)
        rows.append(np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64))
    return rows, len(number)


def _published(table: Table, left_out: Any) -> Flags:
    published = np.ones(table.cells.height, dtype=bool)
    published[cell_places(table, left_out, "previous")] = False
    return published


# What exactly does a contributor compute who gives a cell away to itself?
#
# A contributor computes a cell when the cell, less some multiples of the contributor's own figures, can be computed by
# everybody. That difference is a column like any other: protect it, and the contributor computes nothing.


_LARGEST = 2**53


def disclosing_columns(
    x: Any,
    published: Flags,
    pairs: Sequence[tuple[int, Hashable]],
    contributors: Sequence[Hashable | None],
    known_rows: Array | Sequence[int] = (),
) -> Any:
    """For each pair of a cell and a contributor who can compute it, the column of what everybody can compute of both.

    Parameters
    ----------
    x, published, contributors, known_rows
        As in `discreet.tables.exact_disclosure.computable`, with ``published`` as a mask.
    pairs
        Cells and contributors, as `computable` gives them.

    Returns
    -------
    sparse matrix
        Rows as in `x`, equal columns once.

    Examples
    --------
    >>> x = np.array([[1, 0, 1], [0, 1, 1]])
    >>> mine = disclosing_columns(x, np.array([False, False, True]), [(0, "b")], [None, "b"])
    >>> mine.toarray().ravel().tolist()
    [1, 1]
    """
    x = setup.whole_numbers(x, "x")
    height = x.shape[0]
    x, unknown = _of_unknown(x, np.asarray(known_rows, dtype=np.int64))
    cells = sorted({cell for cell, _ in pairs})
    names = {who for _, who in pairs}
    own = np.array(
        [row for row, who in enumerate(contributors) if who in names and unknown[row]], dtype=np.int64
    )
    sought = sparse.hstack([x[:, cells], setup.unit_columns(own, height)]).tocsc()
    left = _left_of(x[:, published], sought)
    spaces = {
        who: _pivots(
            left, [len(cells) + i for i, row in enumerate(own.tolist()) if contributors[row] == who], height
        )
        for who in names
    }
    place = {cell: at for at, cell in enumerate(cells)}
    columns = []
    for cell, who in pairs:
        rest = _without(left.column(place[cell]), spaces[who])
        if any(row < height or abs(value) > _LARGEST for row, value in rest.items()):
            # Not computable after all, or in numbers that no column holds: the audit has the last word.
            continue
        shares = np.zeros(sought.shape[1], dtype=np.int64)
        for row, value in rest.items():
            shares[row - height] = value
        columns.append(sparse.csc_matrix(sought @ shares.reshape(-1, 1)))
    if not columns:
        return sparse.csc_matrix((height, 0), dtype=np.int64)
    return setup.distinct_columns(sparse.hstack(columns).tocsc())


def _left_of(columns: Any, sought: Any) -> Left:
    """What is left of the columns sought; below the inner cells every one has a row that says how often it is taken."""
    height, many = sought.shape
    columns = _shortest_first(columns)
    tagged = sparse.vstack([sought, sparse.identity(many, dtype=np.int64)]).tocsc()
    padded = sparse.vstack([columns, sparse.csc_matrix((many, columns.shape[1]), dtype=np.int64)]).tocsc()
    kind, labels = setup.row_kinds(height + many, None, None)
    return _left_over(padded, tagged, kind, labels)


def _left_over(columns: Any, sought: Any, kind: Any, label: Integers) -> Left:
    """Eliminate sought columns by given ones, without any rule on what may be published."""
    problem = setup.Problem(
        columns=columns,
        n_forced=columns.shape[1],
        primaries=sought,
        kind=kind,
        label=label,
        order=np.arange(len(kind), dtype=np.int64),
        method=setup.PLAIN,
        within=False,
        parallel=False,
        combinations=False,
        owner=np.full(sought.shape[1], -1, dtype=np.int64),
        guarded=np.zeros(sought.shape[1], dtype=np.bool_),
    )
    return run(problem).left


def _of_unknown(x: Any, known_rows: Any) -> tuple[Any, Flags]:
    """Take the inner cells that are known out of all sums, and flag the others."""
    unknown = np.ones(x.shape[0], dtype=bool)
    unknown[known_rows] = False
    x = x.multiply(unknown[:, None]).tocsc()
    x.eliminate_zeros()
    return x, unknown


def _shortest_first(columns: Any) -> Any:
    columns = setup.distinct_columns(columns)
    return columns[:, np.argsort(np.diff(columns.indptr), kind="stable")]


def _pivots(left: Left, columns: Sequence[int], height: int | None = None) -> Pivots:
    """Span the space of some columns; with a height only by what is left of them in rows below it."""
    pivots: Pivots = []
    for b in columns:
        rest = _without(left.column(b), pivots)
        first = next((row for row in rest if height is None or row < height), None)
        if first is not None:
            pivots.append((first, rest))
    return pivots


def _without(column: dict[int, int], pivots: Pivots) -> dict[int, int]:
    for row, pivot in pivots:
        if row in column:
            column = primitive(taken_off(column, pivot, row))
    return column


def together(one: Any, other: Any) -> Any:
    """Put columns side by side, equal ones once; ``one`` may be None."""
    if one is None:
        return other
    return setup.distinct_columns(sparse.hstack([one, other]).tocsc())
