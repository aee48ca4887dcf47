"""A file with all published tables and margins in place, for the search to start from.

Counts of cells come from iterative proportional fitting, then from the integer program that is nearest to it and
meets the tables to the record. What no table ties together is put together at random.

`Preparation` goes from codebook and targets to this file: targets bound, and checked for consistency; a few records of
either outcome stand behind every dummy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.synth.from_outputs import table_conditions
from discreet.synth.from_outputs.bound_targets import VALUE, Bound, BoundModel, BoundTable, Factor, evaluated
from discreet.synth.from_outputs.codebook import Codebook, Variable
from discreet.synth.from_outputs.misfit import Layout
from discreet.synth.from_outputs.output_search import SwapSearch, Ties

if TYPE_CHECKING:
    from discreet.synth.from_outputs.teaching_data import FromOutputs


_ROUNDS = 200
_SLACK_COST = 1e4
_SECONDS = 30.0


@dataclass(frozen=True, eq=False)
class Counts:
    """How many records each cell of a component gets.

    ``soft`` names the targets that could not be built in and are left to the search.
    """

    component: table_conditions.Component
    cells: tuple[Integers, ...]
    order: tuple[int, ...]
    soft: frozenset[str]
    notes: tuple[str, ...]


def counts_of(component: table_conditions.Component, n: int) -> Counts:
    """Find whole counts that meet the conditions, near the fit that assumes nothing beyond them."""
    smooth = np.concatenate([_fitted(component, place, n) for place in range(len(component.blocks))])
    whole, slack = _rounded(component, n, smooth)
    starts = component.starts
    cells = tuple(whole[a:b] for a, b in pairwise(starts))
    order, loose = _building_order(component)
    soft = {
        condition.target
        for condition in component.conditions
        if not condition.floor_only
        and (component.home(condition) is None or component.home(condition) in loose)
    }
    return Counts(component, cells, order, frozenset(soft), _notes(component, slack, n))


def started(
    codebook: Codebook,
    counts: Sequence[Counts],
    bounds: Sequence[Bound],
    n: int,
    *,
    random: np.random.Generator,
) -> Floats:
    """Put a file together: tables first, then what is left from its margins, outcomes of linear models last."""
    file = np.zeros((n, len(codebook.columns)))
    placed: set[int] = set()
    for part in counts:
        placed |= _build(part, file, random)
    for place, variable in enumerate(codebook):
        if place not in placed:
            file[:, place] = _drawn(variable, n, random)
    for bound in bounds:
        if isinstance(bound, BoundModel) and bound.family == "linear":
            _lay_outcome(codebook, bound, file, random)
    return np.asarray(file[random.permutation(n)])


def _fitted(component: table_conditions.Component, place: int, n: int) -> Floats:
    """Scale the cells of a block to each published count in turn until nothing changes."""
    grid = component.grids[place]
    cells = np.full(len(grid), n / len(grid))
    own = [
        (
            evaluated(c.form.cell, grid),
            None if c.form.share_of is None else evaluated(c.form.share_of, grid),
            c,
        )
        for c in component.conditions
        if component.home(c) == place and not c.floor_only
    ]
    for _ in range(_ROUNDS):
        before = cells.copy()
        for inside, whole, condition in own:
            wanted = condition.form.value * (1.0 if whole is None else float(whole @ cells))
            now = float(inside @ cells)
            if now > 0:
                cells = np.where(inside > 0, cells * (wanted / now), cells)
        cells *= n / max(cells.sum(), 1e-300)
        if np.abs(cells - before).max() < 1e-6:
            break
    return cells


def _rounded(component: table_conditions.Component, n: int, smooth: Floats) -> tuple[Integers, Floats]:
    """Solve for the whole counts nearest to the smooth ones; conditions give way only where they must."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = table_conditions.Program.of(component, n, component.conditions)
    cells, slacks = program.cells, len(program.owners)
    identity = sparse.identity(cells, format="csr")
    empty = sparse.csr_matrix((cells, slacks))
    # The last columns are the distances from the smooth counts, one a cell.
    matrix = sparse.vstack(
        [
            sparse.hstack([program.matrix, sparse.csr_matrix((program.matrix.shape[0], cells))]),
            sparse.hstack([identity, empty, identity]),
            sparse.hstack([identity, empty, -identity]),
        ],
        format="csr",
    )
    limits = LinearConstraint(
        matrix,
        np.concatenate([program.low, smooth, np.full(cells, -np.inf)]),
        np.concatenate([program.high, np.full(cells, np.inf), smooth]),
    )
    stern = np.array([1.0 if component.conditions[place].floor_only else 10.0 for place in program.owners])
    cost = np.concatenate([np.zeros(cells), _SLACK_COST * stern, np.ones(cells)])
    whole_numbers = np.concatenate([np.ones(cells), np.zeros(slacks + cells)])
    near = np.concatenate([np.floor(smooth) - 1, np.zeros(slacks + cells)]).clip(0)
    found = None
    for high in (np.ceil(smooth) + 1, np.full(cells, np.inf)):
        low = near if np.isfinite(high).all() else np.zeros(len(near))
        top = np.concatenate([high, np.full(slacks + cells, np.inf)])
        found = milp(
            cost,
            integrality=whole_numbers,
            bounds=Bounds(low, top),
            constraints=limits,
            options={"time_limit": _SECONDS, "mip_rel_gap": 1e-3},
        )
        if found.x is not None and found.x[cells : cells + slacks].sum() < 1e-6:
            break
    if found is None or found.x is None:
        return _by_largest_rest(smooth, component, n), np.zeros(len(component.conditions))
    slack = np.zeros(len(component.conditions))
    np.add.at(slack, list(program.owners), found.x[cells : cells + slacks])
    return np.rint(found.x[:cells]).astype(np.int64), slack


def _by_largest_rest(smooth: Floats, component: table_conditions.Component, n: int) -> Integers:
    """Round so that each block has n records; the search then mends the tables."""
    whole = np.floor(smooth).astype(np.int64)
    starts = component.starts
    for a, b in pairwise(starts):
        short = n - int(whole[a:b].sum())
        rest = np.argsort(-(smooth[a:b] - whole[a:b]), kind="stable")[: max(short, 0)]
        whole[a + rest] += 1
    return whole


def _building_order(component: table_conditions.Component) -> tuple[tuple[int, ...], set[int]]:
    """Order the blocks so that each meets the earlier ones within a single block; name those that cannot."""
    order = [0]
    loose: set[int] = set()
    waiting = list(range(1, len(component.blocks)))
    while waiting:
        there = {place for block in order for place in component.blocks[block]}
        fitting = [
            b
            for b in waiting
            if any(
                set(component.blocks[b]) & there <= set(component.blocks[a]) for a in order if a not in loose
            )
        ]
        follows = fitting[0] if fitting else waiting[0]
        if not fitting:
            loose.add(follows)
        order.append(follows)
        waiting.remove(follows)
    return tuple(order), loose


def _build(part: Counts, file: Floats, random: np.random.Generator) -> set[int]:
    """Give every record its cell; a later block follows the earlier ones in what they share."""
    placed: set[int] = set()
    for block in part.order:
        variables = part.component.blocks[block]
        records = np.repeat(part.component.grids[block][:, variables], part.cells[block], axis=0)
        records = records[random.permutation(len(records))]
        shared = [place for place in variables if place in placed]
        at = [variables.index(place) for place in shared]
        fresh = [place for place in variables if place not in placed]
        here = np.lexsort(file[:, shared].T) if shared else np.arange(len(file))
        there = np.lexsort(records[:, at].T) if shared else np.arange(len(records))
        for place in fresh:
            file[here, place] = records[there, variables.index(place)]
        placed |= set(variables)
    return placed


def _drawn(variable: Variable, n: int, random: np.random.Generator) -> Floats:
    """Draw a variable of which no table speaks: evenly through its distribution, in random order."""
    chance = (random.permutation(n) + 0.5) / n
    if variable.is_number:
        return variable.draw_numbers(chance)
    places = np.floor(chance * len(variable.levels))
    return places.astype(np.float64)


def _lay_outcome(codebook: Codebook, bound: BoundModel, file: Floats, random: np.random.Generator) -> None:
    """Lay the outcome of a linear model along its published line; a published distribution is kept and only ordered."""
    variable = codebook.columns[bound.outcome.variable]
    if not variable.is_number or bound.outcome.kind != VALUE or not np.isfinite(bound.beta).all():
        return
    inside = evaluated(bound.base, file) > 0
    x, _ = bound.design(file)
    spread = bound.residual_sd
    if not np.isfinite(spread):
        explained = float((x @ bound.beta).std())
        known = np.isfinite(bound.r2) and bound.r2 > 0
        spread = (
            explained * np.sqrt((1 - bound.r2) / bound.r2) if known else (variable.high - variable.low) / 8
        )
    noise = random.standard_normal(len(x))
    noise -= x @ np.linalg.lstsq(x, noise, rcond=None)[0]
    freedom = max(len(x) - x.shape[1], 1)
    noise *= spread / max(np.sqrt(noise @ noise / freedom), 1e-300)
    line = x @ bound.beta + noise
    if variable.shares or variable.quantiles:
        values = np.sort(file[inside, bound.outcome.variable])
        line = values[np.argsort(np.argsort(line, kind="stable"), kind="stable")]
    if variable.kind == "integer":
        line = np.rint(line)
    file[inside, bound.outcome.variable] = np.clip(line, variable.low, variable.high)


def _notes(component: table_conditions.Component, slack: Floats, n: int) -> tuple[str, ...]:
    notes = []
    off: dict[str, float] = {}
    empty: dict[str, list[str]] = {}
    for condition, amount in zip(component.conditions, slack, strict=True):
        if amount <= 1e-6:
            continue
        if condition.floor_only:
            empty.setdefault(condition.target, []).append(condition.figure)
        else:
            off[condition.target] = max(off.get(condition.target, 0.0), float(amount))
    for target, amount in off.items():
        notes.append(
            f"{n:,} records are too few for the printed precision of '{target}': the nearest whole counts miss the "
            f"rounding interval by up to {amount:.2f} records ({amount / n:.5f} of the file)."
        )
    for target, terms in empty.items():
        notes.append(
            f"The tables leave too few records of one outcome behind {', '.join(dict.fromkeys(terms))} in "
            f"'{target}', so that coefficient may be out of reach."
        )
    return tuple(notes)


# From codebook and targets to what both engines need: bound targets, checked for consistency.


@dataclass(frozen=True, eq=False)
class Preparation:
    """Targets made ready, with what had to be said about them."""

    codebook: Codebook
    n: int
    bounds: tuple[Bound, ...]
    conditions: tuple[table_conditions.Condition, ...]
    floors: tuple[table_conditions.Condition, ...]
    components: tuple[table_conditions.Component, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, plan: FromOutputs) -> Preparation:
        """Bind the targets and refuse those that contradict one another."""
        bounds = tuple(target.bind(plan.codebook, plan.n) for target in plan.targets)
        titles = [bound.title for bound in bounds]
        twice = sorted({title for title in titles if titles.count(title) > 1})
        if twice:
            raise ParameterError(f"Two targets are called '{twice[0]}'. Give them names: name=….")
        if bounds and not any(bound.weight > 0 for bound in bounds):
            raise ParameterError("All targets have weight 0. Give one of them a weight.")
        conditions = table_conditions.conditions_of(plan.codebook, bounds, plan.n)
        floors = table_conditions.floors_of(plan.codebook, bounds, plan.min_cell) if plan.min_cell else []
        components = table_conditions.components_of(plan.codebook, conditions, floors)
        table_conditions.check_consistency(components, plan.n)
        notes = [note for bound in bounds if isinstance(bound, BoundTable) for note in bound.notes]
        notes += _margin_notes(plan.codebook)
        if plan.weights is not None:
            notes += plan.weights.check(plan.codebook)
        for note in notes:
            warnings.warn(note, DiscreetWarning, stacklevel=4)
        return cls(
            plan.codebook, plan.n, bounds, tuple(conditions), tuple(floors), tuple(components), tuple(notes)
        )


@dataclass(frozen=True, eq=False)
class SwapStart:
    """Whole counts of every table, and the search for the rest."""

    preparation: Preparation
    counts: tuple[Counts, ...]
    search: SwapSearch
    notes: tuple[str, ...]

    @classmethod
    def of(cls, preparation: Preparation) -> SwapStart:
        """Find the counts; targets that could not be built in are left to the search."""
        counts = tuple(counts_of(component, preparation.n) for component in preparation.components)
        soft = frozenset(target for part in counts for target in part.soft)
        ties = Ties.of(preparation.codebook, preparation.conditions, soft)
        left = [
            bound
            for bound in preparation.bounds
            if bound.weight > 0
            and not (isinstance(bound, BoundTable) and bound.exact and bound.title not in soft)
        ]
        notes = [note for part in counts for note in part.notes]
        notes += [
            f"The tables are too entangled to be built in together: '{name}' is searched for."
            for name in sorted(soft)
        ]
        search = SwapSearch(preparation.codebook, Layout.of(left), ties)
        return cls(preparation, counts, search, tuple(notes))

    def file(self, random: np.random.Generator) -> tuple[Floats, list[str]]:
        """Put a starting file together, and name the terms that have too few records in it."""
        preparation = self.preparation
        file = started(preparation.codebook, self.counts, preparation.bounds, preparation.n, random=random)
        floors = Floors(preparation.codebook, preparation.floors, self.search.ties)
        return file, floors.lift(file, random)


def _margin_notes(codebook: Codebook) -> list[str]:
    notes = []
    for variable in codebook:
        if not variable.is_categorical or not variable.shares:
            continue
        shares, published = variable.level_shares()
        missing = int((~published).sum())
        if missing:
            rest = float(shares[~published].sum())
            notes.append(
                f"The codebook gives no share for {missing} of the levels of '{variable.name}'; "
                f"what is missing to one ({rest:.4f}) was assigned there."
            )
    return notes


# A few records of either outcome behind every dummy, without which its coefficient does not exist.


@dataclass(frozen=True, eq=False)
class Floors:
    """What logistic models need of a file, and the tables that may not be touched to give it to them."""

    codebook: Codebook
    floors: Sequence[table_conditions.Condition]
    ties: Ties

    def lift(self, file: Floats, random: np.random.Generator) -> list[str]:
        """Mend the file in place, and name the terms where tables do not allow it."""
        short = []
        for floor in self.floors:
            level, outcome = floor.form.cell
            for _ in range(int(floor.form.value)):
                has_level = evaluated((level,), file) > 0
                has_outcome = evaluated((outcome,), file) > 0
                if (has_level & has_outcome).sum() >= floor.form.value:
                    break
                takers, givers = has_outcome & ~has_level, has_level & ~has_outcome
                spare = givers.sum() > floor.form.value
                if spare and self._exchange(file, level.variable, (takers, givers), random):
                    continue
                if spare and self._exchange(file, outcome.variable, (givers, takers), random):
                    continue
                if not self._give(file, level, takers, random):
                    short.append(floor.figure)
                    break
        return list(dict.fromkeys(short))

    def _exchange(
        self, file: Floats, variable: int, sides: tuple[Flags, Flags], random: np.random.Generator
    ) -> bool:
        """Exchange a variable between one record of either side that agree on all that tables tie to it."""
        tied = np.array(sorted(self.ties.partners[variable]), dtype=np.int64)
        left, right = np.flatnonzero(sides[0]), np.flatnonzero(sides[1])
        for other in random.permutation(right)[:50].tolist():
            agree = left[(file[left][:, tied] == file[other, tied]).all(axis=1)]
            if len(agree):
                one = int(random.choice(agree))
                file[[one, other], variable] = file[[other, one], variable]
                return True
        return False

    def _give(self, file: Floats, level: Factor, takers: Flags, random: np.random.Generator) -> bool:
        """Give one record the level, where no published distribution stands against it."""
        fixed = level.variable in self.ties.published or self.codebook.columns[level.variable].shares
        if fixed or not takers.any():
            return False
        file[int(random.choice(np.flatnonzero(takers))), level.variable] = level.table.index(1.0)
        return True
