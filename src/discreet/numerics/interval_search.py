"""The compiled search for the interval that a number falls in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.compiling import compiled

_BLOCK = 256


@compiled
def intervals(cuts: Floats, values: Floats) -> npt.NDArray[np.uint32]:
    """Count the cuts at or below each value, as ``np.searchsorted(cuts, values, side="right")`` does; 0 for NaN.

    Every search takes the same steps, so that a block of values takes them together: there is no branch to foresee, and
    several values are looked up at a time.
    """
    found = np.zeros(len(values), np.uint32)
    for start in range(0, len(values), _BLOCK):
        low, value = found[start : start + _BLOCK], values[start : start + _BLOCK]
        many = len(cuts)
        while many > 0:
            half = (many + 1) >> 1
            step, last = np.uint32(half), np.uint32(half - 1)
            for i in range(np.uint32(len(low))):
                low[i] += step * np.uint32(cuts[low[i] + last] <= value[i])
            many -= half
    return found
