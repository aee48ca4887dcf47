"""Do released records keep closer to the people they were made from than to people who were not used?

Of the record closest to a newcomer, among the ``n`` originals and ``h`` hold-out people together, an original is the
owner with chance ``n / (n + h)``. What is seen is held against that chance, so that the share means the same for every
size of the hold-out: one half for newcomers, one for copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace, Points

_NORMAL = 1.96


@dataclass(frozen=True)
class CloserShare:
    """The calibrated share, with a 95 % interval."""

    share: float
    low: float
    high: float


def closer_to_original(
    space: MixedSpace, original: Points, released: Points, holdout: Points, *, progress: bool = False
) -> CloserShare:
    """Give the share of released records closer to the original than to the hold-out, calibrated to their sizes.

    A record as close to people of both kinds counts by how many of each are so close. The interval lets the people of
    the hold-out vary: each draws the released records around it, and a small hold-out has few of them.
    """
    ours = nearest(space, released, original, progress=progress, description="To original")
    theirs = nearest(space, released, holdout, progress=progress, description="To hold-out")
    near, far = ours.distance[:, 0], theirs.distance[:, 0]
    tied = np.isclose(near, far, rtol=1e-12, atol=0)
    credit = np.where(tied, 0.5, near < far).astype(np.float64)
    if tied.any():
        rows = np.flatnonzero(tied).astype(np.int64)
        radii = np.maximum(near, far)[rows]
        counts = [
            ties_within(space, released.take(rows), side, radii).astype(np.float64)
            for side in (original, holdout)
        ]
        credit[rows] = counts[0] / (counts[0] + counts[1])
    chance = len(original) / (len(original) + len(holdout))
    drawn = np.bincount(theirs.index[:, 0], weights=1 - credit, minlength=len(holdout))
    seen = float(credit.mean())
    spread = _NORMAL * float(np.sqrt(len(drawn) * drawn.var())) / len(released)
    return CloserShare(
        *(calibrated(at, chance) for at in (seen, max(seen - spread, 0), min(seen + spread, 1)))
    )


def calibrated(share: float, chance: float) -> float:
    """Put a share on a scale on which chance is one half, nothing 0 and everything 1.

    Examples
    --------
    >>> [round(calibrated(share, 0.8), 3) for share in (0.0, 0.4, 0.8, 0.9, 1.0)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return 0.5 + 0.5 * (share - chance) / (1 - chance) if share >= chance else 0.5 * share / chance
