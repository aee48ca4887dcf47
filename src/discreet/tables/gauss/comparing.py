"""May a candidate be published? The rules that hold it against the primary cells, compiled."""

from __future__ import annotations

import numpy as np

from discreet.core.compiling import ZERO, inner
from discreet.tables.gauss.codes import (
    ANY_SUM,
    CONTRIBUTOR,
    FEW_CONTRIBUTORS,
    ORDINARY,
    PRIMARY,
    PUBLISHED,
    SUBSPACE,
    SUBSPACE_STRICT,
    ZERO_REUSED,
    ZERO_SPACE,
    ZERO_SUM,
)
from discreet.tables.gauss.columns import choose_pivot, divisor, place_in
from discreet.tables.gauss.state import SAFE, State


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
