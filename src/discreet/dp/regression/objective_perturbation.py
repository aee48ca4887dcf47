"""Fit a smooth loss to which one random linear term was added (objective perturbation).

Method: Chaudhuri, Monteleoni and Sarwate (2011) and Kifer, Smith and Thakurta (2012), with the smoothed check loss of
quantile regression. The minimizer of

    sum of losses + (Lambda / 2) |theta|² + b' theta

is private because b hides what one record adds to the gradient (a factor of e^(epsilon/2) at most) and the ridge bounds
what it adds to the curvature: a determinant changes by the factor 1 + lambda / Lambda at most, and Lambda = 2 lambda /
epsilon makes that less than e^(epsilon/2). The proof is about real numbers and the exact minimizer; b and the minimizer
are floating-point numbers here, so no guarantee is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Floats
from discreet.dp.regression.check_loss import CheckLoss
from discreet.dp.regression.design import Design

_STEPS = 200
_HALVINGS = 60
_TOLERANCE = 1e-8  # of the gradient, for every record, in what one record can add
_ROUGHLY = 1e-3  # the same before the last stage
_STAGES, _WIDER = 5, 4.0  # bandwidths before the one that was asked for, and how much wider each is
_FLATTER = 0.5  # how steep a step may end, as a share of how steep it began
_SMALLEST = 1e-300
Objective = tuple[Design, CheckLoss, float, Floats]


def constants(
    design: Design, loss: CheckLoss, epsilon: float, delta: float, *, replace: bool
) -> dict[str, float]:
    """The numbers that the noise and the ridge follow from; all of them are public."""
    curvature = loss.curvature * design.length**2 * design.max_weight
    zeta = loss.slope * design.length * design.max_weight
    moved = 2 * zeta if replace else zeta
    found = {"B": design.length, "lambda": curvature, "Lambda": 2 * curvature / epsilon, "zeta": zeta}
    if delta:
        found["sigma"] = moved * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    else:
        found["scale"] = 2 * moved / epsilon
    return found


def linear_noise(found: dict[str, float], terms: int, rng: np.random.Generator) -> Floats:
    """The one random term: of gamma length in a random direction, or normal."""
    direction = rng.standard_normal(terms)
    if "sigma" in found:
        return found["sigma"] * direction
    return rng.gamma(terms, found["scale"]) * direction / np.linalg.norm(direction)


@dataclass(frozen=True)
class Minimum:
    """Where the search ended, and whether the gradient is as small there as was asked for."""

    theta: Floats
    converged: bool


def minimizer(design: Design, loss: CheckLoss, *, ridge: float = 0.0, term: Floats | None = None) -> Minimum:
    """Find the coefficients where the smoothed loss, a ridge and a linear term are least.

    The bandwidth shrinks in stages to the one that was asked for, and every stage starts where the one before it ended:
    with a narrow bandwidth the loss is all but flat far from its minimum, and steps that start there lead nowhere. The
    stages are the same for all data.
    """
    linear = np.zeros(len(design.reach)) if term is None else term
    theta = np.zeros(len(design.reach))
    for wide in range(_STAGES, 0, -1):
        stage = replace(loss, h=loss.h * _WIDER**wide)
        theta = _settled(theta, design, stage, ridge, linear, enough=_ROUGHLY).theta
    return _settled(theta, design, loss, ridge, linear, enough=_TOLERANCE)


def _settled(
    theta: Floats, design: Design, loss: CheckLoss, ridge: float, linear: Floats, *, enough: float
) -> Minimum:
    """Take damped Newton steps until the gradient is small; keep the place where it was smallest."""
    # What one record can add: to each term, or in all where a ridge holds every coefficient alike.
    reach = np.full(len(theta), design.length) if ridge else design.reach
    unit = np.maximum(reach * design.max_weight, _SMALLEST)
    enough *= max(len(design.y), 1)
    slope, bend = _at(theta, design, loss, ridge, linear)
    best, least = theta, math.inf
    for _ in range(_STEPS):
        size = float(np.linalg.norm(slope / unit))
        if size < least:
            best, least = theta, size
        if size <= enough or not math.isfinite(size):
            break
        scaled = bend / np.outer(unit, unit)
        # Without a ridge the loss may be flat where no record is near, and a bare Newton step would not end.
        flat = 1e-10 * (np.trace(scaled) / len(theta) + len(design.y) * 1e-6)
        step = np.linalg.solve(scaled + flat * np.eye(len(theta)), slope / unit) / unit
        theta, slope, bend = _along(step, theta, slope, (design, loss, ridge, linear))
    return Minimum(best, least <= enough)


def _along(step: Floats, theta: Floats, slope: Floats, objective: Objective) -> tuple[Floats, Floats, Floats]:
    """Go along a step until the objective has stopped to fall steeply and does not rise yet.

    Only slopes decide. The objective itself is a sum in which one record far away hides the digits of all others, while
    what one record adds to a slope is bounded; and a convex objective falls wherever it has not begun to rise.
    """
    fall = float(step @ slope)
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(_HALVINGS):
        ahead = theta - length * step
        there, bend = _at(ahead, *objective)
        left = float(step @ there)
        if abs(left) <= _FLATTER * fall:
            break
        low, high = (length, high) if left > 0 else (low, length)
        length = 2 * low if math.isinf(high) else (low + high) / 2
    return ahead, there, bend


def _at(
    theta: Floats, design: Design, loss: CheckLoss, ridge: float, linear: Floats
) -> tuple[Floats, Floats]:
    from discreet.dp.regression.passes import loss_and_slopes

    _, slope, bend = loss_and_slopes(theta, design.x, design.y, design.weights, *loss.numbers)
    return slope + ridge * theta + linear, bend + ridge * np.eye(len(theta))
