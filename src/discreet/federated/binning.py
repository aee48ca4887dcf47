"""Into how many bins does a variable go, and into which bin a value? Bins of all sites lie on one common range.

Fewer bins give a smaller epsilon after randomization, that is more privacy (one sentence of the source has it the other
way round; its formula has not).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import numbers_of
from discreet.core.parameters import checked


@checked
def freedman_diaconis_bins(values: Any, *, max_bins: int | None = None) -> tuple[int, str]:
    """How many bins suit a column? Range / (2 IQR n^(-1/3)), rounded up; and the rule that was used.

    Where the quartiles agree, Sturges' rule takes over: ceil(log2 n) + 1.

    Examples
    --------
    >>> freedman_diaconis_bins([1, 2, 2, 3, 4, 4, 5, 6, 7, 9, 12, 15])
    (4, 'freedman-diaconis')
    """
    known = numbers_of(values, "values", missing=True, infinite=True, empty=True).reshape(-1)
    known = known[np.isfinite(known)]
    if not len(known):
        raise ParameterError("There are no values to bin.")
    if max_bins is not None and max_bins < 1:
        raise ParameterError("max_bins must be at least 1.")
    low, high = np.quantile(known, (0.25, 0.75))
    reach = float(known.max() - known.min())
    if reach == 0:
        return 1, "constant"
    if high > low:
        # An exact whole number of bins must not become one more by rounding.
        many, rule = (
            math.ceil(reach / (2 * (high - low) * len(known) ** (-1 / 3)) - 1e-9),
            "freedman-diaconis",
        )
    else:
        many, rule = math.ceil(math.log2(len(known))) + 1, "sturges"
    return max(1, min(many, max_bins or many)), rule


@checked
def bin_edges(low: float, high: float, bins: int) -> Floats:
    """Lay the borders of bins of equal width on a range.

    Examples
    --------
    >>> bin_edges(0, 20, 4).tolist()
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high) or bins < 1:
        raise ParameterError("A range has two finite ends, the lower one first, and at least one bin.")
    return low + (high - low) * np.arange(bins + 1) / bins


@checked
def bin_codes(values: Any, edges: Floats) -> Integers:
    """Tell the bin of every value, -1 where it is missing; values beyond the range go to the end bins.

    Examples
    --------
    >>> bin_codes([1, 2, 2, 3, 4, 4, 5, 6, 7, 9, 12, 15, 20, 99], bin_edges(0, 20, 4)).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3]
    """
    given = numbers_of(values, "values", missing=True, infinite=True, empty=True)
    codes = np.searchsorted(edges[1:-1], given, side="right").astype(np.int64)
    return np.where(np.isnan(given), -1, codes)


def threshold_of(code: int, edges: Floats) -> float:
    """Bring the border between bins ``code`` and ``code + 1`` back to the scale of the values.

    A value on the border belongs to the upper bin, and ``x <= threshold`` goes to the lower: the threshold is the last
    number below the border.
    """
    if code < 0:
        return -1.7e308
    return float(np.nextafter(edges[code + 1], -np.inf))
