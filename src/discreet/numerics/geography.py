"""Where are the records, how far apart are they, and where does a shift of so many meters lead?

Coordinates are either on a plane, in meters, or degrees of latitude and longitude; nobody guesses which. Degrees are
shifted along the geodesics of the WGS84 ellipsoid (Vincenty 1975, direct problem) and compared on the sphere: points
become vectors in space, whose straight-line distance grows with the distance over ground, so that neighbors found in
a tree are the true ones. With ``crs`` (any name that pyproj knows, e.g. ``"EPSG:3857"``) coordinates of another
system are taken to degrees and back, which makes a meter a meter also where the map stretches it.

References
----------
Vincenty, T. (1975). Direct and inverse solutions of geodesics on the ellipsoid with application of nested equations.
Survey Review 23(176), 88-93.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, load_extra, need_known
from discreet.core.wording import type_name
from discreet.microdata import Microdata

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the earth in meters."""

_EQUATOR, _FLATTENING = 6_378_137.0, 1 / 298.257223563
_POLE = _EQUATOR * (1 - _FLATTENING)
_CONVERGED = 1e-14


@dataclass(frozen=True)
class CoordinateSystem:
    """What the two numbers of a location mean.

    Parameters
    ----------
    geographic
        Degrees: the location columns are (latitude, longitude). Otherwise they are (x, y) in meters.
    crs
        The system by its name, for pyproj; decides for itself whether it is geographic.

    Examples
    --------
    >>> north = CoordinateSystem(geographic=True).moved(np.array([[16.0, 48.0]]), np.zeros(1), np.array([1000.0]))
    >>> north.round(5).tolist()
    [[16.0, 48.00899]]
    """

    geographic: bool = False
    crs: str | None = None

    @property
    def degrees(self) -> bool:
        """Whether the columns hold latitude and longitude."""
        return bool(self._pyproj_crs.is_geographic) if self.crs else self.geographic

    def solid(self, xy: Floats) -> Floats:
        """Return coordinates in meters whose straight-line distances order points as the true ones do."""
        if not (self.geographic or self.crs):
            return np.ascontiguousarray(xy)
        longitude, latitude = np.radians(self._transformed(xy, back=False)).T
        flat = EARTH_RADIUS * np.cos(latitude)
        return np.column_stack(
            (flat * np.cos(longitude), flat * np.sin(longitude), EARTH_RADIUS * np.sin(latitude))
        )

    def over_ground(self, straight: Floats) -> Floats:
        """Turn straight-line distances of `solid` coordinates into distances over ground."""
        if not (self.geographic or self.crs):
            return straight
        ground: Floats = 2 * EARTH_RADIUS * np.arcsin(np.minimum(straight / (2 * EARTH_RADIUS), 1.0))
        return ground

    def straight_line(self, meters: float) -> float:
        """Turn a distance over ground into one of `solid` coordinates."""
        if not (self.geographic or self.crs):
            return meters
        return 2 * EARTH_RADIUS * math.sin(min(meters / (2 * EARTH_RADIUS), math.pi / 2))

    def moved(self, xy: Floats, angle: Floats, distance: Floats) -> Floats:
        """Shift each point by its distance in meters, in the direction of its angle."""
        if not (self.geographic or self.crs):
            shifted: Floats = xy + distance[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
            return shifted
        moved = geodesic_forward(self._transformed(xy, back=False), angle, distance)
        return self._transformed(moved, back=True)

    def plane(self, xy: Floats) -> Floats:
        """Lay the points out in the plane, in meters, with areas kept (Lambert's azimuthal projection)."""
        if not (self.geographic or self.crs):
            return xy
        solid = self.solid(xy) / EARTH_RADIUS
        middle = solid.mean(axis=0)
        middle /= np.linalg.norm(middle)
        east = np.cross([0.0, 0.0, 1.0], middle)
        east = east / np.linalg.norm(east) if np.linalg.norm(east) > 1e-12 else np.array([0.0, 1.0, 0.0])
        stretch = EARTH_RADIUS * np.sqrt(2 / np.maximum(1 + solid @ middle, 1e-12))
        laid: Floats = stretch[:, None] * (solid @ np.column_stack((east, np.cross(middle, east))))
        return laid

    @cached_property
    def _pyproj_crs(self) -> Any:
        pyproj = load_extra("pyproj", extra="geo", purpose="A named coordinate system (crs=…)")
        try:
            return pyproj.CRS.from_user_input(self.crs)
        except pyproj.exceptions.CRSError as error:
            raise ParameterError(
                f"crs '{self.crs}' is not a coordinate system that pyproj knows. Name it like 'EPSG:28992'."
            ) from error

    def _transformed(self, xy: Floats, *, back: bool) -> Floats:
        """Turn coordinates of a named system into degrees, or ``back``; those without a name are degrees already."""
        if self.crs is None:
            return xy
        pyproj = load_extra("pyproj", extra="geo", purpose="A named coordinate system (crs=…)")
        ends = ("EPSG:4326", self._pyproj_crs) if back else (self._pyproj_crs, "EPSG:4326")
        between = pyproj.Transformer.from_crs(*ends, always_xy=True)
        return np.column_stack(between.transform(xy[:, 0], xy[:, 1]))


@dataclass(frozen=True)
class Places:
    """The locations of a file.

    Attributes
    ----------
    columns
        The two columns, as named: (x, y) or (latitude, longitude).
    xy
        One row a record: x and y, or longitude and latitude; NaN where the location is missing.
    known
        True where both numbers are there.
    system
        What the numbers mean.
    """

    columns: tuple[str, str]
    xy: Floats
    known: Flags
    system: CoordinateSystem

    def in_columns(self, xy: Floats) -> dict[str, Floats]:
        """Return coordinates by column name, in the order of the columns."""
        pair = (xy[:, 1], xy[:, 0]) if self.system.degrees else (xy[:, 0], xy[:, 1])
        return dict(zip(self.columns, pair, strict=True))


def places_of(
    data: Microdata,
    location: Sequence[str] | None,
    system: CoordinateSystem,
    *,
    purpose: str,
    file: str = "file",
) -> Places:
    """Read the locations of a file: the named columns, or those of the role ``location``; both are checked."""
    columns = location_columns(data, location, system, purpose, file)
    return places_in(engine.collect(data, columns), columns, system)


def places_of_both(
    original: Microdata,
    released: Microdata,
    location: Sequence[str] | None,
    system: CoordinateSystem,
    purpose: str,
) -> tuple[Places, Places]:
    """Find the coordinates of an original and of its release, which may hold them by names of its own."""
    ours = places_of(original, location, system, purpose=purpose, file="original")
    names = location or released.roles.location or ours.columns
    return ours, places_of(released, names, system, purpose=purpose, file="release")


def places_in(table: pl.DataFrame, columns: tuple[str, str], system: CoordinateSystem) -> Places:
    """Read the locations of records in memory; refused are numbers that are no location."""
    first, second = (table[name].cast(pl.Float64).to_numpy() for name in columns)
    xy = np.column_stack((second, first) if system.degrees else (first, second)).astype(np.float64)
    infinite = int(np.isinf(xy).any(axis=1).sum())
    if infinite:
        raise ColumnError(
            f"'{columns[0]}' and '{columns[1]}' hold {infinite:,} locations that are not finite. Mend or drop them."
        )
    known: Flags = ~(np.isnan(xy[:, 0]) | np.isnan(xy[:, 1]))
    _check_range(xy[known], columns, system)
    return Places(columns, xy, known, system)


def to_nth_neighbor(solid: Floats, n: int) -> Floats:
    """Return the straight-line distance from each point to its n-th nearest other point.

    Examples
    --------
    >>> to_nth_neighbor(np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]), 1).tolist()
    [3.0, 3.0, 4.0]
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(solid)
    # Asked from neighbor to neighbor, the tree answers several times faster: what it needs is still in the cache.
    found, _ = tree.query(solid[tree.indices], k=[n + 1], workers=-1)
    distance = np.empty(len(solid))
    distance[tree.indices] = found[:, 0]
    return distance


def geodesic_forward(degrees: Floats, azimuth: Floats, distance: Floats) -> Floats:
    """Walk from each (longitude, latitude) along the WGS84 geodesic of that azimuth; where does it end?

    Parameters
    ----------
    degrees
        Longitude and latitude, one row a point.
    azimuth
        Direction in radians, clockwise from north.
    distance
        Meters over ground.

    Returns
    -------
    ndarray
        Longitude, between -180 and 180, and latitude.

    Examples
    --------
    >>> geodesic_forward(np.array([[0.0, 0.0]]), np.array([np.pi / 2]), np.array([111319.4908])).round(6).tolist()
    [[1.0, 0.0]]
    """
    longitude, latitude = np.radians(degrees).T
    sin_turn, cos_turn = np.sin(azimuth), np.cos(azimuth)
    tan_u = (1 - _FLATTENING) * np.tan(latitude)
    cos_u = 1 / np.hypot(1.0, tan_u)
    sin_u = tan_u * cos_u
    start = np.arctan2(tan_u, cos_turn)
    sin_alpha = cos_u * sin_turn
    cos2_alpha = 1 - sin_alpha**2
    excess = cos2_alpha * (_EQUATOR**2 - _POLE**2) / _POLE**2
    big_a = 1 + excess / 16384 * (4096 + excess * (-768 + excess * (320 - 175 * excess)))
    big_b = excess / 1024 * (256 + excess * (-128 + excess * (74 - 47 * excess)))
    plain = distance / (_POLE * big_a)
    arc = plain
    for _ in range(100):
        middle = np.cos(2 * start + arc)
        inner = np.cos(arc) * (2 * middle**2 - 1)
        inner -= big_b / 6 * middle * (4 * np.sin(arc) ** 2 - 3) * (4 * middle**2 - 3)
        corrected = plain + big_b * np.sin(arc) * (middle + big_b / 4 * inner)
        done = not len(arc) or np.abs(corrected - arc).max() < _CONVERGED
        arc = corrected
        if done:
            break
    sin_arc, cos_arc, middle = np.sin(arc), np.cos(arc), np.cos(2 * start + arc)
    north = sin_u * cos_arc + cos_u * sin_arc * cos_turn
    across = np.hypot(sin_alpha, sin_u * sin_arc - cos_u * cos_arc * cos_turn)
    turned = np.arctan2(sin_arc * sin_turn, cos_u * cos_arc - sin_u * sin_arc * cos_turn)
    c = _FLATTENING / 16 * cos2_alpha * (4 + _FLATTENING * (4 - 3 * cos2_alpha))
    bent = arc + c * sin_arc * (middle + c * cos_arc * (2 * middle**2 - 1))
    reached = np.degrees(longitude + turned - (1 - c) * _FLATTENING * sin_alpha * bent)
    wrapped = np.where(np.abs(reached) > 180, (reached + 180) % 360 - 180, reached)
    return np.column_stack((wrapped, np.degrees(np.arctan2(north, (1 - _FLATTENING) * across))))


def location_columns(
    data: Microdata,
    location: Sequence[str] | None,
    system: CoordinateSystem,
    purpose: str,
    file: str = "file",
) -> tuple[str, str]:
    """Name the two columns of the location: those that were named, or those of the role; both are checked."""
    order = "latitude and longitude" if system.degrees else "x and y"
    names = data.roles.location if location is None else tuple(location)
    if isinstance(location, str) or len(names) != 2:
        raise ParameterError(
            f"{purpose} needs two location columns of the {file}, {order}, in this order. Name them with "
            "location=('…', '…'), here or as a role of the data."
        )
    for name in names:
        need_known([name], data.columns, after=f" It was named as a location of the {file}.")
        if not data.schema[name].is_numeric():
            raise ColumnError(
                f"The location column '{name}' is {type_name(data.schema[name])}, not numbers. Convert it first."
            )
    if system.degrees and _says(names[0], ("lon", "lng")) and _says(names[1], ("lat",)):
        raise ColumnError(
            f"Locations in degrees are latitude first; '{names[0]}' and '{names[1]}' say the opposite of "
            f"themselves. Write location=('{names[1]}', '{names[0]}')."
        )
    return names[0], names[1]


def _says(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


def _check_range(xy: Floats, columns: tuple[str, str], system: CoordinateSystem) -> None:
    within = (np.abs(xy[:, 0]) <= 180) & (np.abs(xy[:, 1]) <= 90)
    if system.degrees and not within.all():
        raise ColumnError(
            f"'{columns[0]}' and '{columns[1]}' hold {int((~within).sum()):,} locations beyond 90 degrees of latitude "
            "or 180 of longitude. Check the order (latitude, longitude), or whether they are degrees at all."
        )
    if not (system.degrees or system.crs) and len(xy) and within.all():
        warnings.warn(
            f"'{columns[0]}' and '{columns[1]}' look like degrees, but are taken as meters. Say geographic=True if "
            "they are latitude and longitude.",
            DiscreetWarning,
            stacklevel=5,
        )
