"""How clustered are points? The average nearest neighbor, and the smallest rectangle around them.

References
----------
Clark, P. J. and Evans, F. C. (1954). Distance to nearest neighbor as a measure of spatial relationships in
populations. Ecology 35(4), 445-453.
Freeman, H. and Shapira, R. (1975). Determining the minimum-area encasing rectangle for an arbitrary closed curve.
Communications of the ACM 18(7), 409-413.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import InputError
from discreet.numerics.geography import CoordinateSystem, to_nth_neighbor


@dataclass(frozen=True)
class NearestNeighborStatistics:
    """The average nearest neighbor of a pattern of points, as Clark and Evans have it.

    Attributes
    ----------
    points
        How many there are.
    observed, expected
        Mean distance to the nearest other point, and what it would be for points strewn at random.
    ratio
        Observed over expected: below 1 clustered, above 1 dispersed.
    z
        The difference in standard errors.
    area
        Of the smallest rectangle, however it is turned, that holds all points; square meters.
    """

    points: int
    observed: float
    expected: float
    ratio: float
    z: float
    area: float

    @classmethod
    def of(
        cls, xy: Floats, system: CoordinateSystem | None = None, *, area: float | None = None
    ) -> NearestNeighborStatistics:
        """Compute them from coordinates, one row a point.

        Examples
        --------
        >>> lattice = np.array([[10.0 * i, 10.0 * j] for i in range(10) for j in range(10)])
        >>> found = NearestNeighborStatistics.of(lattice)
        >>> found.area, found.expected, round(found.ratio, 4), round(found.z, 3)
        (8100.0, 4.5, 2.2222, 23.382)
        """
        system = system or CoordinateSystem()
        n, nothing = len(xy), float("nan")
        if n < 2:
            return cls(n, nothing, nothing, nothing, nothing, 0.0)
        observed = float(system.over_ground(to_nth_neighbor(system.solid(xy), 1)).mean())
        covered = smallest_rectangle(system.plane(xy)) if area is None else area
        if covered <= 0:
            raise InputError(
                "All points lie on one line, so they cover no area and the nearest-neighbor ratio is undefined. Give "
                "the area of the study region with area=…."
            )
        expected = 0.5 / math.sqrt(n / covered)
        error = 0.26136 / math.sqrt(n**2 / covered)
        return cls(n, observed, expected, observed / expected, (observed - expected) / error, covered)


def smallest_rectangle(xy: Floats) -> float:
    """Return the area of the smallest rectangle, however it is turned, that holds all points.

    One of its sides lies along a side of the convex hull (Freeman and Shapira 1975).

    Examples
    --------
    >>> diamond = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> round(smallest_rectangle(diamond), 12)
    2.0
    """
    from scipy.spatial import ConvexHull, QhullError

    centered = np.unique(xy - xy.mean(axis=0), axis=0)
    if len(centered) < 3:
        return 0.0
    try:
        corners = centered[ConvexHull(centered).vertices]
    except QhullError:
        return 0.0
    sides = np.roll(corners, -1, axis=0) - corners
    along = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    across = np.column_stack((-along[:, 1], along[:, 0]))
    block = max(1, 10_000_000 // len(corners))
    areas = [
        np.ptp(corners @ along[start : start + block].T, axis=0)
        * np.ptp(corners @ across[start : start + block].T, axis=0)
        for start in range(0, len(corners), block)
    ]
    return float(np.concatenate(areas).min())
