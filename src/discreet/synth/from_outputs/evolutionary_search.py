"""The evolutionary engine: files breed, mutate and compete until their analyses come out as published.

Nothing but the loss steers it, so margins that are not targets drift. It is the method as first published; the swap
engine reaches the same figures to more digits, keeps margins exact and is faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.synth.from_outputs.bound_targets import Bound, BoundModel, LossScale
from discreet.synth.from_outputs.codebook import Codebook, Variable

_EXCHANGED_ROWS = 0.1
Source = Literal["marginal", "uniform"]


@dataclass(frozen=True)
class Breeding:
    """The parameters of the evolution; see `FromOutputs`."""

    population: int
    generations: int
    mutation_schedule: Sequence[float]
    crossover: float
    init: Source
    mutation_source: Source
    tournament: int
    loss_scale: LossScale
    penalty: float
    stop: bool

    def mutation_rate(self, generation: int) -> float:
        """The schedule is spread evenly over the generations."""
        step = generation * len(self.mutation_schedule) // self.generations
        return float(self.mutation_schedule[min(step, len(self.mutation_schedule) - 1)])


@dataclass(frozen=True, eq=False)
class _Individual:
    file: Floats
    loss: float
    coefficients: tuple[Floats | None, ...]
    """Of each model; the next fit of a similar file starts from them."""
    met: bool


class _Judge:
    """Scores files; a warm start makes the fit of a slightly changed file cheap."""

    def __init__(self, bounds: Sequence[Bound], breeding: Breeding, reference: Floats) -> None:
        self.bounds = bounds
        self.breeding = breeding
        wanted = breeding.loss_scale == "se"
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
            total += bound.weight * bound.loss(
                achieved, self.breeding.loss_scale, self.breeding.penalty, spread
            )
            met = met and bool(bound.met(achieved).all())
        return _Individual(file, total, tuple(coefficients), met)


def evolved(
    codebook: Codebook,
    bounds: Sequence[Bound],
    n: int,
    breeding: Breeding,
    *,
    random: np.random.Generator,
    ticks: Iterable[int],
) -> tuple[Floats, list[tuple[int, float, int, str]]]:
    """Breed files and return the best one with the trace: generation, best loss, children that survived."""
    judge = _Judge(bounds, breeding, _drawn(codebook, n, "marginal", random))
    nothing: tuple[Floats | None, ...] = (None,) * len(bounds)
    trace: list[tuple[int, float, int, str]] = []
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as workers:
        first = [_drawn(codebook, n, breeding.init, random) for _ in range(breeding.population)]
        parents = list(workers.map(judge, [(file, nothing) for file in first]))
        parents.sort(key=lambda individual: individual.loss)
        trace.append((0, parents[0].loss, 0, "evolution"))
        for generation in ticks:
            if breeding.stop and any(individual.met for individual in parents):
                break
            children = _children(codebook, parents, breeding, breeding.mutation_rate(generation), random)
            fresh = [place for place, (_, clone) in enumerate(children) if clone is None]
            scored = workers.map(judge, [children[place][0] for place in fresh])
            judged: list[_Individual] = [clone for _, clone in children]  # type: ignore[misc]
            for place, individual in zip(fresh, scored, strict=True):
                judged[place] = individual
            everyone = parents + judged
            # Ties are broken at random, so that equal losses do not favor the old.
            losses = np.array([individual.loss for individual in everyone])
            order = np.lexsort((random.random(len(everyone)), losses))[: breeding.population]
            survived = int((order >= len(parents)).sum())
            parents = [everyone[place] for place in order]
            trace.append((generation + 1, parents[0].loss, trace[-1][2] + survived, "evolution"))
    best = next((individual for individual in parents if individual.met), parents[0])
    return best.file, trace


_Case = tuple[Floats, tuple[Floats | None, ...]]


def _children(
    codebook: Codebook,
    parents: list[_Individual],
    breeding: Breeding,
    rate: float,
    random: np.random.Generator,
) -> list[tuple[_Case, _Individual | None]]:
    """Copy the winners of tournaments in pairs, cross and mutate them; an unchanged child is its parent again."""
    losses = np.array([individual.loss for individual in parents])
    chosen = []
    for _ in range(breeding.population):
        rivals = random.integers(len(parents), size=breeding.tournament)
        ahead = rivals[losses[rivals] == losses[rivals].min()]
        chosen.append(int(ahead[0] if len(ahead) == 1 else random.choice(ahead)))
    files: list[Floats | None] = [None] * len(chosen)
    for place in range(0, len(chosen) - 1, 2):
        if breeding.crossover and random.random() < breeding.crossover:
            rows = random.random(len(parents[0].file)) < _EXCHANGED_ROWS
            one, two = parents[chosen[place]].file.copy(), parents[chosen[place + 1]].file.copy()
            one[rows], two[rows] = two[rows], one[rows].copy()
            files[place], files[place + 1] = one, two
    children: list[tuple[_Case, _Individual | None]] = []
    for place, parent in enumerate(chosen):
        source = parents[parent]
        crossed = files[place]
        mutated = _mutated(codebook, source.file if crossed is None else crossed, rate, breeding, random)
        file = crossed if mutated is None else mutated
        children.append(
            ((source.file, source.coefficients), source)
            if file is None
            else ((file, source.coefficients), None)
        )
    return children


def _mutated(
    codebook: Codebook, file: Floats, rate: float, breeding: Breeding, random: np.random.Generator
) -> Floats | None:
    """Give some cells a new value; None where none was hit."""
    cells = file.size
    hits = int(random.binomial(cells, rate))
    if hits == 0:
        return None
    mutated = file.copy()
    at = random.choice(cells, size=hits, replace=False)
    rows, columns = np.divmod(at, file.shape[1])
    for place, variable in enumerate(codebook):
        own = rows[columns == place]
        if len(own):
            mutated[own, place] = _values(variable, len(own), breeding.mutation_source, random)
    return mutated


def _drawn(codebook: Codebook, n: int, source: Source, random: np.random.Generator) -> Floats:
    return np.column_stack([_values(variable, n, source, random) for variable in codebook])


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
