"""How much does a residual cost in quantile regression, smoothed so that it has derivatives?

The check loss ``|u| / 2 + (tau - 1/2) u`` has a corner at 0. Averaged over a kernel of bandwidth h it becomes
``(h / 2) I(u / h) + (tau - 1/2) u`` with ``I(t) = E |t + V|``, V drawn from the kernel (Fernandes, Guerre and Horta
2021; He, Pan, Tan and Zhou 2023). Its slope lies between tau - 1 and tau and its curvature below sup k / h, whatever
the data are: that is what private regression rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import numbers_of
from discreet.core.parameters import checked

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
