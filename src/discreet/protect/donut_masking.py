"""Shift locations by a random distance that is neither too small nor too large: donut geomasking.

The ring keeps a released point away from the address it stands for (at least ``r_min``) and near enough to be of use
(at most ``r_max``). How well a person hides afterwards is measured by `discreet.risk.spatial_k`.

References
----------
Hampton, K. H., Fitch, M. K., Allshouse, W. B., Doherty, I. A., Gesink, D. C., Leone, P. A., Serre, M. L. and Miller,
W. C. (2010). Mapping health data: improved privacy protection with donut method geomasking. American Journal of
Epidemiology 172(9), 1062-1069.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers, Words
from discreet.core.cards import Work
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.core.randomness import KeyedDraws
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.numerics import geography, zones
from discreet.protect.treatment import Change, Treatment, existing, group_column, grouped_numbers, numeric

RadiusLaw = Literal["uniform", "area"]

_CROWDED = 5


@method(
    aim="places",
    work="row-wise",
    references=(
        "Hampton, K. H. et al. (2010). Mapping health data: improved privacy protection with donut method "
        "geomasking. American Journal of Epidemiology 172(9), 1062–1069.",
        "Cremer, S., Jehmlich, L. and Lenz, R. (2024). Masking georeferenced health data: an analysis taking "
        "the example of partially synthetic data on sleep disorder. Privacy in Statistical Databases, Lecture "
        "Notes in Computer Science 14915. doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class DonutMask(Treatment):
    """Shift every location in a random direction by a random distance between two radii.

    It protects against finding a home by the coordinates of a record: the true place is neither at the
    released point nor close to it.

    Distances are meters over ground. The ring may follow the density of the population (``adaptive``), so that people
    in the countryside move further than people in town, and shifted points can be held inside their zone.

    Also known as: donut geomasking; donut method; geographic masking.

    Parameters
    ----------
    r_min, r_max
        The least and the largest shift in meters. With ``adaptive`` they are optional and limit the rings.
    radius_law
        ``"uniform"``: every distance between the radii is as likely (the law that the published results follow).
        ``"area"``: every point of the ring is as likely, so larger shifts are more frequent.
    location
        The two columns, (x, y) or (latitude, longitude); the role ``location`` unless named.
    geographic
        The columns are degrees of latitude and longitude. Otherwise they are meters.
    crs
        The coordinate system of the columns by name, e.g. ``"EPSG:3857"``, where neither holds (needs pyproj).
    adaptive
        ``(K_min, K_max)``: how many people the inner and the outer circle shall hold. The local density comes from the
        distance to the K_max-th nearest record, or from ``density``.
    density
        Column with the people per square kilometer where the record lies, for ``adaptive``.
    zone
        Column with the zone of each record, which its location may not leave. Without ``polygons`` a point counts as
        being in the zone of the nearest record.
    polygons
        ``{zone: polygon}`` as WKT, GeoJSON or shapely, in the coordinates of the file. A location may not leave the
        polygon it lies in, or the one that ``zone`` names (needs shapely).
    by
        Column whose equal values move together by one shift; the role ``household``, else ``person``, unless named.
    max_tries
        How often a location that left its zone is drawn again.
    unreachable
        What becomes of locations that found no place in their zone: ``"refuse"`` the whole run, or ``"suppress"``
        them.
    on_missing
        Records without a location: ``"refuse"`` them, ``"keep"`` them without one, or ``"drop"`` them.

    Notes
    -----
    There is no guarantee: k is to be measured on the file. Members of one address that are shifted independently can
    be averaged by an intruder, and so can two releases with different seeds; keep the seed of the internal log.

    What it costs
    -------------
    Distances below the radius mean nothing anymore: local clusters dissolve and some points change their
    district. `discreet.utility` measures both.

    When not to use it
    ------------------
    Do not use it where people are few and far between: a shift of some hundred meters leads nowhere else, so
    let the ring follow the density (``adaptive``). Do not use it for the tracks of one person over time,
    whose mean is the true place, and do not release it twice.

    Examples
    --------
    >>> homes = Microdata(pl.DataFrame({"x": [5000.0, 6000.0], "y": [300.0, 900.0]}), location=("x", "y"))
    >>> moved = DonutMask(r_min=100, r_max=200).apply(homes, seed=1).data.frame
    >>> shift = ((moved["x"] - homes.frame["x"]) ** 2 + (moved["y"] - homes.frame["y"]) ** 2) ** 0.5
    >>> bool(shift.is_between(100, 200).all())
    True
    """

    r_min: Annotated[float, AtLeast(0)] | None = None
    r_max: Annotated[float, AtLeast(0)] | None = None
    radius_law: RadiusLaw = "uniform"
    location: ColumnNames | None = None
    geographic: bool = False
    crs: Annotated[str, Public()] | None = None
    adaptive: Annotated[Sequence[int], Public()] | None = None
    density: ColumnName | None = None
    zone: ColumnName | None = None
    polygons: Annotated[Mapping[str, Any], HoldsValues()] = field(default_factory=dict)
    by: ColumnName | None = None
    max_tries: Annotated[int, AtLeast(1)] = 1000
    unreachable: Literal["refuse", "suppress"] = "refuse"
    on_missing: Literal["refuse", "keep", "drop"] = "refuse"

    def __post_init__(self) -> None:
        for name in ("r_min", "r_max"):
            if getattr(self, name) is None and self.adaptive is None:
                raise ParameterError(f"{name} is missing. Give r_min and r_max in meters, or adaptive.")
        if self.r_min is not None and self.r_max is not None and not self.r_min < self.r_max:
            raise ParameterError("r_min must be below r_max.")
        if self.adaptive is not None:
            pair = tuple(self.adaptive)
            object.__setattr__(self, "adaptive", pair)
            if len(pair) != 2 or not 0 <= pair[0] < pair[1]:
                raise ParameterError(
                    "adaptive must be two numbers of people, K_min below K_max, e.g. (5, 50)."
                )
        elif self.density is not None:
            raise ParameterError("density is used with adaptive=(K_min, K_max) only. Give both, or neither.")
        if self.location is not None and not isinstance(self.location, str):
            object.__setattr__(self, "location", tuple(self.location))
        if self.polygons:
            object.__setattr__(self, "polygons", zones.plain_polygons(self.polygons))

    @property
    def work(self) -> Work:
        """Row-wise where the ring is given and nobody has to stay in a zone; else other records are looked at."""
        free = self.adaptive is None and self.zone is None and not self.polygons and self.on_missing != "drop"
        return "row-wise" if free else "whole-file"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Draw the shifts."""
        system = geography.CoordinateSystem(self.geographic, self.crs)
        if self.work == "row-wise":
            return self._freely(data, system, stream)
        places = geography.places_of(data, self.location, system, purpose=self.name)
        _refuse_whole_degrees(data, places.columns, degrees=system.degrees)
        notes = self._about_missing(places)
        rows = np.flatnonzero(places.known)
        xy = places.xy[rows]
        by = group_column(data, self.by, ("household", "person"), treatment=self.name)
        groups = np.arange(len(rows))
        if by is not None:
            _, groups = np.unique(_numbered(engine.collect(data, [by])[by])[rows], return_inverse=True)
        inner, outer = self._radii(data, system, xy, rows, groups)
        zoning, home = self._containment(data, places, rows)
        moved, lost, redrawn = self._shifted(
            stream("shifts"), xy, groups, (inner, outer), system=system, zoning=zoning, home=home
        )
        released = np.full_like(places.xy, np.nan)
        released[rows[~lost]] = moved[~lost]
        notes += self._notes(by, xy, home, int(lost.sum()))
        old = engine.collect(data, places.columns)
        fresh = {name: in_type_of(old[name], values) for name, values in places.in_columns(released).items()}
        return Change(
            columns=fresh,
            keep=pl.Series(places.known) if self.on_missing == "drop" and not places.known.all() else None,
            notes=tuple(notes),
            parameters={"records_drawn_again": redrawn, "locations_suppressed": int(lost.sum())},
        )

    def _freely(self, data: Microdata, system: geography.CoordinateSystem, stream: Stream) -> Change:
        """Shift every record, or every group of records, by itself."""
        columns = geography.location_columns(data, self.location, system, self.name)
        _refuse_whole_degrees(data, columns, degrees=system.degrees)
        by = group_column(data, self.by, ("household", "person"), treatment=self.name)
        alone = by is None or bool(engine.overview(data, [by]).missing[by])
        gone = max(engine.overview(data, columns).missing.values())
        refuses = self.on_missing == "refuse"
        ring = (float(self.r_min or 0), float(self.r_max or 0))
        shifts = FreeShifts(columns, by, ring, self.radius_law, system, stream.keyed("shifts"), refuses)
        kept = () if refuses or not gone else ("Records without a location were left without one.",)
        return Change(
            by_record=ByRecord(
                tuple(dict.fromkeys([*columns, *([by] if by else [])])),
                engine.types_in_polars(data, columns),
                shifts,
                draws=alone,
            ),
            notes=(*self._moved_notes(by, engine.crowded(data, columns, _CROWDED)), *kept),
            parameters={"records_drawn_again": 0, "locations_suppressed": 0},
        )

    def _about_missing(self, places: geography.Places) -> list[str]:
        gone = int((~places.known).sum())
        if not gone:
            return []
        if self.on_missing == "refuse":
            raise _without_location(gone, places.columns)
        if self.on_missing == "drop":
            return [f"{gone:,} records without a location were dropped."]
        return [f"{gone:,} records without a location were left without one."]

    def _radii(
        self,
        data: Microdata,
        system: geography.CoordinateSystem,
        xy: Floats,
        rows: Integers,
        groups: Integers,
    ) -> tuple[Floats, Floats]:
        """Return the inner and outer radius of every group."""
        size = int(groups.max()) + 1 if len(groups) else 0
        if self.adaptive is None:
            return np.full(size, float(self.r_min or 0)), np.full(size, float(self.r_max or 0))
        least, most = self.adaptive
        # The ring is (spread * sqrt(K_min), spread * sqrt(K_max)) with spread = 1 / sqrt(pi * density), so limits on
        # the radii are limits on the spread, and the ring keeps its proportions.
        spread = self._spread(data, system, xy, rows, int(most))
        if self.r_min is not None and least:
            spread = np.maximum(spread, self.r_min / math.sqrt(least))
        if self.r_max is not None:
            spread = np.minimum(spread, self.r_max / math.sqrt(most))
        widest = np.zeros(size)
        np.maximum.at(widest, groups, spread)
        inner, outer = widest * math.sqrt(least), widest * math.sqrt(most)
        if self.r_min is not None:
            if (outer <= self.r_min).any():
                raise ParameterError(
                    f"adaptive=({least}, {most}) leaves {int((outer <= self.r_min).sum()):,} rings that end inside "
                    "r_min. Raise K_max or r_max, or lower r_min."
                )
            inner = np.maximum(inner, self.r_min)
        empty = int((outer <= 0).sum())
        if empty:
            raise ParameterError(
                f"{empty:,} records share their location with {most} or more others, so their ring has no width. Set "
                "r_min to the least shift, or raise K_max."
            )
        return inner, outer

    def _spread(
        self, data: Microdata, system: geography.CoordinateSystem, xy: Floats, rows: Integers, most: int
    ) -> Floats:
        if self.density is not None:
            name = numeric(data, self.density, treatment=self.name)[0]
            people = engine.collect(data, [name])[name].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
            if not (people > 0).all():
                raise ColumnError(
                    f"The density '{name}' is missing, zero or negative for {int((~(people > 0)).sum()):,} records. "
                    "Every location needs people per square kilometer above zero."
                )
            spread: Floats = 1 / np.sqrt(math.pi * people / 1e6)
            return spread
        if len(xy) <= most:
            raise ParameterError(
                f"adaptive asks for {most} neighbors and the file has {len(xy):,} located records. Lower K_max, or "
                "name a density column."
            )
        return system.over_ground(geography.to_nth_neighbor(system.solid(xy), most)) / math.sqrt(most)

    def _containment(
        self, data: Microdata, places: geography.Places, rows: Integers
    ) -> tuple[zones.Zoning | None, Integers]:
        """Say which zone holds each record, and who knows where the zones are."""
        nowhere = np.full(len(rows), zones.OUTSIDE, dtype=np.int64)
        xy = places.xy[rows]
        if self.zone is None:
            if not self.polygons:
                return None, nowhere
            drawn = zones.PolygonZones.of(self.polygons)
            return drawn, drawn.locate(xy)
        name = existing(data, self.zone, treatment=self.name)[0]
        labels = engine.collect(data, [name])[name].cast(pl.String)[rows]
        if not self.polygons:
            nearest = zones.NearestRecordZones.of(labels, xy, places.system)
            return nearest, zones.zone_codes(labels, nearest.labels)
        drawn = zones.PolygonZones.of(self.polygons)
        codes = zones.zone_codes(labels, drawn.labels)
        unknown = int(((codes == zones.OUTSIDE) & labels.is_not_null().to_numpy()).sum())
        if unknown:
            raise ParameterError(
                f"{unknown:,} records are in a zone of '{name}' that polygons does not have. Add its polygon."
            )
        return drawn, codes

    def _shifted(
        self,
        rng: np.random.Generator,
        xy: Floats,
        groups: Integers,
        radii: tuple[Floats, Floats],
        *,
        system: geography.CoordinateSystem,
        zoning: zones.Zoning | None,
        home: Integers,
    ) -> tuple[Floats, Flags, int]:
        """Draw until every group is where it may be; say who moved where, who found no place, and who was redrawn."""
        moved = np.empty_like(xy)
        rows, redrawn = np.arange(len(xy)), 0
        for attempt in range(self.max_tries):
            waiting, of = np.unique(groups[rows], return_inverse=True)
            angle = rng.uniform(0, 2 * np.pi, len(waiting))
            distance = self._distances(radii[0][waiting], radii[1][waiting], rng)
            moved[rows] = system.moved(xy[rows], angle[of], distance[of])
            if zoning is None:
                rows = rows[:0]
            else:
                strayed = ~zoning.inside(moved[rows], home[rows])
                again = np.zeros(len(waiting), dtype=bool)
                again[of[strayed]] = True
                rows = rows[again[of]]
            if not len(rows):
                break
            if attempt == 0:
                redrawn = len(rows)
        lost = np.zeros(len(xy), dtype=bool)
        lost[rows] = True
        if len(rows) and self.unreachable == "refuse":
            raise ParameterError(
                f"{len(rows):,} locations found no place inside their zone in {self.max_tries:,} draws. Lower r_min, "
                "raise max_tries, or say unreachable='suppress' to leave these locations out."
            )
        return moved, lost, redrawn

    def _distances(self, inner: Floats, outer: Floats, rng: np.random.Generator) -> Floats:
        if self.radius_law == "area":
            return np.sqrt(rng.uniform(inner**2, outer**2))
        return rng.uniform(inner, outer)

    @staticmethod
    def _moved_notes(by: str | None, crowded: int) -> list[str]:
        notes = [
            "Locations were shifted at random. Do not release the file a second time with other draws: the two can be "
            "averaged."
        ]
        if by is not None:
            notes.append(f"Records with the same '{by}' moved together.")
        elif crowded:
            notes.append(
                f"{crowded:,} records share their location with {_CROWDED} or more others and moved independently; "
                "the mean of their shifted locations lies near the true one."
            )
        return notes

    def _notes(self, by: str | None, xy: Floats, home: Integers, lost: int) -> list[str]:
        _, crowd = np.unique(xy.view(np.complex128), return_counts=True)
        notes = self._moved_notes(by, int(crowd[crowd > _CROWDED].sum()))
        if self.zone is not None or self.polygons:
            free = int((home == zones.OUTSIDE).sum())
            notes.append(
                "Locations stayed in their zone, so near its border not every direction was possible."
            )
            if free:
                notes.append(f"{free:,} records are in no zone and moved freely.")
        if lost:
            notes.append(f"{lost:,} locations found no place inside their zone and were left out.")
        return notes


def _numbered(values: pl.Series) -> Integers:
    """Number the distinct values; every missing value is a group of its own."""
    codes = values.rank("dense").cast(pl.Int64).to_numpy(allow_copy=True).astype(np.float64)
    alone = np.isnan(codes)
    codes[alone] = len(codes) + 1 + np.arange(int(alone.sum()))
    return codes.astype(np.int64)


def _without_location(gone: int, columns: tuple[str, str]) -> ColumnError:
    return ColumnError(
        f"{gone:,} records have no location in '{columns[0]}' and '{columns[1]}'. Say with on_missing whether to "
        "'keep' or to 'drop' them."
    )


def _refuse_whole_degrees(data: Microdata, columns: Sequence[str], *, degrees: bool) -> None:
    for name in columns:
        if degrees and data.schema[name].is_integer():
            raise ColumnError(
                f"The location column '{name}' holds whole degrees, which a shift of meters cannot change. "
                "Convert it to decimal degrees first."
            )


# Shifts that look at nothing but the record: one ring for all, no zone to stay in.


@dataclass(frozen=True)
class FreeShifts:
    """Where the records of a batch move, drawn by their numbers or by those of their household.

    Attributes
    ----------
    columns
        The two columns of the location.
    by
        Column whose equal values move together.
    ring
        The least and the largest shift in meters.
    law
        How distances spread over the ring.
    refuses
        Whether a record without a location is refused.
    """

    columns: tuple[str, str]
    by: str | None
    ring: tuple[float, float]
    law: Literal["uniform", "area"]
    system: geography.CoordinateSystem
    draws: KeyedDraws
    refuses: bool

    def __call__(self, table: pl.DataFrame, records: Words) -> Mapping[str, pl.Series]:
        """Move the records of a batch."""
        places = geography.places_in(table, self.columns, self.system)
        gone = int((~places.known).sum())
        if gone and self.refuses:
            raise _without_location(gone, self.columns)
        numbers = grouped_numbers(table, self.by, records)[places.known]
        angle = 2 * math.pi * self.draws.uniforms(numbers)
        released = np.full_like(places.xy, np.nan)
        released[places.known] = self.system.moved(places.xy[places.known], angle, self._distances(numbers))
        return {name: in_type_of(table[name], values) for name, values in places.in_columns(released).items()}

    def _distances(self, numbers: Words) -> Floats:
        inner, outer = self.ring
        share = self.draws.uniforms(numbers, 1)
        if self.law == "area":
            return np.asarray(np.sqrt(inner**2 + share * (outer**2 - inner**2)))
        return np.asarray(inner + share * (outer - inner))


def in_type_of(old: pl.Series, values: Floats) -> pl.Series:
    """Keep the type of the column; whole numbers are rounded to whole numbers."""
    fresh = pl.Series(old.name, values, nan_to_null=True)
    if not old.dtype.is_integer():
        return fresh.cast(old.dtype)
    try:
        return fresh.round().cast(old.dtype)
    except pl.exceptions.InvalidOperationError:
        return fresh.round().cast(pl.Int64)
