"""Are the released records new, or real ones in disguise? Shares of new rows over a range of tolerances.

In a release that is too large to hold, records that are equal to real ones are counted over all records. Who comes back
almost unchanged is not looked for there: that takes distances between records, and so the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from scipy import stats

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfPair, OfStudy, measure
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.findings import Beside, Finding, OfReleases, OfReleaseStudy, OfSynthesis, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import Reach, reach_to_nearest
from discreet.pairs import side_by_side as pairs
from discreet.risk.copy_counts import people_back
from discreet.utility.sampled_measures import SAMPLED, drawn_pair

Scale = Literal["value", "range"]
Files = tuple[Microdata, Microdata, Microdata | None]
"""Original, release, and people who were not used to make it, where there are any."""

_SLACK = 1e-12
_TOLERANCE = 0.01


def equal_rows(sample: Files, files: Files, settings: Mapping[str, Any]) -> Measure:
    """Answer `new_rows` for original, release and (where there is one) hold-out that are too large to hold.

    A newcomer equals nobody about as often as people do, and has the record of somebody who is like no other about as
    often as two people share one that nobody else has (the estimates of Good and Turing). People of a hold-out are such
    newcomers, and their matches are put to the latter count.

    Parameters
    ----------
    sample, files
        A sample of the files in memory, which shows how precisely they hold their numbers, and the files themselves.
    settings
        What the measure was given: ``columns``, ``categorical``, ``precision``. A tolerance above 0 makes the figures
        undefined that depend on it.
    """
    columns, precision = settings["columns"], settings.get("precision")
    coded = [name for name in settings.get("categorical", ()) if name in columns]
    _, codes, _, agreed = pairs.side_by_side(
        sample[0], sample[1], None, columns, categorical=coded, precision=precision, writing_only=True
    )
    original, released, holdout = files
    others = [released, *([] if holdout is None else [holdout])]
    for data in (original, *others):
        engine.overview(data, ())
    counted = engine.equal_records(original, others, engine.RecordDigests.of(original, columns, agreed.grids))
    exactly = settings.get("tolerance") == 0
    figures = _counted_figures(counted, exactly=exactly)
    return Measure(
        name="new_rows",
        value=figures["new_share"],
        figures=figures,
        meaning=_counted_in_words(figures, counted),
        caveats=[
            *_counted_caveats(settings, exactly=exactly, holdout=holdout is not None),
            *_rounded(agreed),
        ],
        parameters={
            "tolerance": 0,
            "matches": "equal records only",
            "columns": list(columns),
            "categorical": list(codes),
            "holdout": holdout is not None,
            "precision": pairs.stated_precision(precision, agreed.parameters),
        },
    )


_SURE = 0.01
_IN_MEMORY_ONLY = ("tolerance", "tolerances", "scale")


def _counted_figures(counted: engine.EqualRecords, *, exactly: bool) -> dict[str, Any]:
    made = counted.others[0]
    # A pair of people is one match of a newcomer for every two records of the file.
    seen = counted.pairs + sum(unused.onto_single for unused in counted.others[1:])
    newcomers = counted.records / 2 + sum(unused.records for unused in counted.others[1:])
    # Several released records can equal one person: chance hits are taken to be spread as the hits are.
    spread = made.singles / made.onto_single if made.onto_single else 1.0
    times = made.records * spread / newcomers
    # Counted as a mean over records is, so that the last digits agree with those in memory.
    new, *unused_new = ((one.records - one.equal) / one.records for one in counted.others)
    return {
        "new_share": new if exactly else None,
        "new_share_exact": new,
        "copied_share": made.singles / counted.records,
        "new_share_holdout": unused_new[0] if unused_new else None,
        "excess_matches": unused_new[0] - new if unused_new and exactly else None,
        "median_tolerance": None,
        "new_share_by_chance": counted.singles / counted.records,
        "copied": made.singles,
        "copied_by_chance": min(times * seen, float(counted.singles)),
        "copied_beyond_chance": beyond_chance(made.singles, seen, times, counted.singles),
    }


def beyond_chance(people: int, seen: int, times: float, of: int) -> float:
    """Give the share of people found beyond chance; 0 where chance gives as many once in a hundred times.

    Parameters
    ----------
    people, of
        How many were found, of how many.
    seen, times
        How many newcomers were seen to match somebody, and how many times as many the release would have by chance.
        Both are counts, and may be small: given their sum, chance divides it between them as it would throw a coin.

    Examples
    --------
    >>> beyond_chance(7, 0, 2.0, 1000), beyond_chance(20, 0, 2.0, 1000), beyond_chance(20, 10, 2.0, 1000)
    (0.0, 0.02, 0.0)
    """
    if not people or stats.binom.sf(people - 1, people + seen, times / (1 + times)) >= _SURE:
        return 0.0
    return float(min(max(people - times * seen, 0.0) / of, 1.0))


def _counted_in_words(figures: Mapping[str, Any], counted: engine.EqualRecords) -> str:
    made = counted.others[0]
    text = f"{percent(figures['new_share_exact'])} of {made.records:,} released records equal no real one"
    if figures["new_share_holdout"] is not None:
        text += f" (of real people who were not used, {percent(figures['new_share_holdout'])})"
    else:
        text += f" (of new people, about {percent(figures['new_share_by_chance'])})"
    back = "comes" if made.singles == 1 else "come"
    return (
        f"{text}; of {counted.singles:,} real records that are like no other, {made.singles:,} {back} back whole, "
        f"where about {figures['copied_by_chance']:,.0f} would if the release held new people."
    )


def _counted_caveats(settings: Mapping[str, Any], *, exactly: bool, holdout: bool) -> list[str]:
    said = [
        "The files are too large to hold, so that only records that are equal in every compared column were looked "
        "for, among all of them. Who comes back almost unchanged was not: ask that of files in memory."
    ]
    unused = [name for name in _IN_MEMORY_ONLY if settings.get(name) is not None]
    if unused and not (exactly and unused == ["tolerance"]):
        said.append(f"Not used here: {', '.join(unused)}.")
    if not exactly:
        said.append("What depends on a tolerance is undefined; tolerance=0 asks for equal records alone.")
    if not holdout:
        said.append(
            "How many come back by chance is estimated from people who share their record with one other; people who "
            "were not used (holdout) would tell it."
        )
    return said


def _rounded(agreed: pairs.Agreed) -> list[str]:
    told = [f"'{name}' ({grid.words})" for name, grid in agreed.grids.items()]
    if not told:
        return []
    return [
        f"Compared at the precision that a sample of both files shows: {', '.join(told)}. precision='exact' compares "
        "to the last bit."
    ]


_ABOVE_CHANCE = 0.05


def _who_comes_back(found: Measure, beside: Beside) -> Iterator[Finding]:
    exact, holdout = found.figures.get("new_share_exact"), found.figures.get("new_share_holdout")
    repeated = None if not isinstance(exact, int | float) else 1 - exact
    newcomers = found.figures.get("new_share_by_chance")
    if isinstance(holdout, int | float):
        chance, whom = 1 - holdout, "people who were not used"
    else:
        chance, whom = 1 - newcomers if isinstance(newcomers, int | float) else 0.0, "new people, about"
    if repeated is not None and repeated - chance >= _ABOVE_CHANCE:
        against = f", against {percent(chance)} of {whom}" if chance else ""
        yield Finding(
            "records repeated",
            1 + 10 * (repeated - chance),
            f"{percent(repeated)} of the released records equal a real one in every compared column{against}.",
        )
    figures: Mapping[str, Any] = found.figures
    if "near_copies" not in beside.measures and figures.get("copied") is not None:
        # Nobody looked for those who come back almost whole.
        by_chance, share = figures["copied_by_chance"], figures["copied_beyond_chance"]
        yield from people_back(figures["copied"], "whole", by_chance, share, linked=beside.linked)


@measure(
    room="utility",
    work="whole-file",
    title="New records",
    question="How many released records match no real one?",
    headline="of the records are new",
    chapter="found",
    place=9,
    figures={
        "value": Figure(unit="share", better="higher"),
        "new_share": Figure("Records that match no real one", unit="share", better="higher"),
        "new_share_exact": Figure(
            "Records that equal no real one",
            unit="share",
            better="higher",
            words={"rule": "share that equals no real record"},
        ),
        "copied_share": Figure("Unlike any other real record, and come back whole", unit="share"),
        "new_share_holdout": Figure("The same of the hold-out", unit="share"),
        "excess_matches": Figure("Matches beyond those of the hold-out", better="lower", summary=True),
        "median_tolerance": Figure("Tolerance of a number, median"),
        "new_share_by_chance": Figure("The same of new people, about", unit="share"),
        "copied": Figure("People like no other who come back whole", better="lower"),
        "copied_by_chance": Figure("By chance, if the release held new people"),
        "copied_beyond_chance": Figure("Of those people, beyond chance", unit="share", better="lower"),
    },
    compare=OfPair(20, "risk", one_type=True, effort=2, any_size=True),
    study=OfStudy(9),
    worst=OfWorst(6, _who_comes_back, looks_for="copies"),
    releases=OfReleases(11, {"new_share_exact": "New records"}),
    synthesis=OfSynthesis(by_donors=True),
    of_release=OfReleaseStudy(7, shapes=("file",)),
    tells=("matches",),
)
def new_rows(
    original: Microdata,
    released: Microdata,
    *,
    tolerance: Annotated[float, AtLeast(0)] = _TOLERANCE,
    tolerances: Annotated[Sequence[Annotated[float, AtLeast(0)]], Public()] | None = None,
    scale: Scale = "value",
    holdout: Microdata | None = None,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    precision: Annotated[Setting, Public()] = None,
) -> Measure:
    """Which share of the released records matches no real one?

    A released record is matched if some real one agrees with it in every column: equal categories, missing where it is
    missing, and numbers that differ by at most the tolerance (the definition of SDMetrics' new-row score). One search
    finds the smallest tolerance that matches a record, and with it the whole curve.

    Of two queries that are too large to hold (more than a hundred million cells) equal records alone are counted, over
    all of both files, where they are.

    Parameters
    ----------
    original, released
        The real file and the release.
    tolerance
        Where to read the headline off the curve.
    tolerances
        Where to compute the curve; 0 to 1 in steps of 0.05, with 0.01, unless given.
    scale
        ``value``: a share of the released number itself, so that zero matches only zero and a tolerance of 1 matches
        anything from 0 to its double. ``range``: a share of the range of the real column, the same for all records.
    holdout
        Real people who were not used to make the release. Their share of new rows is the baseline: people are alike,
        so not every match is a copy.
    columns
        Columns to compare; all but identifiers, weights and the like unless named.
    categorical
        Numeric columns whose numbers are codes.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Measure
        ``value`` is the share of new records at ``tolerance``: 1 when all are new. ``figures``: ``new_share``,
        ``new_share_exact`` (tolerance 0), ``copied_share`` (the share of real records that are like no other and
        come back whole), ``new_share_holdout``, ``excess_matches`` (matched share beyond that of the hold-out),
        ``median_tolerance``. ``detail``: ``curve`` and ``records`` (nearest real record and the tolerance it takes).
        Of files that are too large to hold, what depends on a tolerance is undefined unless that is 0.
        There are also ``new_share_by_chance`` (of new people, about), ``copied`` (how many people who are like no other
        come back whole), ``copied_by_chance`` (how many would if the release held new people) and
        ``copied_beyond_chance`` (the share of those people beyond that).

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"x": [100.0, 200.0, 0.0], "c": ["a", "b", "a"]}))
    >>> fakes = Microdata(pl.DataFrame({"x": [101.0, 230.0, 0.0, 0.5, -100.0], "c": ["a", "b", "a", "a", "a"]}))
    >>> [new_rows(real, fakes, tolerance=t).value for t in (0, 0.01, 0.15, 0.5)]
    [0.8, 0.6, 0.4, 0.4]
    """
    given = [0.01, *np.arange(21) / 20] if tolerances is None else list(tolerances)
    steps = np.unique(np.array([tolerance, *given], dtype=np.float64))
    if engine.too_large(original, released):
        sample, _ = drawn_pair(original, released, SAMPLED, ids=None, seed=0)
        others = [released, *([] if holdout is None else [holdout])]
        asked = {
            "columns": pairs.compared_columns(original, others, columns).names,
            "categorical": categorical,
            "precision": precision,
            "tolerance": None if tolerance == _TOLERANCE else tolerance,
            "tolerances": tolerances,
            "scale": None if scale == "value" else scale,
        }
        return equal_rows((*sample, None), (original, released, holdout), asked)
    compared, codes, tables, agreed = pairs.side_by_side(
        original, released, holdout, columns, categorical=categorical, precision=precision, writing_only=True
    )
    names = compared.names
    reaches = [_reach(tables[0], table, codes, scale) for table in tables[1:]]
    found = reaches[0]
    median = float(np.median(found.tolerance))
    figures: dict[str, Any] = {
        "new_share": _new(found, tolerance),
        "new_share_exact": _new(found, 0.0),
        "copied_share": _copied_uniques(tables[0], found),
        "new_share_holdout": None,
        "excess_matches": None,
        "median_tolerance": median if np.isfinite(median) else None,
    }
    if holdout is not None:
        figures["new_share_holdout"] = _new(reaches[1], tolerance)
        figures["excess_matches"] = figures["new_share_holdout"] - figures["new_share"]
    return Measure(
        name="new_rows",
        value=figures["new_share"],
        figures=figures,
        meaning=_in_words(figures, tables[1].height, tolerance, scale),
        caveats=[*compared.caveats, *agreed.caveats, *_caveats(scale, holdout)],
        parameters={
            "tolerance": tolerance,
            "scale": scale,
            "columns": list(names),
            "categorical": list(codes),
            "holdout": holdout is not None,
            "precision": pairs.stated_precision(precision, agreed.parameters),
        },
        detail=engine.tables_like(
            released,
            curve=lambda: _curve(reaches, steps),
            records={
                "record": np.arange(len(found.tolerance)),
                "nearest_original": found.nearest,
                "tolerance": found.tolerance,
            },
        ),
    )


def _reach(original: pl.DataFrame, released: pl.DataFrame, codes: Sequence[str], scale: Scale) -> Reach:
    numeric = pairs.numbers_among(original, codes)
    others, numbers = (pairs.number_matrix(table, numeric) for table in (original, released))
    ours, theirs = pairs.plain_rows(original), pairs.plain_rows(released)
    equal = [(theirs[name], ours[name]) for name in original.columns if name not in numeric]
    equal += pairs.gaps_alike(numbers, others)
    if scale == "value":
        units = np.abs(numbers)
    else:
        spans = [
            np.nanmax(column) - np.nanmin(column) if (~np.isnan(column)).any() else 0.0 for column in others.T
        ]
        units = np.broadcast_to(np.array(spans, dtype=np.float64), numbers.shape)
    return reach_to_nearest(np.nan_to_num(numbers), np.nan_to_num(units), np.nan_to_num(others), equal=equal)


def _new(found: Reach, tolerance: float) -> float:
    return float((found.tolerance > tolerance * (1 + _SLACK) + _SLACK).mean())


def _copied_uniques(original: pl.DataFrame, found: Reach) -> float:
    alone = pairs.plain_rows(original).is_unique().to_numpy()
    whole = np.unique(found.nearest[found.tolerance <= _SLACK])
    return float(alone[whole].sum() / len(alone))


def _curve(reaches: Sequence[Reach], steps: Floats) -> pl.DataFrame:
    table = {"tolerance": steps}
    for name, found in zip(("new", "new_holdout"), reaches, strict=False):
        ordered = np.sort(found.tolerance)
        matched = np.searchsorted(ordered, steps * (1 + _SLACK) + _SLACK, side="right")
        table[name] = 1 - matched / len(ordered)
    return pl.DataFrame(table)


def _in_words(figures: dict[str, Any], n: int, tolerance: float, scale: Scale) -> str:
    of_what = "of their own size" if scale == "value" else "of the range of the column"
    text = (
        f"{percent(figures['new_share'])} of {n:,} released records match no real one when numbers may differ by "
        f"{percent(tolerance)} {of_what}"
    )
    if figures["copied_share"] > 0:
        text += f"; {percent(figures['copied_share'])} of the real ones are like no other and come back whole"
    if figures["new_share_holdout"] is not None:
        text += f"; of real people who were not used it is {percent(figures['new_share_holdout'])}"
    return f"{text}."


def _caveats(scale: Scale, holdout: Microdata | None) -> list[str]:
    caveats = []
    if scale == "value":
        caveats.append(
            "The tolerance is relative to the released number: zero matches only zero, and large numbers match widely."
        )
    if holdout is None:
        caveats.append("Without a hold-out nobody knows how many matches are mere chance.")
    return caveats
