"""Records that nobody has seen, bent until they answer as the published tables do: one run, compiled.

Every one of K rows is a product of distributions, one an attribute (a softmax of free numbers). Answers of queries are
means over the rows of products of sums; Adam moves the numbers along the gradient of the error on queries that are
drawn the more often the worse they fit (relaxed adaptive projection: Aydore et al. 2021; Dick et al. 2023).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from discreet.core.arrays import Flags, Floats, Integers, Singles
from discreet.core.compiling import compiled

_OPTIONS = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def chances(theta: Singles, starts: Integers, made: Singles) -> None:
    """The softmax of every attribute's numbers; one row a category, one column a record."""
    rows = theta.shape[1]
    for a in range(len(starts) - 1):
        for i in range(rows):
            top = theta[starts[a], i]
            for c in range(starts[a] + 1, starts[a + 1]):
                top = max(top, theta[c, i])
            total = np.float32(0.0)
            for c in range(starts[a], starts[a + 1]):
                made[c, i] = math.exp(theta[c, i] - top)
                total += made[c, i]
            for c in range(starts[a], starts[a + 1]):
                made[c, i] /= total


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def factored(p: Singles, members: Integers, bounds: Integers, made: Singles) -> None:
    """The chance of every factor, a sum over the categories that it allows."""
    rows = p.shape[1]
    for f in range(len(bounds) - 1):
        for i in range(rows):
            made[f, i] = 0.0
        for m in range(bounds[f], bounds[f + 1]):
            c = members[m]
            for i in range(rows):
                made[f, i] += p[c, i]


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def answered(s: Singles, queries: Integers, room: Singles, made: Floats) -> None:
    """The share of records that each query counts."""
    rows = s.shape[1]
    for q in range(len(queries)):
        total = np.float32(0.0)
        first = queries[q, 0]
        second = queries[q, 1] if queries.shape[1] > 1 else -1
        third = queries[q, 2] if queries.shape[1] > 2 else -1
        if first < 0:
            total = np.float32(rows)
        elif second < 0:
            for i in range(rows):
                total += s[first, i]
        elif third < 0:
            for i in range(rows):
                total += s[first, i] * s[second, i]
        else:
            for i in range(rows):
                room[i] = s[first, i] * s[second, i]
            for k in range(2, queries.shape[1]):
                f = queries[q, k]
                if f >= 0:
                    for i in range(rows):
                        room[i] *= s[f, i]
            for i in range(rows):
                total += room[i]
        made[q] = total / rows


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def missed(made: Floats, low: Floats, high: Floats, off: Floats) -> float:
    """How far every answer is outside of what was published, and the sum of the sizes."""
    total = 0.0
    for q in range(len(made)):
        off[q] = min(made[q] - low[q], 0.0) + max(made[q] - high[q], 0.0)
        total += abs(off[q])
    return total


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def pushed(s: Singles, queries: Integers, pull: Floats, room: Singles, slope: Singles) -> None:
    """The gradient of the loss for every factor, given that for every answer (``pull``; 0 where none was drawn)."""
    rows = s.shape[1]
    slope[:, :] = 0.0
    for q in range(len(queries)):
        if pull[q] == 0.0:
            continue
        weight = np.float32(pull[q] / rows)
        for k in range(queries.shape[1]):
            own = queries[q, k]
            if own < 0:
                break
            for i in range(rows):
                room[i] = weight
            for other in range(queries.shape[1]):
                f = queries[q, other]
                if other != k and f >= 0:
                    for i in range(rows):
                        room[i] *= s[f, i]
            for i in range(rows):
                slope[own, i] += room[i]


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def backward(  # noqa: PLR0917
    p: Singles, slope: Singles, members: Integers, bounds: Integers, starts: Integers, made: Singles
) -> None:
    """The gradient for the free numbers: back through the sums, then through the softmax."""
    rows = p.shape[1]
    made[:, :] = 0.0
    for f in range(len(bounds) - 1):
        for m in range(bounds[f], bounds[f + 1]):
            c = members[m]
            for i in range(rows):
                made[c, i] += slope[f, i]
    for a in range(len(starts) - 1):
        for i in range(rows):
            mean = np.float32(0.0)
            for c in range(starts[a], starts[a + 1]):
                mean += made[c, i] * p[c, i]
            for c in range(starts[a], starts[a + 1]):
                made[c, i] = p[c, i] * (made[c, i] - mean)


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def stepped(  # noqa: PLR0917
    theta: Singles, gradient: Singles, first: Singles, second: Singles, step: int, rate: float
) -> None:
    """One step of Adam."""
    one, two = 1 - 0.9**step, 1 - 0.999**step
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            g = gradient[c, i]
            first[c, i] = np.float32(0.9) * first[c, i] + np.float32(0.1) * g
            second[c, i] = np.float32(0.999) * second[c, i] + np.float32(0.001) * g * g
            theta[c, i] -= (
                np.float32(rate)
                * (first[c, i] / np.float32(one))
                / (math.sqrt(second[c, i] / np.float32(two)) + np.float32(1e-8))
            )


@compiled
def drawn(off: Floats, total: float, uniform: Floats, pull: Floats) -> None:
    """How often each query is drawn, by the size of its error, and how hard it then pulls."""
    pull[:] = 0.0
    running = np.cumsum(np.abs(off))
    last = len(off) - 1
    for u in uniform:
        q = min(np.searchsorted(running, u * running[-1], side="right"), last)
        pull[q] += 1.0
    size = 0.0
    for q in range(len(off)):
        size += pull[q] * off[q] * off[q]
    scale = 1.0 / (math.sqrt(size) * len(uniform)) if size > 0 else 0.0
    for q in range(len(off)):
        pull[q] *= off[q] * scale


@compiled
def projected(  # noqa: PLR0917
    theta: Singles,
    starts: Integers,
    members: Integers,
    bounds: Integers,
    queries: Integers,
    low: Floats,
    high: Floats,
    steps: int,
    batch: int,
    rate: float,
    rng: np.random.Generator,
) -> Singles:
    """One whole run: the chances of every row after so many steps (categories by rows)."""
    p = np.empty_like(theta)
    gradient = np.empty_like(theta)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    s = np.empty((len(bounds) - 1, theta.shape[1]), dtype=np.float32)
    slope = np.empty_like(s)
    room = np.empty(theta.shape[1], dtype=np.float32)
    made, off, pull = np.empty(len(queries)), np.empty(len(queries)), np.empty(len(queries))
    for step in range(1, steps + 1):
        chances(theta, starts, p)
        factored(p, members, bounds, s)
        answered(s, queries, room, made)
        total = missed(made, low, high, off)
        if total <= 1e-9:
            break
        drawn(off, total, rng.random(batch), pull)
        pushed(s, queries, pull, room, slope)
        backward(p, slope, members, bounds, starts, gradient)
        stepped(theta, gradient, first, second, step, rate)
    chances(theta, starts, p)
    return p


def members_of(factors: Flags) -> tuple[Integers, Integers]:
    """The categories of every factor one after the other, and where those of each begin."""
    bounds = np.concatenate([[0], np.cumsum(factors.sum(axis=1))]).astype(np.int64)
    return np.nonzero(factors)[1].astype(np.int64), bounds
