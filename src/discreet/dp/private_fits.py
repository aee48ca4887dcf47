"""Work out what a private fit will draw, before anything is drawn: constants, refusals, and whether it is proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import fresh_seed, generator
from discreet.dp import noisy_gradients
from discreet.dp.calibration import rational_epsilon, subsampled_gaussian_noise, zcdp_from
from discreet.dp.mechanisms import words_of
from discreet.dp.regression_records import INTERCEPT, CheckLoss, Design, Kernel

Mechanism = Literal["opm", "kng", "sgd", "agd", "nonprivate"]
Calibration = Literal["accountant", "closed-form"]
_STEPS = 1000
_NEWTON_STEPS = 200
_HALVINGS = 60
_TOLERANCE = 1e-8  # of the gradient, for every record, in what one record can add
_ROUGHLY = 1e-3  # the same before the last stage
_STAGES, _WIDER = 5, 4.0  # bandwidths before the one that was asked for, and how much wider each is
_FLATTER = 0.5  # how steep a step may end, as a share of how steep it began
_SMALLEST = 1e-300
_START = 120
"""The first gradient and every choice of adaptive descent get what zero-concentrated privacy has for epsilon/120."""

_ARITHMETIC = (
    "objective perturbation is private because the minimizer tells its noise one to one, with a known Jacobian. That "
    "is true of real numbers and the exact minimizer. Here noise and minimizer are floating-point numbers: which of "
    "them can come out depends on the records in the last digits, and rounding them does not bound by how much. "
    "mechanism='agd' is proved for what it computes."
)
_APPROXIMATE = (
    "with more than two coefficients the K-norm gradient is drawn by a walk of a fixed length, in floating-point "
    "numbers, that starts at a fit to the records. No bound is known on how far its law is from the one of the proof, "
    "and a delta would have to hold that distance. mechanism='agd' is proved for what it computes."
)
_CLOSED_FORM = "the noise of the closed form is drawn in floating point. Use calibration='accountant'."
_NONPRIVATE = "no noise was drawn. This is for comparisons within the house."


@dataclass(frozen=True)
class Settings:
    """How one quantile is fitted: the share of the budget that it has, and public numbers."""

    kernel: Kernel
    h: float
    epsilon: float
    delta: float
    rho: float
    replace: bool
    theta_bound: float
    proper: noisy_gradients.Proper
    residual_bound: float | None
    records: int | None
    batch: int
    steps: int | None
    calibration: Calibration
    seed: int | None

    def loss(self, tau: float) -> CheckLoss:
        """The loss of a quantile."""
        return CheckLoss(tau, self.h, self.kernel)

    def rng(self, tau: float) -> np.random.Generator:
        """Draws that no guarantee rests on."""
        seed = fresh_seed() if self.seed is None else self.seed
        return generator(seed, "dp", "regression", repr(tau))


@dataclass(frozen=True)
class Prepared:
    """A fit whose price is known and whose noise is not drawn yet.

    Attributes
    ----------
    tau
        The quantile.
    constants
        What the noise follows from, by the names of the literature.
    why_none
        Why nothing is proved for what will be drawn; empty where it is.
    draw
        Draws the noise and gives the coefficients, and what else there is to say.
    """

    tau: float
    constants: dict[str, float]
    why_none: str
    draw: Callable[[], tuple[Floats, dict[str, Any]]]


def prepared(mechanism: Mechanism, design: Design, tau: float, asked: Settings) -> Prepared:
    """Prepare the fit of one quantile."""
    return _PREPARING[mechanism](design, tau, asked)


def _opm(design: Design, tau: float, asked: Settings) -> Prepared:
    loss = asked.loss(tau)
    found = _opm_constants(design, loss, asked.epsilon, asked.delta, replace=asked.replace)

    def draw() -> tuple[Floats, dict[str, Any]]:
        # Once, before anything is fitted: noise that is drawn again in every evaluation hides nothing.
        term = _linear_noise(found, len(design.terms), asked.rng(tau))
        least = minimizer(design, loss, ridge=found["Lambda"], term=term)
        return least.theta, {"converged": least.converged}

    return Prepared(tau, found, _ARITHMETIC, draw)


def _kng(design: Design, tau: float, asked: Settings) -> Prepared:
    loss, few = asked.loss(tau), len(design.terms) <= 2
    found = noisy_gradients.constants(
        design, loss, asked.epsilon, asked.theta_bound, proper=asked.proper, replace=asked.replace
    )
    # To refuse a file because of one more record would disclose that record: only a public number decides.
    public = len(design.y) if asked.replace else asked.records
    if few and public is not None:
        noisy_gradients.check_grid(public, len(design.terms))

    def draw() -> tuple[Floats, dict[str, Any]]:
        if few:
            return noisy_gradients.drawn_on_a_grid(
                design,
                loss,
                asked.epsilon,
                asked.theta_bound,
                ridge=found["omega"],
                replace=asked.replace,
                words=words_of(asked.seed, f"kng {tau!r}"),
            ), {}
        walked = noisy_gradients.drawn_by_walking(
            design,
            loss,
            asked.epsilon / (2 * found["Delta"]),
            minimizer(design, loss, ridge=found["omega"]).theta,
            ridge=found["omega"],
            box=float(asked.theta_bound) if asked.proper == "box" else 0.0,
            steps=asked.steps,
            rng=asked.rng(tau),
        )
        return walked.theta, {"rhat": walked.rhat, "steps": walked.steps}

    return Prepared(tau, found, "" if few else _APPROXIMATE, draw)


def _sgd(design: Design, tau: float, asked: Settings) -> Prepared:
    loss = asked.loss(tau)
    slope = loss.slope * design.length * design.max_weight
    if asked.calibration == "closed-form":
        if asked.replace:
            raise ParameterError("calibration='closed-form' is for adjacency='add-remove'.")
        noisy_gradients.check_squared_steps(len(design.y))

        def descend() -> tuple[Floats, dict[str, Any]]:
            return noisy_gradients.descent_record_by_record(
                design,
                loss,
                epsilon=asked.epsilon,
                delta=asked.delta,
                reach=asked.theta_bound,
                rng=asked.rng(tau),
            ), {}

        return Prepared(tau, {"L": slope}, _CLOSED_FORM, descend)
    if asked.records is None and not asked.replace:
        raise ParameterError(
            "mechanism='sgd' needs records: about how many there are, as far as that is public. Where the number is "
            "public, say adjacency='replace'."
        )
    many = asked.records or len(design.y)
    share = min(asked.batch / many, 0.5)
    # The distances between two records are drawn, so the chance of a record follows from a fraction.
    gap = rational_epsilon(-math.log1p(-share))
    share = -math.expm1(-float(gap)) * (1 + 1e-12)
    epsilon, delta = asked.epsilon, asked.delta
    if asked.replace:
        # One record replaced is one less and one more: twice the epsilon, and delta grows with it.
        epsilon, delta = epsilon / 2, delta / (1 + math.exp(epsilon / 2))
    steps = asked.steps or _STEPS
    noise = subsampled_gaussian_noise(epsilon, delta, share, steps)
    words = words_of(asked.seed, f"sgd {tau!r}")
    slopes = noisy_gradients.Slopes(design, loss, noise, replace=False, words=words)

    def draw() -> tuple[Floats, dict[str, Any]]:
        return noisy_gradients.stochastic_descent(
            slopes, noise=noise, gap=gap, steps=steps, expected=share * many, reach=asked.theta_bound / slope
        ), {}

    constants = {"L": slope, "noise": noise, "share": share, "steps": float(steps)}
    return Prepared(tau, constants, "", draw)


def _agd(design: Design, tau: float, asked: Settings) -> Prepared:
    if asked.residual_bound is None:
        raise ParameterError(
            "mechanism='agd' needs residual_bound: a public number that says how far a value may lie from the line. "
            "Losses beyond it are held at it."
        )
    loss = asked.loss(tau)
    rho = asked.rho * (1 - 1e-9)  # shares that add up to it may pass it by a last digit
    first = rho / (2 * asked.steps) if asked.steps else zcdp_from(asked.epsilon / _START, asked.delta)
    slopes = noisy_gradients.Slopes(
        design,
        loss,
        1 / math.sqrt(2 * first),
        replace=asked.replace,
        words=words_of(asked.seed, f"agd {tau!r}"),
        least=noisy_gradients.GROWTH - 1,
    )
    bound = loss.slope * asked.residual_bound

    def draw() -> tuple[Floats, dict[str, Any]]:
        return noisy_gradients.adaptive_descent(slopes, rho=rho, first=first, bound=bound), {}

    constants = {
        "C_grad": loss.slope * design.length,
        "C_obj": bound,
        "rho": asked.rho,
        "rho_first": first,
    }
    return Prepared(tau, constants, "", draw)


def _nonprivate(design: Design, tau: float, asked: Settings) -> Prepared:
    # Only where nothing is promised: whether a column is constant is a fact about the records.
    for at, name in enumerate(design.terms):
        if name != INTERCEPT and len(design.y) > 1 and design.x[:, at].min() == design.x[:, at].max():
            raise ColumnError(
                f"Column '{name}' is constant within its bounds. Leave it out; the intercept is in already."
            )

    def draw() -> tuple[Floats, dict[str, Any]]:
        least = minimizer(design, asked.loss(tau))
        if not least.converged:
            raise InputError(
                "The fit without noise did not settle: the loss has no least place, or one that double precision "
                "cannot tell. Use a larger h or another kernel, or bring the columns to a similar scale "
                "(standardize=True). Nothing was spent."
            )
        return least.theta, {}

    return Prepared(tau, {}, _NONPRIVATE, draw)


_PREPARING: dict[str, Callable[[Design, float, Settings], Prepared]] = {
    "opm": _opm,
    "kng": _kng,
    "sgd": _sgd,
    "agd": _agd,
    "nonprivate": _nonprivate,
}


# Objective perturbation: fit a smooth loss to which one random linear term was added (Chaudhuri, Monteleoni and
# Sarwate 2011; Kifer, Smith and Thakurta 2012). The minimizer of
#
#     sum of losses + (Lambda / 2) |theta|² + b' theta
#
# is private because b hides what one record adds to the gradient (a factor of e^(epsilon/2) at most) and the ridge
# bounds what it adds to the curvature: a determinant changes by the factor 1 + lambda / Lambda at most, and Lambda =
# 2 lambda / epsilon makes that less than e^(epsilon/2). The proof is about real numbers and the exact minimizer; b and
# the minimizer are floating-point numbers here, so no guarantee is claimed.


Objective = tuple[Design, CheckLoss, float, Floats]


def _opm_constants(
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


def _linear_noise(found: dict[str, float], terms: int, rng: np.random.Generator) -> Floats:
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
    for _ in range(_NEWTON_STEPS):
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
    from discreet.dp.regression_kernels import loss_and_slopes

    _, slope, bend = loss_and_slopes(theta, design.x, design.y, design.weights, *loss.numbers)
    return slope + ridge * theta + linear, bend + ridge * np.eye(len(theta))
