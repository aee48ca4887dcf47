"""Which numbers does one person have alone, such as an income to the cent, and how far must they be rounded?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet.workflow.column_coding import plainly_named
from discreet.workflow.suggesting.aims import Aims

_OWN = 0.5  # from this share of values that one person has alone, a column tells people apart by itself
_STEPS = 200
_MOST_LARGEST = 0.01


def own_numbers(table: pl.DataFrame, columns: Sequence[str], aims: Aims) -> dict[str, tuple[float, float]]:
    """Find the columns of numbers that are mostly one person's own: the base to round to, and the share of largest.

    The base is a round number that cuts the middle nine tenths into about two hundred steps; as many of the largest
    as a class must have, at least, are shown as their mean.

    Examples
    --------
    >>> table = pl.DataFrame({"pay": [1000.5 + 13.7 * i for i in range(500)], "sex": [0, 1] * 250})
    >>> own_numbers(table, ["pay", "sex"], Aims(10, ()))
    {'pay': (50, 0.02)}
    """
    found = {}
    for name in columns:
        values = plainly_named(table[name])
        if not values.dtype.is_numeric():
            continue
        known = values.cast(pl.Float64).fill_nan(None).drop_nulls()
        counts = known.unique_counts()
        if len(known) < 2 * max(aims.k, 10) or int((counts == 1).sum()) < _OWN * 0.8 * len(known):
            continue
        numbers = known.to_numpy()
        low, high = np.quantile(numbers, [0.05, 0.95])
        spread = float(high - low) if high > low else float(numbers.max() - numbers.min())
        largest = max(aims.k, 10) / len(known)
        found[name] = (_round_number(spread / _STEPS), round(max(largest, min(_MOST_LARGEST, 0.5)), 6))
    return found


def _round_number(size: float) -> float:
    """Give the next of 1, 2, 5, 10, 20, … (or 0.1, 0.2, …) above a size."""
    power = 10.0 ** math.floor(math.log10(size))
    for digit in (1, 2, 5, 10):
        if digit * power >= size * (1 - 1e-9):
            number = float(f"{digit * power:.12g}")
            return int(number) if number.is_integer() else number
    return 10 * power
