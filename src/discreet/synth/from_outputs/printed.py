"""How exactly was a figure printed? The unit of its last digit, and the interval that rounds to it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal


def printed_unit(values: Iterable[float]) -> float:
    """Return the unit of the last digit that any of the figures shows.

    Trailing zeros are lost in a number, so the figure with most digits speaks for the others of its table.

    Examples
    --------
    >>> printed_unit([0.25, 0.065]), printed_unit([12, 7])
    (0.001, 1.0)
    """
    digits = [
        -int(Decimal(repr(float(value))).normalize().as_tuple().exponent)
        for value in values
        if math.isfinite(value)
    ]
    return float(Decimal(1).scaleb(-max([0, *digits])))
