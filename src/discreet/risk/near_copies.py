"""How many people come back in the release, whole or almost?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.charts import rows_of
from discreet.core.constraints import AtLeast, Between, ColumnNames, Public, Share
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, Headline, OfReleases, OfSynthesis, OfWorst
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.space import MixedSpace, Points
from discreet.pairs.side_by_side import column_caveats, placed, side_by_side, stated_precision
from discreet.risk import copy_counts
from discreet.risk.columns_taken_over import columns_taken_over
from discreet.risk.equivalence_classes import records_only

_AS_GOOD_AS_EQUAL = 0.01
_FEWEST_TOGETHER = 3  # numbers, or labels, that are looked at by themselves


def _who_comes_back(found: Measure, beside: Beside) -> Iterator[Finding]:
    """Say how many people come back, whole or almost: each of them is somebody, however small their share."""
    figures: dict[str, Any] = dict(found.figures)
    people, whole = figures["copied"], figures["whole"]
    how = "whole" if whole == people else "whole or almost" + (f" ({whole:,} whole)" if whole else "")
    by_chance, share = figures["copied_by_chance"], figures["copied_share"] or 0.0
    yield from copy_counts.people_back(people, how, by_chance, share, linked=beside.linked)
    far, expected = figures["outlying_copied"], figures["outlying_by_chance"]
    if far > expected and not beside.linked:
        yield Finding(
            "outliers come back",
            _weight(figures["outlying_share"], 30),
            f"Of the {figures['outlying']:,} people who are farthest from everybody else, {far:,} "
            f"{'comes' if far == 1 else 'come'} back almost unchanged (by chance: {expected:,.0f}).",
        )
    if figures["telling_found"] > figures["telling_by_chance"]:
        column = rows_of(found, "telling")[0]["column"]
        who = copy_counts.counted_people(figures["telling_found"], "finds", "find")
        yield Finding(
            "own values come back",
            _weight(figures["telling_share"], 20),
            f"{who} in the release the exact value of '{column}' that nobody else has: who knows it knows them.",
        )
    if figures["largest_share"]:
        yield Finding(
            "largest values come back",
            1 + 20 * figures["largest_share"],
            f"Of the {figures['largest']:,} people with the largest values {figures['largest_found']:,} have "
            f"theirs in the release, exactly or almost (by chance: {figures['largest_by_chance']:,.0f}).",
        )


def _weight(share: float | None, times: float) -> float:
    """Weigh the share of people beyond chance; nobody beyond chance is said all the same, but last."""
    return 1 + times * share if share else 0.6


@measure(
    room="risk",
    work="whole-file",
    title="Copies of people",
    headline="of the people come back, beyond chance",
    chapter="found",
    place=7,
    leading=True,
    references=(
        "Park, N. et al. (2018). Data synthesis based on generative adversarial networks. Proceedings of "
        "the VLDB Endowment 11(10), 1071–1083 (distance to the closest record).",
        "Good, I. J. (1953). The population frequencies of species and the estimation of population "
        "parameters. Biometrika 40(3-4), 237–264.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "copied": Figure("People like no other who come back whole or almost"),
        "copied_by_chance": Figure("The same, if the release were new people"),
        "copied_share": Figure(
            "Come back whole or almost, beyond chance", unit="share", words={"bars": "Whole or almost"}
        ),
        "whole": Figure("People like no other who come back whole"),
        "whole_by_chance": Figure("The same, if the release were new people"),
        "outlying": Figure("People farthest from everybody else"),
        "outlying_copied": Figure("Of them, who come back almost whole"),
        "outlying_by_chance": Figure("Of them, who would come back by chance"),
        "outlying_share": Figure(
            "Of them, come back almost whole beyond chance",
            unit="share",
            words={
                "bars": "Outlying, almost whole",
                "rule": "of the people farthest from all others, come back almost whole beyond chance",
            },
        ),
        "outlying_whole_share": Figure(
            "Of them, come back whole beyond chance",
            unit="share",
            words={
                "bars": "Outlying, whole",
                "rule": "of the people farthest from all others, come back whole beyond chance",
            },
        ),
        "by_keys": Figure("People alone with their keys with a single record on or near these"),
        "by_keys_by_chance": Figure("The same, if the release were new people"),
        "by_keys_share": Figure(
            "Found by their keys, exact or blurred, beyond chance",
            unit="share",
            words={"bars": "By their keys", "rule": "found by their keys, exact or blurred, beyond chance"},
        ),
        "telling_columns": Figure("Columns whose values mostly belong to one person only"),
        "telling_found": Figure("People whose own value is in the release"),
        "telling_by_chance": Figure("People whose own value would be in the release by chance"),
        "telling_share": Figure(
            "Own values in the release, beyond chance",
            unit="share",
            aim="own values",
            words={
                "bars": "Values of their own",
                "rule": "people whose own value is in the release, beyond chance",
            },
        ),
        "largest": Figure("People with the largest values"),
        "largest_found": Figure("Of them, with their value in the release, exactly or almost"),
        "largest_by_chance": Figure("Of them, who would have it there by chance"),
        "largest_share": Figure(
            "Of the largest, with their value in the release beyond chance",
            unit="share",
            aim="own values",
            words={
                "bars": "Largest values",
                "rule": "of the largest, with their value in the release, exactly or almost, beyond chance",
            },
        ),
        "closer_share": Figure(
            "Closer to the original than to the hold-out (50 % is chance)",
            unit="share",
            words={"bars": "Closer than hold-out", "rule": "closer to the original than to the hold-out"},
        ),
        "closer_low": Figure("Closer to the original than to the hold-out, at least"),
        "closer_high": Figure("Closer to the original than to the hold-out, at most"),
    },
    compare=OfPair(19, "risk", at_once=True, one_type=True, effort=2),
    worst=OfWorst(7, _who_comes_back, looks_for="copies"),
    releases=OfReleases(
        9,
        {"copied_share": "Copies of people, beyond chance"},
        headline=Headline(
            "copied_share",
            "of the people come back",
            "Whole or almost, of those who are like no other, beyond what chance gives.",
        ),
    ),
    synthesis=OfSynthesis(
        by_donors=True,
        would_give="columns whose values people have alone would have to be coarser or left out, or be drawn by a "
        "method without donors (method 'parametric')",
    ),
)
def near_copies(
    original: Microdata,
    released: Microdata,
    *,
    holdout: Microdata | None = None,
    keys: ColumnNames | None = None,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    reach: Annotated[float, Between(0, 0.5, below=True)] = 0.05,
    outlying: Annotated[float, Share(above=True)] = 0.1,
    precision: Annotated[Setting, Public()] = None,
    most: Annotated[int, AtLeast(1)] = 50_000,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """How many people come back in the release, whole or almost?

    A released record is a near copy of a person when it lies much closer to them than anybody else of the original
    does: noise of a thousandth on every number makes a record new to the letter and changes nothing about whose it is.
    How many near copies chance gives is found from the original itself, each person held against all others. Single
    values that only one person has (a turnover to the unit, a coordinate) are looked for as well.

    Also known as: copied records; exact copies.

    Parameters
    ----------
    original, released
        The file before and after; their records need not belong together.
    holdout
        People of the same population who were not used: says whether the release as a whole keeps closer to the
        original than to them.
    keys
        What others may know of a person, by which people are looked for as well; those of the original unless named.
    columns
        Columns to compare; all but identifiers, weights and the like unless named.
    categorical
        Numeric columns whose numbers are codes.
    reach
        How near a near copy is, as a share of the person's distance to the nearest other person; below one half.
    outlying
        The share of people, those farthest from everybody else, who are looked at by themselves. For them near means
        within a hundredth of that distance.
    precision
        Numbers are compared at the precision that both files have (``detected``), to the last bit (``exact``), with so
        many decimals, or with one of these by column.
    most
        Files with more records are asked about a random sample of so many.
    seed
        For these samples.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is ``copied_share``. ``figures``:

        - ``copied``, ``copied_by_chance``: people who are like no other and have a near copy, and how many would if
          the release were new people; ``copied_share``: beyond chance, as a share of those people. Where there are
          three or more, also in the numbers alone and the labels alone; the most counts, and a caveat says so.
        - ``whole``, ``whole_by_chance``: the same for records equal in every column.
        - ``outlying``, ``outlying_copied``, ``outlying_by_chance``, ``outlying_share``, ``outlying_whole_share``: the
          same for the people who are farthest from everybody else.
        - ``by_keys``, ``by_keys_by_chance``, ``by_keys_share``: people who are alone with their keys and have a single
          released record on or near these, the share one of everybody; None without keys.
        - ``telling_columns``: columns whose values mostly belong to one person only; ``telling_found``,
          ``telling_by_chance``, ``telling_share``: people whose own value is in the release, in the worst of them;
          ``largest``, ``largest_found``, ``largest_by_chance``, ``largest_share``: the people with the largest numbers
          in such a column and those who have a released number on or next to their own.
        - ``closer_share``, ``closer_low``, ``closer_high``: with a hold-out, the share of released records closer to
          the original than to the hold-out, with a 95 % interval; on a scale on which new people give one half and
          copies 1, whatever the size of the hold-out.

        The shares but ``closer_share`` are 0 where chance gives as many people now and then (once
        in a hundred files). ``detail``: ``records`` (of the release, those asked about) and ``telling``.

    How to read it
    --------------
    Look at counts first: each near copy is a person. Then at the share beyond chance: in a file of few columns people
    are alike, and new people come out as near copies of somebody too. ``outlying_share`` is the sharpest figure: nobody
    is near these people by chance, so a release that has them has learned them by heart. ``telling_share`` and
    ``largest_share`` speak of values, not of records: who knows a firm's turnover finds it, whatever else was changed.

    When not to trust it
    --------------------
    A release of the same people (masked, not synthetic) is *meant* to be near them: look at ``by_keys_share`` there. A
    generator that follows small groups closely comes out somewhat above chance without having copied anybody in
    particular. Heavy noise, or noise on coded columns, hides copies from every distance. Columns left out here can give
    a person away all the same.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> people = pl.DataFrame({"age": rng.integers(18, 90, 500), "income": rng.lognormal(8, 1, 500)})
    >>> blurred = people.with_columns(pl.col("income") * 1.0001).reverse()
    >>> strangers = pl.DataFrame({"age": rng.integers(18, 90, 500), "income": rng.lognormal(8, 1, 500)})
    >>> [near_copies(Microdata(people), Microdata(file)).value > 0.5 for file in (blurred, strangers)]
    [True, False]
    """
    compared, codes, tables, agreed = side_by_side(
        original, released, holdout, columns, categorical=categorical, precision=precision
    )
    names = compared.names
    if tables[0].height < 3:
        raise ParameterError(
            f"The original has {tables[0].height} records; copies can only be told from chance with three or more."
        )
    told = [name for name in names if name not in codes]
    places = [name for name in original.roles.location if name in told]
    telling = copy_counts.telling_columns(tables[0], tables[1], told, places, reach)
    space, points = placed(tables, distance="gower", categorical=codes)
    count = partial(copy_counts.count_copies, most=most, seed=seed, progress=progress)
    counts = count(space, points[0], points[1])
    edge = counts.outlying(outlying)
    near, whole = counts.found(reach), counts.found(0.0)
    near, seen_by = _worst_part(near, tables, codes, lambda part, points: count(part, *points).found(reach))
    apart, apart_whole = counts.found(_AS_GOOD_AS_EQUAL, edge), counts.found(0.0, edge)
    wanted = [key for key in (original.roles.keys if keys is None else keys) if key in names]
    looked_up = _by_keys([table.select(wanted) for table in tables[:2]], codes, reach, count)
    worst = telling[0] if telling else None
    largest = max(
        (column.largest for column in telling),
        key=lambda found: (found.share_beyond_chance, found.people),
        default=copy_counts.Found(0, 0.0, 0),
    )
    figures: dict[str, Any] = {
        "copied": near.people,
        "copied_by_chance": near.by_chance,
        "copied_share": near.share_beyond_chance,
        "whole": whole.people,
        "whole_by_chance": whole.by_chance,
        "outlying": apart.of,
        "outlying_copied": apart.people,
        "outlying_by_chance": apart.by_chance,
        "outlying_share": apart.share_beyond_chance,
        "outlying_whole_share": apart_whole.share_beyond_chance,
        "by_keys": looked_up.people if looked_up else None,
        "by_keys_by_chance": looked_up.by_chance if looked_up else None,
        "by_keys_share": looked_up.share_beyond_chance if looked_up else None,
        "telling_columns": len(telling),
        "telling_found": worst.found.people if worst else 0,
        "telling_by_chance": worst.found.by_chance if worst else 0.0,
        "telling_share": worst.found.share_beyond_chance if worst else 0.0,
        "largest": largest.of,
        "largest_found": largest.people,
        "largest_by_chance": largest.by_chance,
        "largest_share": largest.share_beyond_chance,
        **dict.fromkeys(("closer_share", "closer_low", "closer_high")),
    }
    if holdout is not None:
        rng = generator(seed, "near_copies", "holdout")
        asked = rng.choice(len(points[1]), most, replace=False) if len(points[1]) > most else slice(None)
        closer = copy_counts.closer_to_original(
            space, points[0], points[1].take(asked), points[2], progress=progress
        )
        figures |= {"closer_share": closer.share, "closer_low": closer.low, "closer_high": closer.high}
    sampled = max(table.height for table in tables) > most
    return Measure(
        name="near_copies",
        value=figures["copied_share"],
        figures=figures,
        meaning=_in_words(figures, tables[0].height, near.of, worst),
        caveats=[
            *records_only(original),
            *compared.caveats,
            *agreed.caveats,
            *([_sampled(most)] if sampled else []),
            *([_seen_in_part(seen_by)] if seen_by else []),
            *_telling_words(telling),
            *column_caveats(space, tables, list(tables[0].columns)),
        ],
        parameters={
            "columns": list(names),
            "keys": wanted,
            "categorical": list(codes),
            "reach": reach,
            "outlying": outlying,
            "holdout": holdout is not None,
            "precision": stated_precision(precision, agreed.parameters),
            "most": most,
        },
        detail=engine.tables_like(
            released,
            records={
                "nearest_original": counts.person,
                "closeness": counts.closeness,
                "isolation": counts.isolation,
            },
            telling=lambda: _telling_table(telling),
        ),
    )


def _worst_part(
    near: copy_counts.Found,
    tables: Sequence[pl.DataFrame],
    codes: Sequence[str],
    found: Callable[[MixedSpace, Sequence[Points]], copy_counts.Found],
) -> tuple[copy_counts.Found, str]:
    """Look for people in parts of the record: a copy may hide in exchanged labels, or beside columns that are new.

    These are the numbers, the labels, and the columns that both files have too much alike. Who comes back there counts
    as a share of all who are like no other, and only where that is more than in all columns together.
    """
    worst, seen_by = near, ""
    labels = [name for name in tables[0].columns if name in codes or not tables[0].schema[name].is_numeric()]
    numbers = [name for name in tables[0].columns if name not in labels]
    same = columns_taken_over(*tables[:2])
    listed = ", ".join(f"'{name}'" for name in same)
    for names, called in ((numbers, "numbers"), (labels, "labels"), (same, f"columns {listed}")):
        if not _FEWEST_TOGETHER <= len(names) < tables[0].width:
            continue
        space, points = placed(
            [table.select(names) for table in tables[:2]],
            distance="gower",
            categorical=[name for name in codes if name in names],
        )
        alone = found(space, points[:2])
        alone = replace(alone, of=max(alone.of, near.of))
        if alone.share_beyond_chance > worst.share_beyond_chance:
            worst, seen_by = alone, called
    return worst, seen_by


def _by_keys(
    tables: Sequence[pl.DataFrame],
    codes: Sequence[str],
    reach: float,
    count: Callable[..., copy_counts.CopyCounts],
) -> copy_counts.Found | None:
    """Look people up by their keys alone; None where there is no key that tells anybody apart."""
    if not any(tables[0][key].n_unique() > 1 for key in tables[0].columns):
        return None
    space, points = placed(
        tables, distance="gower", categorical=[code for code in codes if code in tables[0].columns]
    )
    counts = count(space, points[0], points[1])
    # As a share of everybody, like the replicated uniques, which are the exact part of it.
    return replace(counts.found(reach, single=True), of=tables[0].height)


def _in_words(
    figures: Mapping[str, Any], people: int, alone: int, worst: copy_counts.TellingColumn | None
) -> str:
    text = (
        f"Of {alone:,} people who are like no other (of {people:,}), {figures['copied']:,} come back whole or almost, "
        f"{figures['whole']:,} of them whole; if the release were new people it would be about "
        f"{figures['copied_by_chance']:,.0f}. Of the {figures['outlying']:,} who are farthest from everybody else, "
        f"{figures['outlying_copied']:,} come back (by chance {figures['outlying_by_chance']:,.0f})"
    )
    if worst is not None:
        text += (
            f". Values of '{worst.name}' belong to one person each, and {worst.found.people:,} of {worst.found.of:,} "
            "of them are in the release"
        )
    if figures["closer_share"] is not None:
        text += (
            f". {percent(figures['closer_share'])} of the released records lie closer to the original than to the "
            "hold-out, where 50 % is chance whatever the size of the hold-out (95 % interval: "
            f"{percent(figures['closer_low'])} to {percent(figures['closer_high'])})"
        )
    return f"{text}."


def _seen_in_part(part: str) -> str:
    return (
        f"People come back in the {part} alone: more of them than in all columns together, where what stands beside "
        f"the {part} differs. How many come back whole or almost is counted by the {part}."
    )


def _telling_words(telling: Sequence[copy_counts.TellingColumn]) -> list[str]:
    named = [repr(column.name) for column in telling if column.found.people]
    if not named:
        return []
    return [
        f"Values that one person has alone are in the release to the digit: {', '.join(named[:10])}. Round them, blur "
        "them or group them where the values can be known from elsewhere."
    ]


def _telling_table(telling: Sequence[copy_counts.TellingColumn]) -> pl.DataFrame:
    rows = [
        (
            column.name,
            own.of,
            own.people,
            own.by_chance,
            own.share_beyond_chance,
            top.of,
            top.people,
            top.by_chance,
        )
        for column in telling
        for own, top in [(column.found, column.largest)]
    ]
    return pl.DataFrame(
        rows,
        schema={
            "column": pl.String,
            "own_values": pl.Int64,
            "found": pl.Int64,
            "by_chance": pl.Float64,
            "share_beyond_chance": pl.Float64,
            "largest": pl.Int64,
            "largest_found": pl.Int64,
            "largest_by_chance": pl.Float64,
        },
        orient="row",
    )


def _sampled(most: int) -> str:
    return (
        f"Counts of near copies are scaled up from {most:,} records drawn at random from each larger file, held "
        "against everybody; single values were looked for in the whole files (most=… for more)."
    )
