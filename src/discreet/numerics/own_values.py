"""Which columns tell people apart by a single value? An income to the cent, also where many have none."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array

_OWN = 0.5  # from this share of values that one person has alone, a column tells people apart by itself
_SHARED, _MANY = 0.01, 5  # values of more people than this share, and than so many, are left aside for that
_LEAST = 0.1  # of all people must have one, or these are the rare values of a column of groups


def mostly_own(counts: Array) -> bool:
    """Whether most values are one person's alone, but for those that many share, from how many people have each.

    Examples
    --------
    >>> mostly_own(np.array([1, 1, 2])), mostly_own(np.array([2, 2, 1]))
    (True, False)
    >>> mostly_own(np.array([700, *[1] * 300])), mostly_own(np.array([900, 60, *[1] * 40]))
    (True, False)
    """
    people, own = int(np.sum(counts)), int(np.sum(counts == 1))
    few = int(np.sum(counts[counts <= max(_MANY, _SHARED * people)]))
    return people > 0 and own >= max(_OWN * few, _LEAST * people)
