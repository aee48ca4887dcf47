"""Columns of the elimination, compiled: bring one in, take the pivots out, make it a pivot itself.

A column is stored divided by the greatest common divisor of its entries, so that two of them are proportional
exactly when they are equal up to the sign.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array
from discreet.core.compiling import ZERO, inner
from discreet.tables.gauss.problem import (
    NODES_USED,
    ORDINARY,
    PIVOT_USED,
    PIVOTS,
    PRIMARY_USED,
    SAFE,
    WANTED_NODES,
    WANTED_PIVOT,
    WANTED_PRIMARY,
    WORK,
    State,
)


@inner
def divisor(a: int, b: int) -> int:
    """The greatest common divisor."""
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


@inner
def push(heap: Array, size: int, item: int) -> int:
    """Put an item into a heap; return its new size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= item:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item
    return size + 1


@inner
def pop(heap: Array, size: int) -> tuple[int, int]:
    """Take the smallest item out of a heap; return it and the new size."""
    top = heap[0]
    size -= 1
    item = heap[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item
    return top, size


@inner
def shrink(dense: Array, touched: Array, n: int) -> int:
    """Divide a column in the workspace by its content; return its largest absolute entry."""
    content = ZERO
    for i in range(n):
        value = dense[touched[i]]
        if value:
            content = divisor(value, content)
            if content == 1:
                break
    largest = 0
    for i in range(n):
        row = touched[i]
        if content > 1:
            dense[row] //= content
        largest = max(largest, abs(dense[row]))
    return largest


@inner
def _multiples(lead: int, have: int, bound: float, largest: float) -> tuple[int, int, float]:
    """How often the column and the pivot are taken so that the pivot's row vanishes, and how large entries may get."""
    shared = divisor(lead, have)
    by, take = lead // shared, have // shared
    if by < 0:
        by, take = -by, -take
    return by, take, abs(float(by)) * bound + abs(float(take)) * largest


@inner
def reduce_column(state: State, rows: Array, values: Array) -> tuple[int, int, bool]:
    """Bring a column into the workspace and take every pivot out of it.

    Returns how many rows it has left (listed in ``touched``), its largest entry, and whether it fitted.
    """
    dense, touched, seen, heap, queued = state.dense, state.touched, state.seen, state.heap, state.queued
    n = ZERO
    waiting = ZERO
    bound = 0.0
    for i in range(len(rows)):
        row = rows[i]
        dense[row] = values[i]
        touched[n] = row
        seen[row] = True
        n += 1
        bound = max(bound, abs(float(values[i])))
        rank = state.pivot_of[row]
        if rank >= 0:
            waiting = push(heap, waiting, rank)
            queued[rank] = True
    fits = True
    work = n
    while waiting:
        rank, waiting = pop(heap, waiting)
        queued[rank] = False
        row = state.pivot_row[rank]
        have = dense[row]
        if have == 0 or not fits:
            continue
        first = state.pivot_start[rank]
        last = first + state.pivot_length[rank]
        lead = state.pivot_values[first]
        largest = float(state.pivot_largest[rank])
        by, take, rise = _multiples(lead, have, bound, largest)
        if rise >= SAFE:
            bound = float(shrink(dense, touched, n))
            by, take, rise = _multiples(lead, dense[row], bound, largest)
            if rise >= SAFE:
                fits = False
                continue
        bound = rise
        if by != 1:
            for i in range(n):
                dense[touched[i]] *= by
            work += n
        for i in range(first, last):
            other = state.pivot_rows[i]
            if not seen[other]:
                seen[other] = True
                touched[n] = other
                n += 1
                later = state.pivot_of[other]
                if later >= 0 and not queued[later]:
                    waiting = push(heap, waiting, later)
                    queued[later] = True
            elif dense[other] == 0:
                later = state.pivot_of[other]
                if later > rank and not queued[later]:
                    waiting = push(heap, waiting, later)
                    queued[later] = True
            dense[other] -= take * state.pivot_values[i]
        work += last - first
    kept = ZERO
    for i in range(n):
        row = touched[i]
        seen[row] = False
        if fits and dense[row] != 0:
            touched[kept] = row
            kept += 1
        else:
            dense[row] = 0
    state.counters[WORK] += work
    largest = shrink(dense, touched, kept) if kept else 0
    return kept, largest, fits


@inner
def clear(state: State, n: int) -> None:
    """Empty the workspace."""
    for i in range(n):
        state.dense[state.touched[i]] = 0


@inner
def choose_pivot(state: State, n: int) -> int:
    """The ordinary row that touches the fewest primary cells; else the topmost of the others."""
    best = -1
    for i in range(n):
        row = state.touched[i]
        if best < 0:
            best = row
            continue
        if state.kind[row] == ORDINARY:
            if state.kind[best] != ORDINARY:
                best = row
            elif state.touching[row] != state.touching[best]:
                if state.touching[row] < state.touching[best]:
                    best = row
            elif state.static[row] < state.static[best] or (
                state.static[row] == state.static[best] and row < best
            ):
                best = row
        elif state.kind[best] != ORDINARY and state.order[row] < state.order[best]:
            best = row
    return best


@inner
def place_in(state: State, column: int, row: int) -> int:
    """Where a primary column stores a row; -1 where it has none."""
    first = state.start[column]
    for i in range(first, first + state.length[column]):
        if state.rows[i] == row:
            return i
    return -1


@inner
def has_room(state: State, n: int, pivot: int) -> bool:
    """Can the workspace column be made a pivot in the arrays as they are? Notes what is wanted if not."""
    counters = state.counters
    wanted = counters[PIVOT_USED] + n
    wanted_primary = counters[PRIMARY_USED]
    wanted_nodes = counters[NODES_USED]
    node = state.head[pivot]
    while node >= 0:
        column = state.column_of[node]
        node = state.follows[node]
        if state.alive[column]:
            wanted_primary += 2 * (state.length[column] + n)
            wanted_nodes += n
    counters[WANTED_PIVOT] = wanted
    counters[WANTED_PRIMARY] = wanted_primary
    counters[WANTED_NODES] = wanted_nodes
    return bool(
        wanted <= len(state.pivot_rows)
        and wanted_primary <= len(state.rows)
        and wanted_nodes <= len(state.follows)
    )


@inner
def _update(state: State, column: int, at: int, n: int, pivot: int) -> bool:
    """Take the workspace column off one primary column. Returns False where 64 bits do not hold the result."""
    dense, rows, values, seen = state.dense, state.rows, state.values, state.seen
    first = state.start[column]
    last = first + state.length[column]
    have, lead = values[at], dense[pivot]
    shared = divisor(have, lead)
    by, take = lead // shared, have // shared
    largest = 0
    for i in range(n):
        largest = max(largest, abs(dense[state.touched[i]]))
    if abs(float(by)) * float(state.largest[column]) + abs(float(take)) * float(largest) >= SAFE:
        return False
    spare_rows, spare_values = state.spare_rows, state.spare_values
    size = 0
    for i in range(first, last):
        row = rows[i]
        seen[row] = True
        value = by * values[i] - take * dense[row]
        if value:
            spare_rows[size] = row
            spare_values[size] = value
            size += 1
        else:
            state.touching[row] -= 1
    for i in range(n):
        row = state.touched[i]
        if not seen[row]:
            spare_rows[size] = row
            spare_values[size] = -take * dense[row]
            size += 1
            node = state.counters[NODES_USED]
            state.counters[NODES_USED] += 1
            state.column_of[node] = column
            state.follows[node] = state.head[row]
            state.head[row] = node
            state.touching[row] += 1
    for i in range(first, last):
        seen[rows[i]] = False
    content = ZERO
    for i in range(size):
        content = divisor(spare_values[i], content)
        if content == 1:
            break
    if size > state.room[column]:
        first = state.counters[PRIMARY_USED]
        state.start[column] = first
        state.room[column] = 2 * size
        state.counters[PRIMARY_USED] += 2 * size
    largest = 0
    n_ordinary = 0
    fingerprint = np.uint64(0)
    for i in range(size):
        row, value = spare_rows[i], spare_values[i]
        if content > 1:
            value //= content
        largest = max(largest, abs(value))
        if state.kind[row] == ORDINARY:
            n_ordinary += 1
            fingerprint += state.key[row]
        rows[first + i] = row
        values[first + i] = value
    state.length[column] = size
    state.largest[column] = largest
    state.ordinary[column] = n_ordinary
    state.mark[column] = fingerprint
    state.counters[WORK] += size + n
    return True


@inner
def commit(state: State, n: int, largest: int, pivot: int) -> bool:
    """Make the workspace column a pivot and take it off every primary column with that row."""
    counters = state.counters
    rank = counters[PIVOTS]
    first = counters[PIVOT_USED]
    state.pivot_rows[first] = pivot
    state.pivot_values[first] = state.dense[pivot]
    place = first + 1
    for i in range(n):
        row = state.touched[i]
        if row != pivot:
            state.pivot_rows[place] = row
            state.pivot_values[place] = state.dense[row]
            place += 1
    state.pivot_start[rank] = first
    state.pivot_length[rank] = n
    state.pivot_row[rank] = pivot
    state.pivot_largest[rank] = largest
    state.pivot_of[pivot] = rank
    counters[PIVOT_USED] = place
    counters[PIVOTS] = rank + 1
    node = state.head[pivot]
    state.head[pivot] = -1
    while node >= 0:
        column = state.column_of[node]
        node = state.follows[node]
        if not state.alive[column]:
            continue
        at = place_in(state, column, pivot)
        if at >= 0 and not _update(state, column, at, n, pivot):
            return False
    return True
