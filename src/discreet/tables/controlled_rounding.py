"""ControlledRounding: every cell to an adjacent multiple of a base, with all sums intact.

References
----------
Cox (1987), A constructive procedure for unbiased controlled rounding. Salazar-González (2006), Controlled rounding and
cell perturbation: statistical disclosure limitation methods for tabular data.
"""

from __future__ import annotations

import hmac
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.constraints import Above, AtLeast, ColumnName, Public
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.secret_keys import DEFAULT_VARIABLE, secret_key
from discreet.dp.entropy import Stream
from discreet.tables.random_rounding import NO_GUARANTEE
from discreet.tables.record_keys import drawn_for_cells
from discreet.tables.table_cells import MOST_SOLVED, equations, need_few_cells
from discreet.tables.table_protection import TableChange, TableProtection, on_inner_cells

if TYPE_CHECKING:
    from discreet.tables.table import Table


_WHOLE = 1e-9
_MOST_STEPS = 8
_MOST_DRAWN = 3000


@dataclass(frozen=True)
class ControlledRounding(TableProtection):
    """Round every cell to one of its two adjacent multiples of a base, so that all sums of the table still hold.

    It protects against learning small counts and small differences, without breaking a single total.

    An integer program chooses, for all cells at once, whether each goes up or down. Multiples of the base stay as
    they are (zero-restricted). Tables of three and more dimensions, and linked ones, may have no such solution; then
    cells may move further, as few and as little as possible, and the result says how many did.

    Also known as: controlled rounding.

    Parameters
    ----------
    base
        The base.
    method
        ``nearest``: the smallest total deviation. ``unbiased``: drawn at random so that every cell is right on
        average; exactly so for tables of two dimensions with subtotals in at most one of them, and the figure
        ``unbiased`` says where it is not.
    draws
        With ``unbiased``: ``seed``, or ``keyed`` by a secret key and the people in the table, so that the same table is
        rounded alike whenever it is asked for.
    id, subset, key_variable, key_file
        With ``keyed``: as in `RandomRounding`.
    restricted
        Refuse, rather than let a cell move beyond its adjacent multiples.
    time_limit
        Seconds for the integer program.
    max_cells
        A table with more cells is refused before the work. Raise it where you can wait.

    What it costs
    -------------
    Every cell moves by less than the base (``nearest``: mostly by less than half of it).

    When not to use it
    ------------------
    Do not use it on tables that will be published again in other forms: the same cell may be rounded differently.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"place": ["a"] * 7 + ["b"] * 4, "sex": ["f", "m"] * 5 + ["f"]})
    >>> made = ControlledRounding(base=5).apply(Table.from_microdata(people, "place*sex"))
    >>> made.table.wide(rows="place", columns="sex").rows()
    [('Total', 10, 5, 5), ('a', 5, 5, 0), ('b', 5, 0, 5)]
    """

    base: Annotated[int, AtLeast(2)] = 5
    method: Literal["nearest", "unbiased"] = "nearest"
    restricted: bool = False
    time_limit: Annotated[float, Above(0)] = 60.0
    draws: Literal["seed", "keyed"] = "seed"
    id: ColumnName | None = None
    subset: Annotated[str, Public()] = ""
    key_variable: Annotated[str, Public()] = DEFAULT_VARIABLE
    key_file: Annotated[str, Public()] | None = None
    max_cells: Annotated[int, AtLeast(1)] = MOST_SOLVED

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Round all columns of values; each has its own program."""
        need_few_cells(table, self.max_cells)
        cells: dict[str, npt.NDArray[np.generic]] = {}
        figures: dict[str, Any] = {}
        stream = self._stream(table, stream)
        counted = [] if table.measures or table.weight else ["count"]
        for name in dict.fromkeys([table.value, *table.measures, *counted]):
            values = table.cells[name].cast(pl.Float64).to_numpy()
            made, told = self._rounded(table, values, stream("cells", name))
            whole = table.cells[name].dtype.is_integer()
            cells[name] = made.astype(np.int64) if whole else made
            if name == table.value:
                figures = told
        if figures.get("beyond"):
            text = (
                f"No rounding to adjacent multiples of {self.base} keeps all sums; {figures['beyond']:,} cells moved "
                "further. Use a larger base or fewer linked tables."
            )
            warnings.warn(text, DiscreetWarning, stacklevel=4)
        notes = [f"Every cell was rounded to a multiple of {self.base}; all sums of the table hold."]
        if figures.get("beyond"):
            notes.append(
                f"{figures['beyond']:,} cells moved beyond their adjacent multiples, since no rounding keeps all sums."
            )
        if not figures["proved_optimal"] and self.method == "nearest":
            notes.append("Time ran out before the smallest deviation was proved.")
        notes.append(
            "All cells were rounded together: in another table, or with another seed, the same cell may be rounded "
            "differently, and the two can be averaged. Publish a cell once."
        )
        inner = {
            name: on_inner_cells(table, np.asarray(values, dtype=np.float64), np.nan)
            for name, values in cells.items()
        }
        return TableChange(cells, inner, tuple(notes), figures, why_none=NO_GUARANTEE)

    def _stream(self, table: Table, stream: Stream) -> Stream:
        """The draws of the seed, or those of the secret key for the people in this table."""
        if self.draws == "seed" or self.method != "unbiased":
            return stream
        key = secret_key(self.name, variable=self.key_variable, file=self.key_file)
        drawn = np.concatenate(drawn_for_cells(table, key, id=self.id, subset=self.subset))
        digest = hmac.digest(
            key, b"controlled-rounding:" + str(self.base).encode() + drawn.tobytes(), "sha256"
        )
        return Stream(int.from_bytes(digest[:8], "big"), self.name)

    def _rounded(
        self, table: Table, values: Floats, rng: np.random.Generator
    ) -> tuple[Floats, dict[str, Any]]:
        sums = _holding(table, values)
        below = np.floor(values / self.base + _WHOLE)
        rest = values / self.base - below
        rest[rest < _WHOLE] = 0.0
        exactly = self.method == "unbiased"
        # Where the draw gets stuck the program goes on from there, so that cells stay nearly right on average.
        goal = _drawn(sums, below, rest, rng) if exactly else rest
        if exactly and (goal == np.rint(goal)).all():
            return self._steps_taken(below, rest, goal, values, unbiased=True, proved=True)
        for reach in range(_MOST_STEPS):
            answer = _programmed(sums, below, rest, goal, reach=reach, time_limit=self.time_limit)
            if answer is not None:
                return self._steps_taken(below, rest, answer[0], values, unbiased=False, proved=answer[1])
            if self.restricted:
                raise ParameterError(
                    f"No rounding to adjacent multiples of {self.base} keeps all sums of this table. Use "
                    "restricted=False, another base, or fewer linked tables."
                )
        raise ParameterError(
            f"No rounding to multiples of {self.base} was found within {self.time_limit:g} s. Raise time_limit, or "
            f"round "
            "fewer cells at once."
        )

    def _steps_taken(
        self, below: Floats, rest: Floats, steps: Floats, values: Floats, *, unbiased: bool, proved: bool
    ) -> tuple[Floats, dict[str, Any]]:
        """Return the rounded values, and in figures how far they lie from the true ones."""
        made = self.base * (below + steps)
        beyond = (steps < 0) | (steps > np.where(rest > 0, 1, 0))
        return made, {
            "rounded": int((rest > 0).sum()),
            "beyond": int(beyond.sum()),
            "deviation": float(np.abs(made - values).sum()),
            "largest_deviation": float(np.abs(made - values).max(initial=0.0)),
            "unbiased": unbiased,
            "proved_optimal": proved,
        }


def _holding(table: Table, values: Floats) -> Any:
    """The sums of the table that hold for these values; an aggregated file may have broken ones."""
    sums = equations(table).tocsr()
    gap = np.abs(sums @ values)
    return sums[gap <= 1e-6 * np.maximum(np.abs(sums) @ np.abs(values), 1.0)]


def _programmed(
    sums: Any, below: Floats, rest: Floats, goal: Floats, *, reach: int, time_limit: float
) -> tuple[Floats, bool] | None:
    """Choose the steps up with the smallest total deviation from a goal; None where there is no solution.

    With ``reach`` cells may go that many multiples further on both sides, at the price of the distance.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    many = len(below)
    least = np.maximum(-float(reach), -below) if (below >= 0).all() else np.full(many, -float(reach))
    most = np.where(rest > 0, 1.0, 0.0) + reach
    right = -(sums @ below)
    if reach == 0:
        # |step - goal| is linear in a step of 0 or 1.
        cost = np.where(rest > 0, 1 - 2 * goal, 0.0)
        rules = [LinearConstraint(sums, right, right)] if sums.shape[0] else []
        whole = np.ones(many)
    else:
        # Behind the steps stand the deviations, which are at least step - goal and goal - step.
        eye = eye_array(many, format="csr")
        sides = vstack([hstack([eye, -eye]), hstack([-eye, -eye])])
        rules = [
            LinearConstraint(hstack([sums, csr_array((sums.shape[0], many))]), right, right),
            LinearConstraint(sides, -np.inf, np.concatenate([goal, -goal])),
        ]
        cost, whole = np.repeat([0.0, 1.0], many), np.repeat([1.0, 0.0], many)
        least, most = np.append(least, np.zeros(many)), np.append(most, np.full(many, np.inf))
    answer = milp(
        cost,
        constraints=rules,
        bounds=Bounds(least, most),
        integrality=whole,
        options={"time_limit": time_limit, "mip_rel_gap": 1e-9},
    )
    if answer.x is None:
        return None
    return np.rint(answer.x[:many]), answer.status == 0


def _drawn(sums: Any, below: Floats, rest: Floats, rng: np.random.Generator) -> Floats:
    """Draw steps of 0 or 1 that keep all sums and are right on average; some stay fractions where it gets stuck.

    From the exact fractions it walks along a direction that keeps all sums, as far as one cell becomes whole, to one
    side or the other with chances that leave the mean where it is; and so on until all cells are whole. In plain
    tables of two dimensions it never gets stuck.
    """
    from scipy.linalg import null_space

    now = rest.copy()
    open_cells = np.flatnonzero(now > 0)
    if len(open_cells) > _MOST_DRAWN:
        raise ParameterError(
            f"The table has {len(open_cells):,} cells to draw, too many for method='unbiased'. Use method='nearest' "
            f"or "
            "RandomRounding."
        )
    if not len(open_cells):
        return now
    part = sums[:, open_cells].toarray().astype(np.float64)
    part = part[np.abs(part).sum(axis=1) > 0]
    ways = null_space(part) if len(part) else np.eye(len(open_cells))
    here = now[open_cells]
    free = np.ones(len(here), dtype=bool)
    while ways.shape[1]:
        way = ways[:, 0] / np.abs(ways[:, 0]).max()
        way[np.abs(way) < 1e-9] = 0.0
        way[~free] = 0.0
        moves = way != 0
        if not moves.any():
            ways = ways[:, 1:]
            continue
        up = _room(here[moves], way[moves])
        down = _room(here[moves], -way[moves])
        here = here + (up if rng.random() * (up + down) < down else -down) * way
        near = np.abs(here - np.rint(here)) < 1e-7
        here[near] = np.rint(here[near])
        for cell in np.flatnonzero(near & free):
            ways = _without(ways, int(cell))
        free &= ~near
    now[open_cells] = here
    if np.abs(sums @ (below + now)).max(initial=0.0) > 1e-6:
        return np.where(rest > 0, 0.5 * (now + rest), 0.0)
    return np.asarray(np.clip(now, 0.0, 1.0))


def _room(here: Floats, way: Floats) -> float:
    """How far one can go before some cell leaves 0…1."""
    return float(np.where(way > 0, (1 - here) / np.abs(way), here / np.abs(way)).min())


def _without(ways: Floats, cell: int) -> Floats:
    """The directions that leave one more cell where it is."""
    if not ways.shape[1]:
        return ways
    row = ways[cell]
    at = int(np.argmax(np.abs(row)))
    if abs(row[at]) < 1e-12:
        return ways
    others = np.delete(ways, at, axis=1)
    others = others - np.outer(ways[:, at] / row[at], np.delete(row, at))
    sizes = np.linalg.norm(others, axis=0)
    return np.asarray(others[:, sizes > 1e-9] / sizes[sizes > 1e-9])
