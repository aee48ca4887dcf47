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

import numpy as np

from discreet.arrays import Floats
from discreet.dp.regression.check_loss import CheckLoss
from discreet.dp.regression.design import Design
from discreet.errors import InputError

_STEPS = 200
_TOLERANCE = 1e-8  # of the gradient, for every record


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


def minimizer(design: Design, loss: CheckLoss, *, ridge: float = 0.0, term: Floats | None = None) -> Floats:
    """The coefficients where the smoothed loss, a ridge and a linear term are least; by damped Newton steps."""
    terms = design.x.shape[1]
    linear = np.zeros(terms) if term is None else term
    theta = np.zeros(terms)
    enough = _TOLERANCE * len(design.y)
    value, slope, bend = _at(theta, design, loss, ridge, linear)
    for _ in range(_STEPS):
        if np.linalg.norm(slope) <= enough:
            return theta
        # Where no record is near, the loss is flat, and a bare Newton step would not end.
        flat = 1e-10 * (np.trace(bend) / terms + len(design.y) * 1e-6)
        step = np.linalg.solve(bend + flat * np.eye(terms), slope)
        length, fall = 1.0, float(slope @ step)
        while True:
            ahead = theta - length * step
            there = _at(ahead, design, loss, ridge, linear)
            if there[0] <= value - 1e-4 * length * fall or np.linalg.norm(there[1]) < 0.5 * np.linalg.norm(
                slope
            ):
                break
            length /= 2
            if length < 1e-12:
                # The loss is level to the last digit: the gradient decides alone.
                break
        if length < 1e-12:
            break
        theta, (value, slope, bend) = ahead, there
    if np.linalg.norm(slope) <= enough:
        return theta
    raise InputError(
        "The fit did not settle, and a private fit must be the exact minimizer. Use a larger h or another kernel, or "
        "bring the columns to a similar scale (standardize=True)."
    )


def _at(
    theta: Floats, design: Design, loss: CheckLoss, ridge: float, linear: Floats
) -> tuple[float, Floats, Floats]:
    from discreet.dp.regression.passes import loss_and_slopes

    value, slope, bend = loss_and_slopes(theta, design.x, design.y, design.weights, *loss.numbers)
    return (
        value + ridge / 2 * float(theta @ theta) + float(linear @ theta),
        slope + ridge * theta + linear,
        bend + ridge * np.eye(len(theta)),
    )
