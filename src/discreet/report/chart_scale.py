"""Round numbers for the steps of an axis."""

from __future__ import annotations

import math


def nice_step(spread: float, most: int) -> float:
    """Return the smallest round step that covers a spread in at most so many steps.

    Examples
    --------
    >>> nice_step(0.33, 8), nice_step(66, 4)
    (0.05, 20.0)
    """
    power = math.floor(math.log10(spread)) - 1
    steps = (factor * 10.0**exponent for exponent in range(power, power + 4) for factor in (1, 2, 5))
    return next(step for step in steps if spread / step <= most)


def nice_ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Return round numbers from at or below ``low`` to at or above ``high``.

    Examples
    --------
    >>> nice_ticks(0, 0.33), nice_ticks(-0.07, 65)
    ([0.0, 0.1, 0.2, 0.3, 0.4], [-20.0, 0.0, 20.0, 40.0, 60.0, 80.0])
    """
    # A flat picture still needs an axis that is long enough to carry two different numbers.
    step = nice_step(max(high - low, 1e-9, 1e-4 * max(abs(low), abs(high))), most)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return [float(f"{place * step:.10g}") for place in range(first, max(last, first + 1) + 1)]
