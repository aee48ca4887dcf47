"""Which zone is a point in? Zones are drawn as polygons, or known from the records that lie in them.

Polygons come as WKT texts, as GeoJSON geometries or as anything that knows its own ``wkt`` (shapely), in the
coordinates of the file: x and y, or longitude and latitude as GeoJSON has them. They need shapely (extra ``geo``).
Where only a column says in which zone each record lies, a point belongs to the zone of the nearest record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ParameterError, load_extra
from discreet.numerics.geography import CoordinateSystem

OUTSIDE = -1
"""The code of a point that lies in no zone."""


class Zoning(Protocol):
    """Anything that says in which zone a point lies."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the zones."""
        ...

    def locate(self, xy: Floats) -> Integers:
        """Return the position of each point's zone among the labels; `OUTSIDE` where there is none."""
        ...

    def inside(self, xy: Floats, zone: Integers) -> Flags:
        """Say of each point whether it lies in the zone that is asked for."""
        ...


@dataclass(frozen=True)
class PolygonZones:
    """Zones drawn as polygons.

    Examples
    --------
    >>> square = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
    >>> zones = PolygonZones.of({"west": square})  # doctest: +SKIP
    >>> zones.locate(np.array([[5.0, 5.0], [15.0, 5.0]])).tolist()  # doctest: +SKIP
    [0, -1]
    """

    labels: tuple[str, ...]
    shapes: Array

    @classmethod
    def of(cls, polygons: Mapping[str, Any]) -> PolygonZones:
        """Read the polygons."""
        shapely = load_extra("shapely", extra="geo", purpose="Containment in polygons")
        texts = plain_polygons(polygons)
        try:
            shapes = [
                shapely.from_wkt(text) if isinstance(text, str) else shapely.from_geojson(json.dumps(text))
                for text in texts.values()
            ]
        except shapely.errors.ShapelyError as error:
            raise ParameterError(
                "polygons holds a geometry that can be read neither as WKT nor as GeoJSON."
            ) from error
        for label, shape in zip(texts, shapes, strict=True):
            if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.is_empty or not shape.is_valid:
                raise ParameterError(
                    f"The polygon of zone '{label}' is no valid polygon or multipolygon. Mend it first."
                )
        shapely.prepare(shapes)
        return cls(tuple(texts), np.array(shapes, dtype=object))

    def locate(self, xy: Floats) -> Integers:
        """Return the first polygon that each point lies in or on."""
        shapely = load_extra("shapely", extra="geo", purpose="Containment in polygons")
        found = np.full(len(xy), OUTSIDE, dtype=np.int64)
        points, polygons = shapely.STRtree(self.shapes).query(shapely.points(xy), predicate="intersects")
        order = np.lexsort((-polygons, points))
        found[points[order]] = polygons[order]
        return found

    def inside(self, xy: Floats, zone: Integers) -> Flags:
        """Say of each point whether it lies in or on its polygon; where there is none, nothing holds it."""
        shapely = load_extra("shapely", extra="geo", purpose="Containment in polygons")
        held: Flags = zone == OUTSIDE
        for code in np.unique(zone[~held]):
            rows = np.flatnonzero(zone == code)
            held[rows] = shapely.intersects_xy(self.shapes[code], xy[rows, 0], xy[rows, 1])
        return held


@dataclass(frozen=True)
class NearestRecordZones:
    """Zones known from records: a point lies where the nearest record lies.

    Examples
    --------
    >>> system = CoordinateSystem()
    >>> zones = NearestRecordZones.of(pl.Series(["west", "east"]), np.array([[0.0, 0.0], [9.0, 0.0]]), system)
    >>> [zones.labels[code] for code in zones.locate(np.array([[1.0, 5.0], [8.0, -2.0]]))]
    ['west', 'east']
    """

    labels: tuple[str, ...]
    codes: Integers
    tree: Any
    system: CoordinateSystem

    @classmethod
    def of(cls, labels: pl.Series, xy: Floats, system: CoordinateSystem) -> NearestRecordZones:
        """Take note of the records; those without a label or a location do not count."""
        from scipy.spatial import cKDTree

        texts = labels.cast(pl.String)
        there = texts.is_not_null().to_numpy() & ~np.isnan(xy).any(axis=1)
        if not there.any():
            raise ParameterError("No record has both a zone and a location.")
        names = tuple(texts.filter(pl.Series(there)).unique(maintain_order=True).to_list())
        return cls(names, zone_codes(texts, names)[there], cKDTree(system.solid(xy[there])), system)

    def locate(self, xy: Floats) -> Integers:
        """Return the zone of the record nearest to each point."""
        _, nearest = self.tree.query(self.system.solid(xy), workers=-1)
        found: Integers = self.codes[nearest]
        return found

    def inside(self, xy: Floats, zone: Integers) -> Flags:
        """Say of each point whether the nearest record is of that zone; where there is none, nothing holds it."""
        held: Flags = (zone == OUTSIDE) | (self.locate(xy) == zone)
        return held


def plain_polygons(polygons: Mapping[str, Any]) -> dict[str, Any]:
    """Bring polygons to plain values, as a plan file has them: WKT texts or GeoJSON mappings."""
    if not isinstance(polygons, Mapping) or not polygons:
        raise ParameterError("polygons must be a mapping {zone: polygon} with at least one zone.")
    texts: dict[str, Any] = {}
    for label, shape in polygons.items():
        plain = getattr(shape, "wkt", shape)
        if not isinstance(plain, str | Mapping):
            raise ParameterError(
                f"The polygon of zone '{label}' is a {type(shape).__name__}. Give WKT text, a GeoJSON geometry or a "
                "shapely polygon."
            )
        texts[str(label)] = plain
    return texts


def zone_codes(labels: pl.Series, known: Sequence[str]) -> Integers:
    """Number labels by their position among the known ones; `OUTSIDE` where the label is missing or unknown."""
    codes = pl.Series(known, dtype=pl.String).to_frame("label").with_row_index("code")
    joined = (
        labels.cast(pl.String).to_frame("label").join(codes, on="label", how="left", maintain_order="left")
    )
    return joined["code"].cast(pl.Int64).fill_null(OUTSIDE).to_numpy()
