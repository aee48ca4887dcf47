"""Draw coefficients that make the gradient small (the K-norm gradient mechanism).

Method: Reimherr and Awan (2019). Coefficients theta are drawn with density

    exp(-(epsilon / (2 Delta)) |sum of gradients + omega theta|),  in the largest-entry norm.

The gradient of the check loss is bounded, so without the public ridge omega, or a box, this would be no density: its
tails do not fall. With one or two coefficients the draw is made among the points of a public grid, from sums in whole
steps, by the exponential mechanism: exactly. With more it is a walk of a fixed number of steps, which comes near to the
density and proves nothing.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.dp.calibration import rational_epsilon
from discreet.dp.coins import chosen_privately
from discreet.dp.entropy import Words
from discreet.dp.regression.check_loss import CheckLoss, smoothed_check_loss
from discreet.dp.regression.design import Design
from discreet.dp.regression.objective_perturbation import minimizer

Proper = Literal["ridge", "box"]
POINTS = 401
_PER_BANDWIDTH = 1024
_TABLE = 32 * _PER_BANDWIDTH  # residuals of more than 32 bandwidths have the slope of the farthest
_SLOPE = 2**15  # whole numbers to a slope of 1
_TERM = 2**14  # whole numbers to the largest term
_MOST_ON_A_GRID = 10**11
_CHAINS = 4
_JUMP = 1.7  # about a third of the moves are then taken
_STEPS = 4000
_MOST_TERMS_OF_A_WALK = 4 * 10**10  # records times coefficients times steps: minutes


@dataclass(frozen=True)
class Walked:
    """Coefficients, how far the walks that drew them agree, and how long each was."""

    theta: Floats
    rhat: float
    steps: int


def constants(
    design: Design, loss: CheckLoss, epsilon: float, theta_bound: float, *, proper: Proper, replace: bool
) -> dict[str, float]:
    """The numbers that the density follows from; all of them are public."""
    slope = loss.slope * design.max_weight
    delta = (2 if replace else 1) * slope * design.largest
    terms = len(design.reach)
    ridge = 2 * delta * (terms + 10) / (epsilon * theta_bound) if proper == "ridge" else 0.0
    return {"C": design.largest, "Delta": delta, "omega": ridge}


def drawn_on_a_grid(
    design: Design,
    loss: CheckLoss,
    epsilon: float,
    theta_bound: float,
    *,
    ridge: float,
    replace: bool,
    words: Words,
) -> Floats:
    """Draw one or two coefficients among the points of a grid, exactly."""
    from discreet.dp.regression.passes import slopes_at_points

    axis = np.linspace(-theta_bound, theta_bound, POINTS)
    terms = len(design.reach)
    thetas = np.stack([part.ravel() for part in np.meshgrid(*[axis] * terms, indexing="ij")], axis=1)
    # Slopes and terms are whole numbers before they are multiplied, so that a record weighs what it may and no more.
    most, table = _slopes_in_whole_numbers(loss)
    unit = design.largest * design.max_weight / _TERM
    weighted = design.x * design.weights[:, None] if len(design.weights) else design.x
    wholes = np.clip(np.rint(weighted / unit), -_TERM, _TERM).astype(np.int64)
    sums = slopes_at_points(
        thetas, design.x / loss.h, wholes, design.y / loss.h, table, float(_PER_BANDWIDTH)
    )
    # The ridge is public, so rounding it moves nothing that depends on a record.
    sums += np.rint(ridge * thetas * (_SLOPE / unit)).astype(np.int64)
    scores = -np.abs(sums).max(axis=1)
    moved = (2 if replace else 1) * most * _TERM
    at = chosen_privately(scores, rational_epsilon(epsilon), Fraction(moved), words)
    return np.asarray(thetas[at])


@functools.lru_cache(maxsize=8)
def _slopes_in_whole_numbers(loss: CheckLoss) -> tuple[int, Integers]:
    """The largest slope of the loss, and the slope at every residual; public, so that one table does for all draws."""
    residuals = np.arange(-_TABLE, _TABLE + 1) / _PER_BANDWIDTH
    _, less, _ = smoothed_check_loss(-residuals * loss.h, loss.tau, loss.h, loss.kernel)
    most = math.ceil(loss.slope * _SLOPE)
    return most, np.clip(np.rint(-less * _SLOPE), -most, most).astype(np.int64)


def check_grid(many: int, terms: int) -> None:
    """Refuse a file with which the points of the grid would take all day."""
    if many * POINTS**terms > _MOST_ON_A_GRID:
        raise ParameterError(
            f"mechanism='kng' looks at all records at {POINTS**terms:,} points, which takes too long for so many. Use "
            "mechanism='agd'."
        )


def drawn_by_walking(
    design: Design,
    loss: CheckLoss,
    rate: float,
    *,
    ridge: float,
    box: float,
    steps: int | None,
    rng: np.random.Generator,
) -> Walked:
    """Draw coefficients by Metropolis walks for exp(-rate |gradient|), of a length that no record decides."""
    from discreet.dp.regression.passes import loss_and_slopes, walk

    many, terms = design.x.shape
    length = steps or min(_STEPS, max(_MOST_TERMS_OF_A_WALK // (many * terms * _CHAINS), 100))
    start = minimizer(design, loss, ridge=ridge).theta
    _, _, bend = loss_and_slopes(start, design.x, design.y, design.weights, *loss.numbers)
    bend = bend + (ridge + 1e-9 * (1 + np.trace(bend))) * np.eye(terms)
    # The gradient has noise of the size 1 / rate; the curvature says what that is in coefficients.
    jump = np.linalg.inv(bend) / rate
    walks = []
    for _ in range(_CHAINS):
        first = start + jump @ rng.standard_normal(terms) * math.sqrt(terms)
        walks.append(
            walk(
                np.clip(first, -box, box) if box else first,
                rng.standard_normal((length, terms)) @ jump.T * (_JUMP / math.sqrt(terms)),
                np.log(rng.random(length)),
                design.x,
                design.y,
                design.weights,
                *loss.numbers,
                rate,
                ridge,
                box,
            )[0]
        )
    return Walked(walks[0][-1], _rhat(np.stack(walks)[:, length // 2 :]), length)


def _rhat(walks: Floats) -> float:
    """How far walks disagree beyond what one of them varies, the worst coefficient (Gelman and Rubin 1992)."""
    many = walks.shape[1]
    within = walks.var(axis=1, ddof=1).mean(axis=0)
    between = walks.mean(axis=1).var(axis=0, ddof=1)
    if (within <= 0).any():
        return math.inf
    return float(np.sqrt((many - 1) / many + between / within).max())
