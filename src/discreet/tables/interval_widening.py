"""How wide can the interval of every primary cell be made, what has to be open for it, and which cells go?

For a primary cell that is pinned down too closely a linear program looks for the cheapest way to move it as far as is
asked while no inner cell falls below what is known of it; the published cells that have to move with it are left out.

Leaving out more cells never makes an interval narrower. So what can be had at all shows when everything is left out
that may be: what is then too narrow stays so, whatever the choice.

Zeros that need no protection are published, and everybody then knows that no suppressed count is zero: a count of one
cannot be protected against being one or more. Where that, or the lack of room, keeps an interval too narrow, zeros
may be left out like other cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Flags, Floats, Integers
from discreet.tables.feasibility_intervals import feasible_bounds, levels
from discreet.tables.linear_programs import SECONDS
from discreet.tables.table_audit import least_values, whole_values
from discreet.tables.table_cells import counts_only, known_zero_rows

if TYPE_CHECKING:
    from discreet.tables.secondary_cells import Case, Progress
    from discreet.tables.table_suppression import Suppression


@dataclass(frozen=True)
class Room:
    """What may move: the cells that stay published whatever happens, and what readers know of the inner cells."""

    x: Any
    inner: Floats
    fixed: Flags
    known: Integers
    least: Floats | None
    whole: bool

    def reach(self, published: Flags, cells: Integers, widths: Widths | None = None) -> tuple[Floats, Floats]:
        """How far each cell can fall and rise while the published ones stay; no farther than the widths, if given."""
        value = self.value[cells]
        limits = None
        if widths is not None:
            limits = (
                value - np.maximum(widths.lower, widths.sliding),
                value + np.maximum(widths.upper, widths.sliding),
            )
        found = feasible_bounds(
            self.x, self.inner, published, cells, lower=self.least, whole=self.whole, reach=limits
        )
        return value - found.lower, found.upper - value

    @property
    def value(self) -> Floats:
        """The value of every cell."""
        return np.asarray(self.inner @ self.x, dtype=float).ravel()


@dataclass(frozen=True)
class Widths:
    """How far the interval of each of some cells must reach below its value, above it, and in all."""

    lower: Floats
    upper: Floats
    sliding: Floats
    slack: Floats

    @staticmethod
    def of(
        levels: tuple[Floats, Floats, Floats], value: Floats, *, whole: bool, narrowest: float = 0.0
    ) -> Widths:
        """Take levels as they are asked for: no interval is a single value, and whole numbers move by whole steps.

        ``narrowest`` is the least width of an interval of sums, as a share of the value.
        """
        slack = 1e-6 * (1.0 + np.abs(value))
        # What the audit takes for more than a single value.
        single = np.ones(len(value)) if whole else np.maximum(narrowest * np.abs(value), 1.5 * slack)
        lower, upper, sliding = levels[0], levels[1], np.maximum(levels[2], single)
        if whole:
            lower, upper, sliding = (np.ceil(level - slack) for level in (lower, upper, sliding))
        return Widths(lower, upper, sliding, slack)

    def __getitem__(self, cells: Any) -> Widths:
        return Widths(self.lower[cells], self.upper[cells], self.sliding[cells], self.slack[cells])

    def short(self, down: Floats, up: Floats) -> tuple[Flags, Flags, Flags]:
        """Which cells fall short below, above, and in all."""
        wide = down + up
        return (
            down < self.lower - self.slack,
            up < self.upper - self.slack,
            (wide < self.sliding - np.minimum(2 * self.slack, self.sliding / 4))
            | ((self.sliding > 0) & (wide <= self.slack)),
        )

    def missed(self, down: Floats, up: Floats) -> Flags:
        """Which cells fall short in any way."""
        below, above, together = self.short(down, up)
        return below | above | together

    def within(self, down: Floats, up: Floats) -> Widths:
        """What is left to ask for when cells can move so far at most: sides that cannot be had are given up."""
        below, above, together = self.short(down, up)
        wide = down + up
        return replace(
            self,
            lower=np.where(below, 0.0, self.lower),
            upper=np.where(above, 0.0, self.upper),
            sliding=np.where(
                together, np.where(wide > self.slack, np.minimum(wide, self.sliding), 0.0), self.sliding
            ),
        )


def widened(
    room: Room,
    published: Flags,
    secret: Integers,
    widths: Widths,
    *,
    cost: Floats,
    progress: Callable[[int, int], None] | None = None,
) -> Flags:
    """Which cells stay published when every primary cell is to reach its widths, all of which can be had.

    The cells with the largest widths come first: what is left out for them serves the others as well.
    """
    published = published.copy()
    down, up = room.reach(published, secret, widths)
    short = np.flatnonzero(widths.missed(down, up))
    order = short[np.argsort(-np.maximum(widths.lower, widths.upper)[short], kind="stable")]
    for done, k in enumerate(order.tolist()):
        if progress is not None:
            progress(done, len(order))
        _widen_one(room, published, secret[[k]], widths[[k]], cost)
    return published


def _widen_one(room: Room, published: Flags, cell: Integers, widths: Widths, cost: Floats) -> None:
    """Leave out, in place, what has to move for one cell."""
    # A cell that moves next to nothing in the program may be what the interval hangs on: the second time all go out.
    # Where people are whole and half a person would do, the third time only whole ones move.
    for smallest, whole in ((1e-7, False), (0.0, False), *([(1e-7, True)] if room.whole else [])):
        price = _Price(cost, smallest, whole)
        down, up = room.reach(published, cell, widths)
        below, above, _ = (bool(side[0]) for side in widths.short(down, up))
        if above:
            _move(room, published, int(cell[0]), float(widths.upper[0]), price)
        if below:
            _move(room, published, int(cell[0]), -float(widths.lower[0]), price)
        down, up = room.reach(published, cell)
        if widths.short(down, up)[2][0]:
            # Upward as far as it is needed or can be had, and what is then lacking downward.
            _, most = room.reach(room.fixed, cell)
            rise = min(float(widths.sliding[0] - down[0]), float(most[0]))
            if rise > up[0] + widths.slack[0]:
                _move(room, published, int(cell[0]), rise, price)
            fall = float(widths.sliding[0]) - max(rise, float(up[0]))
            if fall > down[0] + widths.slack[0]:
                _move(room, published, int(cell[0]), -fall, price)
        if not widths.missed(*room.reach(published, cell, widths))[0]:
            return
    # Whatever the programs said: with everything out that may be, the widths can be had.
    published &= room.fixed


@dataclass(frozen=True)
class _Price:
    """What it costs to move a cell, how small a move does not count, and whether only whole numbers move."""

    cost: Floats
    smallest: float
    whole: bool


def _move(room: Room, published: Flags, cell: int, distance: float, price: _Price) -> None:
    """Leave out, in place, what must move when one cell moves so far; nothing where it cannot."""
    height, x = len(room.inner), room.x
    open_cells = np.flatnonzero(published)
    free = np.ones(height, dtype=bool)
    free[room.known] = False
    # In steps of the distance, so that tolerances mean the same in large and small tables.
    step = 1.0 if price.whole else abs(distance)
    floor = (
        np.full(height, -np.inf) if room.least is None else np.minimum((room.least - room.inner) / step, 0.0)
    )
    # Unknowns: how each inner cell moves, and for each published cell how far it is moved up and down.
    eye = sparse.eye_array(len(open_cells), format="csc")
    moves = sparse.hstack([x[:, open_cells].T, -eye, eye])
    target = sparse.hstack([x[:, [cell]].T, sparse.csc_matrix((1, 2 * len(open_cells)))])
    limit = np.where(room.fixed[open_cells], 0.0, np.inf)
    moved = _solved(
        np.concatenate(
            [np.zeros(height), np.tile(price.cost[open_cells] / max(1.0, float(np.median(price.cost))), 2)]
        ),
        sparse.vstack([moves, target]).tocsc(),
        np.concatenate([np.zeros(len(open_cells)), [distance / step]]),
        np.concatenate([np.where(free, floor, 0.0), np.zeros(2 * len(open_cells))]),
        np.concatenate([np.where(free, np.inf, 0.0), limit, limit]),
        whole=price.whole,
    )
    if moved is not None:
        far = moved[height : height + len(open_cells)] + moved[height + len(open_cells) :]
        published[open_cells[(far > price.smallest) & ~room.fixed[open_cells]]] = False


def _solved(
    cost: Floats, a: Any, right: Floats, lower: Floats, upper: Floats, *, whole: bool
) -> Floats | None:
    """The cheapest solution, in whole numbers where asked; None where there is none."""
    if whole:
        from scipy.optimize import Bounds, LinearConstraint, milp

        # The last row is the way to go: half of it is of no use, and more does no harm.
        least, most = right.copy(), right.copy()
        (most if right[-1] > 0 else least)[-1] = np.copysign(np.inf, right[-1])
        answer = milp(
            cost,
            constraints=LinearConstraint(a, least, most),
            bounds=Bounds(lower, upper),
            integrality=np.ones(len(cost)),
            options={"time_limit": SECONDS},
        )
        return None if answer.x is None else np.asarray(answer.x)
    from scipy.optimize import linprog

    # No cost is negative, so that the dual method has a start; from nothing it is much faster than the primal one.
    found = linprog(cost, A_eq=a, b_eq=right, bounds=np.column_stack([lower, upper]), method="highs-ds")
    return np.asarray(found.x) if found.status == 0 else None


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
