"""Fit a regression by gradients under noise: the K-norm gradient mechanism, and descent by noisy gradients.

Method of the first: Reimherr and Awan (2019). Coefficients theta are drawn with density

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
from discreet.dp.entropy import Words, chosen_privately
from discreet.dp.regression_records import CheckLoss, Design, smoothed_check_loss
from discreet.dp.samplers import LARGEST_VARIANCE, discrete_gaussian, discrete_laplace

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
    from discreet.dp.regression_kernels import slopes_at_points

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
    start: Floats,
    *,
    ridge: float,
    box: float,
    steps: int | None,
    rng: np.random.Generator,
) -> Walked:
    """Draw coefficients by Metropolis walks for exp(-rate |gradient|) from a fit, of a length no record decides."""
    from discreet.dp.regression_kernels import loss_and_slopes, walk

    many, terms = design.x.shape
    length = steps or min(_STEPS, max(_MOST_TERMS_OF_A_WALK // (many * terms * _CHAINS), 100))
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


# Walk down the loss by noisy gradients: private stochastic descent and descent with an adaptive budget.
#
# Methods: Bassily, Smith and Thakurta (2014) and Abadi et al. (2016) for stochastic descent, Lee and Kifer (2018) for
# the adaptive one. What one record adds to a gradient or a loss is a whole number of steps within a public bound, the
# sums are exact, and the noise is discrete Gaussian noise from the operating system, so that the guarantee is proved
# for what is computed. Steps are chosen by the exponential mechanism, which spends epsilon²/8 of rho (Cesar and Rogers
# 2021); that buys more precision than the noisy maximum of the source. What is left of a budget may depend on earlier
# answers, which zero-concentrated privacy allows as long as the sum is bounded beforehand (Feldman and Zrnic 2021).


GROWTH = 1.3
"""Noise that does not help is drawn again, for this much of its share more."""
_LONGEST = 2.0
_LENGTHS = 20
_REFRESHED = 10  # iterations between two looks at how long steps have to be
_ROOM = 19  # powers of two of noise that the samplers can draw
_FINE = 14  # powers of two between a step and what one record can add
_MOST_STEPS = 5_000_000  # of the closed form


class Slopes:
    """Noisy gradients on a grid that is fine enough for the least noise and coarse enough for the most."""

    def __init__(
        self,
        design: Design,
        loss: CheckLoss,
        noise: float,
        *,
        replace: bool,
        words: Words,
        least: float = 1.0,
    ) -> None:
        self.design, self.loss, self.words, self.replace = design, loss, words, replace
        slope = loss.slope * design.max_weight
        fine = min(_FINE, _ROOM - math.ceil(math.log2(max(noise, 1.0))) - (1 if replace else 0))
        if fine < 2:
            raise ParameterError(
                "So little budget for so many steps cannot be drawn exactly. Take fewer steps, or raise epsilon."
            )
        self.step = math.ldexp(1.0, math.frexp(slope * design.length)[1] - fine)
        self.most = np.asarray(
            [math.ceil(slope * reach / self.step) for reach in design.reach], dtype=np.int64
        )
        self.moved = (4 if replace else 1) * int((self.most**2).sum())
        """The squared distance, in steps, that one record can move a sum of gradients."""
        # Known before anything is paid: ``least`` is the smallest part of a share that a draw will get.
        self._variance(least / (2 * noise * noise))

    def sums(self, theta: Floats, rows: Integers | None = None) -> Integers:
        """The sum of gradients of all records, or of some, in whole steps."""
        from discreet.dp.regression_kernels import slopes_in_steps

        data = self.design
        x, y, weights = (
            (data.x, data.y, data.weights)
            if rows is None
            else (data.x[rows], data.y[rows], data.weights[rows] if len(data.weights) else data.weights)
        )
        return np.asarray(
            slopes_in_steps(theta[None], x, y, weights, *self.loss.numbers, self.step, self.most)[0]
        )

    def losses(self, thetas: Floats, step: float, most: int) -> Integers:
        """The loss at several places, in whole steps of which a record gives ``most`` at most."""
        from discreet.dp.regression_kernels import losses_in_steps

        data = self.design
        return np.asarray(
            losses_in_steps(thetas, data.x, data.y, data.weights, *self.loss.numbers, step, most)
        )

    def noisy(self, sums: Integers, rho: float) -> Floats:
        """A sum of gradients with noise, for so much of rho."""
        noise = discrete_gaussian(self._variance(rho), len(sums), self.words)
        return (sums + noise).astype(np.float64) * self.step

    def _variance(self, rho: float) -> Fraction:
        variance = Fraction(math.ceil(self.moved / (2 * rho) * (1 + 1e-12) * 2**20), 2**20)
        if variance > LARGEST_VARIANCE:
            raise ParameterError(
                "So little budget for so many steps cannot be drawn exactly. Take fewer steps, or raise epsilon."
            )
        return variance


def adaptive_descent(slopes: Slopes, *, rho: float, first: float, bound: float) -> Floats:
    """Descend until the budget is spent; nothing is drawn before it is known that the budget holds it.

    Parameters
    ----------
    slopes
        Gives noisy gradients.
    rho, first
        The budget, and what the first gradient and every choice get.
    bound
        What one record of weight 1 can add to the loss at most.
    """
    design = slopes.design
    most_loss = bound * design.max_weight
    step = math.ldexp(1.0, math.frexp(most_loss)[1] - 1 - _FINE)
    most = math.ceil(most_loss / step)
    # Losses all grow when a record comes: the choice then pays for half of what it does when one is replaced.
    moved = Fraction(most) if slopes.replace else Fraction(most, 2)
    chosen_for = rational_epsilon(math.sqrt(8 * first))
    theta = np.zeros(len(design.reach))
    left, each = rho, first
    longest, used, turn = _LONGEST, 0.0, 0
    while each + first <= left:
        sums = slopes.sums(theta)
        down, left = slopes.noisy(sums, each), left - each
        while first <= left:
            lengths = np.linspace(0.0, longest, _LENGTHS)
            places = theta - lengths[:, None] * down / max(float(np.linalg.norm(down)), 1e-300)
            left -= first
            at = chosen_privately(-slopes.losses(places, step, most), chosen_for, moved, slopes.words)
            if at:
                theta, used = places[at], max(used, float(lengths[at]))
                break
            more = (GROWTH - 1) * each
            if more > left:
                return theta
            again, left = slopes.noisy(sums, more), left - more
            down = (each * down + more * again) / (each + more)
            each += more
        turn += 1
        if turn % _REFRESHED == 0 and used > 0:
            longest, used = 1.1 * used, 0.0
    return theta


def stochastic_descent(
    slopes: Slopes, *, noise: float, gap: Fraction, steps: int, expected: float, reach: float
) -> Floats:
    """Take so many noisy steps, each on records that are drawn one by one, and give the mean of the places.

    Parameters
    ----------
    slopes, noise
        Gives noisy gradients; the noise in units of what one record can add.
    gap
        A record is in a step with chance 1 - exp(-gap).
    steps, expected
        How many steps, and about how many records are in one; public.
    reach
        How long the first step is for a gradient of length 1; later ones fall with the root of their number.
    """
    rho = 1 / (2 * noise * noise)
    theta, total = np.zeros(len(slopes.most)), np.zeros(len(slopes.most))
    for turn in range(1, steps + 1):
        rows = drawn_records(len(slopes.design.y), gap, slopes.words)
        down = slopes.noisy(slopes.sums(theta, rows), rho) / expected
        theta = theta - reach / math.sqrt(turn) * down
        total += theta
    return total / steps


def drawn_records(many: int, gap: Fraction, words: Words) -> Integers:
    """Draw every record by itself with chance 1 - exp(-``gap``), without a draw for those that are not in.

    The number of records that are passed over before the next one in has chances proportional to exp(-gap number).

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 800 < len(drawn_records(100_000, Fraction(1, 100), os_words)) < 1200
    True
    """
    at_once = int(min(max(many, 1), 1.2 * many * -math.expm1(-float(gap)) + 64))
    found, last = [], -1
    while last < many:
        two_sided = discrete_laplace(gap, at_once, words)
        # Folded at -1/2, two-sided noise has the law of one side.
        passed = np.where(two_sided >= 0, two_sided, -two_sided - 1)
        places = last + np.cumsum(passed + 1)
        found.append(places[places < many])
        last = int(places[-1])
    return np.concatenate(found)


def descent_record_by_record(
    design: Design, loss: CheckLoss, *, epsilon: float, delta: float, reach: float, rng: np.random.Generator
) -> Floats:
    """Take n² noisy steps, one record each, with the noise of the source; for small files and comparisons."""
    from discreet.dp.regression_kernels import descend

    many, terms = design.x.shape
    slope = loss.slope * design.length * design.max_weight
    sigma = math.sqrt(8 * slope * slope * math.log(1 / delta)) / epsilon
    theta, total = np.zeros(terms), np.zeros(terms)
    length = math.hypot(slope, sigma * math.sqrt(terms))
    for start in range(0, many * many, 1 << 18):
        turns = np.arange(start, min(start + (1 << 18), many * many))
        total += descend(
            theta,
            rng.integers(0, many, len(turns)),
            sigma * rng.standard_normal((len(turns), terms)),
            reach / (length * np.sqrt(turns + 1.0)),
            design.x,
            design.y,
            design.weights,
            *loss.numbers,
        )
    return np.asarray(total / (many * many))


def check_squared_steps(many: int) -> None:
    """Refuse a file that is too large for as many steps as the square of its records."""
    if many * many > _MOST_STEPS:
        raise ParameterError(
            f"calibration='closed-form' takes as many steps as the square of the number of records, at most "
            f"{_MOST_STEPS:,}. Use calibration='accountant'."
        )
