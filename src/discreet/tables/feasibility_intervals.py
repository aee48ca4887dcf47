"""Between which bounds does the table pin down a suppressed cell, and how wide must that be?

Whoever has the published cells, and knows that no inner cell is negative, can bound every suppressed cell by two
linear programs. Inner cells that no unknown sum holds together are bounded apart from each other, which keeps the
programs small. Counts are whole numbers: where a linear program ends in a fraction, an integer program goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.tables.gauss.problem import distinct_columns, positions, whole_numbers
from discreet.tables.linear_programs import Program, whole_extreme, whole_solution
from discreet.tables.table_cells import cell_numbers

if TYPE_CHECKING:
    from discreet.tables.table import Table


@dataclass(frozen=True)
class Protection:
    """How wide the interval of a primary cell must be: below its value, above it, and in all.

    Each level is a share of the value of the cell, or the name of a column of levels.

    Examples
    --------
    >>> Protection(lower=0.1, upper=0.2).upper
    0.2
    """

    lower: float | str = 0.0
    upper: float | str = 0.0
    sliding: float | str = 0.0


def levels(
    table: Table, secret: Integers, protection: float | str | Protection | None
) -> tuple[Floats, Floats, Floats]:
    """How far the interval of each primary cell must reach below its value, above it, and in all.

    Without any wish the column ``protection`` counts, where the rules left one.
    """
    if protection is None:
        protection = "protection" if "protection" in table.cells.columns else 0.0
    if not isinstance(protection, Protection):
        protection = Protection(protection, protection)
    return (
        _level(table, secret, protection.lower),
        _level(table, secret, protection.upper),
        _level(table, secret, protection.sliding),
    )


def _level(table: Table, secret: Integers, level: float | str) -> Floats:
    if isinstance(level, str):
        return cell_numbers(table, level, "protection")[secret]
    if level < 0:
        raise ParameterError("protection must not be negative: it is a share of the value of a cell.")
    return np.asarray(level * np.abs(np.asarray(table.values, dtype=float)[secret]))


@dataclass(frozen=True)
class Bounds:
    """The bounds of some cells, in the order of ``cells``."""

    cells: Integers
    lower: Floats
    upper: Floats


def feasible_bounds(
    x: Any,
    inner: Array | Sequence[float],
    published: Array | Sequence[int],
    targets: Array | Sequence[int],
    *,
    lower: float | Array | None = 0.0,
    whole: bool = False,
    reach: tuple[Floats, Floats] | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Bounds:
    """Between which bounds do the published cells pin down the target cells?

    Parameters
    ----------
    x
        Which inner cells (rows) add up to which cell (columns).
    inner
        The true values of the inner cells, from which the published ones follow.
    published, targets
        Cells, as positions or masks.
    lower
        The least that is known of every inner cell beforehand: one number, one a cell, or None for nothing.
    whole
        Values are whole numbers: bounds are the farthest that whole numbers reach. Where that could not be settled in
        time, the farthest that is known to be reached is given.
    reach
        For every target a lower and an upper value that its interval should cover: a side that is known to reach it is
        not followed farther, which saves most of the work where only protection is in question.
    workers
        How many threads solve at the same time.
    progress
        Called with the number of cells done and their total.

    Examples
    --------
    >>> x = np.array([[1, 0, 1], [0, 1, 1]])
    >>> found = feasible_bounds(x, inner=[2, 7], published=[2], targets=[0])
    >>> float(found.lower[0]), float(found.upper[0])
    (0.0, 9.0)
    """
    x = whole_numbers(x, "x")
    height, count = x.shape
    y = np.asarray(inner, dtype=float)
    if y.shape != (height,):
        raise ParameterError(f"inner has {y.size} values, but x has {height} rows (inner cells).")
    wanted = positions(targets, count, "targets")
    least = np.broadcast_to(np.asarray(-np.inf if lower is None else lower, dtype=float), height).copy()
    system = _system(x, y, positions(published, count, "published"), least, whole=whole)
    parts = system.parts(x[:, wanted])
    low = np.asarray((system.fixed * system.value) @ x[:, wanted], dtype=float).reshape(len(wanted))
    high = low.copy()
    if reach is not None:
        pieces = np.bincount([goal[0] for part in parts for goal in part.goals], minlength=len(wanted))
        asked = np.where(pieces == 1, reach[0] - low, -np.inf), np.where(pieces == 1, reach[1] - low, np.inf)
        system = replace(system, reach=asked)
    done = 0
    with ThreadPoolExecutor(max(workers, 1)) as pool:
        alone = map(system.solve, parts)
        for found in pool.map(system.solve, _shared_out(parts, workers)) if workers > 1 else alone:
            for target, fall, rise in found:
                low[target] += fall
                high[target] += rise
            done += len(found)
            if progress is not None:
                progress(done, len(wanted))
    if np.isnan(low).any() or np.isnan(high).any():
        raise InputError(
            "The published values contradict each other: no inner cells add up to them. Rounded or perturbed values "
            "cannot be bounded this way; give the inner values they were made from."
        )
    if whole:
        low, high = np.rint(low), np.rint(high)
    return Bounds(wanted, low, high)


@dataclass(frozen=True)
class _Part:
    """Some targets within one connected piece of the table: (target, rows within the piece, weights)."""

    piece: int
    goals: tuple[tuple[int, Array, Floats], ...]


@dataclass(frozen=True)
class _System:
    """The unknown inner cells, in pieces, and what is published about them."""

    a: Any
    right: Floats
    fixed: Flags
    value: Floats
    piece: Integers
    inside: Integers
    lower: Floats
    upper: Floats
    whole: bool = False
    reach: tuple[Floats, Floats] | None = None

    def parts(self, targets: Any) -> list[_Part]:
        targets = targets.tocsc()
        found: dict[int, list[tuple[int, Array, Floats]]] = {}
        for t in range(targets.shape[1]):
            here = slice(targets.indptr[t], targets.indptr[t + 1])
            rows, weights = targets.indices[here], targets.data[here].astype(float)
            free = ~self.fixed[rows]
            rows, weights = rows[free], weights[free]
            pieces = self.piece[rows]
            for piece in np.unique(pieces).tolist():
                mine = pieces == piece
                found.setdefault(piece, []).append((t, self.inside[rows[mine]], weights[mine]))
        return [_Part(piece, tuple(goals)) for piece, goals in found.items()]

    def solve(self, part: _Part) -> list[tuple[int, float, float]]:
        """Bound the goals of one part.

        Every solution on the way, the true values first, shows how far each goal can go at least; rough bounds show how
        far it can go at most. Where they meet no program is solved.
        """
        rows = np.flatnonzero((self.piece == part.piece) & ~self.fixed)
        a = self.a[rows].tocsc()
        sums = np.flatnonzero(np.diff(a.indptr))
        a, right = a[:, sums], self.right[sums]
        largest = np.abs(np.concatenate([right, self.value[rows]])).max(initial=0.0)
        scale = max(1.0, float(largest) / 1e4)
        right, lower, upper = right / scale, self.lower[rows] / scale, self.upper[rows] / scale
        goals = sparse.csr_matrix(
            (
                np.concatenate([weight for _, _, weight in part.goals]),
                np.concatenate([at for _, at, _ in part.goals]),
                np.concatenate([[0], np.cumsum([len(at) for _, at, _ in part.goals])]),
            ),
            shape=(len(part.goals), len(rows)),
        )
        least, most = _rough(a, right, lower, upper, goals)
        reached = goals @ (self.value[rows] / scale)
        low, high = reached.copy(), reached.copy()
        program = Program(a.T, right, right, lower, upper)
        close = (
            1e-9 * (1.0 + np.abs(reached)) if not self.whole else np.full(len(reached), (1 - 1e-6) / scale)
        )
        for g, (_, at, weight) in enumerate(part.goals):
            for largest in (False, True):
                bound, so_far = (most, high) if largest else (least, low)
                if abs(bound[g] - so_far[g]) <= close[g] or self._reached(
                    g, part, scale * so_far[g], largest=largest
                ):
                    continue
                found = program.extreme(at, weight, largest=largest)
                bound[g] = found
                if not np.isfinite(found):
                    so_far[g] = found
                    continue
                solution: Floats | None = program.solution
                if self.whole:
                    solution = self._in_whole_numbers(
                        program,
                        a,
                        rows,
                        scale,
                        at,
                        weight,
                        settled=abs(found - so_far[g]) <= close[g],
                        largest=largest,
                    )
                    if solution is None:
                        continue
                else:
                    so_far[g] = found
                values = goals @ solution
                np.minimum(low, values, out=low, where=~np.isnan(low))
                np.maximum(high, values, out=high, where=~np.isnan(high))
        return [(goal[0], scale * low[g], scale * high[g]) for g, goal in enumerate(part.goals)]

    def _in_whole_numbers(  # noqa: PLR0917
        self,
        program: Program,
        a: Any,
        rows: Integers,
        scale: float,
        at: Array,
        weight: Floats,
        *,
        settled: bool,
        largest: bool,
    ) -> Floats | None:
        """The solution of the program if it is whole, else one of an integer program; None where it adds nothing."""
        right = np.asarray(self.value[rows] @ a).ravel()
        solution = whole_solution(scale * program.solution, a, right)
        if solution is None and not settled:
            goal = np.zeros(len(rows))
            goal[at] = weight
            solution = whole_extreme(a, right, self.lower[rows], self.upper[rows], goal, largest=largest)
        return None if solution is None else solution / scale

    def _reached(self, g: int, part: _Part, so_far: float, *, largest: bool) -> bool:
        """Is the goal known to go as far as it is asked to? Then how much farther it could go does not matter."""
        if self.reach is None:
            return False
        asked = self.reach[1 if largest else 0][part.goals[g][0]]
        return bool(so_far >= asked if largest else so_far <= asked)


def _rough(a: Any, right: Floats, lower: Floats, upper: Floats, goals: Any) -> tuple[Floats, Floats]:
    """Bounds that need no program: no inner cell is larger than a published sum leaves room for."""
    low, high = lower.copy(), upper.copy()
    if np.isfinite(low).all() and (a.data > 0).all():
        # What is left of each sum, after the least that its other cells can be.
        room = right - low @ a
        each = np.repeat(room, np.diff(a.indptr)) / a.data + low[a.indices]
        np.minimum.at(high, a.indices, each)
        np.maximum(high, low, out=high)
    positive = (goals.data >= 0).all()
    if not positive:
        return np.full(goals.shape[0], -np.inf), np.full(goals.shape[0], np.inf)
    return goals @ low, goals @ high


def _system(x: Any, y: Floats, published: Integers, lower: Floats, *, whole: bool) -> _System:
    height = x.shape[0]
    upper = np.full(height, np.inf)
    columns = x[:, published]
    fixed = lower == upper
    # A published zero of cells that cannot be negative fixes all of them, as does a published inner cell.
    # A known difference that is zero fixes nothing by itself.
    size = abs(columns)
    sums = np.diff((columns < 0).tocsc().indptr) == 0
    zero = sums & (np.asarray(np.abs(y) @ size).ravel() == 0) & (np.asarray((lower < 0) @ size).ravel() == 0)
    fixed[np.unique(columns[:, zero].indices)] = True
    while True:
        open_rows = columns.multiply(~fixed[:, None]).tocsc()
        open_rows.eliminate_zeros()
        single = np.flatnonzero(np.diff(open_rows.indptr) == 1)
        if not len(single):
            break
        fixed[open_rows.indices[open_rows.indptr[single]]] = True
    a = open_rows[:, np.diff(open_rows.indptr) > 0]
    a = distinct_columns(a) if a.shape[1] else a
    right = np.asarray(y @ a).ravel()
    _, piece = connected_components(sparse.block_array([[None, a], [a.T, None]]), directed=False)
    piece = piece[:height].astype(np.int64)
    inside = np.zeros(height, dtype=np.int64)
    free = np.flatnonzero(~fixed)
    order = free[np.argsort(piece[free], kind="stable")]
    _, opens, sizes = np.unique(piece[order], return_index=True, return_counts=True)
    inside[order] = np.arange(len(order)) - np.repeat(opens, sizes)
    return _System(a.tocsr(), right, fixed, y, piece, inside, lower, upper, whole)


def _shared_out(parts: list[_Part], workers: int) -> list[_Part]:
    """Cut large pieces, so that every thread has its share of the goals."""
    size = max(1, sum(len(part.goals) for part in parts) // (4 * workers))
    return [
        _Part(part.piece, part.goals[i : i + size]) for part in parts for i in range(0, len(part.goals), size)
    ]
