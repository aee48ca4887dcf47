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

from discreet.core.arrays import Array
from discreet.core.compiling import compiled, inner
from discreet.tables.gauss.codes import (
    ANY_SUM,
    DEPENDENT,
    DONE,
    NEEDS_ROOM,
    OVERFLOW,
    PAUSED,
    PLAIN,
    PUBLISHED,
    REVEALED,
)
from discreet.tables.gauss.columns import choose_pivot, clear, commit, has_room, reduce_column
from discreet.tables.gauss.comparing import examine, known_zeros, only_special, use_up
from discreet.tables.gauss.state import NEXT, REVEALED_ROWS, WORK, State


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
