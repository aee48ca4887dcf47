"""What exactly does a contributor compute who gives a cell away to itself?

A contributor computes a cell when the cell, less some multiples of the contributor's own figures, can be computed by
everybody. That difference is a column like any other: protect it, and the contributor computes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Array, Flags
from discreet.tables.gauss.big import primitive, taken_off
from discreet.tables.gauss.codes import PLAIN
from discreet.tables.gauss.problem import Problem, equal_columns, row_kinds, unit_columns, whole_numbers
from discreet.tables.gauss.running import Left, run

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
        As in `discreet.tables.checking.computable`, with ``published`` as a mask.
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
    x = whole_numbers(x, "x")
    height = x.shape[0]
    unknown = np.ones(height, dtype=bool)
    unknown[np.asarray(known_rows, dtype=np.int64)] = False
    x = x.multiply(unknown[:, None]).tocsc()
    x.eliminate_zeros()
    cells = sorted({cell for cell, _ in pairs})
    names = {who for _, who in pairs}
    own = np.array(
        [row for row, who in enumerate(contributors) if who in names and unknown[row]], dtype=np.int64
    )
    sought = sparse.hstack([x[:, cells], unit_columns(own, height)]).tocsc()
    left = _left_of(x[:, published], sought)
    spaces = {
        who: _space(
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
    found = sparse.hstack(columns).tocsc()
    return found[:, np.unique(equal_columns(found))]


def _left_of(columns: Any, sought: Any) -> Left:
    """What is left of the columns sought; below the inner cells every one has a row that says how often it is taken."""
    height, many = sought.shape
    columns = columns[:, np.unique(equal_columns(columns))]
    columns = columns[:, np.argsort(np.diff(columns.indptr), kind="stable")]
    tagged = sparse.vstack([sought, sparse.identity(many, dtype=np.int64)]).tocsc()
    padded = sparse.vstack([columns, sparse.csc_matrix((many, columns.shape[1]), dtype=np.int64)]).tocsc()
    kind, labels = row_kinds(height + many, None, None)
    problem = Problem(
        columns=padded,
        n_forced=padded.shape[1],
        primaries=tagged,
        kind=kind,
        label=labels,
        order=np.arange(height + many, dtype=np.int64),
        method=PLAIN,
        within=False,
        parallel=False,
        combinations=False,
        owner=np.full(many, -1, dtype=np.int64),
        guarded=np.zeros(many, dtype=np.bool_),
    )
    return run(problem).left


def _space(left: Left, columns: Sequence[int], height: int) -> list[tuple[int, dict[int, int]]]:
    """What the own figures of a contributor add to the published cells: columns by a row of an inner cell."""
    pivots: list[tuple[int, dict[int, int]]] = []
    for b in columns:
        rest = _without(left.column(b), pivots)
        inside = next((row for row in rest if row < height), None)
        if inside is not None:
            pivots.append((inside, rest))
    return pivots


def _without(column: dict[int, int], pivots: Sequence[tuple[int, dict[int, int]]]) -> dict[int, int]:
    for row, pivot in pivots:
        if row in column:
            column = primitive(taken_off(column, pivot, row))
    return column


def together(one: Any, other: Any) -> Any:
    """Put columns side by side, equal ones once; ``one`` may be None."""
    if one is None:
        return other
    both = sparse.hstack([one, other]).tocsc()
    return both[:, np.unique(equal_columns(both))]
