"""One pass over the records of a regression: sums of losses, gradients and curvatures, with no copy of the data.

Sums that a guarantee rests on are added up in whole steps: what one record gives is rounded and held to a public
number of steps, so that the sum moves by no more than that when the record comes or goes, whatever the last digits of
a floating-point number do (Casacuberta, Shoemate, Vadhan and Wagaman 2022).
"""

from __future__ import annotations

import math

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled, inner

_ROOT_2 = math.sqrt(2.0)
_ROOT_2_PI = math.sqrt(2.0 * math.pi)


@inner
def _below(kernel: int, t: float) -> float:
    """The distribution function of a kernel; kernels stand in the order of `check_loss.KERNELS`."""
    if kernel == 0:
        return 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else 0.0
    if kernel == 1:
        return 0.5 * math.erfc(-t / _ROOT_2)
    if kernel == 2:
        return min(max((t + 1.0) / 2.0, 0.0), 1.0)
    if kernel == 3:
        return 1.0 - math.exp(-t) / 2.0 if t > 0.0 else math.exp(t) / 2.0
    held = min(max(t, -1.0), 1.0)
    return 0.75 * held - held * held * held / 4.0 + 0.5


@inner
def _density(kernel: int, t: float) -> float:
    if kernel == 0:
        tail = math.exp(-abs(t))
        return tail / ((1.0 + tail) * (1.0 + tail))
    if kernel == 1:
        return math.exp(-t * t / 2.0) / _ROOT_2_PI
    if kernel == 2:
        return 0.5 if abs(t) <= 1.0 else 0.0
    if kernel == 3:
        return math.exp(-abs(t)) / 2.0
    return 0.75 * (1.0 - t * t) if abs(t) <= 1.0 else 0.0


@inner
def _folded(kernel: int, t: float) -> float:
    size = abs(t)
    if kernel == 0:
        return size + 2.0 * math.log1p(math.exp(-size))
    if kernel == 1:
        return 2.0 * math.exp(-t * t / 2.0) / _ROOT_2_PI + t * math.erf(t / _ROOT_2)
    if kernel == 2:
        return (t * t + 1.0) / 2.0 if size <= 1.0 else size
    if kernel == 3:
        return size + math.exp(-size)
    return 0.75 * t * t - t**4 / 8.0 + 0.375 if size <= 1.0 else size


@compiled
def loss_and_slopes(  # noqa: PLR0917
    theta: Floats, x: Floats, y: Floats, weights: Floats, tau: float, h: float, kernel: int
) -> tuple[float, Floats, Floats]:
    """The sum of losses, its gradient and its Hessian."""
    many, terms = x.shape
    loss = 0.0
    slope = np.zeros(terms)
    bend = np.zeros((terms, terms))
    for i in range(many):
        fitted = 0.0
        for j in range(terms):
            fitted += x[i, j] * theta[j]
        t = (fitted - y[i]) / h
        weight = weights[i] if len(weights) else 1.0
        loss += weight * (h / 2.0 * _folded(kernel, t) - (tau - 0.5) * h * t)
        down = weight * (_below(kernel, t) - tau)
        curved = weight * _density(kernel, t) / h
        for j in range(terms):
            slope[j] += down * x[i, j]
            for k in range(j + 1):
                bend[j, k] += curved * x[i, j] * x[i, k]
    for j in range(terms):
        for k in range(j):
            bend[k, j] = bend[j, k]
    return loss, slope, bend


@compiled
def slopes_in_steps(  # noqa: PLR0917
    thetas: Floats,
    x: Floats,
    y: Floats,
    weights: Floats,
    tau: float,
    h: float,
    kernel: int,
    step: float,
    most: Integers,
) -> Integers:
    """The gradient of the loss at several points, in whole steps of which one record gives ``most`` at most."""
    many, terms = x.shape
    found = np.zeros((len(thetas), terms), dtype=np.int64)
    for place in range(len(thetas)):
        for i in range(many):
            fitted = 0.0
            for j in range(terms):
                fitted += x[i, j] * thetas[place, j]
            down = (_below(kernel, (fitted - y[i]) / h) - tau) / step
            if len(weights):
                down *= weights[i]
            for j in range(terms):
                own = int(np.rint(down * x[i, j]))
                found[place, j] += min(max(own, -most[j]), most[j])
    return found


@compiled
def slopes_at_points(  # noqa: PLR0917
    thetas: Floats, x: Floats, wholes: Integers, y: Floats, table: Integers, fine: float
) -> Integers:
    """The gradient at very many points, from a table of slopes at evenly spaced residuals, in whole numbers.

    ``x`` and ``y`` are in bandwidths, ``wholes`` are the terms as whole numbers and ``table`` slopes as whole numbers,
    ``fine`` of them to a bandwidth and 0 in the middle: one record gives a product of two bounded whole numbers.
    """
    many, terms = x.shape
    middle = len(table) // 2
    found = np.zeros((len(thetas), terms), dtype=np.int64)
    for place in range(len(thetas)):
        first = thetas[place, 0] * fine
        second = thetas[place, 1] * fine if terms > 1 else 0.0
        one, other = 0, 0
        for i in range(many):
            at = first * x[i, 0] - fine * y[i]
            if terms > 1:
                at += second * x[i, 1]
            slope = table[int(min(max(at, -middle + 1.0), middle - 1.0) + middle + 0.5)]
            one += slope * wholes[i, 0]
            if terms > 1:
                other += slope * wholes[i, 1]
        found[place, 0] = one
        if terms > 1:
            found[place, 1] = other
    return found


@compiled
def products_in_steps(x: Floats, y: Floats, weights: Floats, fine: float) -> Integers:
    """The sums of products of all pairs of terms, then of every term with ``y``, ``fine`` steps a record at most.

    One pass that makes no array beside the sums: columns of products of millions of records would each be written to
    fresh memory, which takes longer than to multiply.
    """
    many, terms = x.shape
    pairs = terms * (terms + 1) // 2
    found = np.zeros(pairs + terms, dtype=np.int64)
    for i in range(many):
        weight = weights[i] if len(weights) else 1.0
        at = 0
        for j in range(terms):
            for k in range(j, terms):
                found[at] += int(np.rint(min(max(x[i, j] * x[i, k] * weight, -1.0), 1.0) * fine))
                at += 1
            found[pairs + j] += int(np.rint(min(max(x[i, j] * y[i] * weight, -1.0), 1.0) * fine))
    return found


@compiled
def losses_in_steps(  # noqa: PLR0917
    thetas: Floats,
    x: Floats,
    y: Floats,
    weights: Floats,
    tau: float,
    h: float,
    kernel: int,
    step: float,
    most: int,
) -> Integers:
    """The loss at several points, in whole steps of which one record gives from 0 to ``most``."""
    many, terms = x.shape
    found = np.zeros(len(thetas), dtype=np.int64)
    for i in range(many):
        weight = weights[i] if len(weights) else 1.0
        for place in range(len(thetas)):
            fitted = 0.0
            for j in range(terms):
                fitted += x[i, j] * thetas[place, j]
            t = (fitted - y[i]) / h
            own = weight * (h / 2.0 * _folded(kernel, t) - (tau - 0.5) * h * t) / step
            # Held before it is made whole: a loss may be too large for a machine word.
            found[place] += int(np.rint(min(max(own, 0.0), float(most))))
    return found


@inner
def _down(  # noqa: PLR0917
    i: int,
    theta: Floats,
    x: Floats,
    y: Floats,
    weights: Floats,
    tau: float,
    h: float,
    kernel: int,
) -> float:
    """How much the loss of a record falls with what is fitted to it."""
    fitted = 0.0
    for j in range(x.shape[1]):
        fitted += x[i, j] * theta[j]
    down = _below(kernel, (fitted - y[i]) / h) - tau
    return float(down * weights[i] if len(weights) else down)


@compiled
def walk(  # noqa: PLR0917
    start: Floats,
    moves: Floats,
    logs: Floats,
    x: Floats,
    y: Floats,
    weights: Floats,
    tau: float,
    h: float,
    kernel: int,
    rate: float,
    ridge: float,
    box: float,
) -> tuple[Floats, int]:
    """A Metropolis walk of a fixed length for the density exp(-rate |sum of gradients + ridge theta|), largest norm.

    Outside the box (where its half-width is above 0) the density is 0. Gives the places, and how many moves were taken.
    """
    steps, terms = moves.shape
    places = np.empty((steps, terms))
    here = start.copy()
    there = np.empty(terms)
    height = -np.inf
    taken = 0
    for at in range(-1, steps):
        for j in range(terms):
            there[j] = here[j] + (moves[at, j] if at >= 0 else 0.0)
        slope = ridge * there
        for i in range(len(y)):
            down = _down(i, there, x, y, weights, tau, h, kernel)
            for j in range(terms):
                slope[j] += down * x[i, j]
        largest = 0.0
        for j in range(terms):
            largest = max(largest, abs(slope[j]))
            if box > 0.0 and abs(there[j]) > box:
                largest = np.inf
        if at < 0 or logs[at] < -rate * largest - height:
            height = -rate * largest
            here[:] = there
            taken += at >= 0
        if at >= 0:
            places[at] = here
    return places, taken


@compiled
def descend(  # noqa: PLR0917
    theta: Floats,
    drawn: Integers,
    noise: Floats,
    rates: Floats,
    x: Floats,
    y: Floats,
    weights: Floats,
    tau: float,
    h: float,
    kernel: int,
) -> Floats:
    """Take one noisy step for one record after the other; ``theta`` moves, the sum of its places is returned."""
    terms = x.shape[1]
    total = np.zeros(terms)
    for at in range(len(drawn)):
        i = drawn[at]
        down = _down(i, theta, x, y, weights, tau, h, kernel)
        for j in range(terms):
            theta[j] -= rates[at] * (down * x[i, j] + noise[at, j])
            total[j] += theta[j]
    return total
