"""The same elimination in Python's unlimited integers, for the rare table whose numbers outgrow 64 bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import gcd

import numpy as np

from discreet.tables.gauss.codes import (
    ANY_SUM,
    CONTRIBUTOR,
    DEPENDENT,
    FEW_CONTRIBUTORS,
    LABELED,
    ORDINARY,
    PLAIN,
    PRIMARY,
    PUBLISHED,
    SUBSPACE,
    SUBSPACE_STRICT,
    ZERO_REUSED,
    ZERO_SPACE,
    ZERO_SUM,
)
from discreet.tables.gauss.problem import Problem
from discreet.tables.gauss.running import Left, Outcome

Column = dict[int, int]


def run_big(problem: Problem, report: Callable[[int, int], None] | None = None) -> Outcome:
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
            verdict[j] = DEPENDENT
            continue
        if j < problem.n_forced and problem.method != PLAIN and sweeps[0].known_zeros(reduced[0]):
            for row in list(reduced[0]):
                unit = sweeps[0].reduce({row: 1})
                if unit:
                    sweeps[0].publish(unit)
            verdict[j] = DEPENDENT
            continue
        if j >= problem.n_forced:
            for sweep, c in zip(sweeps, reduced, strict=True):
                verdict[j], because[j], who[j] = sweep.examine(c)
                if verdict[j] != PUBLISHED:
                    break
        if verdict[j] == PUBLISHED:
            for sweep, c in zip(sweeps, reduced, strict=True):
                sweep.publish(c)
    return Outcome(
        verdict, because, who, sweeps[0].left(), np.array(sweeps[0].pivot_rows, dtype=np.int64), "big"
    )


class _Sweep:
    """One elimination: its pivots, and the primary columns as they stand."""

    def __init__(self, problem: Problem, *, backwards: bool) -> None:
        self.problem = problem
        self.kind = problem.kind.tolist()
        self.label = problem.label.tolist()
        order = np.where((problem.kind == LABELED) & backwards, -problem.order, problem.order)
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
        ordinary = [row for row in column if self.kind[row] == ORDINARY]
        if ordinary:
            return min(ordinary, key=lambda row: (len(self.at[row]), row))
        return min(column, key=lambda row: self.order[row])

    def known_zeros(self, column: Column) -> bool:
        return (
            len(column) > 1
            and all(self.kind[row] != ORDINARY for row in column)
            and len({value > 0 for value in column.values()}) == 1
        )

    def examine(self, column: Column) -> tuple[int, int, int]:
        problem = self.problem
        if not any(self.kind[row] == ORDINARY for row in column):
            labels = {self.label[row] for row in column}
            if problem.method in {SUBSPACE, SUBSPACE_STRICT}:
                return ZERO_SPACE, -1, -1
            if problem.method == ANY_SUM:
                if len({value > 0 for value in column.values()}) == 1:
                    return ZERO_SUM, -1, -1
                if self.used & column.keys():
                    return ZERO_REUSED, -1, -1
            if problem.combinations and len(labels) <= 2:
                return FEW_CONTRIBUTORS, -1, self.label[next(iter(column))]
        row = self.pivot(column)
        for b in sorted(self.at[row]):
            left = taken_off(self.primaries[b], column, row)
            if not left:
                return PRIMARY, b, -1
            if any(self.kind[rest] == ORDINARY for rest in left):
                continue
            if problem.method == SUBSPACE_STRICT and self.kind[row] == ORDINARY:
                return PRIMARY, b, -1
            labels = {self.label[rest] for rest in left}
            if problem.within and problem.guarded[b] and len(labels) == 1:
                contributor = labels.pop()
                if contributor != problem.owner[b]:
                    return CONTRIBUTOR, b, contributor
        return PUBLISHED, -1, -1

    def publish(self, column: Column) -> None:
        row = self.pivot(column)
        if self.problem.method == ANY_SUM and all(self.kind[r] != ORDINARY for r in column):
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
