"""Published tables as linear conditions on the counts of cells, and whether any file can meet them all.

The cells are the combinations of all variables that are tied together by tables. Where those are too many, each
table keeps cells of its own and tables that share variables must agree on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.synth.from_outputs.bound_targets import (
    Bound,
    BoundModel,
    BoundTable,
    Form,
    evaluated,
    level_column,
)
from discreet.synth.from_outputs.codebook import Codebook

MOST_CELLS = 4_000
_MOST_OF_ONE_TABLE = 100_000


class ConflictingTargetsError(ParameterError):
    """Published tables that no file can meet together, even within their rounding.

    Attributes
    ----------
    conflicts
        One row a cell that would have to move: ``target``, ``figure``, ``published`` (in records), ``off_by``.
    """

    def __init__(self, message: str, conflicts: pl.DataFrame) -> None:
        super().__init__(message)
        self.conflicts = conflicts


@dataclass(frozen=True, eq=False)
class Condition:
    """One published cell, or a floor under a cell that a coefficient needs."""

    form: Form
    target: str
    figure: str
    floor_only: bool = False

    def variables(self) -> frozenset[int]:
        """Name the variables that it depends on."""
        return frozenset(factor.variable for column in self.form.columns() for factor in column)


@dataclass(frozen=True, eq=False)
class Component:
    """Variables tied together by tables.

    Attributes
    ----------
    blocks
        Sets of variables whose combinations are counted: one with all of them, or one a table.
    grids
        The cells of each block, as a small file with one record a cell.
    conditions
        What was published about them.
    """

    blocks: tuple[tuple[int, ...], ...]
    grids: tuple[Floats, ...]
    conditions: tuple[Condition, ...]

    @property
    def starts(self) -> list[int]:
        """Where the cells of each block begin."""
        return [0, *np.cumsum([len(grid) for grid in self.grids]).tolist()]

    def home(self, condition: Condition) -> int | None:
        """Return the block that holds all variables of a condition."""
        wanted = condition.variables()
        return next((i for i, block in enumerate(self.blocks) if wanted <= set(block)), None)


def conditions_of(codebook: Codebook, bounds: Sequence[Bound], n: int) -> list[Condition]:
    """Collect the cells of all tables that depend on categories alone, and the margins of the codebook."""
    found = [
        Condition(form, bound.title, label)
        for bound in bounds
        if isinstance(bound, BoundTable) and bound.exact
        for form, label in zip(bound.forms, bound.labels, strict=True)
    ]
    for variable in codebook:
        if not variable.is_categorical or not variable.shares:
            continue
        shares, published = variable.level_shares()
        half = variable.share_unit() / 2
        found += [
            Condition(
                Form((level_column(codebook, variable.name, [place]),), None, shares[place] * n, half * n),
                f"codebook margin of {variable.name}",
                f"{variable.name}={variable.levels[place]}",
            )
            for place in np.flatnonzero(published).tolist()
        ]
    return found


def floors_of(codebook: Codebook, bounds: Sequence[Bound], min_cell: int) -> list[Condition]:
    """Ask for some records of either outcome behind every dummy of a logistic model."""
    floors = []
    for bound in bounds:
        if not isinstance(bound, BoundModel) or bound.family != "logit" or bound.base:
            continue
        for term, column in zip(bound.terms, bound.matrix, strict=True):
            if len(column) != 1 or set(column[0].table) != {0.0, 1.0}:
                continue
            for place in range(2):
                outcome = level_column(codebook, codebook.names[bound.outcome.variable], [place])
                form = Form((*column, outcome), None, float(min_cell), 0.0)
                floors.append(Condition(form, bound.title, term, floor_only=True))
    return floors


def components_of(
    codebook: Codebook, conditions: Sequence[Condition], floors: Sequence[Condition] = ()
) -> list[Component]:
    """Split the variables into sets that no table ties to one another; floors go where their variables are."""
    groups: list[set[int]] = []
    for condition in conditions:
        merged = set(condition.variables())
        apart = []
        for group in groups:
            if group & merged:
                merged |= group
            else:
                apart.append(group)
        groups = [*apart, merged]
    everything = [*conditions, *floors]
    return [_component(codebook, tuple(sorted(group)), everything) for group in sorted(groups, key=min)]


def _component(codebook: Codebook, variables: tuple[int, ...], conditions: Sequence[Condition]) -> Component:
    own = tuple(condition for condition in conditions if condition.variables() <= set(variables))
    blocks: tuple[tuple[int, ...], ...] = (variables,)
    if _cells(codebook, variables) > MOST_CELLS:
        tables: dict[str, set[int]] = {}
        for condition in own:
            if condition.floor_only:
                continue
            tables.setdefault(condition.target, set()).update(condition.variables())
        sets = sorted(
            {tuple(sorted(table)) for table in tables.values()}, key=lambda table: (-len(table), table)
        )
        kept: list[tuple[int, ...]] = []
        for table in sets:
            if not any(set(table) <= set(other) for other in kept):
                kept.append(table)
        blocks = tuple(kept)
    for block in blocks:
        if _cells(codebook, block) > _MOST_OF_ONE_TABLE:
            names = ", ".join(f"'{codebook.names[place]}'" for place in block)
            raise ParameterError(
                f"The table of {names} has too many cells to be built. Publish coarser tables."
            )
    return Component(blocks, tuple(_grid(codebook, block) for block in blocks), own)


def _cells(codebook: Codebook, variables: Sequence[int]) -> int:
    return int(np.prod([float(len(codebook.columns[place].levels)) for place in variables]))


def _grid(codebook: Codebook, variables: tuple[int, ...]) -> Floats:
    grid = np.zeros((_cells(codebook, variables), len(codebook.columns)))
    sizes = [len(codebook.columns[place].levels) for place in variables]
    grid[:, list(variables)] = np.indices(sizes).reshape(len(sizes), -1).T
    return grid


@dataclass(frozen=True, eq=False)
class Program:
    """The conditions of a component as a linear program with slack, in cells then slacks."""

    matrix: Any
    low: Floats
    high: Floats
    cells: int
    owners: tuple[int, ...]
    """For every slack, the condition that it relaxes."""

    @classmethod
    def of(cls, component: Component, n: int, conditions: Sequence[Condition]) -> Program:
        """Write down the conditions; those without a block of their own are left out."""
        from scipy import sparse

        starts = component.starts
        cells = starts[-1]
        rows, low, high, owners, signs = [], [], [], [], []
        for place, condition in enumerate(conditions):
            home = component.home(condition)
            if home is None:
                continue
            for weights, least, most in _bounds_on(condition, component.grids[home]):
                rows.append(_placed(weights, starts[home], cells))
                low.append(least)
                high.append(most)
                signs.append((len(rows) - 1, 1.0 if np.isfinite(least) else -1.0))
                owners.append(place)
        for weights, total in _links(component, n):
            rows.append(weights)
            low.append(total)
            high.append(total)
        slack = sparse.csr_matrix(
            ([sign for _, sign in signs], ([row for row, _ in signs], range(len(signs)))),
            shape=(len(rows), len(signs)),
        )
        matrix = sparse.hstack([sparse.vstack(rows), slack], format="csr")
        return cls(matrix, np.array(low), np.array(high), cells, tuple(owners))


def _bounds_on(condition: Condition, grid: Floats) -> list[tuple[Floats, float, float]]:
    form = condition.form
    whole = None if form.share_of is None else evaluated(form.share_of, grid)
    below, above, least, most = form.count_bounds(evaluated(form.cell, grid), whole)
    floor = (below, least, np.inf)
    return [floor] if condition.floor_only else [floor, (above, -np.inf, most)]


def _placed(weights: Floats, start: int, cells: int) -> Any:
    from scipy import sparse

    at = np.flatnonzero(weights)
    return sparse.csr_matrix((weights[at], (np.zeros(len(at), dtype=int), at + start)), shape=(1, cells))


def _links(component: Component, n: int) -> list[tuple[Any, float]]:
    """Every block counts n records, and blocks agree on the variables they share."""
    starts, cells = component.starts, component.starts[-1]
    found = [
        (_placed(np.ones(len(grid)), start, cells), float(n))
        for grid, start in zip(component.grids, starts[:-1], strict=True)
    ]
    for b, later in enumerate(component.blocks):
        seen: set[tuple[int, ...]] = set()
        for a, earlier in enumerate(component.blocks[:b]):
            shared = tuple(sorted(set(earlier) & set(later)))
            if not shared or shared in seen:
                continue
            seen.add(shared)
            one, two = component.grids[a][:, shared], component.grids[b][:, shared]
            for combination in np.unique(two, axis=0):
                left = (one == combination).all(axis=1).astype(np.float64)
                right = (two == combination).all(axis=1).astype(np.float64)
                row = _placed(left, starts[a], cells) - _placed(right, starts[b], cells)
                found.append((row, 0.0))
    return found


def least_slack(component: Component, n: int, conditions: Sequence[Condition]) -> Floats:
    """Return by how many records each condition must give way, as little as possible in all."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = Program.of(component, n, conditions)
    size = len(program.owners)
    cost = np.concatenate([np.zeros(program.cells), np.ones(size)])
    found = milp(
        cost,
        constraints=LinearConstraint(program.matrix, program.low, program.high),
        bounds=Bounds(0, np.inf),
    )
    if found.x is None:
        return np.full(len(conditions), np.inf)
    slack = np.zeros(len(conditions))
    np.add.at(slack, list(program.owners), found.x[program.cells :])
    return slack


def check_consistency(components: Sequence[Component], n: int) -> None:
    """Refuse tables that no file can meet within their rounding, and say which ones are at odds."""
    for component in components:
        stated = [condition for condition in component.conditions if not condition.floor_only]
        slack = least_slack(component, n, stated)
        tolerance = 1e-6 * max(n, 1)
        if slack.sum() <= tolerance:
            continue
        culprits = _irreducible(component, n, stated, tolerance)
        involved = [condition for condition in stated if condition.target in culprits]
        off = least_slack(component, n, involved)
        conflicts = pl.DataFrame(
            {
                "target": [condition.target for condition in involved],
                "figure": [condition.figure for condition in involved],
                "published": [condition.form.value for condition in involved],
                "off_by": off,
            }
        ).filter(pl.col("off_by") > tolerance)
        names = " and ".join(f"'{name}'" for name in culprits)
        what = (
            "cannot be right together" if len(culprits) > 1 else "contradicts itself or the number of records"
        )
        raise ConflictingTargetsError(
            f"{names} {what}: in a file of {n:,} records at least {off.sum():,.1f} records would have to be counted "
            "otherwise than published, beyond what rounding explains. Mend or drop one of them, name its printing "
            "unit (unit=…), or see the conflicts of this error for the cells.",
            conflicts,
        )


def _irreducible(component: Component, n: int, stated: list[Condition], tolerance: float) -> list[str]:
    """Drop one target after the other as long as the rest is still at odds."""
    culprits = list(dict.fromkeys(condition.target for condition in stated))
    for target in tuple(culprits):
        rest = [other for other in culprits if other != target]
        kept = [condition for condition in stated if condition.target in rest]
        if rest and least_slack(component, n, kept).sum() > tolerance:
            culprits = rest
    return culprits
