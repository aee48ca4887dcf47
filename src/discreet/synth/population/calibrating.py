"""Households exchanged for others of their kind until given numbers of persons come out (simulated annealing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled
from discreet.synth.population.structure import Cell

_TURNS = 20
_COOLING = 0.9


def exchanged(  # noqa: PLR0917
    donors: Integers,
    cell: Integers,
    cells: Sequence[Cell],
    counts: Integers,
    wanted: Floats,
    rng: np.random.Generator,
) -> Integers:
    """Exchange donors within their cell while the numbers of persons come nearer to those that are wanted.

    Parameters
    ----------
    donors, cell
        The donor and the cell of every household.
    counts
        Persons of every household of the survey in each level.
    wanted
        Persons of the population in each level.
    """
    if not len(wanted) or not len(donors):
        return donors
    pools = np.concatenate([own.donors for own in cells])
    ends = np.concatenate([[0], np.cumsum([len(own.donors) for own in cells])]).astype(np.int64)
    made = donors.copy()
    gap = np.asarray(counts[made].sum(axis=0), dtype=np.float64) - wanted
    heat = max(float(np.abs(gap).mean()), 1.0) / 10
    for _ in range(_TURNS):
        if np.abs(gap).sum() < 1:
            break
        at = rng.integers(len(made), size=len(made))
        _one_turn(made, cell, pools, ends, counts.astype(np.int64), gap, at, rng.random((2, len(made))), heat)
        heat *= _COOLING
    return made


@compiled
def _one_turn(  # noqa: PLR0917
    donors: Any, cell: Any, pools: Any, ends: Any, counts: Any, gap: Any, at: Any, share: Any, heat: float
) -> None:
    """Propose as many exchanges as there are households, and take those that help, or hardly harm while it is hot."""
    levels = len(gap)
    for i in range(len(at)):
        place = at[i]
        first, last = ends[cell[place]], ends[cell[place] + 1]
        other = pools[first + int(share[0, i] * (last - first))]
        now = donors[place]
        if other == now:
            continue
        change = 0.0
        for level in range(levels):
            step = counts[other, level] - counts[now, level]
            change += abs(gap[level] + step) - abs(gap[level])
        if change < 0 or (change > 0 and share[1, i] < np.exp(-change / heat) * 0.01):
            for level in range(levels):
                gap[level] += counts[other, level] - counts[now, level]
            donors[place] = other
