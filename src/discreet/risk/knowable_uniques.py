"""Who can be found by any three things that others may know: keys, dates, places, gaps, an amount?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, OfWorst
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import named, percent
from discreet.engine.comparable import as_text, plain_text
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import plain_rows, side_by_side, stated_precision
from discreet.risk.copy_counts import counted_people
from discreet.risk.knowable_columns import (
    KNOWLEDGE,
    PATTERN,
    Knowledge,
    Known,
    knowable_columns,
    people_of,
    with_pattern,
)

_SURE = 2.5  # standard errors beyond chance, the spread of people who hang together counted twice
_FEWEST = 20


def _who_is_found(found: Measure, beside: Beside) -> Iterator[Finding]:
    figures: Mapping[str, Any] = found.figures
    if found.value:
        who = counted_people(round(found.value * figures["people"]), "is", "are")
        yield Finding(
            "found by what others may know",
            1 + 20 * found.value,
            f"{who} found by at most {found.parameters['max_size']} things that others may know of them, most by "
            f"{figures['mostly_by']}: these need coarser values, or to be left out.",
        )


@measure(
    room="risk",
    work="whole-file",
    title="Found by what others may know",
    headline="of the people are found by what others may know of them",
    chapter="found",
    place=14,
    references=(
        "de Montjoye, Y.-A., Hidalgo, C. A., Verleysen, M. and Blondel, V. D. (2013). Unique in the crowd: the privacy "
        "bounds of human mobility. Scientific Reports 3, 1376.",
        "Elliot, M. J., Manning, A. M. and Ford, R. W. (2002). A computational algorithm for handling the special "
        "uniques problem. Int. Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10(5), 493–509.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "people": Figure("People"),
        "alone": Figure("People who are alone with a few things that others may know"),
        "found": Figure("Of them, who meet a single released record"),
        "by_units": Figure("People whose set of records is found, as one person's or one household's"),
        "by_amount": Figure("People found by one amount that they have alone"),
        "chance_share": Figure(
            "People of one half who would meet a single record of the other", unit="share"
        ),
        "mostly_by": Figure("What finds most of them"),
    },
    compare=OfPair(
        22,
        "risk",
        usual=False,
        keys=True,
        one_type=True,
        settings=lambda files: {"linked": files.linked and files.ids is None},
    ),
    worst=OfWorst(11, _who_is_found),
)
def knowable_uniques(
    original: Microdata,
    released: Microdata,
    *,
    keys: ColumnNames | None = None,
    may_know: Annotated[Sequence[Knowledge], Public()] = KNOWLEDGE,
    columns: ColumnNames | None = None,
    max_size: Annotated[int, AtLeast(1)] = 3,
    linked: bool = False,
    precision: Annotated[Setting, Public()] = None,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """How many people are found by any three things that others may know of them?

    Somebody is found when they are alone in the original with the values of up to three columns and meet a single
    released record that agrees. A value that was suppressed in the release agrees with anything, where no record agrees
    fully: the gaps of others hide nobody.

    Parameters
    ----------
    original, released
        The file before and after.
    keys
        Key columns; those of the original unless named. Columns that tell a key exactly, or that a key tells, are known
        with it.
    may_know
        What else an intruder may know: ``dates``, ``places``, which values are ``missing``, and ``amounts`` that one
        person has alone (each of these by itself).
    columns
        Columns to look among; all but identifiers, weights and the like unless named.
    max_size
        How many things the intruder knows at a time.
    linked
        Whether the records of both files stand in the same order. Then a match counts where it is the right one; else
        what strangers would give is taken off.
    precision
        Numbers are compared at the precision that both files have (``detected``), to the last bit (``exact``), with so
        many decimals, or with one of these by column.
    progress
        Show a progress bar on a terminal.
    seed
        For the halves of the files that say what strangers would give.

    Returns
    -------
    Measure
        ``value`` is the share of the people who are found, beyond chance where the records are not linked.
        ``figures``: ``people``, ``alone``, ``found``, ``by_units``, ``by_amount``, ``chance_share``, ``mostly_by``.
        ``detail``: ``sets``, one row a set of columns that finds somebody not found by an earlier one.

    How to read it
    --------------
    A file can be safe on its keys and give away nearly everybody by a date of admission. ``detail["sets"]`` says which
    columns do it. Where the original names a person or a household and the release still shows which records belong
    together, all records of one are looked at as one thing as well: the set of their dates, the ages of a home.

    When not to trust it
    --------------------
    What others may know is read off roles, types and usual names. A column that nobody named as a key and that looks
    like none is not tried. Files that are not linked are held against halves of themselves: a few copied people
    among strangers stay below what can be told from chance.

    Examples
    --------
    >>> from datetime import date
    >>> days = [date(2024, 1, 1 + number % 28) for number in range(56)]
    >>> stays = Microdata(pl.DataFrame({"sex": ["f"] * 28 + ["m"] * 28, "admitted": days}), keys="sex")
    >>> knowable_uniques(stays, stays, linked=True).value
    1.0
    >>> knowable_uniques(stays, stays, may_know=["keys", "places"], linked=True).value
    0.0
    """
    for name in may_know:
        if name not in KNOWLEDGE:
            raise ParameterError(f"may_know names '{name}'; an intruder may know {', '.join(KNOWLEDGE)}.")
    compared, _, (ours, theirs), agreed = side_by_side(original, released, None, columns, precision=precision)
    if linked and ours.height != theirs.height:
        raise ParameterError(
            "linked files have the same records in the same order, and these differ in number."
        )
    wanted = [key for key in (original.roles.keys if keys is None else keys) if key in compared.names]
    whole, parted = (plain_rows(_plain(table)) for table in (ours, theirs))
    units = [_unit(original, released, role, linked=linked) for role in ("person", "household")]
    home = next((unit for unit in reversed(units) if unit is not None), None)
    split = np.arange(ours.height) if home is None else home.ours
    kinds = knowable_columns(original, (whole, parted), wanted, may_know, split)
    single = [name for name, kind in kinds.items() if kind == "amounts"]
    several = [name for name in kinds if name not in single and name != PATTERN]
    if PATTERN in kinds:
        whole, parted = with_pattern(whole, parted)
    who = engine.unit_column(original)
    people = np.arange(ours.height) if who is None else np.asarray(who)
    known = Known.of(whole, parted, several, single, [PATTERN] if PATTERN in kinds else [])
    known = replace(known, people=people, theirs_people=_people_of(released, people, linked=linked))
    own = np.arange(ours.height) if linked else None
    looks = [_Look(known, own, split)]
    looks += [unit.look(whole, parted, several, linked=linked) for unit in units if unit is not None]
    seeded = generator(seed, "knowable_uniques")
    answers = [look.answer(max_size, seeded, progress=progress) for look in looks]
    rows = [
        answer.found if look.place is None else answer.found[look.place]
        for look, answer in zip(looks, answers, strict=True)
    ]
    everybody = len(np.unique(people))
    found = people_of(people, np.logical_or.reduce(rows))
    value = found / everybody if linked else max(answer.share for answer in answers)
    by_units = people_of(people, np.logical_or.reduce([np.zeros(ours.height, dtype=bool), *rows[1:]]))
    sets = _sets_table(answers)
    mostly_by = sets["columns"][0] if sets.height else None
    return Measure(
        name="knowable_uniques",
        value=value,
        figures={
            "people": everybody,
            "alone": people_of(people, answers[0].alone),
            "found": found,
            "by_units": by_units,
            "by_amount": sum(count for chosen, count in answers[0].sets if chosen and chosen[0] in single),
            "chance_share": None if linked else answers[0].chance,
            "mostly_by": mostly_by,
        },
        meaning=(
            f"Of {everybody:,} people {found:,} are alone with at most {max_size} things that others may know of them "
            f"({named(tuple(kinds)) if kinds else 'nothing'}) and meet a single released record that agrees"
            + ("." if linked else f"; beyond what strangers would give these are {percent(value)}.")
        ),
        caveats=[*compared.caveats, *agreed.caveats],
        parameters={
            "keys": wanted,
            "may_know": list(may_know),
            "columns": list(kinds),
            "max_size": max_size,
            "linked": linked,
            "precision": stated_precision(precision, agreed.parameters),
        },
        detail=engine.tables_like(original, sets=sets),
    )


def _plain(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(plain_text(table[name]).alias(name) for name in table.columns)


def _people_of(released: Microdata, people: Integers, *, linked: bool) -> Integers | None:
    """Say whose the released records are, where the release shows it or each original is somebody's only one."""
    if linked:
        return people
    there = engine.unit_column(released) if engine.counted_unit(released) in released.columns else None
    return None if there is None else np.asarray(there)


@dataclass(frozen=True)
class _Answer:
    """Who is alone and who is found; the share beyond chance, and what chance gives between two halves."""

    alone: Flags
    found: Flags
    sets: list[tuple[tuple[str, ...], int]]
    share: float
    chance: float

    def of_records(self, look: _Look) -> Flags:
        """Say of every record whether its unit is found."""
        return self.found if look.place is None else self.found[look.place]


@dataclass(frozen=True)
class _Look:
    """One way to look at both files: record by record, or all records of a person or household as one.

    ``own`` is the released place of each of ours, where that is known; ``split`` says who belongs together; ``place``
    is where each record stands among the units.
    """

    known: Known
    own: Integers | None
    split: Integers
    place: Integers | None = None

    def answer(self, max_size: int, random: np.random.Generator, *, progress: bool) -> _Answer:
        """Find people, and take off what strangers would give where nobody knows whose the released records are."""
        alone, found, sets = self.known.found(max_size, self.own, progress=progress)
        share = people_of(self.known.people, found) / max(len(np.unique(self.known.people)), 1)
        if self.own is not None or not share:
            return _Answer(alone, found, sets, share, 0.0)
        beyond, chance = self._beyond_chance(max_size, random)
        lonely = people_of(self.known.people, alone) / len(np.unique(self.known.people))
        return _Answer(alone, found, sets, min(share, beyond * lonely), chance)

    def _beyond_chance(self, max_size: int, random: np.random.Generator) -> tuple[float, float]:
        """Say how far the release is from strangers (0) on the way to a copy (1), and what strangers give.

        One half of the people is looked up among as many released records, as many people of the other half, and as
        many of everybody.
        """
        labels = np.unique(self.split)
        chosen = random.permutation(labels)[: len(labels) // 2]
        half = np.isin(self.split, chosen)
        asked, others = np.flatnonzero(half), np.flatnonzero(~half)
        many = min(len(others), self.known.theirs.shape[1])
        if len(asked) < _FEWEST or many < _FEWEST:
            return 1.0, 0.0

        def looked_up(rows: Integers, *, of_original: bool = False) -> float:
            drawn = random.choice(rows, many, replace=False)
            part = self.known.only(asked, drawn, of_original=of_original)
            return float(part.found(max_size)[1].mean())

        seen = looked_up(np.arange(self.known.theirs.shape[1]))
        strangers = looked_up(others, of_original=True)
        copies = looked_up(np.arange(len(self.split)), of_original=True)
        error = np.sqrt(2 * (seen * (1 - seen) + strangers * (1 - strangers)) / len(asked)) + 1 / len(asked)
        if seen - strangers <= _SURE * error:
            return 0.0, strangers
        return min((seen - strangers) / max(copies - strangers, error), 1.0), strangers


@dataclass(frozen=True)
class _Unit:
    """Which records of both files are one person's or one household's."""

    ours: Integers
    theirs: Integers

    def look(self, ours: pl.DataFrame, theirs: pl.DataFrame, names: Sequence[str], *, linked: bool) -> _Look:
        """Make one row of each unit: of every column the values of all its records, in order."""
        tables = [
            _as_units(frame, units, names) for frame, units in ((ours, self.ours), (theirs, self.theirs))
        ]
        numbers, first, place = np.unique(self.ours, return_index=True, return_inverse=True)
        own = np.unique(self.theirs, return_inverse=True)[1][first] if linked else None
        return _Look(Known.of(tables[0], tables[1], names), own, np.arange(len(numbers)), place)


def _as_units(frame: pl.DataFrame, units: Integers, names: Sequence[str]) -> pl.DataFrame:
    texts = frame.select(as_text(frame[name]).fill_null("·").alias(name) for name in names)
    grouped = texts.with_columns(pl.Series("·unit", units)).group_by("·unit")
    return grouped.agg(pl.col(name).sort().str.join("\n") for name in names).sort("·unit").drop("·unit")


def _unit(original: Microdata, released: Microdata, role: str, *, linked: bool) -> _Unit | None:
    """Read which records belong together, where the original says it, somebody has several and the release shows it."""
    name = getattr(original.roles, role)
    if name is None or name not in released.schema:
        return None
    sides = [
        engine.collect(data, [name])[name].rank("dense").fill_null(0).to_numpy()
        for data in (original, released)
    ]
    ours, theirs = (side.astype(np.int64) for side in sides)
    return None if len(np.unique(ours)) == len(ours) else _Unit(ours, theirs)


def _sets_table(answers: Sequence[_Answer]) -> pl.DataFrame:
    rows = [
        (" and ".join(chosen) + (" of all records together" if place else ""), len(chosen), count)
        for place, answer in enumerate(answers)
        for chosen, count in answer.sets
    ]
    schema = {"columns": pl.String, "size": pl.Int64, "people": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("people", "size", descending=[True, False])
