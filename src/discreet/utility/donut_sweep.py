"""Which ring, and which keys, make a release that is safe enough and hurts least?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import polars as pl

from discreet import engine
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.protect.donut_masking import DonutMask, RadiusLaw
from discreet.risk.spatial_k import spatial_k
from discreet.utility.point_patterns import clark_evans, zone_shares

RINGS = ((100, 200), (100, 300), (100, 400), (200, 300), (200, 400), (300, 400))
"""The settings of the published study, in meters."""


@checked
def donut_settings(
    data: Microdata,
    *,
    rings: Annotated[Sequence[Sequence[float]], Public()] = RINGS,
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
    if not rings:
        raise ParameterError("rings is empty. Give at least one pair (r_min, r_max).")
    if any(len(ring) != 2 for ring in rings):
        raise ParameterError("rings must be pairs (r_min, r_max), e.g. [(50, 100), (100, 200)].")
    sets = dict(keys) if keys is not None else _usual_sets(data)
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
        row |= {
            figure: risk[figure]
            for figure in (
                "share_critical",
                "acceptable",
                "mean_k",
                "median_k",
                "q1_k",
                "q3_k",
                "min_k",
                "max_k",
            )
        }
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
        detail=Detail(variants=lambda: engine.like(data, pl.DataFrame(rows))),
    )


def _usual_sets(data: Microdata) -> dict[str, Sequence[str]]:
    return {"all keys": data.roles.keys, "no keys": ()} if data.roles.keys else {"no keys": ()}


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
