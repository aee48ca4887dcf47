"""What can be computed exactly from the published cells, by everybody or by a contributor?

A cell is computable when its column is a combination of published columns. This is decided in whole numbers, so
that no rounding hides or invents a disclosure.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Array, Flags, Integers
from discreet.tables.gauss.codes import PLAIN
from discreet.tables.gauss.problem import (
    Problem,
    equal_columns,
    labels_of,
    merged_rows,
    owners,
    positions,
    row_kinds,
    unit_columns,
    whole_numbers,
)
from discreet.tables.gauss.running import Left, run


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
    x = whole_numbers(x, "x")
    height, count = x.shape
    open_cells = positions(published, count, "published")
    wanted = positions(targets, count, "targets")
    label, names = labels_of(contributors, height, {"within"}) if contributors is not None else (None, [])
    unknown = np.ones(height, dtype=bool)
    unknown[positions(known_rows, height, "known_rows", what="inner cells")] = False
    x = x.multiply(unknown[:, None]).tocsc()
    x.eliminate_zeros()
    own = np.flatnonzero((label >= 0) & unknown) if label is not None else np.zeros(0, dtype=np.int64)
    columns = x[:, open_cells]
    columns = columns[:, np.unique(equal_columns(columns))]
    columns = columns[:, np.argsort(np.diff(columns.indptr), kind="stable")]
    every = sparse.hstack([columns, x[:, wanted], unit_columns(own, height)]).tocsc()
    kind, labels = row_kinds(height, None, label)
    rows = merged_rows(every, kind)
    every = every[rows].tocsc()
    width = columns.shape[1]
    problem = Problem(
        columns=every[:, :width],
        n_forced=width,
        primaries=every[:, width:],
        kind=kind[rows],
        label=labels[rows],
        order=np.arange(len(rows), dtype=np.int64),
        method=PLAIN,
        within=False,
        parallel=False,
        combinations=False,
        owner=np.full(every.shape[1] - width, -1, dtype=np.int64),
        guarded=np.zeros(every.shape[1] - width, dtype=np.bool_),
    )
    left = run(problem).left
    gone = left.sizes[: len(wanted)] == 0
    if label is None:
        return Computable(wanted[gone], (), ())
    owner = owners(x[:, wanted], label, empty_rows)
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
    cells_of = (
        [np.flatnonzero(group == g) for g in range(len(who))] if len(who) < 64 else _grouped(group, len(who))
    )
    spaces: dict[int, _Space] = {}
    pairs = []
    for b, g in zip(covered.row[near].tolist(), covered.col[near].tolist(), strict=True):
        if g not in spaces:
            spaces[g] = _Space(left, n + cells_of[g])
        if spaces[g].holds(left.column(b)):
            pairs.append((b, int(who[g])))
    sums = []
    for g in np.flatnonzero(np.bincount(group, minlength=len(who)) >= 2).tolist():
        space = spaces.get(g) or _Space(left, n + cells_of[g])
        alone = int((sizes[n + cells_of[g]] == 0).sum())
        if space.rank < len(cells_of[g]) - alone:
            sums.append(int(who[g]))
    return pairs, sums


def _grouped(group: Integers, count: int) -> list[Integers]:
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group, minlength=count))[:-1])


class _Space:
    """The combinations of a few columns, in exact fractions of whole numbers."""

    def __init__(self, left: Left, columns: Integers) -> None:
        self.pivots: list[tuple[int, dict[int, int]]] = []
        for b in columns.tolist():
            rest = self._reduced(left.column(b))
            if rest:
                self.pivots.append((next(iter(rest)), rest))

    @property
    def rank(self) -> int:
        return len(self.pivots)

    def holds(self, column: dict[int, int]) -> bool:
        return not self._reduced(column)

    def _reduced(self, column: dict[int, int]) -> dict[int, int]:
        from discreet.tables.gauss.big import primitive, taken_off

        for row, pivot in self.pivots:
            if row in column:
                column = primitive(taken_off(column, pivot, row))
        return column
