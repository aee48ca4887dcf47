"""Runs the compiled elimination in portions, gives it room, and falls back to big integers.

The kernel comes back now and then, so that progress can be shown and the run can be stopped; it also comes back
when an array is full (it is then packed and enlarged) or when a number no longer fits into 64 bits. A small table is
begun without compiling, which takes seconds after installation: most are done in less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.core.arrays import Array, Integers
from discreet.core.compiling import Patience, interpreted
from discreet.core.randomness import generator
from discreet.tables.gauss import problem as setup

PORTION = 100_000_000
FIRST_PORTION = 20_000
PATIENCE = Patience(5_000)  # entries of small tables, that are begun in plain Python


@dataclass(frozen=True)
class Left:
    """What is left of the primary columns: column ``b`` has ``rows[indptr[b]:indptr[b + 1]]``, and so on.

    The values are whole numbers of 64 bits, or Python integers where these were too small.
    """

    indptr: Integers
    rows: Integers
    values: Array

    def column(self, b: int) -> dict[int, int]:
        """One column by row."""
        here = slice(self.indptr[b], self.indptr[b + 1])
        return dict(zip(self.rows[here].tolist(), self.values[here].tolist(), strict=True))

    @property
    def sizes(self) -> Integers:
        """How many rows each column has left."""
        return np.diff(self.indptr)


@dataclass(frozen=True)
class Outcome:
    """Per column of the problem: the verdict, the primary column and the contributor behind it.

    ``left`` holds what is left of each primary column, ``arithmetic`` is ``"int64"`` or ``"big"``.
    """

    verdict: npt.NDArray[np.int8]
    because: Integers
    who: Integers
    left: Left
    pivot_rows: Integers
    arithmetic: str


def run(problem: setup.Problem, report: Callable[[int, int], None] | None = None) -> Outcome:
    """Eliminate; ``report(done, total)`` is called between portions and may raise to stop the run."""
    from discreet.tables.gauss.elimination_kernels import sweep

    columns, n_forced = problem.columns.tocsc(), problem.n_forced
    inserted = np.zeros(columns.shape[1], dtype=bool)
    state = _opened(problem, columns)
    twin = _opened(_reversed(problem), columns) if problem.parallel else state
    verdict = np.zeros(columns.shape[1], dtype=np.int8)
    because = np.full(columns.shape[1], -1, dtype=np.int64)
    who = np.full(columns.shape[1], -1, dtype=np.int64)
    small = PATIENCE.covers(columns.nnz + problem.primaries.nnz)
    kept = (problem.within and problem.guarded.any()) or problem.method == setup.SUBSPACE_STRICT
    plain = not (problem.parallel or kept)
    within = None if plain else problem.within
    kernel, portion = (interpreted(sweep), FIRST_PORTION) if small else (sweep, PORTION)
    while True:
        status = kernel(
            state, None if plain else twin, problem.parallel,
            columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data.astype(np.int64),
            n_forced, problem.method, within, problem.combinations, portion, verdict, because, who,
        )  # fmt: skip
        if report is not None:
            report(int(state.counters[setup.NEXT]), columns.shape[1])
        if status == setup.DONE:
            break
        if status == setup.PAUSED:
            kernel, portion = sweep, PORTION
        if status == setup.OVERFLOW:
            return run_big(problem, report)
        if status == setup.NEEDS_ROOM:
            state = _enlarged(state)
            twin = _enlarged(twin) if problem.parallel else state
        if status == setup.REVEALED:
            # A forced cell shows that its rows are zero (or one) each: they are forced out one by one.
            at = int(state.counters[setup.NEXT])
            rows = state.touched[: state.counters[setup.REVEALED_ROWS]].copy()
            units = setup.unit_columns(rows, columns.shape[0])
            columns = sparse.hstack([columns[:, :at], units, columns[:, at:]]).tocsc()
            n_forced += len(rows)
            inserted = np.insert(inserted, at, np.ones(len(rows), dtype=bool))
            verdict = np.insert(verdict, at, np.zeros(len(rows), dtype=np.int8))
            because = np.insert(because, at, np.full(len(rows), -1))
            who = np.insert(who, at, np.full(len(rows), -1))
            state = _more_pivots(state, len(rows))
    own = ~inserted
    return Outcome(
        verdict[own],
        because[own],
        who[own],
        _left(state),
        state.pivot_row[: state.counters[setup.PIVOTS]],
        "int64",
    )


def _reversed(problem: setup.Problem) -> setup.Problem:
    order = problem.order.copy()
    labeled = problem.kind == setup.LABELED
    order[labeled] = -order[labeled]
    return replace(problem, order=order)


def _opened(problem: setup.Problem, columns: Any) -> Any:
    primaries = problem.primaries.tocsc()
    primaries.eliminate_zeros()
    height, count = primaries.shape
    content = np.ones(count, dtype=np.int64)
    sizes = np.diff(primaries.indptr)
    filled = np.flatnonzero(sizes)
    values = primaries.data.astype(np.int64)
    largest = np.zeros(count, dtype=np.int64)
    if len(filled):
        content[filled] = np.gcd.reduceat(values, primaries.indptr[:-1][filled])
        values = values // np.repeat(content, sizes)
        largest[filled] = np.maximum.reduceat(np.abs(values), primaries.indptr[:-1][filled])
    key = generator(1988, "tables/gauss/rows").integers(1, 2**64 - 1, size=height, dtype=np.uint64)
    ordinary = problem.kind == setup.ORDINARY
    indices = primaries.indices.astype(np.int32)
    member = sparse.csc_matrix(
        (np.ones(len(indices), dtype=np.int64), indices, primaries.indptr), shape=primaries.shape
    )
    with np.errstate(over="ignore"):
        mark = np.zeros(count, dtype=np.uint64)
        owner_of = np.repeat(np.arange(count), sizes)
        np.add.at(mark, owner_of, np.where(ordinary, key, np.uint64(0))[indices])
    pivots = min(height, columns.shape[1]) + 1
    state = setup.State(
        kind=problem.kind,
        label=problem.label,
        order=problem.order,
        key=key,
        static=np.bincount(columns.indices, minlength=height).astype(np.int64),
        used=np.zeros(height, dtype=np.bool_),
        pivot_of=np.full(height, -1, dtype=np.int64),
        pivot_start=np.zeros(pivots, dtype=np.int64),
        pivot_length=np.zeros(pivots, dtype=np.int64),
        pivot_row=np.zeros(pivots, dtype=np.int64),
        pivot_largest=np.zeros(pivots, dtype=np.int64),
        pivot_rows=np.zeros(max(1024, 2 * columns.nnz), dtype=np.int32),
        pivot_values=np.zeros(max(1024, 2 * columns.nnz), dtype=np.int64),
        start=primaries.indptr[:-1].astype(np.int64),
        length=sizes.astype(np.int64),
        room=sizes.astype(np.int64),
        largest=largest,
        ordinary=np.asarray(ordinary.astype(np.int64) @ member, dtype=np.int64).reshape(count),
        mark=mark,
        alive=np.ones(count, dtype=np.bool_),
        owner=problem.owner,
        guarded=problem.guarded,
        rows=indices,
        values=values,
        head=np.full(height, -1, dtype=np.int64),
        follows=np.zeros(0, dtype=np.int64),
        column_of=np.zeros(0, dtype=np.int64),
        touching=np.bincount(indices, minlength=height).astype(np.int64),
        dense=np.zeros(height, dtype=np.int64),
        touched=np.zeros(height, dtype=np.int64),
        seen=np.zeros(height, dtype=np.bool_),
        heap=np.zeros(pivots, dtype=np.int64),
        queued=np.zeros(pivots, dtype=np.bool_),
        spare_rows=np.zeros(height, dtype=np.int32),
        spare_values=np.zeros(height, dtype=np.int64),
        counters=np.zeros(setup.COUNTERS, dtype=np.int64),
    )
    state.counters[setup.PRIMARY_USED] = len(indices)
    return _enlarged(state)


def _enlarged(state: Any) -> Any:
    """Pack the primary columns and their index, and leave room for what is wanted."""
    counters = state.counters
    lengths = state.length
    packed = _positions(state.start, lengths)
    rows, values = state.rows[packed], state.values[packed]
    used = len(rows)
    extra = int(counters[setup.WANTED_PRIMARY] - counters[setup.PRIMARY_USED])
    size = max(4096, 2 * used + 2 * max(extra, 0))
    start = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64) if len(lengths) else state.start
    columns = np.repeat(np.arange(len(lengths)), lengths)
    by_row = np.argsort(rows, kind="stable")
    listed = rows[by_row]
    follows = np.full(len(listed), -1, dtype=np.int64)
    head = np.full(len(state.head), -1, dtype=np.int64)
    if len(listed):
        same = listed[1:] == listed[:-1]
        follows[:-1][same] = np.flatnonzero(same) + 1
        opens = np.concatenate([[0], np.flatnonzero(~same) + 1])
        head[listed[opens]] = opens
    extra = int(counters[setup.WANTED_NODES] - counters[setup.NODES_USED])
    nodes = max(4096, 2 * used + 2 * max(extra, 0))
    pivot_size = max(len(state.pivot_rows), 2 * int(counters[setup.WANTED_PIVOT]))
    counters[setup.PRIMARY_USED] = used
    counters[setup.NODES_USED] = used
    return state._replace(
        rows=_padded(rows, size),
        values=_padded(values, size),
        start=start,
        room=lengths.copy(),
        head=head,
        follows=_padded(follows, nodes),
        column_of=_padded(columns[by_row].astype(np.int64), nodes),
        pivot_rows=_padded(state.pivot_rows, pivot_size),
        pivot_values=_padded(state.pivot_values, pivot_size),
    )


def _more_pivots(state: Any, count: int) -> Any:
    names = ("pivot_start", "pivot_length", "pivot_row", "pivot_largest", "heap", "queued")
    return state._replace(**{name: _padded(getattr(state, name), len(state.heap) + count) for name in names})


def _positions(start: Integers, length: Integers) -> Integers:
    """The positions of all entries, column after column."""
    total = int(length.sum())
    begins = (
        np.repeat(start - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
        if total
        else np.zeros(0, int)
    )
    return np.asarray(begins + np.arange(total), dtype=np.int64)


def _padded(array: Array, size: int) -> Array:
    if len(array) >= size:
        return array
    larger = np.zeros(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _left(state: Any) -> Left:
    packed = _positions(state.start, state.length)
    indptr = np.concatenate([[0], np.cumsum(state.length)]).astype(np.int64)
    return Left(indptr, state.rows[packed].astype(np.int64), state.values[packed])


# The same elimination in Python's unlimited integers, for the rare table that needs them.


Column = dict[int, int]


def run_big(problem: setup.Problem, report: Callable[[int, int], None] | None = None) -> Outcome:
    """Eliminate as `running.run` does, without any limit on the size of numbers."""
    columns = problem.columns.tocsc()
    count = columns.shape[1]
    sweeps = [_Sweep(problem, backwards=False)]
    if problem.parallel:
        sweeps.append(_Sweep(problem, backwards=True))
    verdict = np.zeros(count, dtype=np.int8)
    because = np.full(count, -1, dtype=np.int64)
    who = np.full(count, -1, dtype=np.int64)
    for j in range(count):
        if report is not None and j % 256 == 0:
            report(j, count)
        entries = slice(columns.indptr[j], columns.indptr[j + 1])
        column = dict(zip(columns.indices[entries].tolist(), columns.data[entries].tolist(), strict=True))
        reduced = [sweep.reduce(column) for sweep in sweeps]
        if not reduced[0]:
            verdict[j] = setup.DEPENDENT
            continue
        if j < problem.n_forced and problem.method != setup.PLAIN and sweeps[0].known_zeros(reduced[0]):
            for row in list(reduced[0]):
                unit = sweeps[0].reduce({row: 1})
                if unit:
                    sweeps[0].publish(unit)
            verdict[j] = setup.DEPENDENT
            continue
        if j >= problem.n_forced:
            for sweep, c in zip(sweeps, reduced, strict=True):
                verdict[j], because[j], who[j] = sweep.examine(c)
                if verdict[j] != setup.PUBLISHED:
                    break
        if verdict[j] == setup.PUBLISHED:
            for sweep, c in zip(sweeps, reduced, strict=True):
                sweep.publish(c)
    return Outcome(
        verdict, because, who, sweeps[0].left(), np.array(sweeps[0].pivot_rows, dtype=np.int64), "big"
    )


class _Sweep:
    """One elimination: its pivots, and the primary columns as they stand."""

    def __init__(self, problem: setup.Problem, *, backwards: bool) -> None:
        self.problem = problem
        self.kind = problem.kind.tolist()
        self.label = problem.label.tolist()
        order = np.where((problem.kind == setup.LABELED) & backwards, -problem.order, problem.order)
        self.order = order.tolist()
        self.pivots: list[Column] = []
        self.pivot_rows: list[int] = []
        self.rank: dict[int, int] = {}
        self.used: set[int] = set()
        primaries = problem.primaries.tocsc()
        self.primaries: list[Column] = []
        self.at: dict[int, set[int]] = defaultdict(set)
        for b in range(primaries.shape[1]):
            entries = slice(primaries.indptr[b], primaries.indptr[b + 1])
            pairs = zip(primaries.indices[entries].tolist(), primaries.data[entries].tolist(), strict=True)
            self.primaries.append({row: value for row, value in pairs if value})
            for row in self.primaries[b]:
                self.at[row].add(b)

    def reduce(self, column: Column) -> Column:
        column = {row: value for row, value in column.items() if value}
        waiting = [self.rank[row] for row in column if row in self.rank]
        heapify(waiting)
        while waiting:
            rank = heappop(waiting)
            row = self.pivot_rows[rank]
            if row in column:
                before = set(column)
                column = taken_off(column, self.pivots[rank], row)
                for new in column.keys() - before:
                    if new in self.rank:
                        heappush(waiting, self.rank[new])
        return primitive(column)

    def pivot(self, column: Column) -> int:
        ordinary = [row for row in column if self.kind[row] == setup.ORDINARY]
        if ordinary:
            return min(ordinary, key=lambda row: (len(self.at[row]), row))
        return min(column, key=lambda row: self.order[row])

    def known_zeros(self, column: Column) -> bool:
        return (
            len(column) > 1
            and all(self.kind[row] != setup.ORDINARY for row in column)
            and len({value > 0 for value in column.values()}) == 1
        )

    def examine(self, column: Column) -> tuple[int, int, int]:
        problem = self.problem
        if not any(self.kind[row] == setup.ORDINARY for row in column):
            labels = {self.label[row] for row in column}
            if problem.method in {setup.SUBSPACE, setup.SUBSPACE_STRICT}:
                return setup.ZERO_SPACE, -1, -1
            if problem.method == setup.ANY_SUM:
                if len({value > 0 for value in column.values()}) == 1:
                    return setup.ZERO_SUM, -1, -1
                if self.used & column.keys():
                    return setup.ZERO_REUSED, -1, -1
            if problem.combinations and len(labels) <= 2:
                return setup.FEW_CONTRIBUTORS, -1, self.label[next(iter(column))]
        row = self.pivot(column)
        for b in sorted(self.at[row]):
            left = taken_off(self.primaries[b], column, row)
            if not left:
                return setup.PRIMARY, b, -1
            if any(self.kind[rest] == setup.ORDINARY for rest in left):
                continue
            if problem.method == setup.SUBSPACE_STRICT and self.kind[row] == setup.ORDINARY:
                return setup.PRIMARY, b, -1
            labels = {self.label[rest] for rest in left}
            if problem.within and problem.guarded[b] and len(labels) == 1:
                contributor = labels.pop()
                if contributor != problem.owner[b]:
                    return setup.CONTRIBUTOR, b, contributor
        return setup.PUBLISHED, -1, -1

    def publish(self, column: Column) -> None:
        row = self.pivot(column)
        if self.problem.method == setup.ANY_SUM and all(self.kind[r] != setup.ORDINARY for r in column):
            self.used |= column.keys()
        self.rank[row] = len(self.pivots)
        self.pivots.append(column)
        self.pivot_rows.append(row)
        for b in list(self.at[row]):
            before = self.primaries[b]
            after = primitive(taken_off(before, column, row))
            for gone in before.keys() - after.keys():
                self.at[gone].discard(b)
            for new in after.keys() - before.keys():
                self.at[new].add(b)
            self.primaries[b] = after

    def left(self) -> Left:
        return Left(
            np.concatenate([[0], np.cumsum([len(column) for column in self.primaries])]).astype(np.int64),
            np.array([row for column in self.primaries for row in column], dtype=np.int64),
            np.array([value for column in self.primaries for value in column.values()], dtype=object),
        )


def taken_off(column: Column, other: Column, row: int) -> Column:
    """Take a multiple of another column off, so that a row becomes empty."""
    lead, have = other[row], column[row]
    shared = gcd(lead, have)
    by, take = lead // shared, have // shared
    result = {}
    for r, value in column.items():
        new = by * value - take * other.get(r, 0)
        if new:
            result[r] = new
    for r, value in other.items():
        if r not in column:
            result[r] = -take * value
    return result


def primitive(column: Column) -> Column:
    """Divide a column by the greatest common divisor of its entries."""
    content = gcd(*column.values()) if column else 1
    return column if content == 1 else {row: value // content for row, value in column.items()}
