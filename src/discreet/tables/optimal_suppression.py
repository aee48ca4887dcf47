"""The cheapest set of further cells to leave out, so that every primary cell keeps a wide enough interval.

An integer program chooses the cells; for each choice linear programs play the intruder, and every interval that is
too narrow comes back as a condition on the choice (Fischetti and Salazar-Gonzalez 2001). When none comes back the
choice is optimal, proved by the solver's bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.tables.gauss.problem import positions, whole_numbers
from discreet.tables.linear_programs import Program


@dataclass(frozen=True)
class Optimum:
    """The cells chosen, their cost, and the lowest cost any choice can have.

    ``proved`` says that the two agree: no cheaper choice exists.
    """

    secondary: Integers
    cost: float
    bound: float
    proved: bool
    rounds: int
    conditions: int
    seconds: float


def cheapest(
    x: Any,
    inner: Array | Sequence[float],
    primary: Array | Sequence[int],
    *,
    lower: Array | float,
    upper: Array | float,
    sliding: Array | float = 0.0,
    cost: Array | None = None,
    forced: Array | Sequence[int] = (),
    hidden: Array | Sequence[int] = (),
    least: Array | float | None = 0.0,
    whole: bool = False,
    start: Array | Sequence[int] | None = None,
    equations: Any = None,
    time_limit: float = 600.0,
    progress: Callable[[int, int], None] | None = None,
) -> Optimum:
    """Choose the further cells of least cost that protect every primary cell.

    Parameters
    ----------
    x
        Which inner cells (rows) add up to which cell (columns).
    inner
        The values of the inner cells.
    primary
        The cells to protect.
    lower, upper, sliding
        How far the interval of each primary cell must reach below its value, above it, and in all.
    cost
        What it costs to leave out each cell; its absolute value by default.
    forced, hidden
        Cells that must be published, and cells that are not published anyway.
    least
        The least value that everybody knows each inner cell to have; None where values may be negative.
    whole
        Values are whole numbers: an interval ends at the last one inside it.
    start
        A choice that may do, such as that of the elimination: the search ends when nothing can be cheaper.
    equations
        Sparse matrix, one row a sum that holds between cells (`discreet.tables.equations`): a cell left out alone in
        its sum is known, which rules out most choices before the search begins.
    time_limit
        Seconds after which the best choice so far is returned, unproved.
    progress
        Called with the conditions found so far and the rounds.

    Examples
    --------
    >>> x = sparse.csc_matrix(np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]))
    >>> found = cheapest(x, [2, 9, 5], primary=[0], lower=1, upper=1)
    >>> found.secondary.tolist(), found.cost, found.proved
    ([2], 5.0, True)
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    began = time.perf_counter()
    x = whole_numbers(x, "x")
    count = x.shape[1]
    y = np.asarray(inner, dtype=float)
    secret = positions(primary, count, "primary")
    must = np.setdiff1d(positions(forced, count, "forced"), secret)
    gone = np.setdiff1d(positions(hidden, count, "hidden"), secret)
    game = _Game(x, y, secret, _asked(lower, upper, sliding, len(secret)), least, whole=whole)
    value = np.asarray(y @ x).ravel()
    price = np.abs(value) if cost is None else np.asarray(cost, dtype=float)
    if price.shape != (count,) or (price < 0).any():
        raise ParameterError(f"cost must be one number a cell, {count} in all, and none may be negative.")
    # Where costs tie, fewer cells are better.
    price = price + 1e-6 * (1.0 + price.max(initial=0.0))
    known = np.concatenate([secret, gone])
    price[known] = 0.0
    low, high = np.zeros(count), np.ones(count)
    low[known] = 1.0
    high[must] = 0.0
    if game.conditions(high):
        raise InputError(
            "Even with every cell left out that may be, some primary cell keeps too narrow an interval. Ask for less "
            "protection, or force fewer cells."
        )
    best, best_cost = None, np.inf
    if start is not None:
        given = low.copy()
        given[np.setdiff1d(positions(start, count, "start"), must)] = 1.0
        if not game.conditions(given):
            best, best_cost = np.flatnonzero(given), float(price @ given)
    needy = np.setdiff1d(np.arange(count), gone)
    idle = secret[(game.lower == 0) & (game.upper == 0) & (game.sliding == 0)]
    ruled = _never_alone(equations, np.setdiff1d(needy, idle), count)
    conditions: list[tuple[Floats, float]] = game.conditions(low)
    rounds, bound = 0, 0.0
    while True:
        left = time_limit - (time.perf_counter() - began)
        if left <= 0:
            break
        rounds += 1
        found_rows = np.array([row for row, _ in conditions]).reshape(len(conditions), count)
        rows = sparse.vstack([ruled, sparse.csr_matrix(found_rows)]).tocsr()
        right = np.concatenate([np.zeros(ruled.shape[0]), [r for _, r in conditions]])
        constraints = LinearConstraint(rows, right, np.inf)
        for presolve in (True, False):
            # Presolve has been seen to call a program of zeros and ones unbounded: it is then done without.
            solved = milp(
                price,
                constraints=constraints,
                bounds=Bounds(low, high),
                integrality=np.ones(count),
                options={"time_limit": left, "mip_rel_gap": 0.0, "presolve": presolve},
            )
            if solved.status in {0, 1}:
                break
        if solved.x is None:
            break
        bound = max(bound, float(solved.mip_dual_bound))
        if bound >= best_cost - 1e-9 * (1.0 + best_cost):
            break
        choice = np.round(solved.x)
        found = game.conditions(choice)
        if progress is not None:
            progress(len(conditions), rounds)
        if not found:
            best, best_cost = np.flatnonzero(choice), float(price @ choice)
            break
        conditions += found
    if best is None:
        best, best_cost = np.flatnonzero(high), float(price[high > 0].sum())
    chosen = np.setdiff1d(best, known).astype(np.int64)
    return Optimum(
        secondary=chosen,
        cost=float((np.abs(value) if cost is None else np.asarray(cost, dtype=float))[chosen].sum()),
        bound=bound,
        proved=bool(best_cost <= bound * (1 + 1e-6) + 1e-6),
        rounds=rounds,
        conditions=len(conditions),
        seconds=time.perf_counter() - began,
    )


def _never_alone(equations: Any, needy: Integers, count: int) -> Any:
    """For every sum and every cell in it that must not be computable: it is left out only together with another."""
    if equations is None:
        return sparse.csr_matrix((0, count))
    sums = sparse.csr_matrix(equations)
    if sums.shape[1] != count:
        raise ParameterError(f"equations has {sums.shape[1]} columns, but there are {count} cells.")
    pairs = sums.tocoo()
    kept = np.isin(pairs.col, needy)
    members, cells = pairs.row[kept], pairs.col[kept]
    rows = abs(sums[members]).sign()
    alone = sparse.csr_matrix((np.full(len(cells), 2.0), (np.arange(len(cells)), cells)), shape=rows.shape)
    return (rows - alone).tocsr()


def _asked(lower: Any, upper: Any, sliding: Any, count: int) -> tuple[Floats, Floats, Floats]:
    levels = tuple(
        np.broadcast_to(np.asarray(level, dtype=float), count) for level in (lower, upper, sliding)
    )
    if any((level < 0).any() for level in levels):
        raise ParameterError("lower, upper and sliding must not be negative: they are widths.")
    return levels[0], levels[1], levels[2]


class _Game:
    """The intruder: given the cells left out, how far can each primary cell be moved?"""

    def __init__(
        self,
        x: Any,
        y: Floats,
        secret: Integers,
        asked: tuple[Floats, Floats, Floats],
        least: Any,
        *,
        whole: bool,
    ) -> None:
        self.x, self.secret, self.whole = x, secret, whole
        total = max(1.0, float(np.abs(y).sum()))
        # Programs are solved in units in which their tolerances are fine enough.
        self.unit = max(1.0, total / 1e4)
        value = np.asarray(y @ x, dtype=float).ravel()[secret]
        self.slack = 1e-6 * (1.0 + np.abs(value)) / self.unit
        wide = tuple(np.ceil(level - 1e-6) for level in asked) if whole else asked
        self.lower, self.upper, self.sliding = (level / self.unit for level in wide)
        height = x.shape[0]
        floor = (
            np.full(height, -np.inf)
            if least is None
            else np.broadcast_to(np.asarray(least, dtype=float), height)
        )
        # Farther than any cell has to move.
        far = (
            2.0 * total + 4.0 * max((float(level.max(initial=0.0)) for level in wide), default=0.0)
        ) / self.unit
        fall = np.minimum((y - floor) / self.unit, far)
        # How far a cell can fall, and rise, when it is left out: to its least value, and beyond any use.
        self.fall = np.minimum(np.asarray(fall @ abs(x)).ravel(), far)
        self.rise = np.full(x.shape[1], far)
        # Inner cells that are cells themselves are held by those; the others by what is known of them.
        single = np.flatnonzero(np.diff(x.indptr) == 1)
        shown = np.zeros(height, dtype=bool)
        shown[x.indices[x.indptr[single]]] = True
        self.floor = np.where(shown, -far, -fall)
        self.ceiling = np.full(height, far)

    def conditions(self, choice: Floats) -> list[tuple[Floats, float]]:
        """For every interval that is too narrow under this choice a condition that any good choice meets."""
        out = choice > 0.5
        program = Program(
            self.x.T,
            np.where(out, -self.fall, 0.0),
            np.where(out, self.rise, 0.0),
            self.floor,
            self.ceiling,
        )
        found = []
        for k, cell in enumerate(self.secret.tolist()):
            at, weight = self._members(cell)
            up = program.extreme(at, weight, largest=True)
            rows_up = self._condition(program)
            down = program.extreme(at, -weight, largest=True)
            rows_down = self._condition(program)
            if math.isnan(up) or math.isnan(down):
                # A comparison with NaN is never true, and the cell would pass for protected.
                raise InputError(
                    "The solver could not bound a sensitive cell, so it cannot be said whether it is protected. Use "
                    "method='gauss', or a table with less extreme numbers."
                )
            slack = self.slack[k]
            rise, fall = self._steps(up), self._steps(down)
            if rise < self.upper[k] - slack:
                found.append(_sharpened([rows_up], self.upper[k], out))
            if fall < self.lower[k] - slack:
                found.append(_sharpened([rows_down], self.lower[k], out))
            if rise + fall < self.sliding[k] - min(2 * slack, self.sliding[k] / 4):
                found.append(_sharpened([rows_up, rows_down], self.sliding[k], out))
        if found:
            found += self._useless(program, np.setdiff1d(np.flatnonzero(out), self.secret))
        return found

    def _members(self, cell: int) -> tuple[Array, Floats]:
        here = slice(self.x.indptr[cell], self.x.indptr[cell + 1])
        return self.x.indices[here], self.x.data[here].astype(float)

    def _steps(self, reach: float) -> float:
        """How far that is in whole numbers, where values are."""
        return float(np.floor(reach * self.unit + 1e-6)) / self.unit if self.whole else reach

    def _useless(self, program: Program, chosen: Integers) -> list[tuple[Floats, float]]:
        """A chosen cell that can be computed protects nothing: it is left out only together with another one."""
        found = []
        for cell in chosen.tolist():
            at, weight = self._members(cell)
            up = program.extreme(at, weight, largest=True)
            if not up <= 1e-7:
                continue
            above, rest = self._condition(program)
            down = program.extreme(at, -weight, largest=True)
            if not down <= 1e-7:
                continue
            below, other = self._condition(program)
            if rest + other > 1e-7:
                continue
            row = ((above + below) > 1e-9).astype(float)
            row[cell] = -1.0
            found.append((row, 0.0))
        return found

    def _condition(self, program: Program) -> tuple[Floats, float]:
        """How the reach grows with the cells left out: a row of coefficients and what does not depend on them."""
        price = np.where(np.abs(program.duals) > 1e-9, program.duals, 0.0)
        row = np.where(price > 0, price * self.rise, -price * self.fall)
        bound = np.where(np.abs(program.reduced) > 1e-9, program.reduced, 0.0)
        rest = float(np.where(bound > 0, bound * self.ceiling, bound * self.floor) @ np.ones(len(bound)))
        return row, rest


def _sharpened(sides: list[tuple[Floats, float]], asked: float, out: Flags) -> tuple[Floats, float]:
    """The condition that a reach must grow to what is asked, in a form that rules out the choice it comes from.

    No coefficient need be larger than what is asked: a choice is all or nothing. Where the reach falls short by next
    to nothing, or only because values are whole, what holds for sure is that one more cell must go of those on which
    the reach depends: without them it stays what it is.
    """
    row = np.sum([side for side, _ in sides], axis=0)
    need = asked - sum(rest for _, rest in sides)
    row = np.where(row > 1e-9 * max(1.0, asked), row, 0.0)
    if need > 0:
        sharp = np.minimum(row, need) / need
        if float(sharp @ out) < 1.0 - 1e-4:
            return sharp, 1.0
    more = (row > 0) & ~out
    return (more if more.any() else ~out).astype(float), 1.0
