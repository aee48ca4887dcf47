"""How many people live in a disc, where only their number by area is known?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError, load_extra
from discreet.numerics.geography import CoordinateSystem
from discreet.numerics.zones import PolygonZones

_CIRCLE_QUARTER = 16


def people_in_discs(
    centers: Floats,
    radius: Floats,
    polygons: Mapping[str, Any],
    counts: Mapping[str, float],
    *,
    system: CoordinateSystem,
) -> Floats:
    """Add up the people of each area in proportion to the part of it that the disc covers.

    Parameters
    ----------
    centers, radius
        The discs, in meters.
    polygons
        ``{zone: polygon}``.
    counts
        ``{zone: people}``.
    system
        Must be a plane: the areas of polygons in degrees say nothing.
    """
    if system.geographic or system.crs:
        raise ParameterError(
            "population_polygons needs coordinates in meters, without geographic or crs. Project the file and the "
            "polygons first, or give the population as points."
        )
    shapely = load_extra("shapely", extra="geo", purpose="A population by area")
    zones = PolygonZones.of(polygons)
    without = [label for label in zones.labels if label not in counts]
    if without:
        raise ParameterError(f"population_counts has no number for zone '{without[0]}'.")
    people = np.array([float(counts[label]) for label in zones.labels])
    if not (np.isfinite(people) & (people >= 0)).all():
        raise ParameterError("population_counts must hold numbers of people, 0 or more.")
    per_area = people / shapely.area(zones.shapes)
    discs = shapely.buffer(shapely.points(centers), radius, quad_segs=_CIRCLE_QUARTER)
    disc, zone = shapely.STRtree(zones.shapes).query(discs, predicate="intersects")
    covered = shapely.area(shapely.intersection(discs[disc], zones.shapes[zone]))
    # A polygon inside the circle is a little smaller than the circle; what it lacks is the same for every disc.
    sides = 4 * _CIRCLE_QUARTER
    roundness = np.pi / (sides / 2 * np.sin(2 * np.pi / sides))
    people_there: Floats = np.bincount(
        disc, weights=covered * per_area[zone] * roundness, minlength=len(centers)
    ).astype(np.float64)
    return people_there
