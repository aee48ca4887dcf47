"""Can released records be led back to the people behind them?

Record linkage where it is known who is who: the intruder has the original values (or some of them) and links each
released record to an original; the truth tells how often that works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Figure, OfPair, TwoFiles, measure
from discreet.core.charts import Chart, figure_bars, finite, row_bars, rows_of
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Public, Share
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, Headline, MapAxis, OfReleases, OfWorst
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import Distance, MissingRule, MixedSpace, Points
from discreet.pairs import side_by_side as pairs
from discreet.risk import record_links
from discreet.risk.equivalence_classes import records_only

Method = Literal["distance", "assignment", "probabilistic", "interval", "rank", "robust"]

WIDTHS = {"interval": 0.05, "rank": 0.05, "robust": 0.01}


def _in_a_comparison(pair: TwoFiles) -> dict[str, Any]:
    # The rows are in order unless there is an id.
    return {"columns": list(pair.keys or pair.columns), "ids": pair.ids, "missing": None}


_WORTH_SAYING = 0.05


def _led_back(found: Measure, beside: Beside) -> Iterator[Finding]:
    share, by_chance = found.figures.get("linked_share"), found.figures.get("guess_share")
    if isinstance(share, float) and share >= _WORTH_SAYING and share > 10 * float(by_chance or 0):
        yield Finding(
            "led back",
            1 + 2 * share,
            f"{percent(share)} of the released records can be led back to their person by who knows the original "
            "values.",
        )


_MOST_ROWS = 15
_LINKED = {
    "linked_share": "Led back to the right person",
    "certain_share": "Without any doubt",
    "guess_share": "By blind guessing",
}
_INSIDE = {
    "interval_share": "All values that close",
    "interval_share_mean": "Mean over the columns",
    "uncrowded_share": "All that close, and no crowd",
}


def pictures_of_links(found: Measure, show_values: bool) -> Iterator[Chart]:
    """Draw how many records are led back, and how many values lie close to the original ones."""
    yield from figure_bars(
        found,
        _LINKED,
        "Released records led back to their person",
        "Share of the released records",
        risky=("linked_share",),
    )
    rows = [
        row for row in rows_of(found, "variables", "column", "inside_share") if finite(row["inside_share"])
    ]
    if rows:
        yield row_bars(
            "Released values close to the original ones",
            rows[:_MOST_ROWS],
            "column",
            "inside_share",
            "Share of the records whose original value lies within the interval around the released one",
        )
    else:
        yield from figure_bars(
            found, _INSIDE, "Released values close to the original ones", "Share of the records"
        )


@measure(
    room="risk",
    work="whole-file",
    question="How many released records can be led back to their person?",
    headline="of the released records led back",
    chapter="found",
    place=4,
    leading=True,
    references=(
        "Fellegi, I. P. and Sunter, A. B. (1969). A theory for record linkage. Journal of the American "
        "Statistical Association 64(328), 1183–1210.",
        "Templ, M. and Meindl, B. (2008). Robust statistics meets SDC: new disclosure risk measures for "
        "continuous microdata masking. Privacy in Statistical Databases, Lecture Notes in Computer "
        "Science 5262.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "linked_share": Figure("Share led back to the right person", unit="share"),
        "linked_records": Figure("Records led back to the right person"),
        "certain_share": Figure("Share led back without any doubt", unit="share"),
        "guess_share": Figure("By blind guessing", unit="share"),
        "released": Figure("Released records"),
        "linkable": Figure("Released records that have an original"),
        "interval_share": Figure("Share with every value within the interval", unit="share"),
        "interval_share_mean": Figure("Share within the interval, mean over the columns", unit="share"),
        "interval_records": Figure("Records with every value within the interval"),
    },
    columns={
        "inside_share": Figure("Share within the interval", unit="share"),
        "uncrowded_share": Figure("Share within the interval, not in a crowd", unit="share"),
        "weighted_share": Figure("Share within the interval, weighted by how far out", unit="share"),
        "compared_pairs": Figure("Pairs compared"),
        "links": Figure("Pairs called a link"),
        "recall": Figure("Right links found", unit="share"),
        "precision": Figure("Links that are right", unit="share"),
    },
    compare=OfPair(18, "risk", linked=True, one_type=True, most=5_000, settings=_in_a_comparison),
    worst=OfWorst(10, _led_back),
    pictures=pictures_of_links,
    releases=OfReleases(
        12,
        {"linked_share": "Led back"},
        headline=Headline(
            "linked_share", "of the records led back", "By who knows the original values of the keys."
        ),
        axis=MapAxis("linked_share", "records led back to their person", order=2, guessing="guess_share"),
    ),
    tells=(
        "precision",
        "solver",
    ),
)
def linkage(
    original: Microdata,
    released: Microdata,
    *,
    method: Method = "distance",
    columns: ColumnNames | None = None,
    ids: ColumnName | None = None,
    categorical: ColumnNames = (),
    distance: Distance = "gower",
    missing: MissingRule = "ignore",
    width: Annotated[float, AtLeast(0)] | None = None,
    crowd: Annotated[int, AtLeast(0)] = 2,
    crowd_width: Annotated[float, AtLeast(0)] = 0.05,
    blocking: Annotated[Sequence[str], Public()] = (),
    threshold: Annotated[float, Share(above=True, below=True)] = 0.9,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Can released records be led back to the people behind them?

    Also known as: record linkage; distance-based record linkage; dRisk.

    Parameters
    ----------
    original, released
        The two files. Their rows correspond one to one, unless ``ids`` names the column that says who is who.
    method
        ``distance``: each released record is linked to its nearest original. ``assignment``: the cheapest
        one-to-one pairing of all records, the stronger attack while the noise is small (with much noise it is no
        better). ``probabilistic``: Fellegi-Sunter linkage (needs the
        extra ``linkage``). ``interval``, ``rank``, ``robust``: is the original value within a small interval
        around the released one (by standard deviations, by ranks, by robust Mahalanobis distances)?
    columns
        What the intruder knows; the keys of the original, or all columns where it has none.
    ids
        Column in both files that holds the same value for the same person; not compared.
    categorical
        Numeric columns whose numbers are codes.
    distance, missing
        ``gower`` or ``euclidean``; missing values ``ignore``d (as an intruder would) or a ``category``.
    width
        Half-width of the interval: standard deviations (default 0.05), share of all ranks (0.05), or the factor of
        the squared robust distance (0.01).
    crowd, crowd_width
        For ``robust``: a record is hidden when more than so many other released records lie within so many robust
        standard deviations of it in every column.
    blocking, threshold
        For ``probabilistic``: columns that must agree, and the probability from which a pair is called a link.
    seed
        For the order in which ties are broken, and the training of models.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is the share of released records that are led back. For the linkage methods ``figures`` are
        ``linked_share`` (ties shared: one of four equally near counts a quarter), ``linked_records``,
        ``certain_share`` (the nearest is the true one and has no equal), ``guess_share`` (one over the number of
        originals), ``released``, ``linkable`` (released records with an original), and for ``probabilistic``
        ``links``, ``precision`` and ``recall`` of the pairs at or above the threshold. For the interval methods:
        ``interval_share`` (all values inside), ``interval_share_mean`` (mean over columns), ``interval_records``,
        ``released``, ``linkable``, and for ``robust`` ``weighted_share`` (by robust distance) and
        ``uncrowded_share`` (not hidden in a crowd). ``detail``: ``records``, and ``variables`` for intervals.

    How to read it
    --------------
    ``linked_share`` is the share of released records that an intruder who knows the original values of some
    columns leads back to the right person. Compare it with ``guess_share``, what blind guessing gets.
    ``certain_share`` counts only links without any doubt. ``method="assignment"`` is the strongest attack and
    a fair worst case; the interval methods do not ask who it is but how closely the original value can be
    told. After noise or swapping expect a steep fall; if it stays high, the treatment is too weak.

    When not to trust it
    --------------------
    It needs to know which released record belongs to whom, so it works for masked files and not for synthetic
    ones: use `neighbors` there. The intruder is taken to know the original values exactly, which is the
    worst case. All columns count alike after scaling: one that the intruder cannot know makes the result too
    gloomy, so name the columns. Ties are shared, so that a file with many equal records looks safer than one
    look at the nearest suggests.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> masked = pl.DataFrame({"age": [22, 29, 58, 49], "sex": ["f", "m", "f", "m"]})
    >>> linkage(Microdata(people), Microdata(masked)).figures["linked_share"]
    1.0
    >>> linkage(Microdata(people), Microdata(masked), method="interval", columns=["age"], width=0.2).value
    0.75
    """
    if columns is None and original.roles.keys:
        columns = original.roles.keys
    compared = pairs.compared_columns(original, released, columns, without=[ids])
    names = tuple(name for name in compared.names if name != ids)
    if not names:
        raise ParameterError("Nothing is left to compare beside the column that links the files.")
    ours, theirs = pairs.tables_of([original, released], names)
    truth = record_links.true_originals(original, released, ids, ours.height, theirs.height)
    files = record_links.LinkedFiles(released, ours, theirs, truth, tuple(compared.caveats))
    codes = pairs.check_categorical(names, categorical)
    about: dict[str, Any] = {"method": method, "columns": list(names), "ids": ids}
    if method in ("interval", "rank", "robust"):
        half = WIDTHS[method] if width is None else width
        return _interval_measure(
            files,
            method,
            half,
            crowd=crowd,
            crowd_width=crowd_width,
            seed=seed,
            about=about,
        )
    about["categorical"] = list(codes)
    if method == "probabilistic":
        # The other methods ask how far values are apart; this one asks whether they agree.
        (ours, theirs), agreed = pairs.precise_alike([ours, theirs], categorical=codes)
        files = replace(files, ours=ours, theirs=theirs)
        about["precision"] = agreed.parameters
        return _probabilistic_measure(
            files, codes, blocking=tuple(blocking), threshold=threshold, seed=seed, about=about
        )
    space, (points, queries) = pairs.placed(
        (ours, theirs), distance=distance, categorical=codes, missing=missing
    )
    about |= {"distance": distance, "missing": missing}
    caveats = [*records_only(original), *pairs.column_caveats(space, (ours, theirs), names)]
    if method == "assignment":
        table, how = record_links.cheapest_pairs(space, points, queries, truth, seed=seed, progress=progress)
        about["solver"] = how
        caveats = [f"The pairing was found {how}.", *caveats]
    else:
        table = _nearest_links(space, points, queries, truth, progress)
    return _linkage_measure(files, table, about, caveats)


def _nearest_links(
    space: MixedSpace, points: Points, queries: Points, truth: Integers, progress: bool
) -> pl.DataFrame:
    found = nearest(space, queries, points, progress=progress, description="Linking")
    best, linked = found.distance[:, 0], truth >= 0
    own = np.full(len(truth), np.inf)
    own[linked] = space.between(queries.take(np.flatnonzero(linked)), points.take(truth[linked]))
    right = np.isfinite(best) & (own <= best * (1 + 1e-12))
    rows = np.flatnonzero(right)
    ties = np.zeros(len(truth), dtype=np.int64)
    ties[rows] = ties_within(space, queries.take(rows), points, best[rows] * (1 + 1e-12), progress=progress)
    return pl.DataFrame(
        {
            "record": np.arange(len(truth)),
            "linked_to": found.index[:, 0],
            "true_original": truth,
            "distance": best,
            "true_distance": own,
            "probability": np.where(right, 1 / np.maximum(ties, 1), 0.0),
        }
    )


def _linkage_measure(
    files: record_links.LinkedFiles,
    table: pl.DataFrame,
    about: dict[str, Any],
    caveats: Sequence[str],
    extra: dict[str, Any] | None = None,
) -> Measure:
    originals, rows = files.ours.height, files.theirs.height
    probability = table["probability"].to_numpy()
    share, certain = float(probability.mean()), float((probability == 1).mean())
    return Measure(
        name="linkage",
        value=share,
        figures={
            "linked_share": share,
            "linked_records": float(probability.sum()),
            "certain_share": certain,
            "guess_share": 1 / originals,
            "released": rows,
            "linkable": files.linkable,
            **(extra or {}),
        },
        meaning=(
            f"An intruder who knows {_listed(about['columns'])} of everybody can lead {percent(share)} of the "
            f"{rows:,} released records back to the right person; blind guessing would get "
            f"{percent(1 / originals)}."
        ),
        caveats=[
            *caveats,
            "It assumes an intruder who knows the original values exactly; real intruders know less and err more.",
            *files.caveats,
        ],
        parameters=about,
        detail=engine.tables_like(
            files.released, records=table.with_columns(pl.col("linked_to").replace(-1, None))
        ),
    )


def _probabilistic_measure(
    files: record_links.LinkedFiles,
    codes: Sequence[str],
    *,
    blocking: Sequence[str],
    threshold: float,
    about: dict[str, Any],
    seed: Seed,
) -> Measure:
    from discreet.risk.record_links import probabilistic_links

    found = probabilistic_links(
        files.ours,
        files.theirs,
        files.truth,
        categorical=codes,
        blocking=blocking,
        threshold=threshold,
        seed=int(generator(seed, "linkage", "probabilistic").integers(2**31)),
    )
    table = pl.DataFrame(
        {
            "record": np.arange(files.theirs.height),
            "linked_to": found.best,
            "true_original": files.truth,
            "match_weight": found.weight,
            "probability": np.where(found.includes_truth, 1 / np.maximum(found.ties, 1), 0.0),
        }
    )
    return _linkage_measure(
        files,
        table,
        {**about, "blocking": list(blocking), "threshold": threshold},
        ["The model takes agreement in one column to be independent of that in others."],
        {
            "links": found.links,
            "precision": found.right_links / found.links if found.links else None,
            "recall": found.right_links / files.linkable,
            "compared_pairs": found.compared,
        },
    )


def _interval_measure(
    files: record_links.LinkedFiles,
    method: str,
    width: float,
    *,
    crowd: int,
    crowd_width: float,
    about: dict[str, Any],
    seed: Seed,
) -> Measure:
    truth = files.truth
    rows = np.flatnonzero(truth >= 0)
    x, y = files.ours[truth[rows]], files.theirs[rows]
    if method == "interval":
        found = record_links.by_standard_deviation(x, y, width)
    elif method == "rank":
        found = record_links.by_rank(x, y, width)
    else:
        found = record_links.by_robust_distance(x, y, width, crowd=crowd, crowd_width=crowd_width, seed=seed)
    records = found.records
    share = float(records.mean())
    extra = _robust_figures(found)
    unit = {"interval": "standard deviations", "rank": "of all ranks", "robust": "squared robust distances"}[
        method
    ]
    table = pl.DataFrame({"record": rows, "true_original": truth[rows], "inside": records})
    if found.outlyingness is not None:
        table = table.with_columns(outlyingness=found.outlyingness, crowded=found.crowded)
    unknown = int((~found.known).sum())
    return Measure(
        name="linkage",
        value=share,
        figures={
            "interval_share": share,
            "interval_share_mean": float(np.nanmean(found.by_column)) if found.known.any() else None,
            "interval_records": int(records.sum()),
            **extra,
            "released": len(truth),
            "linkable": len(rows),
        },
        meaning=(
            f"For {percent(share)} of the released records every original value lies within {width:g} {unit} of "
            f"the released one, so {_listed(about['columns'])} can be told that closely."
        ),
        caveats=[
            "Closeness is not identity: the intruder must still know which record to look at.",
            *([f"{unknown:,} values are missing on one side and were not compared."] if unknown else []),
            *files.caveats,
        ],
        parameters={
            **about,
            "width": width,
            **({"crowd": crowd, "crowd_width": crowd_width} if extra else {}),
        },
        detail=engine.tables_like(
            files.released,
            records=table,
            variables={"column": list(found.columns), "inside_share": found.by_column},
        ),
    )


def _robust_figures(found: record_links.Disclosed) -> dict[str, Any]:
    if found.outlyingness is None or found.crowded is None:
        return {}
    weights = np.nan_to_num(np.sqrt(found.outlyingness))
    records = found.records
    return {
        "weighted_share": float(weights[records].sum() / weights.sum()) if weights.sum() > 0 else None,
        "uncrowded_share": float((records & ~found.crowded).mean()),
    }


def _listed(names: Sequence[str]) -> str:
    shown = [f"'{name}'" for name in names[:4]]
    if len(names) > 4:
        shown.append(f"{len(names) - 4} more columns")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
