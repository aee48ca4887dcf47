"""Does the release keep too close to the people it was made from?

Distances to the closest record and what surrounds them: with a hold-out file of people who were not used, closeness
that comes from copying can be told from closeness that comes from people being alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.cards import Figure, OfPair, OfStudy, measure
from discreet.core.charts import Line, Lines, finite, number, rows_of
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, Headline, MapAxis, OfReleases, OfSynthesis, OfWorst
from discreet.core.randomness import Seed, generator, some_rows
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent, shown
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import Distance, MixedSpace, Points
from discreet.pairs import side_by_side as pairs
from discreet.risk.copy_counts import CloserShare, closer_to_original
from discreet.risk.equivalence_classes import records_only
from discreet.risk.identifiability import Identified, identified, identifying_space
from discreet.risk.shared_neighbors import neighbor_lists, sensitivity_table, sni_at


def _of_samples(
    found: Measure,
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    settings: Mapping[str, Any],
) -> Measure:
    """Mend what samples get wrong: a record drawn has lost the original it may be a copy of.

    Whether the release keeps closer to the original than to the hold-out is asked of all people of these; what counts
    the originals that are hit or repeated is left out.
    """
    figures = {
        name: None
        if name.startswith(("identical", "hitting")) or name == "epsilon_identifiability"
        else figure
        for name, figure in found.figures.items()
    }
    rows = engine.overview(released, ()).rows
    if holdout is None:
        return replace(found, figures=figures, meaning=closeness_in_words(figures, rows))
    closer = share_closer_than_holdout(
        engine.whole_of(original), released, engine.whole_of(holdout), **settings
    )
    figures["dcr_share_closer_than_holdout"] = closer.share
    return replace(found, value=closer.share, figures=figures, meaning=closeness_in_words(figures, rows))


def share_closer_than_holdout(
    original: Microdata,
    released: Microdata,
    holdout: Microdata,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    distance: Distance = "gower",
    precision: Setting = None,
) -> CloserShare:
    """Give the share of released records closer to the original than to the hold-out, by itself."""
    files = pairs.side_by_side(
        original, released, holdout, columns, categorical=categorical, precision=precision
    )
    space, points = pairs.placed(files.tables, distance=distance, categorical=files.categorical)
    return closer_to_original(space, *points)


def closeness_in_words(figures: Mapping[str, Any], released: int) -> str:
    """Say how close the release keeps to the original; figures that are unknown are passed over."""
    start = (
        f"Half of the {released:,} released records are within {shown(float(figures['dcr_median']))} of an original "
        f"record (originals among themselves: {shown(float(figures['dcr_original_median']))})"
    )
    if figures["identical_share"] is not None:
        start += f", and {percent(figures['identical_share'])} equal one exactly"
    share = figures["dcr_share_closer_than_holdout"]
    if share is None:
        return f"{start}."
    leaning = (
        "closer to the people it was made from than to others: it has learned them"
        if share > 0.52
        else "about as close to people who were not used as to those who were"
    )
    return f"{start}; {percent(share)} are closer to the original than to the hold-out, so the release is {leaning}."


_CLOSER = 0.55


def _too_close(found: Measure, beside: Beside) -> Iterator[Finding]:
    closer = found.figures.get("dcr_share_closer_than_holdout")
    copies = beside.measures.get("near_copies")
    least = copies.figures.get("closer_low") if copies else None
    leaning = not isinstance(least, float) or least > 0.5
    if isinstance(closer, int | float) and closer >= _CLOSER and leaning:
        yield Finding(
            "closer than the hold-out",
            10 * (closer - 0.5),
            f"{percent(closer)} of the released records lie closer to the people they were made from than to others "
            "like them (50 % is chance).",
        )


_DISTANCES = {
    "released_to_original": "Released records",
    "holdout_to_original": "People who were not used",
    "original_to_original": "Originals among themselves",
}


def _pictures(found: Measure, show_values: bool) -> Iterator[Lines]:
    rows = rows_of(found, "quantiles", "share", "released_to_original")
    present = [name for name in _DISTANCES if rows and any(finite(row.get(name)) for row in rows)]
    if len(rows) < 2 or not present:
        return
    yield Lines(
        title="How far it is to the closest original",
        places=tuple(float(row["share"]) for row in rows),
        lines=tuple(Line(_DISTANCES[name], tuple(number(row[name]) for row in rows)) for name in present),
        axis=(
            "Distance, upwards, within which the share of records along the bottom has an original; released records "
            "well below the others were made too close to real people"
        ),
        as_share=False,
        places_as_share=True,
    )


@measure(
    room="risk",
    work="whole-file",
    title="Nearest neighbors",
    headline="distance to the closest original, median",
    chapter="found",
    place=8,
    leading=True,
    references=(
        "Yoon, J., Drumright, L. N. and van der Schaar, M. (2020). Anonymization through data synthesis "
        "using generative adversarial networks (ADS-GAN). IEEE Journal of Biomedical and Health "
        "Informatics 24(8), 2378–2388.",
    ),
    figures={
        "dcr_median": Figure("Distance to the closest original, median (DCR)"),
        "dcr_p05": Figure("Distance to the closest original, closest 5 %"),
        "dcr_original_median": Figure("Distance among originals, median"),
        "dcr_holdout_median": Figure("Distance to the closest original, people not used, median"),
        "dcr_share_closer_than_holdout": Figure(
            "Share closer to the original than to people not used",
            unit="share",
            better="lower",
            summary=True,
            words={"rule": "closer to the original than to the hold-out"},
        ),
        "nndr_median": Figure("Closest over second closest original, median (NNDR)"),
        "nndr_p05": Figure("Closest over second closest original, lowest 5 %"),
        "nndr_holdout_median": Figure("Closest over second closest, people not used, median"),
        "identical_records": Figure("Released records equal to an original"),
        "identical_share": Figure(
            "Share equal to an original",
            unit="share",
            better="lower",
            summary=True,
            words={"rule": "share equal to an original"},
        ),
        "identical_share_holdout": Figure("Share of people not used equal to an original", unit="share"),
        "hitting_rate": Figure("Originals hit by a released record", unit="share"),
        "hitting_rate_excess": Figure("Hits beyond chance"),
        "epsilon_identifiability": Figure("Share identifiable (epsilon)", unit="share"),
        "epsilon_baseline": Figure("Identifiable by chance alone", unit="share"),
        "epsilon_excess": Figure("Identifiable beyond chance", better="lower", summary=True),
        "epsilon_excess_over_holdout": Figure("Identifiable beyond people not used"),
        "sni": Figure("Shared neighbor index (SNI)", unit="share", better="lower", summary=True),
        "sni_noise_share": Figure("Share outside every cluster", unit="share"),
    },
    compare=OfPair(21, "risk", one_type=True, most=5_000),
    study=OfStudy(7),
    worst=OfWorst(8, _too_close),
    pictures=_pictures,
    releases=OfReleases(
        10,
        {"dcr_share_closer_than_holdout": "Closer than to the hold-out"},
        headline=Headline(
            "dcr_share_closer_than_holdout",
            "closer to the original than to the hold-out",
            "50 % is chance; clearly more says that the release has learned its people.",
        ),
        axis=MapAxis("identical_share", "records equal to an original", order=4),
    ),
    synthesis=OfSynthesis(by_donors=True),
)
def neighbors(
    original: Microdata,
    released: Microdata,
    *,
    holdout: Microdata | None = None,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    distance: Distance = "gower",
    hit_tolerance: Annotated[float, AtLeast(0)] = 1 / 30,
    precision: Annotated[Setting, Public()] = None,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Does the release keep too close to the people it was made from?

    For synthetic or otherwise unlinked releases. The distance of a released record to the closest original (DCR) is
    small either because the record was copied or because people are alike; a hold-out file (people like those of the
    original who were not used to make the release) tells the two apart.

    Also known as: DCR; distance to closest record; NNDR; nearest neighbor distance ratio; nearest neighbor
    adversarial accuracy; NNAA.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    holdout
        People of the same population who were not used. Figures that need it are None without it.
    columns
        Columns to compare; all but identifiers, weights and the like unless named.
    categorical
        Numeric columns whose numbers are codes.
    distance
        ``gower`` or ``euclidean`` (standardized), for DCR and NNDR. Epsilon-identifiability and SNI keep to their
        definitions: Euclidean on range-scaled numbers and 0/1 categories, the former weighted by entropy.
    hit_tolerance
        Share of a column's range within which two numbers count as the same, for the hitting rate.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.
    seed
        For the samples that bring files to the same size before they are held against each other.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is ``dcr_share_closer_than_holdout`` where there is a hold-out, else ``dcr_median``. ``figures``:

        - ``dcr_median``, ``dcr_p05``: distance of released records to the closest original; ``dcr_original_median``:
          of originals to the closest other original; ``dcr_holdout_median``: of hold-out records to the closest
          original.
        - ``dcr_share_closer_than_holdout``: share of released records that are closer to the original than to the
          hold-out, on a scale on which chance is 0.5 and a copy of the original 1, whatever the size of the hold-out;
          `near_copies` has its interval.
        - ``nndr_median``, ``nndr_p05``: distance to the closest over that to the second closest original;
          ``nndr_holdout_median``: the same of hold-out records.
        - ``identical_records``, ``identical_share``: released records equal to an original in every column;
          ``identical_share_holdout``: the same of hold-out records.
        - ``hitting_rate``: share of originals with a released record equal in all categories and within
          ``hit_tolerance`` of the range in all numbers; ``hitting_rate_excess``: beyond what as many hold-out
          records hit.
        - ``epsilon_identifiability``, ``epsilon_baseline``, ``epsilon_excess``, and
          ``epsilon_excess_over_holdout``: see `identifiability`.
        - ``sni``, ``sni_noise_share``: see `shared_neighbors`.

        ``detail``: ``records`` (released), ``originals``, ``quantiles`` (of the distances), ``sensitivity`` (SNI).

    How to read it
    --------------
    With a hold-out, ``dcr_share_closer_than_holdout`` is the figure to look at: 0.5 is chance, clearly more
    means that the release keeps closer to the people it was made from than to others like them.
    ``identical_share`` should not exceed that of the hold-out. Without a hold-out compare ``dcr_median`` with
    ``dcr_original_median``: a release whose records are closer to originals than originals are to each other
    has copied. ``epsilon_excess`` and ``sni`` above 0 point the same way.

    When not to trust it
    --------------------
    Averages hide single copies: a release can look fine and still hold one record of somebody famous, so look
    at the lowest values in ``detail["records"]``. Distances depend on the columns and their scaling, and in
    many columns all records are about equally far apart. A hold-out that is not from the same population, or
    that was used to tune the generator, makes everything look risky or safe. It is no guarantee: a file that
    passes can still disclose attributes.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 30, 40, 50, 60, 70], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> fakes = pl.DataFrame({"age": [20, 33, 44, 55, 66, 10], "sex": ["f", "m", "m", "m", "f", "f"]})
    >>> close = neighbors(Microdata(people), Microdata(fakes))
    >>> round(close.figures["dcr_median"], 3), close.figures["identical_records"]
    (0.055, 1)
    """
    compared, codes, tables, agreed = pairs.side_by_side(
        original, released, holdout, columns, categorical=categorical, precision=precision
    )
    names = compared.names
    if tables[0].height < 2:
        raise ParameterError("The original has one record; neighbors need at least two.")
    space, points = pairs.placed(tables, distance=distance, categorical=codes)
    close = _closeness(space, points, progress)
    tolerances = pairs.Tolerances.of(tables[0], tables, codes, hit_tolerance)
    hits = tolerances.hits(tables[0], tables[1])
    weighted, _ = identifying_space(tables[0], *tables[1:], categorical=codes)
    exposed = identified(weighted, tables[0], tables[1], progress=progress)
    flat = MixedSpace.fit(tables[0], tables[1], distance="euclidean", scale="range", categorical=codes)
    few = tables[0].height + tables[1].height
    lists = neighbor_lists(flat, tables[0], tables[1], min(5, few - 1), progress=progress)
    clustered = sni_at(lists, tables[0].height)
    sni = clustered.get(5)
    equal = _identical(tables[0], tables[1])
    figures: dict[str, Any] = {
        "dcr_median": np.median(close.first),
        "dcr_p05": np.quantile(close.first, 0.05),
        "dcr_original_median": np.median(close.among_originals),
        "dcr_holdout_median": None,
        "dcr_share_closer_than_holdout": None,
        "nndr_median": np.median(close.ratio),
        "nndr_p05": np.quantile(close.ratio, 0.05),
        "nndr_holdout_median": None,
        "identical_records": int(equal.sum()),
        "identical_share": float(equal.mean()),
        "identical_share_holdout": None,
        "hitting_rate": float(hits.mean()),
        "hitting_rate_excess": None,
        "epsilon_identifiability": exposed.share,
        "epsilon_baseline": exposed.baseline,
        "epsilon_excess": exposed.share - exposed.baseline,
        "epsilon_excess_over_holdout": None,
        "sni": sni.sni if sni else None,
        "sni_noise_share": sni.noise_share if sni else None,
    }
    apart: Floats | None = None
    if holdout is not None:
        identify = partial(identified, weighted, tables[0], others=exposed.to_original, progress=progress)
        apart, against = _against_holdout(
            space, points, tables, tolerances=tolerances, identify=identify, seed=seed, progress=progress
        )
        figures.update(against)
    found = Measure(
        name="neighbors",
        value=figures["dcr_median" if holdout is None else "dcr_share_closer_than_holdout"],
        figures=figures,
        meaning=closeness_in_words(figures, len(points[1])),
        caveats=[
            *records_only(original),
            *compared.caveats,
            *agreed.caveats,
            *_caveats(space, tables, names, figures),
        ],
        parameters={
            "columns": list(names),
            "categorical": list(codes),
            "distance": distance,
            "hit_tolerance": hit_tolerance,
            "holdout": holdout is not None,
            "precision": pairs.stated_precision(precision, agreed.parameters),
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            records=lambda: engine.like(
                released,
                pl.DataFrame(
                    {
                        "record": np.arange(len(close.first)),
                        "nearest_original": close.nearest,
                        "dcr": close.first,
                        "nndr": close.ratio,
                        "identical": equal,
                    }
                ),
            ),
            originals=lambda: engine.like(
                original,
                pl.DataFrame(
                    {
                        "record": np.arange(len(hits)),
                        "to_other_original": close.among_originals,
                        "hit": hits,
                        "identified": exposed.flags,
                    }
                ),
            ),
            quantiles=lambda: engine.like(released, _quantiles(close, apart)),
            sensitivity=lambda: engine.like(released, sensitivity_table(clustered)),
        ),
    )
    files = [original, released, *([] if holdout is None else [holdout])]
    if all(engine.whole_of(data) is data for data in files):
        return found
    asked = {"columns": columns, "categorical": categorical, "distance": distance, "precision": precision}
    return _of_samples(found, original, released, holdout, asked)


@dataclass(frozen=True)
class Closeness:
    """How near the released records are to the originals, and the originals to one another."""

    nearest: Integers
    first: Floats
    ratio: Floats
    among_originals: Floats


def _closeness(space: MixedSpace, points: Sequence[Points], progress: bool) -> Closeness:
    ours, theirs = points[0], points[1]
    found = nearest(space, theirs, ours, k=2, progress=progress, description="Closest originals")
    among = nearest(space, ours, progress=progress, description="Among originals")
    return Closeness(found.index[:, 0], found.distance[:, 0], _ratio(found.distance), among.distance[:, 0])


def _ratio(distances: Floats) -> Floats:
    """Divide the nearest by the second nearest distance; a record on top of two originals points at neither."""
    first, second = distances[:, 0], distances[:, 1]
    return np.divide(first, second, out=np.ones_like(first), where=second > 0)


def _identical(ours: pl.DataFrame, theirs: pl.DataFrame) -> Flags:
    known = pairs.plain_rows(ours).unique().with_columns(known=pl.lit(True))
    rows = pairs.plain_rows(theirs)
    joined = rows.join(known, on=ours.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined["known"].fill_null(False).to_numpy()


def _against_holdout(
    space: MixedSpace,
    points: Sequence[Points],
    tables: Sequence[pl.DataFrame],
    *,
    tolerances: pairs.Tolerances,
    identify: Callable[[pl.DataFrame], Identified],
    progress: bool,
    seed: Seed,
) -> tuple[Floats, dict[str, Any]]:
    """Hold the release against people who were not used, calibrated to their number or with files of one size."""
    ours, theirs, fresh = points
    rng = generator(seed, "neighbors", "holdout")
    closer = closer_to_original(space, ours, theirs, fresh, progress=progress)
    outside = nearest(space, fresh, ours, k=2, progress=progress, description="Hold-out to original")
    size = min(len(theirs), len(fresh))
    released, control = (table[some_rows(table.height, size, rng)] for table in tables[1:])
    hits = [tolerances.hits(tables[0], table).mean() for table in (released, control)]
    return outside.distance[:, 0], {
        "dcr_holdout_median": np.median(outside.distance[:, 0]),
        "dcr_share_closer_than_holdout": closer.share,
        "nndr_holdout_median": np.median(_ratio(outside.distance)),
        "identical_share_holdout": float(_identical(tables[0], tables[2]).mean()),
        "hitting_rate_excess": float(hits[0] - hits[1]),
        "epsilon_excess_over_holdout": identify(released).share - identify(control).share,
    }


def _quantiles(close: Closeness, holdout: Floats | None) -> pl.DataFrame:
    """Set the distributions side by side, percent by percent, ready to be drawn."""
    at = np.linspace(0, 1, 101)
    table = {
        "share": at,
        "released_to_original": np.quantile(close.first, at),
        "original_to_original": np.quantile(close.among_originals, at),
    }
    if holdout is not None:
        table["holdout_to_original"] = np.quantile(holdout, at)
    return pl.DataFrame(table)


def _caveats(
    space: MixedSpace, tables: Sequence[pl.DataFrame], names: Sequence[str], figures: dict[str, Any]
) -> list[str]:
    caveats = []
    if len(tables) < 3:
        caveats.append(
            "Without a hold-out file closeness by copying cannot be told from people being alike; give one with "
            "holdout=… (people of the same population who were not used). Its figures are undefined here."
        )
    if figures["sni"] is None:
        caveats.append("SNI needs at least six records in the two files together.")
    if tables[1].n_unique() == 1:
        caveats.append("All released records are the same (mode collapse).")
    return [
        *caveats,
        "Averages hide the few: a release can be far from most people and copy some. Look at the smallest distances "
        "in detail['records'] too.",
        "Distances say nothing about what could be inferred from patterns; use the attribution measures for that.",
        *pairs.column_caveats(space, tables, names),
    ]
