"""How many people could the shifted point be? Spatial k-anonymity of a release with masked coordinates.

References
----------
Hampton, K. H. et al. (2010). Mapping health data: improved privacy protection with donut method geomasking. American
Journal of Epidemiology 172(9), 1062-1069.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public, Share
from discreet.core.errors import ColumnError, InputError, ParameterError, load_extra, need_known, unknown_name
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.geography import CoordinateSystem, places_of, places_of_both
from discreet.numerics.zones import PolygonZones
from discreet.risk.equivalence_classes import records_only

_MOST_LEVELS = 100


@measure(
    room="risk",
    work="whole-file",
    question="How many places are as near to a released point as the right one?",
    headline="records that too few places hide",
    chapter="found",
    place=6,
    references=(
        "Hampton, K. H. et al. (2010). Mapping health data: improved privacy protection with donut method "
        "geomasking. American Journal of Epidemiology 172(9), 1062–1069.",
    ),
    figures={
        "value": Figure(better="lower"),
        "share_critical": Figure(unit="share"),
        "share_critical_weighted": Figure(unit="share"),
        "share_found": Figure(unit="share"),
        "share_critical_place": Figure(unit="share"),
        "share_critical_population": Figure(unit="share"),
        "share_critical_ring": Figure(unit="share"),
        "share_one_value": Figure(unit="share"),
    },
)
def spatial_k(
    original: Microdata,
    released: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    location: ColumnNames | None = None,
    geographic: bool = False,
    crs: Annotated[str, Public()] | None = None,
    population: Microdata | None = None,
    population_polygons: Annotated[Mapping[str, Any], HoldsValues()] | None = None,
    population_counts: Annotated[Mapping[str, float], HoldsValues()] | None = None,
    ring: Annotated[Sequence[float], Public()] | None = None,
    match: ColumnName | None = None,
    weight: ColumnName | None = None,
    k_critical: Annotated[int, AtLeast(1)] = 3,
    max_share_critical: Annotated[float, Share()] = 0.10,
) -> Measure:
    """How many released points are as near to a person's home as the person's own?

    An intruder knows where somebody lives and looks for the released point that belongs there. The spatial k of a
    record is the number of released points, its own counted, that lie no further from the true location than its own
    does; the chance to pick the right one is then about 1/k. Whoever also knows the keys looks only among the points
    with the same keys.

    Also known as: spatial k-anonymity.

    Parameters
    ----------
    original, released
        The file with true and the file with shifted locations, the same records in the same order (or see ``match``).
    keys
        What the intruder knows beside the place; the keys of the original that the release still has unless named,
        ``()`` for nothing. Their values are taken from the release, as the intruder will recode what they know.
    sensitive
        Columns whose distinct values in the disc are counted; those of the role with at most 100 levels unless named,
        ``()`` for none.
    location
        The two columns, (x, y) or (latitude, longitude); the role ``location`` unless named.
    geographic, crs
        What the columns mean; see `DonutMask`. Degrees are compared on the sphere.
    population
        A file of people or addresses with locations in the same coordinates: k is counted among them as well.
    population_polygons, population_counts
        Areas ``{zone: polygon}`` and the people in each, where there is no such file; people count as evenly spread
        over their area. For coordinates in meters; needs shapely.
    ring
        ``(r_min, r_max)`` of the mask in meters, where an intruder may know them: the points in the ring around the
        true location are counted as well.
    match
        Column that names the same record in both files, where their order or number differs.
    weight
        Survey weight for the weighted share; the role ``weight`` unless named.
    k_critical
        Below this a record is critical. Three, because an intruder who is in the file can leave themselves out.
    max_share_critical
        Share of critical records up to which ``acceptable`` is true (it must lie below).

    Returns
    -------
    Measure
        ``value`` is ``share_critical``. ``figures``: ``share_critical``, ``records_critical``,
        ``share_critical_weighted``, ``acceptable``, ``mean_k``, ``median_k``, ``q1_k``, ``q3_k``, ``min_k``, ``max_k``,
        ``share_found`` (k = 1), ``expected_matches`` (the sum of 1/k), ``alone_in_group`` (nobody else has the same
        keys: no shift can help), ``share_critical_place`` and ``median_k_place`` (without keys),
        ``share_critical_population`` and ``median_k_population``, ``share_critical_ring`` and ``median_k_ring``,
        ``share_one_value`` (only one sensitive value in the disc, the worst of the columns), ``mean_displacement`` and
        ``median_displacement`` in meters, ``records`` and ``records_left_out``. ``detail``: ``records``, ``summary``.

    How to read it
    --------------
    The authors of the method accept a file for scientific use when fewer than one record in ten is critical
    (``acceptable``). Look at ``share_critical`` against ``share_critical_place``: where the first is much larger,
    coarser keys help more than larger shifts. ``alone_in_group`` is the floor that no shift gets below.

    When not to trust it
    --------------------
    k counts only the people of the file; an intruder who does not know who is in it faces everybody who lives there,
    see ``population``. An intruder who knows the radii of the mask looks at the points in the ring and at no others,
    see ``ring``. It says nothing about two releases of the same file, nor about a release
    whose keys were perturbed (the group is then not where the intruder looks).

    Examples
    --------
    >>> homes = pl.DataFrame({"x": [5000.0, 5000.0, 5900.0], "y": [0.0, 100.0, 0.0]})
    >>> moved = pl.DataFrame({"x": [5000.0, 5000.0, 5900.0], "y": [80.0, 40.0, 10.0]})
    >>> here = spatial_k(Microdata(homes, location=("x", "y")), Microdata(moved, location=("x", "y")))
    >>> here.detail["records"]["k"].to_list()
    [2, 2, 1]
    """
    if (population_polygons is None) != (population_counts is None):
        raise ParameterError("population_polygons and population_counts go together. Give both, or neither.")
    system = CoordinateSystem(geographic, crs)
    if match is not None:
        original, released = _matched(original, released, match)
    pair = _paired(original, released, location, system)
    named, caveats = _known_keys(original, released, keys, pair.columns)
    group = _groups(released, named)[pair.rows]
    k_place = counted_within(pair.released, pair.true, pair.straight)
    k = counted_within(pair.released, pair.true, pair.straight, group) if named else k_place
    records: dict[str, Any] = {"record": pair.rows, "k": k, "k_place": k_place, "displacement": pair.meters}
    if population is not None or population_polygons is not None:
        if population is not None:
            there = places_of(population, location, system, purpose="spatial_k", file="population")
            crowd: Array = counted_within(
                system.solid(there.xy[there.known]), pair.true, pair.straight, own=False
            )
        else:
            crowd = people_in_discs(
                pair.true, pair.straight, population_polygons or {}, population_counts or {}, system=system
            )
        records["k_population"] = crowd
    if ring is not None:
        records["k_ring"] = _in_ring(pair, ring, group if named else None, system)
    looked_at, one_value = _sensitive(released, sensitive, named, pair.columns), 0.0
    for column in looked_at:
        levels = _groups(released, (column,))[pair.rows]
        distinct = _distinct_in_disc(pair, levels, group if named else None)
        records[f"distinct_{column}"] = distinct
        one_value = max(one_value, float((distinct == 1).mean()))
    critical = k < k_critical
    weight_name = engine.resolve_weight(original, weight)
    sizes = np.bincount(group)
    alone = int((sizes[group] == 1).sum()) if named else 0
    q1, median, q3 = np.quantile(k, [0.25, 0.5, 0.75])
    figures: dict[str, Any] = {
        "share_critical": critical.mean(),
        "records_critical": int(critical.sum()),
        "share_critical_weighted": _weighted(original, weight_name, pair.rows, critical),
        "acceptable": bool(critical.mean() < max_share_critical),
        "mean_k": k.mean(),
        "median_k": median,
        "q1_k": q1,
        "q3_k": q3,
        "min_k": int(k.min()),
        "max_k": int(k.max()),
        "share_found": (k == 1).mean(),
        "expected_matches": (1 / k).sum(),
        "alone_in_group": alone,
        "share_critical_place": (k_place < k_critical).mean(),
        "median_k_place": np.median(k_place),
        "share_critical_population": None,
        "median_k_population": None,
        "share_critical_ring": None,
        "median_k_ring": None,
        "share_one_value": one_value if looked_at else None,
        "mean_displacement": pair.meters.mean(),
        "median_displacement": np.median(pair.meters),
        "records": len(k),
        "records_left_out": pair.left_out,
    }
    for crowd_name in ("population", "ring"):
        if f"k_{crowd_name}" in records:
            figures[f"share_critical_{crowd_name}"] = (records[f"k_{crowd_name}"] < k_critical).mean()
            figures[f"median_k_{crowd_name}"] = np.median(records[f"k_{crowd_name}"])
    if pair.left_out:
        caveats.append(f"{pair.left_out:,} records without a location in one of the files are left out.")
    if alone:
        caveats.append(f"{alone:,} records are alone with their keys: for them k is 1 whatever the shift.")
    return Measure(
        name="spatial_k",
        value=figures["share_critical"],
        figures=figures,
        meaning=_in_words(figures, named, k_critical),
        caveats=[
            *records_only(original),
            *caveats,
            "An intruder who knows the radii of the mask looks in the ring only (see ring=), and one who has two "
            "releases of the same file can average them.",
        ],
        parameters={
            "keys": list(named),
            "sensitive": list(looked_at),
            "location": list(pair.columns),
            "geographic": geographic,
            "crs": crs,
            "population": population is not None or population_polygons is not None,
            "ring": None if ring is None else list(ring),
            "weight": weight_name,
            "k_critical": k_critical,
            "max_share_critical": max_share_critical,
        },
        detail=engine.tables_like(
            released, records=lambda: pl.DataFrame(records), summary=lambda: _summary(records, k_critical)
        ),
    )


@dataclass(frozen=True)
class _Pair:
    """True and released locations of the records that have both, ready for a tree, and how far apart they are."""

    columns: tuple[str, str]
    rows: Integers
    left_out: int
    true: Floats
    released: Floats
    straight: Floats
    meters: Floats


def _paired(
    original: Microdata, released: Microdata, location: Sequence[str] | None, system: CoordinateSystem
) -> _Pair:
    ours, theirs = places_of_both(original, released, location, system, "spatial_k")
    if len(ours.xy) != len(theirs.xy):
        raise InputError(
            f"The original has {len(ours.xy):,} records and the release {len(theirs.xy):,}. Spatial k needs the same "
            "records in the same order; name a column that is in both with match=…."
        )
    rows = np.flatnonzero(ours.known & theirs.known)
    if not len(rows):
        raise InputError("No record has a location in both files, so there is nothing to compare.")
    true, moved = system.solid(ours.xy[rows]), system.solid(theirs.xy[rows])
    straight = np.sqrt(((true - moved) ** 2).sum(axis=1))
    return _Pair(
        ours.columns, rows, len(ours.xy) - len(rows), true, moved, straight, system.over_ground(straight)
    )


def _matched(original: Microdata, released: Microdata, name: str) -> tuple[Microdata, Microdata]:
    """Bring both files to the records they share, in one order."""
    tables = []
    for data, file in ((original, "original"), (released, "release")):
        need_known([name], data.schema, f"It was named as match, for the {file}.")
        table = engine.collect(data)
        if table[name].null_count() or table[name].n_unique() < table.height:
            raise ColumnError(f"'{name}' does not name every record of the {file} by a value of its own.")
        tables.append(table)
    order = tables[0].select(name).join(tables[1].select(name), on=name, how="semi", maintain_order="left")
    if order.is_empty():
        raise ColumnError(f"No value of '{name}' is in both files.")
    ours, theirs = (order.join(table, on=name, how="left", maintain_order="left") for table in tables)
    return original.with_frame(ours), released.with_frame(theirs)


def _known_keys(
    original: Microdata, released: Microdata, keys: Sequence[str] | None, location: tuple[str, str]
) -> tuple[tuple[str, ...], list[str]]:
    names = original.roles.keys if keys is None else ((keys,) if isinstance(keys, str) else tuple(keys))
    names = tuple(name for name in names if name not in location)
    gone = [name for name in names if name not in released.schema]
    if gone and keys is not None:
        raise ColumnError(
            f"{unknown_name(gone[0], released.columns)} It was named under 'keys', for the release."
        )
    names = tuple(name for name in names if name not in gone)
    caveats = [f"The release has no '{name}', so an intruder cannot use it." for name in gone]
    if names and any(engine.overview(released, names).missing.values()):
        caveats.append("A missing key counts as a value of its own.")
    return names, caveats


def _groups(data: Microdata, names: Sequence[str]) -> Integers:
    """Number the combinations of values; missing is a value."""
    if not names:
        return np.zeros(engine.overview(data, ()).rows, dtype=np.int64)
    table = engine.collect(data, names)
    distinct = table.unique(maintain_order=True).with_row_index("_group")
    joined = table.join(distinct, on=list(names), how="left", nulls_equal=True, maintain_order="left")
    return joined["_group"].cast(pl.Int64).to_numpy()


def _sensitive(
    released: Microdata, sensitive: str | Sequence[str] | None, keys: Sequence[str], location: tuple[str, str]
) -> tuple[str, ...]:
    if sensitive is None:
        wanted: tuple[str, ...] = released.roles.sensitive
    else:
        wanted = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    found = []
    for name in wanted:
        need_known([name], released.schema, "It was named under 'sensitive'.")
        few = engine.collect(released, [name])[name].n_unique() <= _MOST_LEVELS
        if not few and sensitive is not None:
            raise ColumnError(
                f"'{name}' has more than {_MOST_LEVELS} distinct values, so their number in a disc says little. "
                "Band it first."
            )
        if few and name not in keys and name not in location:
            found.append(name)
    return tuple(found)


def _distinct_in_disc(pair: _Pair, levels: Integers, group: Integers | None) -> Integers:
    """Count the values that occur in each disc, one search of the nearest point a value."""
    distinct = np.zeros(len(levels), dtype=np.int64)
    for level in np.unique(levels):
        holders = levels == level
        distinct += has_within(
            pair.released[holders],
            pair.true,
            pair.straight,
            groups=None if group is None else (group[holders], group),
        )
    return np.maximum(distinct, 1)


def _in_ring(
    pair: _Pair, ring: Sequence[float], group: Integers | None, system: CoordinateSystem
) -> Integers:
    """Count the points that a mask with these radii could have made of each true location, the own one included."""
    if len(ring) != 2 or not 0 <= ring[0] < ring[1]:
        raise ParameterError("ring must be two distances in meters, r_min below r_max.")
    # Rounded coordinates put an own point a little outside its ring; it belongs there all the same.
    least = np.minimum(pair.straight, system.straight_line(ring[0]))
    most = np.maximum(pair.straight, system.straight_line(ring[1]))
    nearer = counted_within(pair.released, pair.true, least * (1 - 1e-9), group, own=False)
    in_ring: Integers = counted_within(pair.released, pair.true, most, group) - nearer
    return np.maximum(in_ring, 1)


def _weighted(data: Microdata, weight: str | None, rows: Integers, critical: Flags) -> float | None:
    if weight is None:
        return None
    weights = engine.collect(data, [weight])[weight].cast(pl.Float64).to_numpy()[rows]
    return float(weights[critical].sum() / weights.sum())


def _summary(records: Mapping[str, Any], k_critical: int) -> pl.DataFrame:
    words = {
        "k": "place and keys",
        "k_place": "place alone",
        "k_population": "people who live there",
        "k_ring": "points in the ring",
    }
    rows = []
    for name, what in words.items():
        if name in records:
            k = records[name]
            q1, median, q3 = np.quantile(k, [0.25, 0.5, 0.75])
            rows.append(
                {
                    "crowd": what,
                    "mean": float(k.mean()),
                    "median": median,
                    "q1": q1,
                    "q3": q3,
                    "share_critical": float((k < k_critical).mean()),
                    "min": float(k.min()),
                    "max": float(k.max()),
                }
            )
    return pl.DataFrame(rows)


def _in_words(figures: Mapping[str, Any], keys: Sequence[str], k_critical: int) -> str:
    knowing = "where somebody lives" + (f" and {', '.join(repr(key) for key in keys)}" if keys else "")
    return (
        f"Whoever knows {knowing} finds fewer than {k_critical} released points as near as the right one for "
        f"{figures['records_critical']:,} of {figures['records']:,} records ({percent(figures['share_critical'])}); "
        f"half of the records hide among {figures['median_k']:g} or more."
    )


# How many points, or how many people, are in each of many discs? Counted at once, without ever listing them.
#
# Groups are laid side by side along one more axis, further apart than the largest disc is wide. Within a group that
# axis adds nothing to a distance, across groups it adds too much, so one tree and one query serve all groups.


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
