"""How can one column be told less precisely, step by step? A ladder of ever coarser codings for each column.

What a careful person would do by hand: dates become months, quarters and years, codes their first characters, ages
bands of 5, 10 or 20 years, other numbers bands with round ends, small counts end in "or more", and rare categories are
joined with those whose outcomes are most like their own. Level 0 is always the column as it is. No ladder ends in a
column that says nothing, and no step gives a person the value of somebody else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.usual_names import meaning_of
from discreet.engine.comparable import as_text, distinct_values, plain_text
from discreet.hierarchy import Hierarchy
from discreet.workflow.usual_treatments import (
    BAND,
    CUT,
    GROUP,
    LIMIT,
    column_loss,
    groupings,
    outcome_profiles,
    plainly_named,
    recoded,
)

_BANDS = (40, 20, 10, 7, 5, 4, 3, 2)
_WIDTHS = (5, 10, 20, 30, 40)
_LEAST_SHARES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.34)
_FEW = 12
_MOST_GROUPED = 2_000
_MANY_WORDS = 40
_MOSTLY = 0.9
_ONE_LENGTH = 0.8
_NOMINAL = frozenset(
    {
        "race or ethnicity",
        "marital status",
        "nationality",
        "occupation",
        "place",
        "housing",
        "language",
        "sex",
    }
)
_MOST_LOST = 0.85  # a coding that loses more says hardly anything
_NAMED = 3  # so many joined values are all named in the label
_PERIODS = ("month", "quarter", "year", "5 years", "decade", "20 years")
_SKEWED = (
    0.5  # where one of the bands of equal width holds more of the records, bands are filled alike instead
)

Coding = tuple[str, Any, str, float | str]
"""The kind of a coding, what its treatment needs, what is done, and how fine it is."""


@dataclass(frozen=True)
class Rung:
    """One coding of a column.

    Attributes
    ----------
    kind
        ``band``, ``group``, ``cut`` (a rule of a hierarchy) or ``limit``; empty for the column as it is.
    setting
        What the treatment of that kind needs: breaks, a table of labels, a hierarchy, the lowest and highest value.
    words
        What is done, for a sentence; it names no value but numbers that bound a band.
    detail
        How fine it is, in the unit in which `keep` asks for it.
    codes
        The label of every record as a number, 0 for missing.
    loss
        The share of the column that is lost.
    strain
        Which part of the association with another column it takes away, where it takes most.
    """

    kind: str
    setting: Any
    words: str
    detail: float | str
    codes: Integers = field(repr=False, compare=False)
    labels: int
    loss: float
    strain: float = 0.0

    @property
    def entropy(self) -> float:
        """How much the coding tells, in nats."""
        shares = np.bincount(self.codes) / max(1, len(self.codes))
        return float(-(shares * np.log(np.maximum(shares, 1e-12))).sum())


@dataclass(frozen=True)
class Ladder:
    """The codings of one column, the finest first."""

    column: str
    what: str
    rungs: tuple[Rung, ...]

    def __len__(self) -> int:
        return len(self.rungs)


def ladder_of(values: pl.Series, outcomes: Mapping[str, pl.Series]) -> Ladder:
    """Build the ladder of a column.

    Parameters
    ----------
    values
        The column.
    outcomes
        Columns whose distribution says which categories are alike.
    """
    kind, codings = _coarser(values.name, plainly_named(values), outcomes)
    return _climbed(values, kind, codings)


def _climbed(values: pl.Series, kind: str, codings: Sequence[Coding], *, in_step: bool = False) -> Ladder:
    """Apply the codings, and keep those that are coarser than the one before; ``in_step`` keeps all."""
    name, values = values.name, plainly_named(values)
    own = _codes(values)
    found = [Rung("", None, "stays as it is", "as it is", own, int(own.max(initial=0)), 0.0)]
    for shape, setting, words, detail in codings:
        made = recoded(values, shape, setting)
        codes = _codes(made)
        labels = int(codes.max(initial=0))
        if in_step or 1 < labels < found[-1].labels:
            loss = column_loss(values, made)
            if in_step or loss <= _MOST_LOST:
                found.append(Rung(shape, setting, words, detail, codes, labels, loss))
    return Ladder(name, kind, tuple(found))


def outcome_ladder(values: pl.Series) -> Ladder:
    """Build the ladder of a sensitive column: words and codes of very many values become coarser, others stay.

    Every class differs from the file in a column that nearly everybody has a value of their own in.
    """
    many = plain_text(plainly_named(values)).dtype == pl.String and values.n_unique() > _MANY_WORDS
    return ladder_of(values, {}) if many else _climbed(values, "as it is", [])


def twins_of(table: pl.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Find columns that say the same in other words, each with the one that it follows; a number leads.

    Dates follow nobody: the calendar has their groups.

    Examples
    --------
    >>> table = pl.DataFrame({"degree": ["BA", "MA", "BA", "PhD"], "years": [16, 18, 16, 21], "sex": list("fmfm")})
    >>> twins_of(table, table.columns)
    {'degree': 'years'}
    """
    names = [name for name in names if not table.schema[name].is_temporal()]
    levels = {name: table[name].n_unique() for name in names}
    found: dict[str, str] = {}
    for name in sorted(names, key=lambda one: not table.schema[one].is_numeric()):
        for other in (
            one for one in names if one != name and one not in found and name not in found.values()
        ):
            same = levels[name] == levels[other] > 2 and name not in found
            if same and table.select(a=name, b=other).n_unique() == levels[name]:
                leads = table.schema[other].is_numeric() or not table.schema[name].is_numeric()
                found |= {name: other} if leads else {other: name}
    return found


def following(leader: Ladder, values: pl.Series) -> Ladder:
    """Build the ladder of a twin: its values are joined wherever those of the leader are."""
    texts = as_text(plain_text(plainly_named(values)))
    codings: list[Coding] = []
    for rung in leader.rungs[1:]:
        known = pl.DataFrame(
            {"value": texts, "group": rung.codes, "place": leader.rungs[0].codes}
        ).drop_nulls()
        counted = known.group_by("value").agg(pl.len(), pl.col("group", "place").first()).sort("place")
        table = _labels(
            counted["value"].to_list(), counted["len"].to_numpy(), counted["group"].to_numpy(), True
        )
        codings.append((GROUP, table, f"is joined where '{leader.column}' is", rung.detail))
    return _climbed(values, "twin", codings, in_step=True)


def _coarser(name: str, values: pl.Series, outcomes: Mapping[str, pl.Series]) -> tuple[str, list[Coding]]:
    known = values.drop_nulls()
    if known.n_unique() < 3 or values.dtype == pl.Boolean:
        return "category", []
    if values.dtype.is_temporal() and values.dtype not in (pl.Time, pl.Duration):
        return "date", [(CUT, (Hierarchy.dates([unit]), 1), f"is told by {unit}", unit) for unit in _PERIODS]
    meaning = meaning_of(name)
    if values.dtype.is_integer() and meaning and meaning.concept == "postcode":
        return "code", _prefixes(_code_lengths(as_text(known)))
    if values.dtype.is_numeric() and not (values.dtype.is_integer() and is_nominal(name)):
        if values.dtype.is_float():
            known = known.filter(known.is_finite())
        return _by_size(name, known.cast(pl.Float64).to_numpy())
    texts = as_text(plain_text(values))
    if plain_text(values).dtype != pl.String and not values.dtype.is_integer():
        return "other", []
    is_postcode = meaning is not None and meaning.concept == "postcode"
    if lengths := _code_lengths(texts.drop_nulls(), 2 if is_postcode else _FEW):
        return "code", _prefixes(lengths)
    read = texts.unique().drop_nulls().cast(pl.Float64, strict=False)
    if len(read) > _FEW and read.is_not_null().mean() > _MOSTLY and not is_nominal(name):  # type: ignore[operator]
        return _numbers_as_text(name, texts)
    return "category", _groups(texts, outcomes)


def is_nominal(name: str) -> bool:
    """Whether whole numbers under such a name are codes of categories, which have no order.

    Examples
    --------
    >>> [is_nominal(name) for name in ("RAC1P", "region", "hsize", "age")]
    [True, True, False, False]
    """
    meaning = meaning_of(name)
    return meaning is not None and meaning.concept in _NOMINAL


def _by_size(name: str, numbers: Floats) -> tuple[str, list[Coding]]:
    meaning = meaning_of(name)
    if meaning is not None and meaning.concept in ("age", "birth") and (by_width := _ages(numbers)):
        return "age", by_width
    return "number", _bands(numbers)


def _numbers_as_text(name: str, texts: pl.Series) -> tuple[str, list[Coding]]:
    """Give numbers that stand as text, beside a few words such as N, the bands of numbers; the words stay."""
    numbers = texts.cast(pl.Float64, strict=False)
    known = pl.DataFrame({"text": texts, "number": numbers}).drop_nulls().unique().sort("number")
    kind, codings = _by_size(name, numbers.drop_nulls().to_numpy())
    found: list[Coding] = []
    for shape, setting, words, detail in codings:
        made = as_text(plain_text(recoded(known["number"], shape, setting)))
        found.append((GROUP, dict(zip(known["text"], made, strict=True)), words, detail))
    return kind, found


def _ages(numbers: Floats) -> list[Coding]:
    distinct, counts = np.unique(numbers, return_counts=True)
    if (distinct != np.round(distinct)).any() or not _FEW < distinct[-1] - distinct[0] <= 150:
        return []
    return [
        (BAND, breaks, f"is told in bands of {width}{_open(breaks)}", width)
        for width in _WIDTHS
        if (breaks := _even_breaks(distinct, counts, width))
    ]


def _bands(numbers: Floats) -> list[Coding]:
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < 3:  # of finite numbers, as far as they can be told apart
        return []
    if (distinct == np.round(distinct)).all() and distinct[-1] - distinct[0] <= 2 * _FEW:
        return list(_ends(distinct.astype(np.int64), counts))
    low, high = np.quantile(numbers, [0.02, 0.98])
    coded: list[Coding] = []
    for bands in _BANDS:
        breaks = _even_breaks(distinct, counts, round_number((high - low) / bands)) if high > low else []
        sizes = np.bincount(np.searchsorted(breaks, distinct, "right"), counts)
        if len(breaks) < 2 or sizes.max() > max(_SKEWED, 2 / bands) * counts.sum():
            breaks = _filled_breaks(distinct, counts, bands)
        if breaks and len(breaks) + 1 < len(distinct):
            coded.append(
                (BAND, breaks, f"is told in {len(breaks) + 1} bands{_open(breaks)}", len(breaks) + 1)
            )
    return coded


def _ends(distinct: Integers, counts: Integers) -> Iterator[Coding]:
    """Let a scale of few steps end where the rarer of its ends has the next value, again and again."""
    low, high = 0, len(distinct) - 1
    while high - low > 1:
        if counts[: low + 1].sum() < counts[high:].sum():
            low += 1
        else:
            high -= 1
        ends = [f"begins at {distinct[low]} or less"] * (low > 0)
        ends += [f"ends at {distinct[high]} or more"] * (high < len(distinct) - 1)
        bottom = int(distinct[low]) if low else None
        top = int(distinct[high]) if high < len(distinct) - 1 else None
        yield LIMIT, (bottom, top), " and ".join(ends), high - low + 1


def _open(breaks: Sequence[float]) -> str:
    return f", the last one from {breaks[-1]:,g} on"


def round_number(size: float) -> float:
    """Give the next of 1, 2, 5, 10, 20, … (or 0.1, 0.2, …) above a size.

    Examples
    --------
    >>> round_number(37), round_number(0.3), round_number(5)
    (50, 0.5, 5)
    """
    power = 10.0 ** math.floor(math.log10(size))
    number = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= size * (1 - 1e-9))
    return _plain([number])[0]


def _even_breaks(distinct: Floats, counts: Integers, width: float) -> list[float]:
    """Cut at multiples of a width; ends that few people reach are left open."""
    total, held = counts.sum(), np.append(0, np.cumsum(counts))
    least = min(0.02, 0.2 * width / max(distinct[-1] - distinct[0], width)) * total
    first, last = (distinct[np.searchsorted(held[1:], at)] for at in (least, total - least))
    breaks = np.arange(math.ceil(first / width) * width, last + width, width)
    below = held[np.searchsorted(distinct, breaks)]
    return _plain(breaks[(below >= least) & (total - below >= least)])


def _filled_breaks(distinct: Floats, counts: Integers, bands: int) -> list[float]:
    """Cut where bands hold about as many records, at numbers of one or two digits."""
    shares = np.cumsum(counts) / counts.sum()
    cuts = distinct[np.minimum(np.searchsorted(shares, np.arange(1, bands) / bands), len(distinct) - 1)]
    digits = 1 if bands <= 10 else 2
    rounded = [float(f"{cut:.{digits}g}") for cut in cuts]
    inside = [cut for cut in rounded if distinct[0] < cut <= distinct[-1]]
    return _plain(inside)


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
    lengths = distinct.str.len_chars()
    alike = float(lengths.value_counts()["count"].max() or 0) / len(distinct)  # type: ignore[arg-type]
    # Numbers of any length are amounts; codes have one length, or begin with a letter.
    if alike < _ONE_LENGTH and float(distinct.str.contains(r"^\p{L}").mean()) < _MOSTLY:  # type: ignore[arg-type]
        return []
    length = int(lengths.max())  # type: ignore[arg-type]
    if length > 12 or float(distinct.str.contains(r"\s\S+\s").mean()) > 0.1:  # type: ignore[arg-type]
        return []
    found, labels = [], len(distinct)
    for keep in range(length - 1, 0, -1):
        cut = distinct.str.slice(0, keep).n_unique()
        if 1 < cut < 0.9 * labels:
            found.append(keep)
            labels = cut
    return found


def _prefixes(lengths: Sequence[int]) -> list[Coding]:
    return [
        (
            CUT,
            (Hierarchy.prefixes([keep]), 1),
            f"is cut to its first {'character' if keep == 1 else f'{keep} characters'}",
            keep,
        )
        for keep in lengths
    ]


def _groups(texts: pl.Series, outcomes: Mapping[str, pl.Series]) -> list[Coding]:
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
    found: list[Coding] = []
    for _, groups in groupings(counts, profiles, _LEAST_SHARES):
        table = _labels(names, counts, groups)
        left = int(groups.max()) + 1
        words = f"has its {len(table)} rarest values joined with the likest ones ({left} groups are left)"
        found.append((GROUP, table, words, left))
    return found


def _labels(
    names: Sequence[str], counts: Integers, groups: Integers, in_order: bool = False
) -> dict[str, str]:
    """Give joined values the label that a person would: the values if they are few, else "other" or the largest.

    Examples
    --------
    >>> _labels(["a", "b", "c"], np.array([5, 2, 9]), np.array([0, 0, 1]))
    {'a': 'a or b', 'b': 'a or b'}
    """
    joined = {int(group): np.flatnonzero(groups == group) for group in np.unique(groups)}
    joined = {group: members for group, members in joined.items() if len(members) > 1}
    many = [group for group, members in joined.items() if len(members) > _NAMED]
    table: dict[str, str] = {}
    for group, members in joined.items():
        ranked = sorted(members.tolist(), key=lambda at: (-int(counts[at]), names[at]))
        label = " or ".join(names[at] for at in ranked)
        if in_order and len(members) > 2:
            label = f"{names[members[0]]} to {names[members[-1]]}"
        elif len(members) > _NAMED or len(label) > 60:
            alone = len(many) == 1 and "other" not in map(str.lower, names)
            label = "other" if alone and group in many else f"{names[ranked[0]]} or {len(ranked) - 1} others"
        table |= {names[at]: label for at in members.tolist()}
    return table


def _codes(values: pl.Series) -> Integers:
    levels, codes = distinct_values(as_text(plain_text(values)) if not values.dtype.is_numeric() else values)
    known = levels.is_not_null().to_numpy()
    numbers = np.where(known, np.cumsum(known), 0)
    return np.asarray(numbers[codes], dtype=np.int64)
