"""Does the map still look the same? What a shift of locations costs, and which ring costs least.

Clark-Evans compares the mean distance to the nearest neighbor with that of points strewn at random in the smallest
rectangle around them; the shares by zone show whether an analysis by district would come to other results.

References
----------
Clark, P. J. and Evans, F. C. (1954). Distance to nearest neighbor as a measure of spatial relationships in
populations. Ecology 35(4), 445-453.
Freeman, H. and Shapira, R. (1975). Determining the minimum-area encasing rectangle for an arbitrary closed curve.
Communications of the ACM 18(7), 409-413.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Above, ColumnName, ColumnNames, Entries, HoldsValues, Public
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known, unknown_name
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.geography import CoordinateSystem, Places, places_of_both, to_nth_neighbor
from discreet.numerics.zones import NearestRecordZones, PolygonZones, Zoning, zone_codes
from discreet.protect.donut_masking import DonutMask, RadiusLaw
from discreet.risk.spatial_k import spatial_k


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


_MOST_LEVELS = 100
_OUTSIDE = "(outside all zones)"


@checked
def clark_evans(
    original: Microdata,
    released: Microdata,
    *,
    location: ColumnNames | None = None,
    geographic: bool = False,
    crs: Annotated[str, Public()] | None = None,
    area: Annotated[float, Above(0)] | None = None,
) -> Measure:
    """Are the points still as clustered as they were?

    The ratio is the mean distance to the nearest other point over the one expected of points strewn at random over the
    smallest rectangle that holds them. Shifts dissolve clusters, so the ratio moves towards 1.

    Also known as: Clark-Evans index; nearest neighbor ratio.

    Parameters
    ----------
    original, released
        The file with true and the file with shifted locations.
    location
        The two columns, (x, y) or (latitude, longitude); the role ``location`` unless named.
    geographic, crs
        What the columns mean: degrees, or a named coordinate system; otherwise meters.
    area
        Area of the study region in square meters, for both files; each file's smallest rectangle unless given.

    Returns
    -------
    Measure
        ``value`` is ``ratio_difference``, released minus original. ``figures``: ``ratio``, ``observed_distance``,
        ``expected_distance``, ``z``, ``area`` and ``points``, each with ``_original`` and ``_released``.

    How to read it
    --------------
    0 means the pattern is as clustered as before. In a city nearly any shift raises the ratio sharply (people of one
    house are drawn apart) and larger ones raise it little more; compare settings with one another.

    When not to trust it
    --------------------
    The rectangle grows with a few far points, and with it the expected distance: give ``area`` to compare files. z is
    the usual one and knows nothing of the edge of the region; with many points it is huge for every real pattern.

    References
    ----------
    Cremer, S., Jehmlich, L. and Lenz, R. (2024). Masking georeferenced health data: an analysis taking the example
    of partially synthetic data on sleep disorder. Privacy in Statistical Databases, Lecture Notes in Computer
    Science 14915. doi:10.1007/978-3-031-69651-0

    Examples
    --------
    >>> corners = pl.DataFrame({"x": [1000.0, 2000.0, 1000.0, 2000.0], "y": [0.0, 0.0, 1000.0, 1000.0]})
    >>> same = Microdata(corners, location=("x", "y"))
    >>> clark_evans(same, same).value
    0.0
    """
    system = CoordinateSystem(geographic, crs)
    ours, theirs = places_of_both(original, released, location, system, "clark_evans")
    before, after = (
        NearestNeighborStatistics.of(places.xy[places.known], system, area=area) for places in (ours, theirs)
    )
    figures: dict[str, Any] = {"ratio_difference": after.ratio - before.ratio}
    for field in ("ratio", "observed", "expected", "z", "area", "points"):
        name = f"{field}_distance" if field in ("observed", "expected") else field
        figures |= {f"{name}_original": getattr(before, field), f"{name}_released": getattr(after, field)}
    caveats = ["z takes the points as independent of the edge of the region, which they are not."]
    if min(before.points, after.points) < 2:
        caveats.append("With fewer than two points there is no nearest neighbor and no figure.")
        meaning = "One of the files has fewer than two points, so there is nothing to compare."
    else:
        meaning = (
            f"Points were {before.ratio:.3g} times as far from their nearest neighbor as points strewn at random, "
            f"and are now {after.ratio:.3g} times as far ({before.observed:,.3g} and {after.observed:,.3g} meters)."
        )
    left_out = int((~ours.known).sum() + (~theirs.known).sum())
    if left_out:
        caveats.append(f"{left_out:,} records without a location are left out.")
    return Measure(
        name="clark_evans",
        value=figures["ratio_difference"],
        figures=figures,
        meaning=meaning,
        caveats=caveats,
        parameters={"location": list(ours.columns), "geographic": geographic, "crs": crs, "area": area},
    )


@checked
def zone_shares(
    original: Microdata,
    released: Microdata,
    *,
    zone: ColumnName | None = None,
    polygons: Annotated[Mapping[str, Any], HoldsValues()] | None = None,
    sensitive: ColumnName | None = None,
    location: ColumnNames | None = None,
    geographic: bool = False,
    crs: Annotated[str, Public()] | None = None,
    weight: ColumnName | None = None,
) -> Measure:
    """Would an analysis by zone come to other results?

    Every point is put into the zone it lies in, with true and with shifted locations, and the share of each value of
    the sensitive column is computed by zone.

    Parameters
    ----------
    original, released
        The file with true and the file with shifted locations, the same records in the same order.
    zone
        Column of the original with the zone of each record. Without ``polygons`` a shifted point counts as being in the
        zone of the nearest true location.
    polygons
        ``{zone: polygon}`` as WKT, GeoJSON or shapely, in the coordinates of the file (needs shapely). They decide for
        both files; points that lie in none are a zone of their own.
    sensitive
        Column whose shares are compared; the first sensitive column unless named.
    location, geographic, crs
        The columns and what they mean; see `clark_evans`.
    weight
        Survey weight; the role ``weight`` unless named.

    Returns
    -------
    Measure
        ``value`` is ``max_difference``, the largest absolute difference of a share. ``figures``: ``max_difference``,
        ``mean_difference`` (over zones and values, absolute), ``share_moved`` (points that changed zone), ``zones``,
        ``zones_emptied`` (they had points and have none now), ``points_outside_original`` and ``_released``,
        ``records_left_out``. ``detail``: ``zones`` (shares by zone and value), ``moves`` (points by old and new zone).

    How to read it
    --------------
    A largest difference of 0.02 means: no zone's share is off by more than two percentage points. Look at small zones
    in ``detail["zones"]`` first. The inner radius of a mask hurts more than the outer one.

    When not to trust it
    --------------------
    With zones of a few points a share jumps when one point leaves. Zones taken from the nearest record have frayed
    borders; give polygons where you have them. Zones that were emptied have no share and no difference.

    Examples
    --------
    >>> homes = pl.DataFrame({"x": [1000.0, 1100.0, 9000.0, 9100.0], "y": 0.0, "city": ["a", "a", "b", "b"],
    ...                       "ill": [True, False, False, False]})
    >>> moved = homes.with_columns(x=pl.Series([9050.0, 1150.0, 8900.0, 9000.0]))
    >>> here = Microdata(homes, location=("x", "y"), sensitive="ill")
    >>> shares = zone_shares(here, here.with_frame(moved), zone="city")
    >>> shares.value, shares.figures["share_moved"]
    (0.5, 0.25)
    """
    if zone is None and not polygons:
        raise ParameterError("zone_shares needs zones: name a zone column of the original, or give polygons.")
    system = CoordinateSystem(geographic, crs)
    ours, theirs = places_of_both(original, released, location, system, "zone_shares")
    if len(ours.xy) != len(theirs.xy):
        raise InputError(
            f"The original has {len(ours.xy):,} records and the release {len(theirs.xy):,}. Shares by zone need "
            "the same records in the same order."
        )
    column, values = _values(original, sensitive)
    weight_name = engine.resolve_weight(original, weight)
    weights = (
        pl.Series(np.ones(len(values)))
        if weight_name is None
        else engine.collect(original, [weight_name])[weight_name].cast(pl.Float64)
    )
    rows = np.flatnonzero(ours.known & theirs.known & values.is_not_null().to_numpy())
    zoning, before = _old_zones(original, ours, zone, polygons, rows)
    after = zoning.locate(theirs.xy[rows])
    points = pl.DataFrame(
        {
            "old": _labelled(before, zoning.labels),
            "new": _labelled(after, zoning.labels),
            "level": values[rows],
            "weight": weights[rows],
        }
    )
    table = _share_table(points)
    differences = table["difference"].drop_nulls()
    moved = int((points["old"] != points["new"]).sum()) / max(points.height, 1)
    worst = float(np.abs(differences.to_numpy()).max()) if len(differences) else None
    emptied = set(points["old"].unique()) - set(points["new"].unique())
    gone = len(values) - len(rows)
    caveats = {
        "Zones are those of the nearest true location, so their borders are frayed.": not polygons,
        f"{len(emptied):,} zones have no points any more, and so no share to compare.": bool(emptied),
        f"{gone:,} records without a location or a value are left out.": gone > 0,
    }
    return Measure(
        name="zone_shares",
        value=worst,
        figures={
            "max_difference": worst,
            "mean_difference": float(np.abs(differences.to_numpy()).mean()) if len(differences) else None,
            "share_moved": moved,
            "zones": len(zoning.labels),
            "zones_emptied": len(emptied - {_OUTSIDE}),
            "points_outside_original": int((points["old"] == _OUTSIDE).sum()),
            "points_outside_released": int((points["new"] == _OUTSIDE).sum()),
            "records_left_out": gone,
        },
        meaning=(
            f"{percent(moved)} of the points lie in another zone than before; no zone's share of a value of '{column}' "
            f"is off by more than {percent(worst or 0.0)}."
        ),
        caveats=[sentence for sentence, holds in caveats.items() if holds],
        parameters={
            "zone": zone,
            "polygons": len(polygons or {}),
            "sensitive": column,
            "location": list(ours.columns),
            "geographic": geographic,
            "crs": crs,
            "weight": weight_name,
        },
        detail=engine.tables_like(
            original,
            zones=table,
            moves=lambda: (
                points.group_by(old_zone="old", new_zone="new")
                .agg(points=pl.len().cast(pl.Int64))
                .sort("old_zone", "new_zone")
            ),
        ),
    )


def _old_zones(
    original: Microdata,
    places: Places,
    zone: str | None,
    polygons: Mapping[str, Any] | None,
    rows: Integers,
) -> tuple[Zoning, Integers]:
    if polygons:
        drawn = PolygonZones.of(polygons)
        return drawn, drawn.locate(places.xy[rows])
    if zone is None or zone not in original.schema:
        raise ColumnError(f"{unknown_name(str(zone), original.columns)} It was named as zone.")
    labels = engine.collect(original, [zone])[zone].cast(pl.String)
    nearest = NearestRecordZones.of(labels, places.xy, places.system)
    return nearest, zone_codes(labels, nearest.labels)[rows]


def _values(original: Microdata, sensitive: str | None) -> tuple[str, pl.Series]:
    name = sensitive or next(iter(original.roles.sensitive), None)
    if name is None:
        raise ParameterError("zone_shares compares shares of a column. Name it with sensitive='…'.")
    need_known([name], original.schema, "It was named under 'sensitive'.")
    values = engine.collect(original, [name])[name]
    if values.n_unique() > _MOST_LEVELS:
        raise ColumnError(f"'{name}' has more than {_MOST_LEVELS} distinct values. Band it first.")
    return name, values.cast(pl.String)


def _labelled(codes: Integers, labels: Sequence[str]) -> pl.Series:
    return pl.Series([*labels, _OUTSIDE], dtype=pl.String)[codes]


def _share_table(points: pl.DataFrame) -> pl.DataFrame:
    """Compute the share of each value in each zone, by old and by new zone."""
    levels = points.select("level").unique().sort("level")
    zones = pl.concat([points["old"], points["new"]]).unique().sort().to_frame("zone")
    table = zones.join(levels, how="cross")
    for by, file in (("old", "original"), ("new", "released")):
        inside = points.group_by(zone=by).agg(
            pl.len().cast(pl.Int64).alias(f"points_{file}"), total=pl.col("weight").sum()
        )
        held = points.group_by("level", zone=by).agg(part=pl.col("weight").sum())
        table = (
            table.join(inside, on="zone", how="left", maintain_order="left")
            .join(held, on=["zone", "level"], how="left", maintain_order="left")
            .with_columns(
                pl.col(f"points_{file}").fill_null(0),
                pl.when(pl.col("total") > 0)
                .then(pl.col("part").fill_null(0) / pl.col("total"))
                .alias(f"share_{file}"),
            )
            .drop("total", "part")
        )
    return table.with_columns(difference=pl.col("share_released") - pl.col("share_original"))


# Which ring, and which keys, make a release that is safe enough and hurts least?


RINGS = ((100, 200), (100, 300), (100, 400), (200, 300), (200, 400), (300, 400))
"""The settings of the published study, in meters."""
_FIGURES_OF_RISK = ("share_critical", "acceptable", "mean_k", "median_k", "q1_k", "q3_k", "min_k", "max_k")


@checked
def donut_settings(
    data: Microdata,
    *,
    rings: Annotated[Sequence[Sequence[float]], Public(), Entries()] = RINGS,
    keys: Annotated[Mapping[str, Sequence[str]], Public()] | None = None,
    zone: ColumnName | None = None,
    polygons: Annotated[Mapping[str, Any], HoldsValues()] | None = None,
    sensitive: ColumnName | None = None,
    location: ColumnNames | None = None,
    geographic: bool = False,
    crs: Annotated[str, Public()] | None = None,
    radius_law: RadiusLaw = "uniform",
    k_critical: int = 3,
    max_share_critical: float = 0.10,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Which ring of a donut mask, with which keys in the release, is safe enough and hurts least?

    Every ring is tried with every set of keys, each with draws of its own. Of the variants whose share of critical
    records lies below the limit, the one with the smallest inner radius is chosen, then the smallest outer radius (the
    inner one hurts analysis more), then the set of keys that stands first.

    Parameters
    ----------
    data
        The file with true locations.
    rings
        Pairs ``(r_min, r_max)`` in meters; those of the published study unless given.
    keys
        ``{name: key columns}``: the key sets that could be released, the most wanted first, e.g. ``{"fine": ["age11",
        "sex"], "coarse": ["age4", "sex"], "none": []}``. The keys of the data, and none, unless given.
    zone, polygons, sensitive
        For the shares by zone; see `zone_shares`. Left out without zones.
    location, geographic, crs, radius_law
        See `DonutMask`.
    k_critical, max_share_critical
        See `spatial_k`.
    seed
        Same data, same settings, same seed: same table.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is the share of critical records of the chosen variant, None where none is acceptable. ``figures``:
        ``r_min``, ``r_max`` and ``keys`` of the choice, ``share_critical``, ``median_k``, ``variants``,
        ``acceptable_variants``. ``detail``: ``variants``, one row each with risk and utility.

    How to read it
    --------------
    Read the table by keys first: where no ring is acceptable with fine keys, coarser keys cost less than larger
    shifts. Then compare ``ratio_released`` and ``max_zone_difference`` among the acceptable rows.

    When not to trust it
    --------------------
    Every row is one draw; shares near the limit can fall on the other side with another seed. Release a file made with
    a seed of its own and measure it again.

    Examples
    --------
    >>> import numpy as np
    >>> town = np.random.default_rng(1).uniform(5000, 6000, (500, 2))
    >>> homes = Microdata(pl.DataFrame(town, schema=["x", "y"]), location=("x", "y"))
    >>> best = donut_settings(homes, rings=[(10, 20), (50, 100), (100, 200)], seed=1)
    >>> best.figures["r_min"], best.figures["acceptable_variants"]
    (50, 2)
    """
    if any(len(ring) != 2 for ring in rings):
        raise ParameterError("rings must be pairs (r_min, r_max), e.g. [(50, 100), (100, 200)].")
    usual = {"all keys": data.roles.keys} if data.roles.keys else {}
    sets: dict[str, Sequence[str]] = {**usual, "no keys": ()} if keys is None else dict(keys)
    if not sets:
        raise ParameterError("keys is empty. Give at least one set, e.g. {'none': []}.")
    root = int(generator(fresh_seed() if seed is None else seed).integers(2**62))
    options: dict[str, Any] = {"location": location, "geographic": geographic, "crs": crs}
    cells = [(tuple(ring), name) for ring in rings for name in sets]
    rows = []
    for (r_min, r_max), name in track(cells, description="Trying masks", progress=progress):
        own = int(generator(root, f"{r_min:g}-{r_max:g}", name).integers(2**62))
        mask = DonutMask(r_min=r_min, r_max=r_max, radius_law=radius_law, **options)
        released = mask.apply(data, seed=own).data
        risk = spatial_k(
            data,
            released,
            keys=tuple(sets[name]),
            sensitive=(),
            k_critical=k_critical,
            max_share_critical=max_share_critical,
            **options,
        ).figures
        near = clark_evans(data, released, **options).figures
        row: dict[str, Any] = {"r_min": r_min, "r_max": r_max, "keys": name}
        row |= {figure: risk[figure] for figure in _FIGURES_OF_RISK}
        row |= {figure: near[figure] for figure in ("ratio_original", "ratio_released")}
        if zone is not None or polygons:
            moved = zone_shares(
                data, released, zone=zone, polygons=polygons, sensitive=sensitive, **options
            ).figures
            row |= {
                "max_zone_difference": moved["max_difference"],
                "share_changed_zone": moved["share_moved"],
            }
        rows.append(row)
    safe = [row for row in rows if row["acceptable"]]
    order = list(sets)
    best = min(safe, key=lambda row: (row["r_min"], row["r_max"], order.index(row["keys"])), default=None)
    return Measure(
        name="donut_settings",
        value=best["share_critical"] if best else None,
        figures={
            **{
                name: best[name] if best else None
                for name in ("r_min", "r_max", "keys", "share_critical", "median_k")
            },
            "variants": len(rows),
            "acceptable_variants": len(safe),
        },
        meaning=_in_words(best, len(rows), len(safe), max_share_critical),
        caveats=["Every variant was drawn once; measure the file that is released again."],
        parameters={
            "rings": [list(ring) for ring in rings],
            "keys": {name: list(columns) for name, columns in sets.items()},
            "radius_law": radius_law,
            "k_critical": k_critical,
            "max_share_critical": max_share_critical,
        },
        detail=engine.tables_like(data, variants=lambda: pl.DataFrame(rows)),
    )


def _in_words(best: Mapping[str, Any] | None, tried: int, safe: int, limit: float) -> str:
    if best is None:
        return (
            f"None of the {tried} variants has fewer than {percent(limit)} critical records; try larger rings or "
            "coarser keys."
        )
    return (
        f"Of {tried} variants {safe} have fewer than {percent(limit)} critical records; the gentlest shifts by "
        f"{best['r_min']:g} to {best['r_max']:g} meters and releases '{best['keys']}' "
        f"({percent(best['share_critical'])} critical)."
    )
