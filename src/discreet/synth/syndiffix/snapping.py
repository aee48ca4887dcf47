"""Ranges that do not depend on anybody: widths that are powers of two, at places that are multiples of half of them."""

from __future__ import annotations

import math

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

_MOST_TURNS = 64


@checked
def snap_range(low: float, high: float) -> tuple[float, float]:
    """Which range stands for these numbers, whoever holds the smallest and the largest of them?

    The width is the smallest power of two that the numbers need, and the range begins at a multiple of half of it;
    where it does not reach the largest number the next one is taken.

    Parameters
    ----------
    low, high
        The smallest and the largest number.

    Examples
    --------
    >>> snap_range(3, 7), snap_range(11, 21), snap_range(0.2, 0.4)
    ((0.0, 8.0), (8.0, 24.0), (0.0, 0.5))
    """
    if high < low:
        raise ParameterError("snap_range: high must not be below low.")
    first, last = float(low), float(high)
    for _ in range(_MOST_TURNS):
        width = _power_of_two(last - first)
        half = width / 2
        start = math.floor(first / half) * half
        if start + width >= last:
            return start + 0.0, start + width
        first = start
    raise ParameterError("snap_range: the numbers are too large to be told apart.")


def _power_of_two(width: float) -> float:
    if width <= 0:
        return 1.0
    fraction, exponent = math.frexp(width)
    return math.ldexp(1.0, exponent - 1 if fraction == 0.5 else exponent)
