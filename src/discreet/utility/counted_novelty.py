"""Do real records come back in a release that is too large to hold? Equal ones are counted over all records.

Who comes back almost unchanged is not looked for: that takes distances between records, and so the records themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import stats

from discreet import engine
from discreet.core.cards import Files
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.record_digests import EqualRecords, RecordDigests, equal_records
from discreet.pairs.side_by_side import Agreed, side_by_side, stated_precision

_SURE = 0.01
_IN_MEMORY_ONLY = ("tolerance", "tolerances", "scale")


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
    _, codes, _, agreed = side_by_side(
        sample[0], sample[1], None, columns, categorical=coded, precision=precision, writing_only=True
    )
    original, released, holdout = files
    others = [released, *([] if holdout is None else [holdout])]
    for data in (original, *others):
        engine.overview(data, ())
    counted = equal_records(original, others, RecordDigests.of(original, columns, agreed.grids))
    exactly = settings.get("tolerance") == 0
    figures = _figures(counted, exactly=exactly)
    return Measure(
        name="new_rows",
        value=figures["new_share"],
        figures=figures,
        meaning=_in_words(figures, counted),
        caveats=[*_caveats(settings, exactly=exactly, holdout=holdout is not None), *_rounded(agreed)],
        parameters={
            "tolerance": 0,
            "matches": "equal records only",
            "columns": list(columns),
            "categorical": list(codes),
            "holdout": holdout is not None,
            "precision": stated_precision(precision, agreed.parameters),
        },
    )


def _figures(counted: EqualRecords, *, exactly: bool) -> dict[str, Any]:
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


def _in_words(figures: Mapping[str, Any], counted: EqualRecords) -> str:
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


def _caveats(settings: Mapping[str, Any], *, exactly: bool, holdout: bool) -> list[str]:
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


def _rounded(agreed: Agreed) -> list[str]:
    told = [f"'{name}' ({grid.words})" for name, grid in agreed.grids.items()]
    if not told:
        return []
    return [
        f"Compared at the precision that a sample of both files shows: {', '.join(told)}. precision='exact' compares "
        "to the last bit."
    ]
