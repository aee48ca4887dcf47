"""Fit a smooth loss to which one random linear term was added (objective perturbation).

Method: Chaudhuri, Monteleoni and Sarwate (2011) and Kifer, Smith and Thakurta (2012), with the smoothed check loss of
quantile regression. The minimizer of

    sum of losses + (Lambda / 2) |theta|² + b' theta

is private because b hides what one record adds to the gradient (a factor of e^(epsilon/2) at most) and the ridge bounds
what it adds to the curvature: a determinant changes by the factor 1 + lambda / Lambda at most, and Lambda = 2 lambda /
epsilon makes that less than e^(epsilon/2). The proof is about real numbers and the exact minimizer; b and the minimizer
are floating-point numbers here, so no guarantee is claimed. The smoothed check loss itself comes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, numbers_of
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.dp.regression_records import Design

Kernel = Literal["logistic", "gaussian", "uniform", "laplacian", "epanechnikov"]
KERNELS: tuple[str, ...] = get_args(Kernel)
"""In the order by which the compiled loops know them."""

HIGHEST = {
    "logistic": 0.25,
    "gaussian": 1 / math.sqrt(2 * math.pi),
    "uniform": 0.5,
    "laplacian": 0.5,
    "epanechnikov": 0.75,
}
"""The largest value of each kernel's density."""

_STEPS = 200
_HALVINGS = 60
_TOLERANCE = 1e-8  # of the gradient, for every record, in what one record can add
_ROUGHLY = 1e-3  # the same before the last stage
_STAGES, _WIDER = 5, 4.0  # bandwidths before the one that was asked for, and how much wider each is
_FLATTER = 0.5  # how steep a step may end, as a share of how steep it began
_SMALLEST = 1e-300


# How much does a residual cost in quantile regression, smoothed so that it has derivatives?
#
# The check loss ``|u| / 2 + (tau - 1/2) u`` has a corner at 0. Averaged over a kernel of bandwidth h it becomes
# ``(h / 2) I(u / h) + (tau - 1/2) u`` with ``I(t) = E |t + V|``, V drawn from the kernel (Fernandes, Guerre and Horta
# 2021; He, Pan, Tan and Zhou 2023). Its slope lies between tau - 1 and tau and its curvature below sup k / h, whatever
# the data are: that is what private regression rests on.


@dataclass(frozen=True)
class CheckLoss:
    """The loss of one quantile: tau, the bandwidth and the kernel."""

    tau: float
    h: float
    kernel: Kernel

    @property
    def slope(self) -> float:
        """How steep the loss can be."""
        return max(self.tau, 1 - self.tau)

    @property
    def curvature(self) -> float:
        """How far it can be curved."""
        return HIGHEST[self.kernel] / self.h

    @property
    def numbers(self) -> tuple[float, float, int]:
        """Tau, the bandwidth and the place of the kernel, as the compiled loops take them."""
        return self.tau, self.h, KERNELS.index(self.kernel)


@checked
def smoothed_check_loss(
    u: npt.ArrayLike, tau: float, h: float, kernel: Kernel = "logistic"
) -> tuple[Any, Any, Any]:
    """What does a residual cost, and how fast does that change?

    Parameters
    ----------
    u
        Residuals: the observed value less the fitted one.
    tau
        The quantile, between 0 and 1.
    h
        The bandwidth, above 0: how far from 0 the corner is rounded off. It must not come from the data where the fit
        is private.
    kernel
        ``"logistic"``, ``"gaussian"``, ``"uniform"``, ``"laplacian"`` or ``"epanechnikov"``.

    Returns
    -------
    tuple
        The loss, its first and its second derivative, each in the shape of ``u``.

    Examples
    --------
    >>> [round(value, 6) for value in smoothed_check_loss(0.3, 0.5, 0.5, "logistic")]
    [0.368744, 0.145656, 0.457568]
    """
    checked_quantile(tau)
    checked_smoothing(kernel, h)
    residuals = numbers_of(u, "u", empty=True)
    t = residuals / h
    density, below, folded = _parts(t, kernel)
    found = (h / 2 * folded + (tau - 0.5) * residuals, below + tau - 1, density / h)
    return found if residuals.ndim else tuple(float(part) for part in found)  # type: ignore[return-value]


def checked_quantile(tau: Any) -> float:
    """Refuse what is no quantile strictly between 0 and 1."""
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 < tau < 1:
        raise ParameterError("tau must be a number between 0 and 1, and neither of the two.")
    return float(tau)


def checked_smoothing(kernel: Any, h: Any) -> None:
    """Refuse a kernel nobody knows and a bandwidth that is no number above 0."""
    if kernel not in KERNELS:
        raise ParameterError(f"kernel must be one of {', '.join(map(repr, KERNELS))}.")
    if isinstance(h, bool) or not isinstance(h, int | float) or not 0 < h < math.inf:
        raise ParameterError("h must be a number of more than 0: the bandwidth, known without the data.")


def _parts(t: Floats, kernel: Kernel) -> tuple[Floats, Floats, Floats]:
    """The density, its distribution function and E |t + V|."""
    from scipy.special import expit, ndtr

    inside = np.abs(t) <= 1
    if kernel == "logistic":
        below = expit(t)
        # t + 2 log(1 + e^-t), which overflows nowhere in this form.
        return below * expit(-t), below, t + 2 * np.logaddexp(0.0, -t)
    if kernel == "gaussian":
        density = np.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        return density, ndtr(t), 2 * density + t * (1 - 2 * ndtr(-t))
    if kernel == "uniform":
        density = np.where(inside, 0.5, 0.0)
        return density, np.clip((t + 1) / 2, 0, 1), np.where(inside, (t * t + 1) / 2, np.abs(t))
    if kernel == "laplacian":
        tail = np.exp(-np.abs(t))
        return tail / 2, 0.5 + np.sign(t) * (1 - tail) / 2, np.abs(t) + tail
    held = np.clip(t, -1, 1)
    return (
        np.where(inside, 0.75 * (1 - held * held), 0.0),
        0.75 * held - held**3 / 4 + 0.5,
        np.where(inside, 0.75 * held**2 - held**4 / 8 + 0.375, np.abs(t)),
    )


# The minimizer of the loss with its one random term, and the numbers that this term follows from.


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
    from discreet.dp.regression_kernels import loss_and_slopes

    _, slope, bend = loss_and_slopes(theta, design.x, design.y, design.weights, *loss.numbers)
    return slope + ridge * theta + linear, bend + ridge * np.eye(len(theta))
