"""The compiled elimination: sparse columns, whole numbers, one candidate after the other.

Candidates are reduced when their turn comes (every earlier pivot is applied then); primary cells are kept
reduced at all times, because each candidate is held against them. Ordinary rows may be used as pivots in any
order without changing the result, so the row that touches the fewest primary cells is taken: often there is
one that touches none, and then nothing has to be compared at all.

A column is stored divided by the greatest common divisor of its entries. Two columns are then proportional
exactly when they are equal up to the sign, and a fingerprint of the rows they touch tells nearly all others
apart without looking at them.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array
from discreet.core.compiling import ZERO, compiled, inner
from discreet.tables.gauss.column_kernels import (
    choose_pivot,
    clear,
    commit,
    divisor,
    has_room,
    place_in,
    reduce_column,
)
from discreet.tables.gauss.problem import (
    ANY_SUM,
    CONTRIBUTOR,
    DEPENDENT,
    DONE,
    FEW_CONTRIBUTORS,
    NEEDS_ROOM,
    NEXT,
    ORDINARY,
    OVERFLOW,
    PAUSED,
    PLAIN,
    PRIMARY,
    PUBLISHED,
    REVEALED,
    REVEALED_ROWS,
    SAFE,
    SUBSPACE,
    SUBSPACE_STRICT,
    WORK,
    ZERO_REUSED,
    ZERO_SPACE,
    ZERO_SUM,
    State,
)


@inner
def _worked(state: State) -> int:
    work: int = state.counters[WORK]
    return work


@compiled
def sweep(  # noqa: PLR0917
    state: State,
    twin: State | None,
    parallel: bool,
    indptr: Array,
    indices: Array,
    data: Array,
    n_forced: int,
    method: int,
    within: bool | None,
    combinations: bool,
    budget: int,
    verdict: Array,
    because: Array,
    who: Array,
) -> int:
    """Go through the columns until done, paused, out of room or out of bits; ``counters[NEXT]`` says where.

    ``twin`` and ``within`` are None where neither a second elimination nor what is left of columns is asked for: a
    third of the loops is not compiled then.
    """
    counters = state.counters
    stop = len(indptr) - 1
    begun = _worked(state) if twin is None else _worked(state) + _worked(twin)
    while counters[NEXT] < stop:
        work = _worked(state) if twin is None else _worked(state) + _worked(twin)
        if work - begun > budget:
            return PAUSED
        j = counters[NEXT]
        rows = indices[indptr[j] : indptr[j + 1]]
        values = data[indptr[j] : indptr[j + 1]]
        n, largest, fits = reduce_column(state, rows, values)
        if not fits:
            return OVERFLOW
        if n == 0:
            verdict[j] = DEPENDENT
            counters[NEXT] += 1
            continue
        if j < n_forced and method != PLAIN and n > 1 and known_zeros(state, n):
            clear(state, n)
            counters[REVEALED_ROWS] = n
            return REVEALED
        pivot = choose_pivot(state, n)
        outcome, column, contributor = PUBLISHED, -1, -1
        if j >= n_forced:
            outcome, column, contributor, fits = examine(state, n, pivot, method, within, combinations)
            if not fits:
                clear(state, n)
                return OVERFLOW
        if outcome == PUBLISHED and not has_room(state, n, pivot):
            clear(state, n)
            return NEEDS_ROOM
        if twin is not None and parallel:
            m, largest_twin, fits = reduce_column(twin, rows, values)
            if not fits:
                clear(state, n)
                return OVERFLOW
            pivot_twin = choose_pivot(twin, m)
            if j >= n_forced and outcome == PUBLISHED:
                outcome, column, contributor, fits = examine(
                    twin, m, pivot_twin, method, within, combinations
                )
                if not fits:
                    clear(state, n)
                    clear(twin, m)
                    return OVERFLOW
            if outcome == PUBLISHED and not has_room(twin, m, pivot_twin):
                clear(state, n)
                clear(twin, m)
                return NEEDS_ROOM
            if outcome == PUBLISHED and not commit(twin, m, largest_twin, pivot_twin):
                clear(state, n)
                clear(twin, m)
                return OVERFLOW
            clear(twin, m)
        if outcome == PUBLISHED:
            if method == ANY_SUM and only_special(state, n):
                use_up(state, n)
            if not commit(state, n, largest, pivot):
                clear(state, n)
                return OVERFLOW
        clear(state, n)
        verdict[j] = outcome
        because[j] = column
        who[j] = contributor
        counters[NEXT] += 1
    return DONE


# May a candidate be published? The rules that hold it against the primary cells.


@inner
def _sign(here: int, value: int) -> int:
    """Say by which sign two entries are the same; 0 where they are not, or are nothing."""
    if here == 0:
        return 0
    if here == value:
        return 1
    return -1 if here == -value else 0


@inner
def _same(state: State, column: int, n: int) -> bool:
    """Is a primary column the one in the workspace, up to the sign?"""
    if state.length[column] != n:
        return False
    first = state.start[column]
    sign = 0
    for i in range(first, first + n):
        now = _sign(state.dense[state.rows[i]], state.values[i])
        if now == 0 or sign == -now:
            return False
        sign = now
    return True


@inner
def _left_over(state: State, column: int, n: int, n_ordinary: int) -> tuple[int, int]:
    """What is left of a primary column after the workspace column is taken off so that no ordinary row stays.

    Returns (verdict, contributor): -1 ordinary rows are left, 0 nothing is left, 1 rows of one contributor or
    of special rows only are left, 2 rows of several contributors are left, -2 does not fit into 64 bits.
    """
    first = state.start[column]
    last = first + state.length[column]
    ours = ZERO
    theirs = ZERO
    if n_ordinary:
        for i in range(n):
            row = state.touched[i]
            if state.kind[row] == ORDINARY:
                ours = divisor(state.dense[row], ours)
        for i in range(first, last):
            if state.kind[state.rows[i]] == ORDINARY:
                theirs = divisor(state.values[i], theirs)
        sign = 0
        for i in range(first, last):
            row = state.rows[i]
            if state.kind[row] == ORDINARY:
                now = _sign(state.dense[row] // ours, state.values[i] // theirs)
                if now == 0 or sign == -now:
                    return -1, -1
                sign = now
        theirs *= sign
    else:
        top = choose_pivot(state, n)
        ours = state.dense[top]
        for i in range(first, last):
            if state.rows[i] == top:
                theirs = state.values[i]
    if abs(float(ours)) * float(state.largest[column]) >= SAFE:
        return -2, -1
    mine = 0.0
    for i in range(n):
        mine = max(mine, abs(float(state.dense[state.touched[i]])))
    if abs(float(theirs)) * mine >= SAFE:
        return -2, -1
    who = -1
    several = False
    some = False
    for i in range(first, last):
        row = state.rows[i]
        state.seen[row] = True
        if ours * state.values[i] != theirs * state.dense[row]:
            several = several or (some and state.label[row] != who)
            who = state.label[row]
            some = True
    for i in range(n):
        row = state.touched[i]
        if not state.seen[row]:
            several = several or (some and state.label[row] != who)
            who = state.label[row]
            some = True
    for i in range(first, last):
        state.seen[state.rows[i]] = False
    if not some:
        return 0, -1
    return (2, -1) if several else (1, who)


@inner
def examine(  # noqa: PLR0917
    state: State, n: int, pivot: int, method: int, within: bool | None, combinations: bool
) -> tuple[int, int, int, bool]:
    """May the workspace column be published? Returns (verdict, primary column, contributor, fits)."""
    n_ordinary = ZERO
    fingerprint = np.uint64(0)
    positive = False
    negative = False
    reused = False
    first_label = -1
    second_label = -1
    many = False
    for i in range(n):
        row = state.touched[i]
        if state.kind[row] == ORDINARY:
            n_ordinary += 1
            fingerprint += state.key[row]
        else:
            if state.dense[row] > 0:
                positive = True
            else:
                negative = True
            reused = reused or state.used[row]
            who = state.label[row]
            if first_label < 0:
                first_label = who
            elif who != first_label:
                if second_label < 0:
                    second_label = who
                elif who != second_label:
                    many = True
    if n_ordinary == 0:
        if method in (SUBSPACE, SUBSPACE_STRICT):
            return ZERO_SPACE, -1, -1, True
        if method == ANY_SUM:
            if not (positive and negative):
                return ZERO_SUM, -1, -1, True
            if reused:
                return ZERO_REUSED, -1, -1, True
        if combinations and not many:
            return FEW_CONTRIBUTORS, -1, first_label, True
    if state.touching[pivot] == 0:
        return PUBLISHED, -1, -1, True
    node = state.head[pivot]
    while node >= 0:
        column = state.column_of[node]
        node = state.follows[node]
        if (
            state.alive[column]
            and state.ordinary[column] == n_ordinary
            and state.mark[column] == fingerprint
            and place_in(state, column, pivot) >= 0
        ):
            if within is not None and (
                (method == SUBSPACE_STRICT and n_ordinary) or (within and state.guarded[column])
            ):
                left, who = _left_over(state, column, n, n_ordinary)
                if left == -2:
                    return PUBLISHED, column, -1, False
                if left == 0 or (method == SUBSPACE_STRICT and left > 0):
                    return PRIMARY, column, -1, True
                if within and left == 1 and who != state.owner[column]:
                    return CONTRIBUTOR, column, who, True
            elif _same(state, column, n):
                return PRIMARY, column, -1, True
    return PUBLISHED, -1, -1, True


@inner
def use_up(state: State, n: int) -> None:
    """Mark the rows of a column of special rows: a second sum over them could add up to a known zero."""
    for i in range(n):
        if state.kind[state.touched[i]] != ORDINARY:
            state.used[state.touched[i]] = True


@inner
def only_special(state: State, n: int) -> bool:
    """Has the workspace column no ordinary row?"""
    ordinary = 0
    for i in range(n):
        ordinary += state.kind[state.touched[i]] == ORDINARY
    return ordinary == 0


@inner
def known_zeros(state: State, n: int) -> bool:
    """Special rows alone, all with one sign: whoever sees their sum knows each of them."""
    positive = False
    negative = False
    for i in range(n):
        row = state.touched[i]
        if state.kind[row] == ORDINARY:
            return False
        if state.dense[row] > 0:
            positive = True
        else:
            negative = True
    return positive != negative
