"""Publish again what need not be left out any more.

The elimination leaves out no cell in vain. But what is left out afterwards to make intervals wider may do the work of
cells that were left out before: those are published again, the worthiest first, wherever every primary cell stays
protected in the same sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Flags, Integers
from discreet.tables.gauss import secondary
from discreet.tables.gauss.problem import default_order
from discreet.tables.suppressing.repairing import computed, secondary_of

if TYPE_CHECKING:
    from discreet.tables.suppressing.choosing import Case
    from discreet.tables.suppressing.interval_aims import Aim


# Every cell tried costs a round of linear programs over all primary cells.
_MOST_TRIED = 40


def tidied(aim: Aim, case: Case, before: Flags, wide: Flags) -> Flags:
    """Which cells stay published after widening, with those published again that nothing hangs on any more."""
    # Where a zero is hidden so that counts may be zero, it must stay free itself: nothing is put back.
    if (wide == before).all() or (aim.zeros_open and aim.room.whole):
        return wide
    found = wide.copy()
    for cell in _no_longer_needed(case, wide).tolist()[:_MOST_TRIED]:
        trial = found.copy()
        trial[cell] = True
        if _protected(aim, case, trial):
            found = trial
    return found


def _no_longer_needed(case: Case, published: Flags) -> Integers:
    """Cells left out that give no primary cell away exactly when they are published, the worthiest first."""
    out = secondary_of(case, published)
    # A zero is left out so that readers do not know it for one; that is not for the elimination to judge.
    out = np.setdiff1d(out, case.zeros)
    stays = np.union1d(case.hidden, case.zeros[~published[case.zeros]])
    kept = secondary(
        case.x_unknown, case.secret, default_order(case.x, case.worth, out),
        forced=np.flatnonzero(published), hidden=stays,
    )  # fmt: skip
    free = np.setdiff1d(out, kept.secondary)
    return free[np.argsort(-case.worth[free], kind="stable")]


def _protected(aim: Aim, case: Case, published: Flags) -> bool:
    """Does every primary cell that can be protected stay so, exactly, from contributors, and by its interval?"""
    found = computed(case, published)
    if len(found.cells) or found.by_contributors:
        return False
    down, up = aim.room.reach(published, case.secret, aim.widths)
    return not aim.widths.missed(down, up).any()
