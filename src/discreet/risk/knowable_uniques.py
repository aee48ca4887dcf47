"""Who can be found by any three things that others may know: keys, dates, places, gaps, an amount?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import named, percent
from discreet.engine.comparable import as_text, plain_text
from discreet.engine.precision import Setting
from discreet.engine.resolved_roles import unit_numbers
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import plain_rows, side_by_side, stated_precision
from discreet.risk.copy_counts import counted_people
from discreet.risk.knowable_columns import (
    KNOWLEDGE,
    PATTERN,
    Found,
    Knowledge,
    Known,
    as_coarse,
    knowable_columns,
    people_of,
    with_pattern,
)


def _who_is_found(found: Measure, beside: Beside) -> Iterator[Finding]:
    figures: Mapping[str, Any] = found.figures
    if share := float(found.value or 0):
        who = counted_people(round(share * figures["people"]), "is", "are")
        yield Finding(
            "found by what others may know",
            1 + 20 * share,
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
        "value": Figure(unit="share", better="lower", aim="found"),
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
) -> Measure:
    """How many people are found by any three things that others may know of them?

    Somebody is found when they are alone in the original with the values of up to three columns and meet a single
    released record that agrees. A value that was suppressed in the release agrees with anything, where no record agrees
    fully: the gaps of others hide nobody.

    Also known as: unicity.

    Parameters
    ----------
    original, released
        The file before and after.
    keys
        Key columns; those of the original unless named. Columns that tell a key exactly, or that a key tells, are known
        with it.
    may_know
        What else an intruder may know: ``dates``, ``places``, which values are ``missing``, and ``amounts`` that one
        person has alone (each of these by itself, and to the digit: a coarsely rounded amount is another one).
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

    Returns
    -------
    Measure
        ``value`` is the share of the people who are found, beyond chance where the records are not linked.
        ``figures``: ``people``, ``alone``, ``found``, ``by_chance``, ``by_units``, ``by_amount``, ``mostly_by``.
        ``detail``: ``sets``, one row a set of columns that finds somebody not found by an earlier one.

    How to read it
    --------------
    A file can be safe on its keys and give away nearly everybody by a date of admission. ``detail["sets"]`` says which
    columns do it. Where the original names a person or a household and the release still shows which records belong
    together, all records of one are looked at as one thing as well: the set of their dates, the ages of a home.

    When not to trust it
    --------------------
    What others may know is read off roles, types and usual names. A column that nobody named as a key and that looks
    like none is not tried. Where records are not linked, a few copied people among strangers stay below what can be
    told from chance: how often two people fall into one cell says how often a stranger would.

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
    fine, whole = whole, as_coarse(whole, parted) if linked else whole
    units = [_unit(original, released, role) for role in ("person", "household")]
    apart = next((unit for unit in reversed(_groups(original)) if unit is not None), np.arange(ours.height))
    kinds = knowable_columns(original, (whole, parted), wanted, may_know, apart)
    single = [name for name, kind in kinds.items() if kind == "amounts"]
    several = [name for name in kinds if name not in single and name != PATTERN]
    whole = whole.with_columns(fine.select(single))
    if PATTERN in kinds:
        whole, parted = with_pattern(whole, parted)
    people = _numbers(engine.unit_column(original), ours.height)
    known = Known.of(whole, parted, several, single, [PATTERN] if PATTERN in kinds else [])
    known = replace(known, people=people, theirs_people=_people_of(released, people, linked=linked))
    alone = known.found(max_size, np.arange(ours.height) if linked else None, progress=progress)
    together = [unit.found(whole, parted, several, max_size, linked=linked) for unit in units if unit]
    weights = np.zeros(int(people.max()) + 1)
    for weight in (alone.weight, *(found.weight[place] for found, place in together)):
        np.maximum.at(weights, people, weight)
    everybody = len(np.unique(people))
    met = np.logical_or.reduce([alone.people, *(found.people[place] for found, place in together)])
    value = float(weights.sum() / everybody)
    sets = _sets_table([alone, *(found for found, _ in together)])
    mostly_by = sets["columns"][0] if sets.height else None
    found = people_of(people, met)
    return Measure(
        name="knowable_uniques",
        value=value,
        figures={
            "people": everybody,
            "alone": people_of(people, alone.alone),
            "found": found,
            "by_chance": found - value * everybody,
            "by_units": max(
                (people_of(people, (one.weight > 0)[place]) for one, place in together), default=0
            ),
            "by_amount": sum(count for chosen, count in alone.by_set if chosen[0] in single),
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
class _Unit:
    """Which records of both files are one person's or one household's."""

    ours: Integers
    theirs: Integers

    def found(
        self, ours: pl.DataFrame, theirs: pl.DataFrame, names: Sequence[str], max_size: int, *, linked: bool
    ) -> tuple[Found, Integers]:
        """Look units up by what is known of all their records together; and say which unit each record belongs to."""
        tables = [
            _as_units(frame, units, names) for frame, units in ((ours, self.ours), (theirs, self.theirs))
        ]
        _, first, place = np.unique(self.ours, return_index=True, return_inverse=True)
        own = np.unique(self.theirs, return_inverse=True)[1][first] if linked else None
        return Known.of(tables[0], tables[1], names).found(max_size, own), place


def _as_units(frame: pl.DataFrame, units: Integers, names: Sequence[str]) -> pl.DataFrame:
    """Make one row of each unit: of every column the values of all its records, in order."""
    texts = frame.select(as_text(frame[name]).fill_null("·").alias(name) for name in names)
    grouped = texts.with_columns(pl.Series("·unit", units)).group_by("·unit")
    return grouped.agg(pl.col(name).sort().str.join("\n") for name in names).sort("·unit").drop("·unit")


def _groups(data: Microdata) -> list[Integers | None]:
    """Number the persons and the households of a file, where a role names them."""
    names = [getattr(data.roles, role) for role in ("person", "household")]
    there = [engine.collect(data, [name])[name] if name in data.schema else None for name in names]
    return [None if units is None else _numbers(unit_numbers(units), len(units)) for units in there]


def _unit(original: Microdata, released: Microdata, role: str) -> _Unit | None:
    """Read which records belong together, where the original says it, somebody has several and the release shows it."""
    name = getattr(original.roles, role)
    if name is None or name not in released.schema:
        return None
    place = ("person", "household").index(role)
    ours = _groups(original)[place]
    theirs = _groups(released.with_roles(**{role: name}))[place]
    if ours is None or theirs is None or len(np.unique(ours)) == len(ours):
        return None
    return _Unit(ours, theirs)


def _numbers(units: Any, rows: int) -> Integers:
    return np.arange(rows) if units is None else np.asarray(units, dtype=np.int64)


def _sets_table(answers: Sequence[Found]) -> pl.DataFrame:
    rows = [
        (" and ".join(chosen) + (" of all records together" if place else ""), len(chosen), count)
        for place, answer in enumerate(answers)
        for chosen, count in answer.by_set
    ]
    schema = {"columns": pl.String, "size": pl.Int64, "found": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("found", "size", descending=[True, False])
