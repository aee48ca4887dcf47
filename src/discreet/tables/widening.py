"""Leave out further cells until every primary cell has a wide enough interval, each time the cheapest way.

For a primary cell that is pinned down too closely a linear program looks for the cheapest way to move it as far as is
asked while no inner cell falls below what is known of it; the published cells that have to move with it are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.tables.auditing.highs import Program
from discreet.tables.auditing.intervals import feasible_bounds
from discreet.tables.gauss.problem import Integers

Floats = npt.NDArray[np.float64]


def widened(
    x: Any,
    inner: Floats,
    published: npt.NDArray[np.bool_],
    secret: Integers,
    *,
    lower: Floats,
    upper: Floats,
    sliding: Floats,
    cost: Floats,
    fixed: npt.NDArray[np.bool_],
    least: Floats | None,
    known: Integers,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Which cells stay published when every primary cell is to reach its levels; and the cells for which none will do.

    ``fixed`` cells stay published whatever it costs; ``known`` inner cells cannot move.
    """
    x = sparse.csc_matrix(x).astype(np.int64)
    published = published.copy()
    value = np.asarray(inner @ x).ravel()[secret]
    hopeless = []
    close = 1e-6 * (1.0 + np.abs(value))
    bounds = feasible_bounds(x, inner, published, secret, lower=least, reach=(value - lower, value + upper))
    down, up = value - bounds.lower, bounds.upper - value
    short = (down < lower - close) | (up < upper - close) | (down + up < sliding - 2 * close)
    order = np.flatnonzero(short)[np.argsort(-np.maximum(lower, upper)[short], kind="stable")]
    for done, k in enumerate(order.tolist()):
        if progress is not None:
            progress(done, len(order))
        failed = False
        for direction, asked, reached in ((1.0, upper[k], up[k]), (-1.0, lower[k], down[k])):
            if reached < asked - close[k]:
                failed |= not _moved(
                    x, inner, published, int(secret[k]), direction * asked, cost, fixed, least, known
                )
        here = feasible_bounds(x, inner, published, [int(secret[k])], lower=least)
        wide = here.upper[0] - here.lower[0]
        if wide < sliding[k] - 2 * close[k]:
            more = sliding[k] - (value[k] - here.lower[0])
            failed |= not _moved(x, inner, published, int(secret[k]), more, cost, fixed, least, known)
        if failed:
            hopeless.append(int(secret[k]))
    return published, np.array(hopeless, dtype=np.int64)


def _moved(  # noqa: PLR0917
    x: Any,
    inner: Floats,
    published: npt.NDArray[np.bool_],
    cell: int,
    distance: float,
    cost: Floats,
    fixed: npt.NDArray[np.bool_],
    least: Floats | None,
    known: Integers,
) -> bool:
    """Leave out, in place, what must move when one cell moves so far; False where it cannot."""
    height = x.shape[0]
    open_cells = np.flatnonzero(published)
    free = np.ones(height, dtype=bool)
    free[known] = False
    far = 10.0 * (1.0 + float(np.abs(inner).sum()) + abs(distance))
    floor = np.full(height, -far) if least is None else least - inner
    # Unknowns: how each inner cell moves, and for each published cell how far it is moved up and down.
    eye = sparse.eye_array(len(open_cells), format="csc")
    moves = sparse.hstack([x[:, open_cells].T, -eye, eye])
    target = sparse.hstack([x[:, [cell]].T, sparse.csc_matrix((1, 2 * len(open_cells)))])
    limit = np.where(fixed[open_cells], 0.0, far)
    program = Program(
        sparse.vstack([moves, target]).tocsc(),
        np.concatenate([np.zeros(len(open_cells)), [distance]]),
        np.concatenate([np.zeros(len(open_cells)), [distance]]),
        np.concatenate([np.where(free, floor, 0.0), np.zeros(2 * len(open_cells))]),
        np.concatenate([np.where(free, far, 0.0), limit, limit]),
    )
    price = np.concatenate([cost[open_cells], cost[open_cells]])
    reached = program.extreme(height + np.arange(2 * len(open_cells)), price, largest=False)
    if not np.isfinite(reached):
        return False
    moved = program.solution[height : height + len(open_cells)] + program.solution[height + len(open_cells) :]
    published[open_cells[moved > 1e-7 * abs(distance)]] = False
    return True
