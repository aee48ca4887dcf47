"""How wide can the interval of every primary cell be made, and what has to be open for it?

Leaving out more cells never makes an interval narrower. So what can be had at all shows when everything is left out
that may be: what is then too narrow stays so, whatever the choice.

Zeros that need no protection are published, and everybody then knows that no suppressed count is zero: a count of one
cannot be protected against being one or more. Where that, or the lack of room, keeps an interval too narrow, zeros
may be left out like other cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Flags, Integers
from discreet.tables.building.cells import counts_only, known_zero_rows
from discreet.tables.checking.levels import levels
from discreet.tables.checking.table_audit import least_values, whole_values
from discreet.tables.suppressing.widening import Room, Widths, widened

if TYPE_CHECKING:
    from discreet.tables.suppressing.choosing import Case, Progress
    from discreet.tables.suppressing.suppression import Suppression


@dataclass(frozen=True)
class Aim:
    """What the intervals are to reach: the widths that can be had, and the primary cells for which some cannot.

    ``zeros_open`` says that zeros may be left out, ``lost`` are positions of cells.
    """

    room: Room
    widths: Widths
    lost: Integers
    zeros_open: bool = False


def aim_of(plan: Suppression, case: Case) -> Aim:
    """The widths a plan asks for, as far as they can be had, with zeros published if that is possible."""
    shut = _aim(plan, case, case.forced)
    if not len(shut.lost) or not len(case.zeros):
        return shut
    opened = _aim(plan, case, np.setdiff1d(case.forced, case.zeros))
    return replace(opened, zeros_open=True) if len(opened.lost) < len(shut.lost) else shut


def _aim(plan: Suppression, case: Case, forced: Integers) -> Aim:
    counts = counts_only(case.table)
    fixed = np.zeros(case.x.shape[1], dtype=bool)
    fixed[forced] = True
    fixed[case.secret] = False
    known = known_zero_rows(case.x, case.inner, fixed)
    whole = counts and whole_values(case.inner)
    room = Room(case.x, case.inner, fixed, known, least_values(case.inner, known, counts=counts), whole)
    down, up = room.reach(fixed, case.secret)
    value = room.value[case.secret]
    asked = levels(case.table, case.secret, plan.protection)
    lost = case.secret[Widths.of(asked, value, whole=whole).missed(down, up)]
    # A thousandth of the value is asked for beyond the letter: an interval of a few parts in a million is none.
    widths = Widths.of(asked, value, whole=whole, narrowest=1e-3).within(down, up)
    return Aim(room, widths, lost)


def widest(aim: Aim, case: Case, published: Flags, progress: Progress = None) -> Flags:
    """Leave out further cells until the aim is reached; which cells stay published."""
    price = np.maximum(case.worth, 0.0) + 1.0
    found = widened(aim.room, published, case.secret, aim.widths, cost=price, progress=progress)
    if not aim.zeros_open or not aim.room.whole or len(hidden_zeros(case, found)):
        return found
    # Counts may be zero only for readers who cannot rule it out: one zero goes out, and may not be computable.
    decoy = decoy_zero(aim, case, found)
    found[decoy] = False
    free = _one_up(aim, decoy).within(*aim.room.reach(aim.room.fixed, decoy))
    return widened(aim.room, found, decoy, free, cost=price)


def hidden_zeros(case: Case, published: Flags) -> Integers:
    """Inner cells of zero that readers do not know to be zero."""
    return np.setdiff1d(np.flatnonzero(case.inner == 0), known_zero_rows(case.x, case.inner, published))


def decoy_zero(aim: Aim, case: Case, published: Flags) -> Integers:
    """The cells that must go for one zero to be hidden: one that costs little, and that is free to be more."""
    groups = zero_groups(aim, case)
    some = groups[:: max(1, len(groups) // 8)]
    for group in some:
        trial = published.copy()
        trial[group] = False
        if not _one_up(aim, group).missed(*aim.room.reach(trial, group)).any():
            return group
    return groups[0]


def with_decoy(aim: Aim, case: Case, decoy: Integers) -> tuple[Integers, Widths]:
    """The primary cells and the hidden zero, with the widths of both."""
    cells = np.concatenate([case.secret, decoy])
    free = _one_up(aim, decoy).within(*aim.room.reach(aim.room.fixed, decoy))
    return cells, Widths(
        *(
            np.concatenate([getattr(aim.widths, name), getattr(free, name)])
            for name in ("lower", "upper", "sliding", "slack")
        )
    )


def zero_groups(aim: Aim, case: Case) -> list[Integers]:
    """For every inner zero that can be hidden, all cells of zero it is part of; the smallest groups first."""
    rows = np.setdiff1d(np.flatnonzero(case.inner == 0), aim.room.known)
    lines = case.x[rows][:, case.zeros].tocsr()
    groups = {
        tuple(case.zeros[lines.indices[lines.indptr[i] : lines.indptr[i + 1]]].tolist())
        for i in range(len(rows))
    }
    found = [np.array(group, dtype=np.int64) for group in sorted(groups, key=lambda g: (len(g), g)) if group]
    stuck = case.zeros[_one_up(aim, case.zeros).missed(*aim.room.reach(aim.room.fixed, case.zeros))]
    free = [group for group in found if not np.isin(group, stuck).any()]
    return free or found


def _one_up(aim: Aim, cells: Integers) -> Widths:
    """Enough not to be computable."""
    nothing = np.zeros(len(cells))
    return Widths.of((nothing, nothing, nothing), aim.room.value[cells], whole=aim.room.whole)
