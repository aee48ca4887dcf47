"""How far could an estimate be off because another sample had been drawn? The delete-a-group jackknife."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Standard errors on either side of an estimate for an interval of 95 %.
WIDTH = 1.96


def jackknife_error(left_out: Sequence[float | None]) -> float | None:
    """Return the standard error from estimates that each leave one random group of records out (Wolter 2007).

    Groups for which nothing could be estimated are passed over; with fewer than three the answer is None.

    Examples
    --------
    >>> round(jackknife_error([0.9, 1.0, 1.1]), 4)
    0.1155
    >>> jackknife_error([0.9, None, 1.1]) is None
    True
    """
    known = np.array([value for value in left_out if value is not None], dtype=float)
    if len(known) < 3:
        return None
    return float(np.sqrt((len(known) - 1) / len(known) * ((known - known.mean()) ** 2).sum()))


def interval(
    value: float, error: float | None, lowest: float, highest: float
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a value, within the limits it cannot leave.

    Examples
    --------
    >>> interval(0.5, 0.1, 0.4, 1.0)
    (0.4, 0.696)
    """
    if error is None:
        return None, None
    return max(value - WIDTH * error, lowest), min(value + WIDTH * error, highest)
