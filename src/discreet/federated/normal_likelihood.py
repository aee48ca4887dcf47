"""The normal likelihood: what it is, taken apart node by node, and where it is best with few evaluations.

-2 log-likelihood of a row z is p log 2 pi + log|Sigma| + (z - mu) Sigma^-1 (z - mu)'. Conditional covariances and
regression weights need no data; only conditional means do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats, numbers_of
from discreet.core.errors import ParameterError
from discreet.federated.covariance_models import CovarianceModel

LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Conditional:
    """The law of one node's variables given those of earlier nodes.

    Attributes
    ----------
    covariance
        S_k, of its variables given all earlier ones.
    inverse
        Of this covariance.
    onward
        S[k, k+]: with the variables of later nodes, given all earlier ones.
    weights
        C_k = S[k+, k] S_k^-1: how later variables follow from these.
    """

    covariance: Floats
    inverse: Floats
    onward: Floats
    weights: Floats


def lower_factor(matrix: Floats) -> Floats | None:
    """Return the lower triangular factor (Cholesky) of a matrix; None where it is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None


def conditionals(sigma: Floats, widths: Sequence[int]) -> list[Conditional] | None:
    """Take a covariance apart by nodes of these widths; None where it is not positive definite.

    Examples
    --------
    >>> sigma = np.full((3, 3), 0.1) + 0.9 * np.eye(3)
    >>> parts = conditionals(sigma, [1, 1, 1])
    >>> [round(float(part.covariance[0, 0]), 7) for part in parts], parts[1].weights.round(8).tolist()
    ([1.0, 0.99, 0.9818182], [[0.09090909]])
    """
    left = sigma
    found = []
    for width in widths:
        own, onward = left[:width, :width], left[:width, width:]
        if lower_factor(own) is None:
            return None
        inverse = np.linalg.inv(own)
        weights = onward.T @ inverse
        found.append(Conditional(own, (inverse + inverse.T) / 2, onward, weights))
        left = left[width:, width:] - weights @ onward
    return found


def minus_two_log_likelihood(rows: Floats, mu: Floats, sigma: Floats) -> float:
    """Evaluate -2 log-likelihood of pooled rows; infinite where the covariance is not positive definite.

    Examples
    --------
    >>> round(minus_two_log_likelihood(np.zeros((1, 1)), np.zeros(1), np.eye(1)), 6)
    1.837877
    """
    lower = lower_factor(sigma)
    if lower is None:
        return math.inf
    from scipy.linalg import solve_triangular

    whitened = solve_triangular(lower, (rows - mu).T, lower=True)
    return float(
        len(rows) * (rows.shape[1] * LOG_2_PI + 2 * np.log(np.diag(lower)).sum()) + np.square(whitened).sum()
    )


def from_moments(rows: float, mean: Floats, covariance: Floats, mu: Floats, sigma: Floats) -> float:
    """Evaluate -2 log-likelihood from the mean and the covariance (divided by n); infinite as above.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.5]])
    >>> mu, sigma = np.array([1.0, 1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    >>> direct = minus_two_log_likelihood(x, mu, sigma)
    >>> round(from_moments(3, x.mean(axis=0), np.cov(x.T, bias=True), mu, sigma) - direct, 12) + 0.0
    0.0
    """
    lower = lower_factor(sigma)
    if lower is None:
        return math.inf
    from scipy.linalg import cho_solve

    off = mean - mu
    distance = np.trace(cho_solve((lower, True), covariance + np.outer(off, off)))
    return float(rows * (len(mu) * LOG_2_PI + 2 * np.log(np.diag(lower)).sum() + distance))


def checked_law(mu: Floats, sigma: Floats, size: int) -> tuple[Floats, Floats]:
    """Check the shape of a mean and a covariance."""
    mean, covariance = numbers_of(mu, "mu"), numbers_of(sigma, "sigma")
    if mean.shape != (size,) or covariance.shape != (size, size):
        raise ParameterError(f"mu must hold {size} numbers and sigma {size} x {size}, one for each variable.")
    if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=1e-12):
        raise ParameterError("sigma must be symmetric.")
    return mean, (covariance + covariance.T) / 2


# Where is -2 log-likelihood least? Few evaluations, because each one tells something and costs messages.
#
# The expected curvature of a normal likelihood needs no data, so the search begins with it, corrects it by gradients
# that are seen (BFGS), and takes differences in units of the standard errors that it implies.


_MOST_ROUNDS = 200
_FAR = 0.05


@dataclass
class Objective:
    """What is to be made small: -2 log-likelihood of a model's parameters.

    Attributes
    ----------
    value
        Evaluates it at a mean and a covariance.
    slope
        Its exact gradient in the parameters, where that is known without asking anybody.
    error
        About how far one evaluation may be off.
    """

    model: CovarianceModel
    rows: float
    value: Callable[[Floats, Floats], float]
    error: Callable[[], float]
    slope: Callable[[Floats], Floats] | None = None
    evaluations: int = 0

    def __call__(self, parameters: Floats) -> float:
        """Evaluate it at parameters of the model; infinite where they imply no covariance."""
        mu, sigma = self.model.implied(parameters)
        if not (np.isfinite(mu).all() and np.isfinite(sigma).all()) or lower_factor(sigma) is None:
            return math.inf
        self.evaluations += 1
        return self.value(mu, sigma)

    def information(self, parameters: Floats) -> Floats:
        """Return the expected curvature of -2 log-likelihood, from the model alone."""
        _, sigma = self.model.implied(parameters)
        means, covariances = self.model.jacobian(parameters)
        inverse = np.linalg.inv(sigma)
        turned = covariances @ inverse
        spread = np.einsum("aij,bji->ab", turned, turned)
        return np.asarray(self.rows * (spread + 2 * means @ inverse @ means.T))

    def gradient(
        self, parameters: Floats, steps: Floats, value: float | None = None, bend: Floats | None = None
    ) -> Floats:
        """Return the gradient, by differences where it is not known.

        With the value here and the expected bend of each parameter, steps to one side are enough while the minimum is
        far away.
        """
        if self.slope is not None:
            return self.slope(parameters)
        made = np.zeros(len(parameters))
        if value is not None and bend is not None:
            for at, step in enumerate(steps):
                up = self(_moved(parameters, {at: step}))
                made[at] = (up - value) / step - 0.5 * step * bend[at] if math.isfinite(up) else 1e6
            return made
        for at, step in enumerate(steps):
            up, down = (self(_moved(parameters, {at: sign * step})) for sign in (1, -1))
            made[at] = (up - down) / (2 * step) if math.isfinite(up + down) else (1e6 if up > down else -1e6)
        return made


@dataclass(frozen=True)
class Minimum:
    """Where the search ended."""

    parameters: Floats
    value: float
    converged: bool
    on_bound: Flags


def minimized(
    objective: Objective, start: Floats, low: Floats, high: Floats, *, tol: float, method: str = "scoring"
) -> Minimum:
    """Search for the minimum within bounds."""
    begin = np.clip(start, low, high)
    value = objective(begin)
    if not math.isfinite(value):
        raise ParameterError(
            "The model implies a covariance that is not positive definite where the search begins. Give another start."
        )
    found = _by_scipy(objective, begin, low, high, tol) if method == "L-BFGS-B" else _by_scoring(
        objective, begin, value, low, high, tol
    )  # fmt: skip
    near = 1e-7 * np.maximum(1.0, np.abs(found[0]))
    on_bound = (found[0] - low <= near) | (high - found[0] <= near)
    return Minimum(found[0], found[1], found[2], on_bound)


def _by_scoring(  # noqa: PLR0917
    objective: Objective, place: Floats, value: float, low: Floats, high: Floats, tol: float
) -> tuple[Floats, float, bool]:
    place, value = _with_best_means(objective, place, value, low, high)
    curvature: Floats | None = None
    last_gain = math.inf
    before: tuple[Floats, Floats] | None = None
    for _ in range(_MOST_ROUNDS):
        expected = objective.information(place)
        steps, share = difference_steps(objective, expected)
        one_sided = (value, np.diag(expected)) if last_gain > _FAR else (None, None)
        slope = objective.gradient(place, steps, *one_sided)
        if curvature is not None and before is not None:
            curvature = _corrected(curvature, place - before[0], slope - before[1])
        if curvature is None:
            curvature = expected
        free = ~((place <= low) & (slope > 0) | (place >= high) & (slope < 0))
        # Where an entry of the model is zero, another may have no effect at all for now.
        free &= np.diag(expected) > 1e-9 * np.diag(expected).max()
        if not free.any():
            return place, value, True
        step = np.zeros(len(place))
        step[free] = -_solved(curvature[np.ix_(free, free)], slope[free])
        gain = -float(slope @ step) / 2
        last_gain, was_rough = gain, one_sided[0] is not None
        length = math.sqrt(max(float(step @ expected @ step), 0.0))
        # Further than a good part of a standard deviation the curvature says little.
        step *= min(1.0, 0.7 * math.sqrt(2 * objective.rows) / length) if length > 0 else 1.0
        # What differences of values with rounding errors can tell apart.
        floor = 0.0 if objective.slope is not None else 4 * len(place) * (objective.error() / share) ** 2
        if gain <= max(min(1e-9, tol * 0.1), floor) and not (was_rough and objective.slope is None):
            return _polished(objective, place, value, step, low, high, floor)
        before = (place, slope)
        moved = _searched(objective, place, value, step, low, high)
        if moved is None:
            if was_rough and objective.slope is None:
                last_gain = 0.0
                continue
            if curvature is expected:
                return place, value, gain < 1e-4
            curvature, before = None, None
            continue
        place, value = moved
    return place, value, False


def _with_best_means(
    objective: Objective, place: Floats, value: float, low: Floats, high: Floats
) -> tuple[Floats, float]:
    """Bring parameters of the mean alone to their best place first: -2 log-likelihood is a parabola in them."""
    means, covariances = objective.model.jacobian(place)
    alone = (np.abs(means).max(axis=1) > 0) & (np.abs(covariances).max(axis=(1, 2)) == 0)
    if objective.slope is not None or not alone.any():
        return place, value
    expected = objective.information(place)
    # In a parabola differences are exact for any step, and large ones do not show rounding.
    steps = np.sqrt(2.0 / np.maximum(np.diag(expected), 1e-300)) * math.sqrt(objective.rows)
    slope = np.array([
        (objective(_moved(place, {at: steps[at]})) - objective(_moved(place, {at: -steps[at]}))) / (2 * steps[at])
        for at in np.flatnonzero(alone).tolist()
    ])  # fmt: skip
    there = np.array(place)
    there[alone] -= _solved(expected[np.ix_(alone, alone)], slope)
    there = np.clip(there, low, high)
    then = objective(there)
    return (there, then) if then < value else (place, value)


def _polished(  # noqa: PLR0917
    objective: Objective, place: Floats, value: float, step: Floats, low: Floats, high: Floats, floor: float
) -> tuple[Floats, float, bool]:
    """Take the last step, which is too small to be seen in the value, where it does no harm."""
    last = np.clip(place + step, low, high)
    then = objective(last)
    if then <= value + max(objective.error(), floor):
        return last, min(value, then), True
    return place, value, True


def _searched(  # noqa: PLR0917
    objective: Objective, place: Floats, value: float, step: Floats, low: Floats, high: Floats
) -> tuple[Floats, float] | None:
    share = 1.0
    for _ in range(30):
        there = np.clip(place + share * step, low, high)
        then = objective(there)
        if then < value:
            return there, then
        share *= 0.5 if math.isfinite(then) else 0.25
    return None


def _by_scipy(
    objective: Objective, start: Floats, low: Floats, high: Floats, tol: float
) -> tuple[Floats, float, bool]:
    from scipy.optimize import minimize

    steps, _ = difference_steps(objective, objective.information(start))
    units = steps / steps.max() if objective.slope is not None else steps

    def both(scaled: Floats) -> tuple[float, Floats]:
        place = np.clip(scaled * units, low, high)
        value = objective(place)
        if not math.isfinite(value):
            return 1e300, np.zeros(len(place))
        return value, objective.gradient(place, steps) * units

    limits = [
        (None if math.isinf(a) else a / unit, None if math.isinf(b) else b / unit)
        for a, b, unit in zip(low, high, units, strict=True)
    ]
    found: Any = minimize(
        both, start / units, jac=True, method="L-BFGS-B", bounds=limits,
        options={"ftol": max(tol * 1e-4, 1e-15), "gtol": 1e-9, "maxiter": 1000, "maxls": 50},
    )  # fmt: skip
    return np.clip(found.x * units, low, high), float(found.fun), bool(found.success)


def observed_information(objective: Objective, place: Floats, value: float, free: Flags) -> Floats:
    """Return the curvature of -2 log-likelihood at the minimum: q² + q evaluations, or differences of exact slopes.

    Parameters that are not free (on a bound) are left out, and have no curvature.
    """
    expected = objective.information(place)
    size = len(place)
    unit = np.sqrt(2.0 / np.maximum(np.diag(expected), 1e-300))
    made = np.full((size, size), np.nan)
    which = np.flatnonzero(free).tolist()
    if objective.slope is not None:
        for at in which:
            step = 1e-4 * float(unit[at])
            up, down = (objective.slope(_moved(place, {at: sign * step})) for sign in (1, -1))
            made[at] = (up - down) / (2 * step)
        return np.asarray((made + made.T) / 2)
    # Large enough that rounding does not show: the fourth root of the error, in standard errors.
    share = min(max(0.2, (objective.error() * 10) ** 0.25), 0.3)
    steps = share * unit
    alone = {at: [objective(_moved(place, {at: sign * steps[at]})) for sign in (1, -1)] for at in which}
    for i in which:
        made[i, i] = (alone[i][0] - 2 * value + alone[i][1]) / steps[i] ** 2
        for j in (one for one in which if one < i):
            both = sum(objective(_moved(place, {i: sign * steps[i], j: sign * steps[j]})) for sign in (1, -1))
            mixed = (both - sum(alone[i]) - sum(alone[j]) + 2 * value) / (2 * steps[i] * steps[j])
            made[i, j] = made[j, i] = mixed
    return made


def difference_steps(objective: Objective, expected: Floats) -> tuple[Floats, float]:
    """Choose steps for differences: the cube root of the error of an evaluation, in standard errors."""
    share = min(max(objective.error() ** (1 / 3), 1e-3), 0.05)
    return share * np.sqrt(2.0 / np.maximum(np.diag(expected), 1e-300)), share


def _corrected(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """Correct the curvature by what the last step showed (BFGS), keeping it positive definite."""
    along = float(step @ change)
    turned = curvature @ step
    if along <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return curvature
    return curvature + np.outer(change, change) / along - np.outer(turned, turned) / float(step @ turned)


def _solved(matrix: Floats, vector: Floats) -> Floats:
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix / np.outer(size, size)
    for ridge in (0.0, 1e-8, 1e-4, 1e-2, 1.0):
        ridged = scaled + ridge * np.eye(len(scaled))
        if lower_factor(ridged) is not None:
            return np.asarray(np.linalg.solve(ridged, vector / size) / size)
    return np.asarray(vector / size**2)


def _moved(place: Floats, by: dict[int, float]) -> Floats:
    there = np.array(place, dtype=np.float64)
    for at, step in by.items():
        there[at] += step
    return there
