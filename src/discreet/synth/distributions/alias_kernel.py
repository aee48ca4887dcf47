"""The compiled loop that builds Walker's alias table (Vose's 1991 way, one pass over the values)."""

from __future__ import annotations

import numba
import numpy as np

from discreet.arrays import Floats, Integers


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def alias_table(
    probabilities: Floats,
) -> tuple[Floats, Integers]:
    """Return, for each of q equally likely columns, the share of its own value and the value of the rest."""
    q = len(probabilities)
    share = probabilities * q
    other = np.arange(q)
    small, large = np.empty(q, np.int64), np.empty(q, np.int64)
    n_small, n_large = 0, 0
    for i in range(q):
        if share[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        s = small[n_small]
        rich = large[n_large - 1]
        other[s] = rich
        share[rich] -= 1.0 - share[s]
        if share[rich] < 1.0:
            n_large -= 1
            small[n_small] = rich
            n_small += 1
    # What is left over is 1 but for rounding.
    for i in range(n_small):
        share[small[i]] = 1.0
    for i in range(n_large):
        share[large[i]] = 1.0
    return share, other
