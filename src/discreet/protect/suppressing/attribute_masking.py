"""How many records must hide one attribute so that small groups are as safe as large ones?

The arithmetic of Robin Hood. A *class* shares all keys; a *masking class* shares all but the attribute that is
hidden. Of a class with A records C are masked, B are not; in its masking class D are masked outside the class and
E in all. An intruder who goes through the unmasked records of the class first, then through the masked ones of the
masking class, needs (A + 1) / 2 + C D / (2 A) attempts on average: as many as in a class of A + C D / A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Flags, Integers


@dataclass(frozen=True)
class Allotment:
    """How many records to mask.

    Attributes
    ----------
    minority
        In each class with fewer than k records (0 for the others).
    majority
        Among all records of the large classes of each masking class.
    infeasible
        Classes that cannot be protected under the thresholds; nothing is masked for them.
    """

    minority: Integers
    majority: Integers
    infeasible: Flags


def allot(
    sizes: npt.ArrayLike,
    masking_class: npt.ArrayLike,
    *,
    k_target: int,
    threshold_majority: float = 1.0,
    threshold_minority: float = 0.5,
) -> Allotment:
    """Decide how many records of each class are masked.

    Small classes are served by rising size, those of one size in the order given. Each masks as few of its own
    records as it can (C = 1, 2, ...) such that the masked records outside it, together with as many more of the
    large classes as are needed, reach ``ceil(A (k_target - A) / C)``.

    Parameters
    ----------
    sizes, masking_class
        Records of each class, and the number of its masking class.
    k_target
        The class size whose protection is to be reached.
    threshold_majority, threshold_minority
        The largest share that may be masked: of the records in large classes of a masking class, and of a small
        class.

    Examples
    --------
    >>> plan = allot([40, 6, 3], [0, 0, 0], k_target=10)
    >>> plan.minority.tolist(), plan.majority.tolist()
    ([0, 1, 1], [23])
    """
    size, inside = np.asarray(sizes, dtype=np.int64), np.asarray(masking_class, dtype=np.int64)
    minority = np.zeros(len(size), dtype=np.int64)
    majority = np.zeros(int(inside.max()) + 1, dtype=np.int64)
    infeasible = np.zeros(len(size), dtype=np.bool_)
    large = np.bincount(inside, weights=np.where(size >= k_target, size, 0))
    # Shares such as 0.1 are not exact: 0.1 * 30 must allow 3 records.
    room = np.floor(large * threshold_majority + 1e-9).astype(np.int64)
    own_room = np.floor(size * threshold_minority + 1e-9).astype(np.int64)
    masked = np.zeros_like(majority)
    small = np.flatnonzero(size < k_target)
    for index in small[np.lexsort((small, size[small]))]:
        group = inside[index]
        own = np.arange(1, own_room[index] + 1)
        needed = -(-size[index] * (k_target - size[index]) // own)
        extra = np.maximum(needed - masked[group], 0)
        possible = np.flatnonzero(majority[group] + extra <= room[group])
        if not len(possible):
            infeasible[index] = True
            continue
        first = possible[0]
        minority[index] = own[first]
        majority[group] += extra[first]
        masked[group] += own[first] + extra[first]
    return Allotment(minority, majority, infeasible)


def protection(sizes: npt.ArrayLike, masked: npt.ArrayLike, masking_class: npt.ArrayLike) -> pl.DataFrame:
    """Say how well each class is protected by what is masked in it and around it.

    Columns: ``A``, ``B``, ``C``, ``D``, ``E`` as above, ``effective_k``, ``single_attempt_risk`` (the chance that
    one try is right, which masking does not lower), and the expected number of attempts of an intruder who tries
    the unmasked records first (never the worst order for them), the masked ones first, or all mixed.

    Examples
    --------
    >>> protection([7, 3], [3, 1], [0, 0])["effective_k"].round(4).to_list()
    [7.4286, 4.0]
    """
    size, hidden = np.asarray(sizes, dtype=np.int64), np.asarray(masked, dtype=np.int64)
    inside = np.asarray(masking_class, dtype=np.int64)
    everywhere = np.bincount(inside, weights=hidden)[inside].astype(np.int64)
    A, C, E = size, hidden, everywhere
    B, D = A - C, E - C
    return pl.DataFrame(
        {
            "A": A,
            "B": B,
            "C": C,
            "D": D,
            "E": E,
            "effective_k": A + C * D / A,
            "single_attempt_risk": 1 / A,
            "attempts_unmasked_first": (A + 1) / 2 + C * D / (2 * A),
            "attempts_masked_first": (A + 1) / 2 + D * (A + B) / (2 * A),
            "attempts_mixed": (A + 1) / 2 + D / 2,
        }
    )
