"""Draw parameters with chances proportional to prior times exp(-T u): exactly among candidates, or by particles.

Among candidates that the prior gave the draw is exact, and the guarantee holds for what is done. Sequential Monte Carlo
starts from the prior as well and never from a fit, but its law only approaches the one that the proof speaks of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats

Quality = Callable[[Floats], float]

_GRID = 2**40  # qualities are rounded to these parts, and the sensitivity grows by more than that can matter
_ESS = 0.5
_MOVES = 4
_MOST_STEPS = 200
_RUNGS = 7
SURE_ODDS = 5.0


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How the draw went; it was read off the data and is not for publication.

    Attributes
    ----------
    log_odds
        Logarithm of the odds of the mode against the tail of the prior; below 5 most draws are draws from the prior.
    best, mean
        The smallest and the mean quality u among the particles.
    acceptance
        Share of moves that were taken; None where the draw is exact.
    steps
        Temperatures passed; None where the draw is exact.
    r_hat
        Agreement of independent runs on u, 1 where they agree; None where the draw is exact.
    """

    log_odds: float
    best: float
    mean: float
    acceptance: float | None = None
    steps: int | None = None
    r_hat: float | None = None


def exactly(
    qualities: Floats,
    candidates: Floats,
    *,
    epsilon: Fraction,
    sensitivity: float,
    draws: int,
    words: dp.Words,
) -> Floats:
    """Draw candidates by the exponential mechanism; ``epsilon`` is the budget of each draw."""
    scores = [Fraction(-round(float(quality) * _GRID), _GRID) for quality in qualities]
    # The quality in double precision is off by less than 2^-44, and rounded by 2^-41; both files may be.
    reach = Fraction(sensitivity) + Fraction(1, 2**38)
    places = [dp.chosen_privately(scores, epsilon, reach, words) for _ in range(draws)]
    return candidates[places]


def chances(qualities: Floats, epsilon: float, sensitivity: float) -> Floats:
    """The chances of candidates under the exponential mechanism; small qualities are good.

    Examples
    --------
    >>> chances(np.array([0.01315789, 0.04411765, 0.10714286, 0.25]), 1.0, 0.1).round(6).tolist()
    [0.358728, 0.307282, 0.224223, 0.109766]
    """
    logs = -epsilon * np.asarray(qualities) / (2 * sensitivity)
    made = np.exp(logs - logs.max())
    return np.asarray(made / made.sum())


@dataclass(frozen=True, eq=False)
class Particles:
    """Parameters with their qualities at the last temperature."""

    thetas: Floats
    qualities: Floats
    acceptance: float
    steps: int


def by_particles(
    quality: Quality, dim: int, *, width: float, temperature: float, many: int, rng: np.random.Generator
) -> Particles:
    """Carry draws from the prior to the density at the temperature, in steps that keep half of them alive."""
    thetas = width * rng.standard_normal((many, dim))
    qualities = np.array([quality(theta) for theta in thetas])
    at, taken, tried, steps = 0.0, 0, 0, 0
    while at < temperature and steps < _MOST_STEPS:
        step = _next(qualities, temperature - at)
        at, steps = at + step, steps + 1
        weights = np.exp(-step * (qualities - qualities.min()))
        # One random number for all: as many copies of each as its weight says, give or take one.
        ends = np.cumsum(weights / weights.sum())
        ends[-1] = 1.0
        kept = np.searchsorted(ends, (np.arange(many) + rng.random()) / many)
        thetas, qualities = thetas[kept], qualities[kept]
        spread = np.linalg.cholesky(np.cov(thetas, rowvar=False).reshape(dim, dim) + 1e-12 * np.eye(dim))
        scale = 2.38 / math.sqrt(dim)
        for _ in range(_MOVES):
            moved = thetas + scale * (rng.standard_normal((many, dim)) @ spread.T)
            found = np.array([quality(theta) for theta in moved])
            logs = -at * (found - qualities) - ((moved**2).sum(1) - (thetas**2).sum(1)) / (2 * width**2)
            yes = np.log(rng.random(many)) < logs
            thetas[yes], qualities[yes] = moved[yes], found[yes]
            taken, tried = taken + int(yes.sum()), tried + many
            scale *= 1.3 if yes.mean() > 0.3 else 0.6
    return Particles(thetas, qualities, taken / max(tried, 1), steps)


def by_walking(
    quality: Quality, dim: int, *, width: float, temperature: float, many: int, rng: np.random.Generator
) -> Particles:
    """Walk at a ladder of temperatures from that of the prior on, and let neighbors change places now and then.

    Every walk starts from the prior and takes ``many`` steps, whatever the records are; the later half of the one at
    the last temperature is kept. A state keeps its quality until it moves: quality comes from random numbers that are
    the same for all states, so that nothing is estimated anew.
    """
    ladder = np.concatenate([[0.0], temperature * np.geomspace(1 / 2**_RUNGS, 1.0, _RUNGS)])
    thetas = width * rng.standard_normal((len(ladder), dim))
    qualities = np.array([quality(theta) for theta in thetas])
    scales = np.full(len(ladder), width * 2.38 / math.sqrt(dim))
    kept, found, taken, tried = [], [], 0, 0
    for step in range(many):
        moved = thetas + scales[:, None] * rng.standard_normal(thetas.shape)
        moved[0] = width * rng.standard_normal(dim)
        new = np.array([quality(theta) for theta in moved])
        logs = -ladder * (new - qualities) - ((moved**2).sum(1) - (thetas**2).sum(1)) / (2 * width**2)
        logs[0] = 0.0
        yes = np.log(rng.random(len(ladder))) < logs
        thetas[yes], qualities[yes] = moved[yes], new[yes]
        if step < many // 2:
            # Later on the width of a step may not depend on the way so far.
            scales *= np.where(yes, 1.1, 0.96)
        else:
            taken, tried = taken + int(yes[-1]), tried + 1
        at = int(rng.integers(len(ladder) - 1))
        change = (ladder[at + 1] - ladder[at]) * (qualities[at + 1] - qualities[at])
        if np.log(rng.random()) < change:
            thetas[[at, at + 1]], qualities[[at, at + 1]] = thetas[[at + 1, at]], qualities[[at + 1, at]]
        if step >= many // 2:
            kept.append(thetas[-1].copy())
            found.append(float(qualities[-1]))
    return Particles(np.array(kept), np.array(found), taken / max(tried, 1), many)


def _next(qualities: Floats, left: float) -> float:
    """The largest step after which half of the particles still count."""
    away = qualities - qualities.min()

    def alive(step: float) -> float:
        weights = np.exp(-step * away)
        return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))

    if alive(left) >= _ESS:
        return left
    low, high = 0.0, left
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if alive(middle) >= _ESS else (low, middle)
    return low


def split_r_hat(runs: list[Floats]) -> float:
    """How far independent runs disagree about a quantity; 1 where they agree (Gelman and Rubin 1992)."""
    halves = [half for run in runs for half in np.array_split(run, 2)]
    size = min(len(half) for half in halves)
    made = np.array([half[:size] for half in halves])
    within = float(made.var(axis=1, ddof=1).mean())
    between = size * float(made.mean(axis=1).var(ddof=1))
    if within <= 0:
        return 1.0 if between <= 0 else math.inf
    return math.sqrt(((size - 1) * within + between) / (size * within))


def log_odds(temperature: float, best: float, widths: Floats, prior: float) -> float:
    """The odds of the mode against the tail, as a logarithm: height of the one, volume of the other.

    Examples
    --------
    >>> round(log_odds(62.5, 0.0023, np.array([0.1, 0.1, 0.05]), 300.0), 2)
    -9.23
    """
    shares = np.minimum(np.maximum(widths, 1e-300) / prior, 1.0)
    return temperature * (0.25 - best) + float(np.log(shares).sum())
