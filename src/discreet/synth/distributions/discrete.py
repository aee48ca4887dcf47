"""Draw from a list of values with probabilities, or from the whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.synth.distributions.draws import Draws, Size, uniforms

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
