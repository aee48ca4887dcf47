"""Draw by inverting a distribution function: one uniform number in, one value out; for lists of values, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, Integers
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


# Draw from a list of values with probabilities, or from the whole numbers.
Search = Literal["binary", "linear", "alias"]

_TOLERANCE = 1e-9


def discrete_inverse(
    values: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    size: Size | None = None,
    *,
    search: Search = "binary",
    uniform: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Array]:
    """Draw from finitely many values: the first whose cumulative probability reaches the uniform number.

    Parameters
    ----------
    values
        The values, in the order in which probabilities are added up; numbers or texts.
    probabilities
        One for each value; they sum to 1.
    size
        How many to draw; a tuple for an array of that shape.
    search
        ``binary`` halves the list at each comparison. ``linear`` walks through it (for teaching). ``alias`` is
        Walker's table: one comparison a draw, but a given uniform number no longer means the quantile.
    uniform
        The uniform numbers to use instead of random ones.
    seed
        For the uniform numbers.

    Returns
    -------
    Draws
        ``diagnostics["comparisons"]`` is their total, ``diagnostics["comparisons_of_value"]`` how many it takes to
        find each value.

    Examples
    --------
    >>> drawn = discrete_inverse([1, 2, 3], [0.2, 0.5, 0.3], uniform=[0.6], search="linear")
    >>> drawn.values.tolist(), drawn.diagnostics["comparisons"]
    ([2], 2)
    """
    levels, chances = np.asarray(values), _checked(probabilities)
    if levels.ndim != 1 or len(levels) != len(chances):
        raise ParameterError("values and probabilities must be two lists of the same length.")
    shares = uniforms(size, uniform, seed)
    q = len(levels)
    if search == "alias":
        from discreet.numerics.alias_tables import alias_tables

        (own,), (other,) = alias_tables((chances / chances.sum())[np.newaxis])
        column = np.minimum((shares * q).astype(np.int64), q - 1)
        at: Integers = np.where(shares * q - column < own[column], column, other[column])
        each = np.ones(q, dtype=np.int64)
    elif search in ("binary", "linear"):
        at = _found(chances, shares)
        each = np.arange(1, q + 1) if search == "linear" else _depths(q)
    else:
        raise ParameterError("search must be 'binary', 'linear' or 'alias'.")
    how_often = np.bincount(at.ravel(), minlength=q)
    return Draws(
        levels[at],
        {
            "method": f"discrete inverse, {search} search",
            "draws": at.size,
            "comparisons": int(how_often @ each),
            "comparisons_of_value": each,
        },
    )


def discrete_inverse_unbounded(
    pmf: Callable[[Integers], Any],
    size: Size | None = None,
    *,
    start: int = 0,
    two_sided: bool = False,
    max_terms: int = 10_000_000,
    uniform: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Integers]:
    """Draw from all whole numbers from some number on, or from all whole numbers.

    The uniform numbers are drawn first; then probabilities are added up only as far as the largest needs.

    Parameters
    ----------
    pmf
        The probability of each number of an array of whole numbers.
    size
        How many to draw; a tuple for an array of that shape.
    start
        The smallest number; with ``two_sided`` one near the most probable, from which to go both ways.
    two_sided
        Whether there is no smallest number.
    max_terms
        After so many probabilities it is an error that they have not summed to enough.
    uniform, seed
        The uniform numbers to use, or the seed for random ones.

    Examples
    --------
    >>> from scipy.stats import poisson
    >>> discrete_inverse_unbounded(poisson(3).pmf, uniform=[0.2, 0.65, 0.98]).values.tolist()
    [2, 4, 7]
    """
    shares = uniforms(size, uniform, seed)
    if not shares.size:
        return Draws(shares.astype(np.int64), {"method": "discrete inverse", "draws": 0, "terms": 0})
    if two_sided:
        first, chances = _both_ways(pmf, start, max_terms)
    else:
        first, chances = start, _upwards(pmf, start, float(shares.max()), max_terms)
    below = np.cumsum(chances)
    at = np.searchsorted(below[:-1], shares, side="left")
    at = np.maximum(at, int(np.argmax(chances > 0)))
    # The largest uniform numbers may lie beyond what rounding lets the probabilities sum to.
    at = np.minimum(at, len(chances) - 1 - int(np.argmax(chances[::-1] > 0)))
    return Draws(
        (at + first).astype(np.int64),
        {
            "method": "discrete inverse, unbounded",
            "draws": shares.size,
            "terms": len(chances),
            "mass": float(below[-1]),
        },
    )


def _checked(probabilities: npt.ArrayLike) -> Floats:
    chances = np.asarray(probabilities, dtype=np.float64)
    if chances.ndim != 1 or not len(chances):
        raise ParameterError("probabilities must be a list of at least one number.")
    if not np.isfinite(chances).all() or (chances < 0).any():
        raise ParameterError("probabilities must be numbers of zero or above.")
    if abs(chances.sum() - 1) > _TOLERANCE:
        raise ParameterError(
            f"probabilities must sum to 1; these sum to {chances.sum():.10g}. Divide by the sum."
        )
    return chances


def _found(chances: Floats, shares: Floats) -> Integers:
    possible = np.flatnonzero(chances > 0)
    below = np.cumsum(chances)
    below[possible[-1] :] = 1.0
    at = np.searchsorted(below, shares, side="left")
    # The quantile of 0 is the first possible value.
    return np.clip(at, possible[0], possible[-1]).astype(np.int64)


def _depths(q: int) -> Integers:
    """Count the steps of a binary search that ends at each of q places, each step asking "is it here?"."""
    depth = np.zeros(q, dtype=np.int64)
    low, high, step = np.array([0]), np.array([q - 1]), 0
    while len(low):
        step += 1
        middle = (low + high) // 2
        depth[middle] = step
        low, high = np.concatenate([low, middle + 1]), np.concatenate([middle - 1, high])
        open_still = low <= high
        low, high = low[open_still], high[open_still]
    return depth


def _block(pmf: Callable[[Integers], Any], numbers: Integers) -> Floats:
    chances = np.asarray(pmf(numbers), dtype=np.float64)
    if chances.shape != numbers.shape or not np.isfinite(chances).all() or (chances < 0).any():
        raise ParameterError("pmf must return a probability of zero or above for each number it is given.")
    return chances


def _upwards(pmf: Callable[[Integers], Any], start: int, needed: float, max_terms: int) -> Floats:
    blocks: list[Floats] = []
    terms, mass, length = 0, 0.0, 64
    while terms < max_terms:
        length = min(length, max_terms - terms)
        block = _block(pmf, np.arange(start + terms, start + terms + length))
        blocks.append(block)
        before, mass = mass, mass + float(block.sum())
        _not_too_much(mass)
        if mass >= needed or (mass == before and mass > 1 - _TOLERANCE):
            return np.concatenate(blocks)
        terms, length = terms + length, min(2 * length, 1_000_000)
    raise _too_little(mass, max_terms)


def _both_ways(pmf: Callable[[Integers], Any], mode: int, max_terms: int) -> tuple[int, Floats]:
    blocks = [_block(pmf, np.array([mode]))]
    reach, mass, length = 0, float(blocks[0][0]), 64
    while 2 * reach + 1 < max_terms:
        up = np.arange(mode + reach + 1, mode + reach + length + 1)
        right, left = _block(pmf, up), _block(pmf, 2 * mode - up[::-1])
        blocks = [left, *blocks, right]
        before, mass = mass, mass + float(left.sum() + right.sum())
        reach, length = reach + length, min(2 * length, 1_000_000)
        _not_too_much(mass)
        # How the rest splits between the tails is unknown; so it must be next to nothing.
        if mass >= 1 - 1e-13 or (mass == before and mass > 1 - _TOLERANCE):
            return mode - reach, np.concatenate(blocks)
    raise _too_little(mass, max_terms)


def _not_too_much(mass: float) -> None:
    if mass > 1 + _TOLERANCE:
        raise ParameterError("The probabilities of pmf sum to more than 1.")


def _too_little(mass: float, max_terms: int) -> ParameterError:
    return ParameterError(
        f"The first {max_terms:,} probabilities of pmf sum to {mass:.10g}, which is too little. Check start= and that "
        "pmf sums to 1, or raise max_terms."
    )
