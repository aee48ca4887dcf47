"""Two searches for a file on which analyses come out as published: by swaps, and by evolution.

The swap engine keeps tables exact while records exchange values. The maximum likelihood estimate equals the published
coefficients exactly when the score at them is zero, so no model is fitted during the search; the score statistic says
how far away it is, whatever the units of the predictors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.numerics.alias_tables import drawn_places
from discreet.synth.from_outputs.bound_targets import Bound, BoundModel
from discreet.synth.from_outputs.codebook import Codebook, Variable
from discreet.synth.from_outputs.misfit import Layout, Phase, Standing, standing
from discreet.synth.from_outputs.table_conditions import Condition

if TYPE_CHECKING:
    from discreet.synth.from_outputs.teaching_data import FromOutputs

Step = tuple[int, float, int, str]

_REFRESH = 50
_PATIENCE = 2_000
_FINE = 1e-3
_KICKS = 4
_MOST_KEYS = 2**60


@dataclass(frozen=True, eq=False)
class Ties:
    """Which variables stand together in tables that are kept to the record."""

    partners: tuple[frozenset[int], ...]
    published: frozenset[int]

    @classmethod
    def of(cls, codebook: Codebook, conditions: Iterable[Condition], soft: frozenset[str]) -> Ties:
        """Read the ties off the conditions that are kept."""
        together: list[set[int]] = [set() for _ in codebook.columns]
        held: set[int] = set()
        for condition in conditions:
            if condition.target in soft:
                continue
            held |= condition.variables()
            for place in condition.variables():
                together[place] |= condition.variables() - {place}
        return cls(tuple(frozenset(others) for others in together), frozenset(held))


@dataclass(frozen=True, eq=False)
class SwapSearch:
    """A search over files that keeps every tied table to the record.

    Attributes
    ----------
    codebook
        The variables.
    layout
        The targets that are left to the search.
    ties
        The tables that are kept.
    """

    codebook: Codebook
    layout: Layout
    ties: Ties

    def run(
        self,
        file: Floats,
        random: np.random.Generator,
        *,
        batches: int,
        proposals: int,
        stop: bool,
        ticks: Iterable[int],
    ) -> tuple[Floats, list[Step]]:
        """Improve a file and return it with the trace of the search: batches done, misfit, changes made, phase."""
        from discreet.synth.from_outputs import search_kernels as kernels

        file = np.ascontiguousarray(file)
        trace: list[Step] = []
        if not self.layout.bounds:
            return file, trace
        made, stuck, gained = 0, False, 0
        phase: Phase = "rough"
        best, least = file.copy(), np.inf
        for tick in ticks:
            now = standing(self.layout, file, phase)
            done = tick * _REFRESH
            if now.misfit < least:
                gained = done if now.misfit < 0.99 * least else gained
                best, least = file.copy(), now.misfit
            trace.append((done, least, made, phase))
            if stop and now.near and all_met(self.layout.bounds, file):
                return file, trace
            size = min(_REFRESH, batches - done)
            if size <= 0:
                break
            entered, phase = phase, _next_phase(phase, now.misfit, done - gained)
            if phase != entered:
                now = standing(self.layout, file, phase)
                best, least, gained, stuck = file.copy(), now.misfit, done, False
            elif phase == "intervals" and done - gained > _PATIENCE:
                break
            if stuck:
                file[:] = best
                now = standing(self.layout, file, phase)
            moves = self._moves(file, now, random)
            place = (file, now.added, now.sums, self.layout.plan, now.metric, moves)
            if stuck:
                # Where no exchange helps any more, a few taken at random lead to another place as good.
                kernels.search(*place, random.random((_KICKS, 32, 4)), -np.inf)
            changes = int(kernels.search(*place, random.random((size, proposals, 4)), 1e-6 * now.misfit))
            made += changes
            stuck = changes == 0
        return best, trace

    @cached_property
    def movers(self) -> list[int]:
        """The variables that targets of the search depend on."""
        used: set[int] = set()
        for bound in self.layout.bounds:
            used |= bound.variables()
        return sorted(used)

    def _redraw(self, place: int) -> int:
        """Say how a variable may change by itself: not at all where its distribution was published."""
        from discreet.synth.from_outputs import search_kernels as kernels

        variable = self.codebook.columns[place]
        if place in self.ties.published or variable.shares:
            return kernels.FIXED
        if variable.is_categorical:
            return kernels.LEVEL
        return kernels.WHOLE if variable.kind == "integer" else kernels.REAL

    def _moves(self, file: Floats, now: Standing, random: np.random.Generator) -> Any:
        """List, for every variable, the records that may exchange it without touching a table."""
        from discreet.synth.from_outputs import search_kernels as kernels

        variables = [self.codebook.columns[place] for place in self.movers]
        partners = [sorted(self.ties.partners[place]) for place in self.movers]
        blocks = [
            [b for b, bound in enumerate(self.layout.bounds) if place in bound.variables()]
            for place in self.movers
        ]
        bands = [variable.bands() if variable.is_number else np.zeros(0) for variable in variables]
        focus = self._focus(now, random)
        order = np.empty((len(self.movers), len(file)), dtype=np.int64)
        low, high, looked_at = np.empty_like(order), np.empty_like(order), np.empty_like(order)
        for m, place in enumerate(self.movers):
            others = [other for other in self.movers if other != place and other not in partners[m]]
            order[m], low[m], high[m] = self._grouped(file, partners[m], others, random)
            place_of = np.empty(len(file), dtype=np.int64)
            place_of[order[m]] = np.arange(len(file))
            looked_at[m] = place_of[focus]
        return kernels.Moves(
            np.array(self.movers, dtype=np.int64),
            np.array([self._redraw(place) for place in self.movers], dtype=np.int64),
            np.array([len(variable.levels) for variable in variables], dtype=np.int64),
            _starts(bands),
            np.concatenate([*bands, np.zeros(1)]),
            _starts(partners),
            np.array([place for tied in partners for place in tied], dtype=np.int64),
            _starts(blocks),
            np.array([block for own in blocks for block in own], dtype=np.int64),
            order,
            low,
            high,
            looked_at,
        )

    def _focus(self, now: Standing, random: np.random.Generator) -> Integers:
        """Draw records by leverage, with replacement."""
        from discreet.synth.from_outputs import search_kernels as kernels

        weight = np.cumsum(kernels.leverage(now.added, self.layout.plan, now.metric) + 1e-300)
        return drawn_places(weight, len(weight), random)

    def _grouped(
        self, file: Floats, tied: list[int], others: list[int], random: np.random.Generator
    ) -> tuple[Integers, Integers, Integers]:
        """Order the records by what must agree, then by others in random priority, with the bounds of groups."""
        key = np.zeros(len(file), dtype=np.int64)
        for place in tied:
            key = key * len(self.codebook.columns[place].levels) + file[:, place].astype(np.int64)
        fine, room = key, _MOST_KEYS // (int(key.max()) + 1)
        for place in random.permutation(others).tolist():
            codes, size = _coded(self.codebook.columns[int(place)], file[:, int(place)])
            if size > room:
                break
            fine, room = fine * size + codes, room // size
        order = np.argsort(fine, kind="stable")
        ordered = key[order]
        return (
            order,
            np.searchsorted(ordered, ordered, side="left"),
            np.searchsorted(ordered, ordered, side="right"),
        )


def _next_phase(phase: Phase, misfit: float, idle: int) -> Phase:
    """Go from rough to fine near the targets, and to intervals where printed figures agree only within rounding."""
    if phase == "rough" and misfit < _FINE:
        return "fine"
    if phase == "rough" and idle > _REFRESH * 6:
        return "intervals"
    return phase


def ticks_for(batches: int) -> range:
    """Count the refreshes of a search."""
    return range(-(-batches // _REFRESH) + 1)


def all_met(bounds: Sequence[Bound], file: Floats) -> bool:
    """Whether every figure of these targets rounds to the printed one, by a true refit."""
    return all(bool(bound.met(bound.achieved(file)).all()) for bound in bounds)


def _coded(variable: Variable, values: Floats) -> tuple[Integers, int]:
    """Return small whole numbers that rise with the values."""
    if variable.is_categorical:
        return values.astype(np.int64), len(variable.levels)
    share = (values - variable.low) / (variable.high - variable.low)
    return np.clip(share * 64, 0, 63).astype(np.int64), 64


def _starts(parts: Sequence[Any]) -> Integers:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


# The evolutionary engine: files breed, mutate and compete until their analyses come out as published.
#
# Nothing but the loss steers it, so margins that are not targets drift. It is the method as first published; the swap
# engine reaches the same figures to more digits, keeps margins exact and is faster.
_EXCHANGED_ROWS = 0.1
Source = Literal["marginal", "uniform"]


def _mutation_rate(plan: FromOutputs, generation: int) -> float:
    """The chance that a cell changes: the schedule, spread evenly over the generations."""
    step = generation * len(plan.mutation_schedule) // plan.generations
    return float(plan.mutation_schedule[min(step, len(plan.mutation_schedule) - 1)])


@dataclass(frozen=True, eq=False)
class _Individual:
    file: Floats
    loss: float
    coefficients: tuple[Floats | None, ...]
    """Of each model; the next fit of a similar file starts from them."""
    met: bool


class _Judge:
    """Scores files; a warm start makes the fit of a slightly changed file cheap."""

    def __init__(self, plan: FromOutputs, bounds: Sequence[Bound], reference: Floats) -> None:
        self.bounds = bounds
        self.plan = plan
        wanted = plan.loss_scale == "se"
        self.spreads = [_positive(bound.spread(reference)) if wanted else None for bound in bounds]

    def __call__(self, case: tuple[Floats, tuple[Floats | None, ...]]) -> _Individual:
        file, near = case
        total, met, coefficients = 0.0, True, []
        for bound, spread, start in zip(self.bounds, self.spreads, near, strict=True):
            fitted = None
            if isinstance(bound, BoundModel):
                usable = start if start is not None and np.isfinite(start).all() else None
                fitted = bound.coefficients(file, usable)
                achieved = bound.figures(file, fitted)
            else:
                achieved = bound.achieved(file)
            coefficients.append(fitted)
            total += bound.weight * bound.loss(achieved, self.plan.loss_scale, self.plan.penalty, spread)
            met = met and bool(bound.met(achieved).all())
        return _Individual(file, total, tuple(coefficients), met)


def evolved(
    plan: FromOutputs,
    bounds: Sequence[Bound],
    *,
    random: np.random.Generator,
    ticks: Iterable[int],
) -> tuple[Floats, list[tuple[int, float, int, str]]]:
    """Breed files and return the best one with the trace: generation, best loss, children that survived."""
    judge = _Judge(plan, bounds, _drawn(plan, "marginal", random))
    nothing: tuple[Floats | None, ...] = (None,) * len(bounds)
    trace: list[tuple[int, float, int, str]] = []
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as workers:
        first = [_drawn(plan, plan.init, random) for _ in range(plan.population)]
        parents = list(workers.map(judge, [(file, nothing) for file in first]))
        parents.sort(key=lambda individual: individual.loss)
        trace.append((0, parents[0].loss, 0, "evolution"))
        for generation in ticks:
            if plan.stop_when == "printed" and any(individual.met for individual in parents):
                break
            children = _children(plan, parents, _mutation_rate(plan, generation), random)
            fresh = [place for place, (_, clone) in enumerate(children) if clone is None]
            scored = workers.map(judge, [children[place][0] for place in fresh])
            judged: list[_Individual] = [clone for _, clone in children]  # type: ignore[misc]
            for place, individual in zip(fresh, scored, strict=True):
                judged[place] = individual
            everyone = parents + judged
            # Ties are broken at random, so that equal losses do not favor the old.
            losses = np.array([individual.loss for individual in everyone])
            order = np.lexsort((random.random(len(everyone)), losses))[: plan.population]
            survived = int((order >= len(parents)).sum())
            parents = [everyone[place] for place in order]
            trace.append((generation + 1, parents[0].loss, trace[-1][2] + survived, "evolution"))
    best = next((individual for individual in parents if individual.met), parents[0])
    return best.file, trace


_Case = tuple[Floats, tuple[Floats | None, ...]]


def _children(
    plan: FromOutputs,
    parents: list[_Individual],
    rate: float,
    random: np.random.Generator,
) -> list[tuple[_Case, _Individual | None]]:
    """Copy the winners of tournaments in pairs, cross and mutate them; an unchanged child is its parent again."""
    losses = np.array([individual.loss for individual in parents])
    chosen = []
    for _ in range(plan.population):
        rivals = random.integers(len(parents), size=plan.tournament)
        ahead = rivals[losses[rivals] == losses[rivals].min()]
        chosen.append(int(ahead[0] if len(ahead) == 1 else random.choice(ahead)))
    files: list[Floats | None] = [None] * len(chosen)
    for place in range(0, len(chosen) - 1, 2):
        if plan.crossover and random.random() < plan.crossover:
            rows = random.random(len(parents[0].file)) < _EXCHANGED_ROWS
            one, two = parents[chosen[place]].file.copy(), parents[chosen[place + 1]].file.copy()
            one[rows], two[rows] = two[rows], one[rows].copy()
            files[place], files[place + 1] = one, two
    children: list[tuple[_Case, _Individual | None]] = []
    for place, parent in enumerate(chosen):
        source = parents[parent]
        crossed = files[place]
        mutated = _mutated(plan, source.file if crossed is None else crossed, rate, random)
        file = crossed if mutated is None else mutated
        children.append(
            ((source.file, source.coefficients), source)
            if file is None
            else ((file, source.coefficients), None)
        )
    return children


def _mutated(plan: FromOutputs, file: Floats, rate: float, random: np.random.Generator) -> Floats | None:
    """Give some cells a new value; None where none was hit."""
    cells = file.size
    hits = int(random.binomial(cells, rate))
    if hits == 0:
        return None
    mutated = file.copy()
    at = random.choice(cells, size=hits, replace=False)
    rows, columns = np.divmod(at, file.shape[1])
    for place, variable in enumerate(plan.codebook):
        own = rows[columns == place]
        if len(own):
            mutated[own, place] = _values(variable, len(own), plan.mutation_source, random)
    return mutated


def _drawn(plan: FromOutputs, source: Source, random: np.random.Generator) -> Floats:
    return np.column_stack([_values(variable, plan.n, source, random) for variable in plan.codebook])


def _values(variable: Variable, size: int, source: Source, random: np.random.Generator) -> Floats:
    """Draw values from the published distribution, or evenly from the allowed ones."""
    chance = random.random(size)
    if variable.is_number:
        if source == "marginal":
            return variable.draw_numbers(chance)
        plain = Variable(variable.name, variable.kind, range=variable.range)
        return plain.draw_numbers(chance)
    shares = np.full(len(variable.levels), 1 / len(variable.levels))
    if source == "marginal" and variable.shares:
        shares = variable.level_shares()[0]
    steps = np.cumsum(shares)
    places = np.searchsorted(steps / steps[-1], chance, side="right")
    return np.minimum(places, len(shares) - 1).astype(np.float64)


def _positive(spread: Floats) -> Floats:
    """A figure without a standard error counts on its own scale."""
    return np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
