"""Draw by inverting a distribution function: one uniform number in, one value out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.synth.distributions.draws import Draws, Size, count_of, uniforms

_KNOTS = 1025
_STEPS = 200
_OF_SCIPY = {"quantile": "ppf", "cdf": "cdf"}


def inverse_transform(
    quantile: Callable[[Floats], Any] | None = None,
    size: Size | None = None,
    *,
    cdf: Callable[[Floats], Any] | None = None,
    support: tuple[float, float] = (-np.inf, np.inf),
    uniform: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Floats]:
    """Draw from a continuous distribution whose quantile function, or distribution function, is known.

    Parameters
    ----------
    quantile
        The inverse of the distribution function, of an array of numbers from 0 to 1.
    size
        How many to draw; a tuple for an array of that shape.
    cdf
        The distribution function, where its inverse has no closed form: it is inverted numerically, by bracketing
        and bisection, to the last digit that matters. It must not fall.
    support
        Smallest and largest possible value.
    uniform
        The uniform numbers to use instead of random ones.
    seed
        For the uniform numbers.

    Examples
    --------
    >>> exponential = inverse_transform(lambda u: -np.log1p(-u), uniform=[0.1, 0.5, 0.9])
    >>> exponential.values.round(6).tolist()
    [0.105361, 0.693147, 2.302585]
    >>> inverse_transform(cdf=lambda x: x**2, support=(0, 1), uniform=[0.25]).values.round(9).tolist()
    [0.5]
    """
    if (quantile is None) == (cdf is None):
        raise ParameterError("Give either the quantile function or cdf=, and not both.")
    low, high = float(support[0]), float(support[1])
    if not low < high:
        raise ParameterError("support must go from a smaller to a larger number.")
    for function, name in ((quantile, "quantile"), (cdf, "cdf")):
        if function is not None and (not callable(function) or hasattr(function, "rvs")):
            raise ParameterError(
                f"{name} must be a function of an array, e.g. scipy.stats.norm.{_OF_SCIPY[name]}."
            )
    shares = uniforms(size, uniform, seed)
    if quantile is not None:
        values = np.asarray(quantile(shares), dtype=np.float64)
        if values.shape != shares.shape or np.isnan(values).any():
            raise ParameterError("quantile must return one number for each it is given.")
        return Draws(values, {"method": "quantile function", "draws": values.size})
    assert cdf is not None
    values, evaluations = _inverted(cdf, shares.ravel(), low, high)
    return Draws(
        values.reshape(shares.shape),
        {"method": "numeric inversion", "draws": values.size, "evaluations": evaluations},
    )


def conditional_inverse(
    quantiles: Sequence[Callable[..., Any]],
    size: int | None = None,
    *,
    uniform: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Floats]:
    """Draw several dependent variables, each by its quantile function given those before it.

    Parameters
    ----------
    quantiles
        The k-th is a function of an array of uniform numbers and of the k - 1 arrays drawn before.
    size
        Number of records.
    uniform
        The uniform numbers to use, a column a variable.
    seed
        For the uniform numbers.

    Examples
    --------
    >>> drawn = conditional_inverse(
    ...     [lambda u: -np.log1p(-u), lambda v, x: -np.log1p(-v) / (2 + 0.5 * x)], uniform=[[0.5, 0.5]]
    ... )
    >>> drawn.values.round(6).tolist()
    [[0.693147, 0.295387]]
    """
    if not quantiles:
        raise ParameterError("conditional_inverse needs at least one quantile function.")
    shape = None if size is None else (count_of(size), len(quantiles))
    shares = uniforms(shape, uniform, seed)
    if shares.ndim != 2 or shares.shape[1] != len(quantiles):
        raise ParameterError(f"uniform must have {len(quantiles)} columns, one for each quantile function.")
    drawn: list[Array] = []
    for place, quantile in enumerate(quantiles):
        column = np.broadcast_to(
            np.asarray(quantile(shares[:, place], *drawn), dtype=np.float64), len(shares)
        )
        drawn.append(np.asarray(column))
    return Draws(np.column_stack(drawn), {"method": "conditional quantiles", "draws": len(shares)})


def _inverted(cdf: Callable[[Floats], Any], shares: Floats, low: float, high: float) -> tuple[Floats, int]:
    """Find the smallest x with F(x) >= u by bisection of all draws at once, in brackets from a coarse table."""
    if not shares.size:
        return shares.copy(), 0
    evaluations = 0

    def at(points: Floats) -> Floats:
        nonlocal evaluations
        evaluations += points.size
        found = np.asarray(cdf(points), dtype=np.float64)
        if found.shape != points.shape or np.isnan(found).any():
            raise ParameterError("cdf must return one number for each it is given.")
        return found

    inner = shares[(shares > 0) & (shares < 1)]
    left = low if np.isfinite(low) else _reached(at, -1.0, float(inner.min(initial=0.5)), below=True)
    right = high if np.isfinite(high) else _reached(at, 1.0, float(inner.max(initial=0.5)), below=False)
    knots = np.linspace(min(left, right), max(left, right), _KNOTS)
    heights = at(knots)
    if (np.diff(heights) < -1e-12).any() or heights[0] < -1e-9 or heights[-1] > 1 + 1e-9:
        raise ParameterError("cdf falls or leaves 0 to 1 somewhere; a distribution function may not.")
    heights = np.maximum.accumulate(heights)
    place = np.clip(np.searchsorted(heights, shares, side="left"), 1, _KNOTS - 1)
    lower, upper = knots[place - 1].copy(), knots[place].copy()
    first = shares <= heights[0]
    upper[first] = lower[first] = knots[0]
    for _ in range(_STEPS):
        middle = lower + (upper - lower) / 2
        if not np.any((middle > lower) & (middle < upper)):
            break
        enough = at(middle) >= shares
        upper = np.where(enough, middle, upper)
        lower = np.where(enough, lower, middle)
        if np.all(upper - lower <= 4 * np.finfo(float).eps * np.maximum(np.abs(upper), 1e-300)):
            break
    # The quantile of 0 is the left end of the support, of 1 the right one.
    return np.where(shares == 0, low, np.where(shares == 1, np.minimum(high, upper), upper)), evaluations


def _reached(at: Callable[[Floats], Floats], start: float, share: float, *, below: bool) -> float:
    """Walk outwards in doubling steps until the distribution function has passed the share."""
    steps = start * 2.0 ** np.arange(0, 1000, 4)
    for point in steps:
        height = float(at(np.array([point]))[0])
        if (below and height < share) or (not below and height >= share):
            return float(point)
    raise ParameterError("cdf never comes near 0 or 1. Name the smallest and largest value with support=.")
