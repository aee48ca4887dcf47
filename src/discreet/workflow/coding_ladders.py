"""How can one column be told less precisely, step by step? A ladder of ever coarser codings for each column.

Numbers get bands (of equal width for ages and years, else about equally filled), dates units of the calendar, codes
shorter prefixes, and other categories groups: the smallest group joins the one whose outcomes are most like its own.
Level 0 is always the column as it is. No ladder ends in a column that says nothing: to erase one is no coding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.usual_names import meaning_of
from discreet.core.wording import percent
from discreet.engine.comparable import as_text, distinct_values, plain_text
from discreet.hierarchy import Hierarchy
from discreet.utility.linked_files import same_cells
from discreet.workflow.usual_treatments import (
    BAND,
    CUT,
    EXCHANGE,
    GROUP,
    column_loss,
    groupings,
    outcome_profiles,
    plainly_named,
    recoded,
)

_CHANCES = (0.05, 0.1, 0.2, 0.35, 0.5)
_BANDS = (40, 25, 16, 12, 10, 8, 6, 5, 4, 3, 2)
_WIDTHS = (2, 5, 10, 20, 30, 40)
_LEAST_SHARES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.34)
_FEW = 12
_MOST_GROUPED = 2_000
_MOST_EXCHANGED = 40
_UNITS = {"month": ("month",), "quarter": ("quarter",), "year": ("year",), "decade": ("decade",)}


@dataclass(frozen=True)
class Rung:
    """One coding of a column.

    Attributes
    ----------
    kind
        ``band``, ``group`` or ``cut`` (a rule of a hierarchy); empty for the column as it is.
    setting
        What the treatment of that kind needs: breaks, a table of labels, a hierarchy.
    words
        What is done, for a sentence; it names no value but numbers that bound a band.
    detail
        How fine it is, in the unit in which `keep` asks for it.
    codes
        The label of every record as a number, 0 for missing.
    loss
        The share of the column that is lost.
    mixed
        For values exchanged at random: how far the values of a class are mixed with those of the file, from 0 to 1.
    table
        Each distinct value (``value``) with its label (``label``).
    """

    kind: str
    setting: Any
    words: str
    detail: float | str
    codes: Integers = field(repr=False, compare=False)
    labels: int
    loss: float
    mixed: float = 0.0
    table: pl.DataFrame | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Ladder:
    """The codings of one column, the finest first."""

    column: str
    what: str
    rungs: tuple[Rung, ...]

    def __len__(self) -> int:
        return len(self.rungs)

    def hierarchy_above(self, place: int) -> Hierarchy | None:
        """Give the coarser codings above a rung as a hierarchy of its labels, as far as each is part of the next."""
        return _hierarchy(self, place)


def ladder_of(values: pl.Series, outcomes: Mapping[str, pl.Series]) -> Ladder:
    """Build the ladder of a column.

    Parameters
    ----------
    values
        The column.
    outcomes
        Columns whose distribution says which categories are alike.
    """
    name, values = values.name, plainly_named(values)
    kind, rungs = _coarser(name, values, outcomes)
    own = _codes(values)
    found = [Rung("", None, "stays as it is", "as it is", own, int(own.max(initial=0)), 0.0)]
    for shape, setting, words, detail in rungs:
        made = recoded(values, shape, setting)
        codes = _codes(made)
        labels = int(codes.max(initial=0))
        if not 1 < labels < found[-1].labels:
            continue
        table = pl.DataFrame({"value": values, "label": as_text(plain_text(made))}).drop_nulls().unique()
        loss = column_loss(values, made)
        found.append(Rung(shape, setting, words, detail, codes, labels, loss, table=table))
    return Ladder(name, kind, tuple(found))


def _hierarchy(ladder: Ladder, place: int) -> Hierarchy | None:
    above = _nested(ladder.rungs[place:])
    if not above:
        return None
    if place == 0 and ladder.what == "number":
        breaks = [list(rung.setting) for rung in above]
        # Bands that nest in this file may have breaks on either side of a gap in it.
        if all(set(coarse) <= set(fine) for fine, coarse in itertools.pairwise(breaks)):
            return Hierarchy.breaks(breaks)
    if place == 0 and ladder.what == "code":
        return Hierarchy.prefixes([int(rung.detail) for rung in above])
    if place == 0 and ladder.what == "date":
        return Hierarchy.dates([str(rung.detail) for rung in above])
    tables = [rung.table for rung in above if rung.table is not None]
    own = ladder.rungs[place].table
    if own is None:
        own = tables[0].select("value", label=as_text(plain_text(tables[0]["value"])))
    levels = own.rename({"label": "leaf"})
    for number, table in enumerate(tables, 1):
        levels = levels.join(table.rename({"label": f"level_{number}"}), on="value", how="left")
    return Hierarchy.from_table(levels.drop("value").unique().sort("leaf"))


def _nested(rungs: Sequence[Rung]) -> list[Rung]:
    """Keep the rungs above the first whose labels are made of whole labels of the one kept before."""
    kept, below = [], rungs[0].codes
    for rung in rungs[1:]:
        label_of = np.zeros(int(below.max(initial=0)) + 1, dtype=np.int64)
        label_of[below] = rung.codes
        if np.array_equal(label_of[below], rung.codes):
            kept.append(rung)
            below = rung.codes
    return kept


def outcome_ladder(values: pl.Series) -> Ladder:
    """Build the ladder of a sensitive column: one of very many values becomes coarser, others are exchanged.

    Every class differs from the file in a column that nearly everybody has a value of their own in.
    """
    many = plain_text(plainly_named(values)).dtype == pl.String and values.n_unique() > _MOST_EXCHANGED
    return ladder_of(values, {}) if many else exchanges_of(values)


def exchanges_of(values: pl.Series) -> Ladder:
    """Build the ladder of a sensitive category: ever more values exchanged at random, with the counts kept."""
    name, values = values.name, plainly_named(values)
    own = _codes(values)
    found = [Rung("", None, "stays as it is", "as it is", own, int(own.max(initial=0)), 0.0)]
    levels = values.drop_nulls().n_unique()
    shares = np.bincount(own) / max(1, len(own))
    room = 1 - float((shares**2).sum())
    if 2 <= levels <= _MOST_EXCHANGED and room > 0:
        for chance in _CHANCES:
            made = recoded(values, EXCHANGE, chance)
            changed = 1 - float(same_cells(values, made).mean())
            words = (
                f"has {percent(changed)} of its values exchanged at random, with the counts kept on average"
            )
            loss, mixed = column_loss(values, made), min(1.0, changed / room)
            found.append(Rung(EXCHANGE, chance, words, chance, own, found[0].labels, loss, mixed))
    return Ladder(name, "exchange", tuple(found))


def _coarser(
    name: str, values: pl.Series, outcomes: Mapping[str, pl.Series]
) -> tuple[str, list[tuple[str, Any, str, float | str]]]:
    known = values.drop_nulls()
    if known.n_unique() < 3 or values.dtype == pl.Boolean:
        return "category", []
    if values.dtype.is_temporal() and values.dtype not in (pl.Time, pl.Duration):
        return "date", _calendar()
    if values.dtype.is_integer() and (meaning := meaning_of(name)) and meaning.concept == "postcode":
        return "code", _prefixes(name, _code_lengths(as_text(known)))
    if values.dtype.is_numeric():
        if values.dtype.is_float():
            known = known.filter(known.is_finite())
        return "number", _bands(name, known.cast(pl.Float64).to_numpy())
    texts = plain_text(values)
    if texts.dtype != pl.String:
        return "other", []
    meaning = meaning_of(name)
    is_postcode = meaning is not None and meaning.concept == "postcode"
    lengths = _code_lengths(texts.drop_nulls(), 2 if is_postcode else _FEW)
    if lengths:
        return "code", _prefixes(name, lengths)
    return "category", _groups(name, texts, outcomes)


def _calendar() -> list[tuple[str, Any, str, float | str]]:
    return [
        (CUT, (Hierarchy.dates(list(units)), 1), f"is told by {name}", name) for name, units in _UNITS.items()
    ]


def _bands(name: str, numbers: Floats) -> list[tuple[str, Any, str, float | str]]:
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < 3:  # of finite numbers, as far as they can be told apart
        return []
    whole = bool((distinct == np.round(distinct)).all())
    spread = distinct[-1] - distinct[0]
    meaning = meaning_of(name)
    by_width = whole and _FEW < spread <= 150 and meaning is not None and meaning.concept in ("age", "birth")
    found: list[tuple[str, Any, str, float | str]] = []
    if by_width:
        for width in _WIDTHS:
            if width < spread:
                breaks = _even_breaks(distinct, counts, width)
                found.append((BAND, breaks, f"is coarsened to bands of {width}", width))
        return found
    for bands in _BANDS:
        breaks = _filled_breaks(distinct, counts, bands)
        if len(breaks) + 1 < len(distinct):
            found.append((BAND, breaks, f"is coarsened to {len(breaks) + 1} bands", len(breaks) + 1))
    return found


def _even_breaks(distinct: Floats, counts: Integers, width: int) -> list[float]:
    """Cut at multiples of a width; ends that few people reach are left open."""
    first, last = distinct[0], distinct[-1]
    breaks = np.arange(math.ceil((first + 1) / width) * width, last + 1, width)
    below = np.append(0, np.cumsum(counts))[np.searchsorted(distinct, breaks)]
    total = counts.sum()
    least = 0.02 * total if width < 20 else 0.05 * total
    kept = breaks[(below >= least) & (total - below >= least)]
    return _plain(kept if len(kept) else breaks[len(breaks) // 2 : len(breaks) // 2 + 1])


def _filled_breaks(distinct: Floats, counts: Integers, bands: int) -> list[float]:
    """Cut so that no band holds fewer than an equal share where that can be, at numbers that are easy to read."""
    least = counts.sum() / bands
    breaks, held = [], 0
    left = int(counts.sum())
    for place in range(len(distinct) - 1):
        held += int(counts[place])
        left -= int(counts[place])
        if held >= 0.98 * least and left >= 0.98 * least:
            breaks.append(_roundest(distinct[place], distinct[place + 1]))
            held = 0
    return _plain(breaks or [_roundest(*_middle(distinct, counts))])


def _middle(distinct: Floats, counts: Integers) -> tuple[float, float]:
    at = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    at = min(max(at, 0), len(distinct) - 2)
    return float(distinct[at]), float(distinct[at + 1])


def _roundest(low: float, high: float) -> float:
    """Find the number above low, up to high, with the fewest digits."""
    gap = high - low
    power = math.floor(math.log10(gap)) + 1
    for exponent in range(power + 1, power - 4, -1):
        unit = 10.0**exponent
        number = math.floor(high / unit + 1e-9) * unit
        if low < number <= high:
            return number
    return high


def _plain(breaks: Sequence[float] | Floats) -> list[float]:
    rounded = [float(f"{float(number):.12g}") for number in breaks]
    return [int(number) if number.is_integer() else number for number in sorted(set(rounded))]


def _code_lengths(texts: pl.Series, fewest: int = _FEW) -> list[int]:
    """Find the lengths to which codes can be cut so that every cut joins some of them; empty for plain words.

    Codes are texts with digits in nearly all of them whose first characters repeat more often than all of them do.
    """
    distinct = texts.unique()
    if len(distinct) <= fewest or float(distinct.str.contains(r"\d").mean()) < 0.9:  # type: ignore[arg-type]
        return []
    length = int(distinct.str.len_chars().max())  # type: ignore[arg-type]
    if length > 12 or float(distinct.str.contains(r"\s\S+\s").mean()) > 0.1:  # type: ignore[arg-type]
        return []
    found, labels = [], len(distinct)
    for keep in range(length - 1, 0, -1):
        cut = distinct.str.slice(0, keep).n_unique()
        if 1 < cut < 0.9 * labels:
            found.append(keep)
            labels = cut
    return found


def _prefixes(name: str, lengths: Sequence[int]) -> list[tuple[str, Any, str, float | str]]:
    return [
        (
            CUT,
            (Hierarchy.prefixes([keep]), 1),
            f"is cut to its first {'character' if keep == 1 else f'{keep} characters'}",
            keep,
        )
        for keep in lengths
    ]


def _groups(
    name: str, texts: pl.Series, outcomes: Mapping[str, pl.Series]
) -> list[tuple[str, Any, str, float | str]]:
    levels, codes = distinct_values(texts.rename("level"))
    known = levels.is_not_null().to_numpy()
    if int(known.sum()) > _MOST_GROUPED:
        return []
    counts = np.bincount(codes, minlength=len(levels))[known]
    names = [str(level) for level in levels.filter(pl.Series(known)).to_list()]
    place = np.cumsum(known) - 1
    rows = known[codes]
    profiles = outcome_profiles(
        place[codes][rows],
        len(names),
        {key: values.filter(pl.Series(rows)) for key, values in outcomes.items()},
    )
    found: list[tuple[str, Any, str, float | str]] = []
    for share, groups in groupings(counts, profiles, _LEAST_SHARES):
        table = _labels(names, counts, groups)
        left = int(groups.max()) + 1
        joined = len(table)
        words = f"has {joined} rare values joined, so that none is rarer than {share:.2g} of the file ({left} are left)"
        found.append((GROUP, table, words, left))
    return found


def _labels(names: Sequence[str], counts: Integers, groups: Integers) -> dict[str, str]:
    """Give joined values one label that says which they are, or the largest of them and how many others."""
    table: dict[str, str] = {}
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        if len(members) < 2:
            continue
        ranked = sorted(members.tolist(), key=lambda i: (-int(counts[i]), names[i]))
        label = " or ".join(names[i] for i in ranked)
        if len(label) > 60:
            label = f"{names[ranked[0]]} or {len(ranked) - 1} others"
        table |= {names[i]: label for i in members.tolist()}
    return table


def _codes(values: pl.Series) -> Integers:
    levels, codes = distinct_values(as_text(plain_text(values)) if not values.dtype.is_numeric() else values)
    known = levels.is_not_null().to_numpy()
    numbers = np.where(known, np.cumsum(known), 0)
    return np.asarray(numbers[codes], dtype=np.int64)
