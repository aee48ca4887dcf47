"""How many points, or how many people, are in each of many discs? Counted at once, without ever listing them.

Groups are laid side by side along one more axis, further apart than the largest disc is wide. Within a group that
axis adds nothing to a distance, across groups it adds too much, so one tree and one query serve all groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError, load_extra
from discreet.numerics.geography import CoordinateSystem
from discreet.numerics.zones import PolygonZones

_ROUNDING = 1e-12


def counted_within(
    points: Floats, centers: Floats, radius: Floats, group: Integers | None = None, *, own: bool = True
) -> Integers:
    """Count the points within each center's radius, those on the rim included.

    Parameters
    ----------
    points, centers
        Coordinates, one row each.
    radius
        One for each center.
    group
        Group of each center and, in the same order, of each point; only points of the same group count.
    own
        Whether point i is known to lie in the disc of center i, so that every count is 1 or more.

    Examples
    --------
    >>> points = np.array([[0.0, 1.0], [0.0, 5.0]])
    >>> counted_within(points, np.zeros((2, 2)), np.array([1.0, 5.0])).tolist()
    [1, 2]
    """
    reach = radius * (1 + _ROUNDING)
    tree = _tree(_apart(points, group, reach))
    places = _apart(centers, group, reach)
    # Asked from neighbor to neighbor, the tree answers several times faster: what it needs is still in the cache.
    walk = _tree(places).indices
    counts = np.empty(len(places), dtype=np.int64)
    counts[walk] = tree.query_ball_point(places[walk], r=reach[walk], return_length=True, workers=-1)
    return np.maximum(counts, 1) if own else counts


def has_within(
    points: Floats, centers: Floats, radius: Floats, *, groups: tuple[Integers, Integers] | None = None
) -> Flags:
    """Say of each disc whether any point (of its group) lies in it. ``groups``: of the points, of the centers."""
    reach = radius * (1 + _ROUNDING)
    of_points, of_centers = groups or (None, None)
    nearest, _ = _tree(_apart(points, of_points, reach)).query(_apart(centers, of_centers, reach), workers=-1)
    held: Flags = nearest <= reach
    return held


def _apart(points: Floats, group: Integers | None, reach: Floats) -> Floats:
    if group is None:
        return points
    return np.column_stack((points, group * (2 * float(reach.max(initial=0.0)) + 1.0)))


def _tree(points: Floats) -> Any:
    from scipy.spatial import cKDTree

    # Midpoint splits build several times faster than medians, and stay good where many points coincide.
    return cKDTree(points, balanced_tree=False, compact_nodes=True, leafsize=32)


# How many people live in a disc, where only their number by area is known?


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
