"""Which epsilons can be honored? Those for which the draws are exact."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from discreet.core.errors import ParameterError

SMALLEST_EPSILON = Fraction(1, 2**30)
LARGEST_EPSILON = Fraction(2**9)  # its exponential can still be written
_SMALLEST, _LARGEST = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)
GRID = 2**50
"""An epsilon is rounded down to a whole number of these parts: what is spent is never more than what was asked."""


def checked_epsilon(epsilon: Any, *, name: str = "epsilon") -> None:
    """Refuse an epsilon that is no number above 0, or lies where draws could not be exact.

    Examples
    --------
    >>> checked_epsilon(1e-20)
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: epsilon must lie between 9.31e-10 and 512, ...
    """
    number = isinstance(epsilon, int | float | Fraction) and not isinstance(epsilon, bool)
    if not number or not epsilon > 0 or not epsilon < math.inf:
        raise ParameterError(f"{name} must be a number of more than 0.")
    # Both bounds are powers of two, which floats hold exactly; comparing fractions would take ten times as long.
    if not _SMALLEST <= epsilon <= _LARGEST:
        raise ParameterError(
            f"{name} must lie between {float(SMALLEST_EPSILON):.3g} and {float(LARGEST_EPSILON):,.0f}, where noise can "
            "be drawn exactly. A smaller one would bury every count, a larger one would protect nothing."
        )


def rational_epsilon(epsilon: float | Fraction, parts: int = 1, *, name: str = "epsilon") -> Fraction:
    """Give one of ``parts`` equal shares of an epsilon as a fraction that the samplers take, never more than asked.

    Examples
    --------
    >>> rational_epsilon(0.5, 2), rational_epsilon(0.1) <= Fraction(1, 10)
    (Fraction(1, 4), True)
    """
    checked_epsilon(epsilon, name=name)
    share = _share(Fraction(epsilon), parts)
    if share is None:
        raise ParameterError(
            f"{name} is shared by {parts:,} draws about the same person, which leaves each less than "
            f"{float(SMALLEST_EPSILON):.3g}: too little to be drawn exactly. Raise it, or publish fewer cells."
        )
    return share


def noise_rate(epsilon: float | Fraction, moved: float | Fraction) -> Fraction:
    """Give one over the scale of Laplace noise in whole steps, for an answer that a unit can move by so many steps.

    To be asked before anything is spent: noise that would be too wide is refused.

    Examples
    --------
    >>> noise_rate(1.0, 4)
    Fraction(1, 4)
    """
    rate = Fraction(epsilon) / Fraction(moved)
    if rate < SMALLEST_EPSILON:
        raise ParameterError(
            "epsilon is too small for how far one person can move this answer: the noise would be too wide to be drawn "
            "exactly. Raise epsilon, or publish fewer numbers, with narrower bounds or fewer records of a person."
        )
    return rational_epsilon(rate)


@functools.lru_cache(maxsize=1024)
def _share(epsilon: Fraction, parts: int) -> Fraction | None:
    share = epsilon / parts
    if share < SMALLEST_EPSILON:
        return None
    # A float is taken down to the grid as well: 0.1 as the machine holds it lies above one tenth.
    return Fraction(share.numerator * GRID // share.denominator, GRID)
