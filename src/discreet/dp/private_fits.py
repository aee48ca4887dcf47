"""Work out what a private fit will draw, before anything is drawn: constants, refusals, and whether it is proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import fresh_seed, generator
from discreet.dp import noisy_gradients, objective_perturbation
from discreet.dp.calibration import rational_epsilon, subsampled_gaussian_noise, zcdp_from
from discreet.dp.mechanisms import words_of
from discreet.dp.objective_perturbation import CheckLoss, Kernel
from discreet.dp.regression_records import INTERCEPT, Design

Mechanism = Literal["opm", "kng", "sgd", "agd", "nonprivate"]
Calibration = Literal["accountant", "closed-form"]
_STEPS = 1000
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
    found = objective_perturbation.constants(design, loss, asked.epsilon, asked.delta, replace=asked.replace)

    def draw() -> tuple[Floats, dict[str, Any]]:
        # Once, before anything is fitted: noise that is drawn again in every evaluation hides nothing.
        term = objective_perturbation.linear_noise(found, len(design.terms), asked.rng(tau))
        least = objective_perturbation.minimizer(design, loss, ridge=found["Lambda"], term=term)
        return least.theta, {"converged": least.converged}

    return Prepared(tau, found, _ARITHMETIC, draw)


def _kng(design: Design, tau: float, asked: Settings) -> Prepared:
    loss, few = asked.loss(tau), len(design.terms) <= 2
    found = noisy_gradients.constants(
        design, loss, asked.epsilon, asked.theta_bound, proper=asked.proper, replace=asked.replace
    )
    # A file that was refused for one record more would tell of that record: only a public number decides.
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
    slopes = noisy_gradients.Slopes(
        design,
        loss,
        noise,
        replace=False,
        words=words_of(asked.seed, f"sgd {tau!r}"),
    )

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
        least = objective_perturbation.minimizer(design, asked.loss(tau))
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
