"""Leave out further cells where the audit shows that a primary cell can be computed after all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import lsqr

from discreet.tables.auditing.rank import computable
from discreet.tables.gauss.problem import unit_columns

if TYPE_CHECKING:
    from discreet.tables.choosing import Case

Mask = npt.NDArray[np.bool_]


def repaired(case: Case, published: Mask) -> Mask:
    """Take the least worthy cell out of every combination that gives a primary cell away, until none does.

    Forced cells stay; a primary cell that they give away stays lost.
    """
    published = published.copy()
    fixed = np.zeros(len(published), dtype=bool)
    fixed[case.forced] = True
    hopeless: set[tuple[int, object]] = set()
    given_away: set[tuple[int, object]] | None = None
    while True:
        found = computable(
            case.x, published, case.secret, contributors=case.contributors, known_rows=case.known
        )
        lost = dict(found.by_contributors) | dict.fromkeys(found.cells.tolist())
        if lost and given_away is None:
            given_away = _given_away(case, fixed)
        lost = {cell: who for cell, who in lost.items() if (cell, who) not in (given_away or set())}
        waiting = [pair for pair in lost.items() if pair not in hopeless]
        mended = [_take_one_out(case, published, fixed, cell, who) for cell, who in waiting]
        hopeless |= {pair for pair, done in zip(waiting, mended, strict=True) if not done}
        if not any(mended):
            return published


def _given_away(case: Case, fixed: Mask) -> set[tuple[int, object]]:
    """What the forced cells alone give away, and to whom: leaving out others is in vain."""
    found = computable(case.x, fixed, case.secret, contributors=case.contributors, known_rows=case.known)
    return set(found.by_contributors) | {(cell, None) for cell in found.cells.tolist()}


def _take_one_out(case: Case, published: Mask, fixed: Mask, cell: int, who: object) -> bool:
    """Leave out, in place, the least worthy cell of a combination that gives a lost cell; False if all are forced."""
    open_cells = np.flatnonzero(published)
    unknown = np.ones(len(case.inner), dtype=bool)
    unknown[case.known] = False
    own = (
        []
        if who is None or case.contributors is None
        else [r for r, name in enumerate(case.contributors) if name == who]
    )
    columns = sparse.hstack(
        [case.x[:, open_cells], unit_columns(np.array(own, dtype=np.int64), len(case.inner))]
    )
    goal = np.asarray(case.x[:, [cell]].todense(), dtype=float).ravel()
    weights = lsqr(columns.tocsr()[unknown].astype(float), goal[unknown], atol=1e-12, btol=1e-12)[0][
        : len(open_cells)
    ]
    used = open_cells[(np.abs(weights) > 1e-7) & ~fixed[open_cells]]
    if not len(used):
        return False
    published[used[np.argmin(case.worth[used])]] = False
    return True
