"""Which columns of a file may be known of a person: keys and what tells them, dates, places, gaps, amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.progress import track
from discreet.core.usual_names import knowable_by_name
from discreet.engine.comparable import as_text
from discreet.microdata import Microdata

Knowledge = Literal["keys", "dates", "places", "missing", "amounts"]
KNOWLEDGE: tuple[Knowledge, ...] = ("keys", "dates", "places", "missing", "amounts")
PATTERN = "pattern of missing values"
_BY_ACCIDENT = np.log(1e-6)
_MORE_GAPS = 0.002
_MOSTLY = 0.9
_SURE = 4.0  # standard errors: hundreds of sets are tried
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%d-%m-%Y", "%Y/%m/%d")


def knowable_columns(
    original: Microdata,
    tables: tuple[pl.DataFrame, pl.DataFrame],
    keys: Sequence[str],
    may_know: Sequence[Knowledge],
    units: Integers,
) -> dict[str, str]:
    """Say which columns may be known, and as what."""
    roles, (ours, theirs) = original.roles, tables
    first = np.unique(units, return_index=True)[1]
    apart = ours[first]
    kinds: dict[str, str] = dict.fromkeys(keys, "keys") if "keys" in may_know else {}
    decided = {*roles.keys, *roles.sensitive, *roles.columns()}
    for name in ours.columns:
        meaning = knowable_by_name(name)
        dated = meaning == "dates" or name == roles.time or _is_date(ours[name])
        placed = meaning == "places" or name in roles.location
        if name in kinds:
            continue
        if dated and "dates" in may_know:
            kinds[name] = "dates"
        elif placed and "places" in may_know:
            kinds[name] = "places"
        elif "keys" in may_know and meaning == "keys" and name not in decided:
            kinds[name] = "keys"
        elif "keys" in may_know and any(
            _goes_with(apart[name], apart[key]) for key in keys if key in apart.columns
        ):
            kinds[name] = "proxy"
        elif "amounts" in may_know and ours.schema[name].is_numeric() and name not in roles.keys:
            kinds[name] = "amounts"
    if "missing" in may_know and _gaps(ours, theirs):
        kinds[PATTERN] = "missing"
    return kinds


def _is_date(values: pl.Series) -> bool:
    if values.dtype.is_temporal():
        return True
    if values.dtype != pl.String:
        return False
    some = values.drop_nulls().unique().sort()[:200]
    reads = [some.str.slice(0, 10).str.to_date(pattern, strict=False) for pattern in _DATES]
    return len(some) > 2 and max(len(some) - read.null_count() for read in reads) > _MOSTLY * len(some)


def _goes_with(values: pl.Series, key: pl.Series) -> bool:
    """Whether one of two columns tells the other, and not by accident: few values, each with many records.

    Examples
    --------
    >>> ages = pl.Series("age", [30, 41, 52, 30] * 20)
    >>> _goes_with((2024 - ages).alias("born"), ages), _goes_with(pl.Series("luck", range(80)), ages)
    (True, False)
    """
    codes = [side.rank("dense").fill_null(0).to_numpy().astype(np.int64) for side in (values, key)]
    codes = [side - side.min() for side in codes]
    pairs = len(np.unique(codes[0] * (codes[1].max() + 1) + codes[1]))
    for one, other in (codes, codes[::-1]):
        sizes, shares = np.bincount(one), np.bincount(other) / len(other)
        if pairs == len(sizes) > 1 and len(shares) > 1:
            size, many = np.unique(sizes, return_counts=True)
            if float((many * np.log((shares[None, :] ** size[:, None]).sum(axis=1))).sum()) < _BY_ACCIDENT:
                return True
    return False


def _gaps(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[str]:
    """Name the columns with gaps of their own, which the release did not fill up or widen."""
    return [
        name for name in ours.columns if ours[name].null_count() and not widened(ours[name], theirs[name])
    ]


def as_coarse(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Give linked originals the values of the release, in columns where each value became one value.

    Examples
    --------
    >>> ages = pl.DataFrame({"age": [34, 37, 52, 55], "town": ["A", "B", "A", "C"]})
    >>> as_coarse(ages, pl.DataFrame({"age": [30, 30, 50, None], "town": list("BBAA")})).to_dict(as_series=False)
    {'age': [30, 30, 50, 55], 'town': ['A', 'B', 'A', 'C']}
    """
    columns = []
    for name in ours.columns:
        became = pl.DataFrame({"o": ours[name], "t": theirs[name]}).drop_nulls().unique()
        coarser = became["t"].n_unique() < became.height and became["o"].is_unique().all()
        if (
            coarser
            and ours.schema[name] == theirs.schema[name]
            and _is_no_accident(became, ours[name], theirs[name])
        ):
            columns.append(ours[name].replace(became["o"], became["t"]))
    return ours.with_columns(columns)


def _is_no_accident(became: pl.DataFrame, ours: pl.Series, theirs: pl.Series) -> bool:
    """Whether values became others in order, or each often enough that it cannot have happened by chance."""
    ordered = became.sort("o")["t"]
    in_order = ordered.dtype != pl.String and (ordered.is_sorted() or ordered.is_sorted(descending=True))
    return in_order or _goes_with(ours, theirs)


def widened(ours: pl.Series, theirs: pl.Series) -> bool:
    """Whether the release suppressed values of a column: more are missing than in another draw of such people."""
    before, after = (float(side.is_null().mean()) for side in (ours, theirs))  # type: ignore[arg-type]
    noise = float(np.sqrt(before * (1 - before) * (1 / len(ours) + 1 / len(theirs))))
    return after > before + 3 * noise + _MORE_GAPS


def with_pattern(ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add which values are missing, as one thing that may be known."""
    names = _gaps(ours, theirs)
    flags = pl.concat_str(pl.col(name).is_null().cast(pl.Int8).cast(pl.String) for name in names).alias(
        PATTERN
    )
    return ours.with_columns(flags), theirs.with_columns(flags)


@dataclass(frozen=True)
class Known:
    """What may be known of the records of both files, in codes; -1 where the release suppressed it.

    Columns from ``single`` on tell by themselves only. ``people`` says whose the records are.
    """

    names: tuple[str, ...]
    ours: Integers
    theirs: Integers
    levels: tuple[int, ...]
    single: int
    people: Integers
    theirs_people: Integers | None = None

    @classmethod
    def of(
        cls,
        ours: pl.DataFrame,
        theirs: pl.DataFrame,
        several: Sequence[str],
        single: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> Known:
        """Number the values of both files together."""
        names = (*several, *more, *single)
        left, right, levels = [], [], []
        for name in names:
            sides = [ours[name], theirs[name]]
            both = pl.concat(sides if sides[0].dtype == sides[1].dtype else map(as_text, sides))
            codes = both.rank("dense").fill_null(0).to_numpy().astype(np.int64)
            left.append(codes[: ours.height])
            right.append(codes[ours.height :])
            levels.append(int(codes.max()) + 1)
            if name in single or widened(ours[name], theirs[name]):
                right[-1] = np.where(theirs[name].is_null().to_numpy(), -1, right[-1])
        shape = len(names)
        return cls(
            names,
            np.array(left, dtype=np.int64).reshape(shape, ours.height),
            np.array(right, dtype=np.int64).reshape(shape, theirs.height),
            tuple(levels),
            len(several) + len(more),
            np.arange(ours.height),
        )

    def sets(self, max_size: int) -> list[tuple[int, ...]]:
        """List the sets of things that are known together, small ones first."""
        found = [(place,) for place in range(len(self.names))]
        return found + [
            chosen for size in range(2, max_size + 1) for chosen in combinations(range(self.single), size)
        ]

    def numbers(self, chosen: Sequence[int]) -> tuple[Integers, Integers]:
        """Give one number for each record of both files that is the same only where all of these agree."""
        both = np.concatenate([self.ours[chosen[0]], self.theirs[chosen[0]]])
        span = self.levels[chosen[0]]
        for place in chosen[1:]:
            both = both * self.levels[place] + np.concatenate([self.ours[place], self.theirs[place]])
            span *= self.levels[place]
            if span > 8 * len(both):
                values, both = np.unique(both, return_inverse=True)
                span = len(values)
        return both[: self.ours.shape[1]], both[self.ours.shape[1] :]

    def found(self, max_size: int, own: Integers | None = None, *, progress: bool = False) -> Found:
        """Look everybody up by every set; ``own`` is the released place of each record, where that is known."""
        rows = self.ours.shape[1]
        found = Found(np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool), np.zeros(rows))
        sets = self.sets(max_size)
        for chosen in track(sets, len(sets), "What may be known", progress=progress):
            known = np.asarray((self.theirs[list(chosen)] >= 0).all(axis=0))
            ours, theirs = self.numbers(chosen)
            theirs = theirs[known]
            cells = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
            people = _people_in(ours, self.people, cells)
            asked = np.flatnonzero((people == 1)[ours])
            found.alone[asked] = True
            there = np.bincount(theirs, minlength=cells)
            if self.theirs_people is None:
                met = (there > 0) & (there <= np.bincount(ours, minlength=cells))
            else:
                met = _people_in(theirs, self.theirs_people[known], cells) == 1
            hit = met[ours[asked]]
            beyond = 1.0
            if own is None:
                single = people == 1
                ratio = len(known) / rows
                beyond = _beyond_chance(
                    int((met & single).sum()),
                    (int(single.sum()), int((people == 2).sum())),
                    ratio,
                    known.mean(),
                )
            if not known.all():
                lost = np.flatnonzero((there[ours[asked]] == 0) & ~found.people[asked])
                hit[lost] = self._agreeing(chosen, asked[lost], known) == 1
            if own is not None:
                mine, right = self.ours[list(chosen)][:, asked], self.theirs[list(chosen)][:, own[asked]]
                hit &= ((mine == right) | (right < 0)).all(axis=0)
            found.add(tuple(self.names[place] for place in chosen), asked[hit], beyond, self.people)
        return found

    def _agreeing(self, chosen: Sequence[int], rows: Integers, known: Flags) -> Integers:
        """Count the released records with suppressed values that agree with each person on all others."""
        counted = np.zeros(len(rows), dtype=np.int64)
        gaps = self.theirs[list(chosen)] < 0
        pattern = (1 << np.arange(len(chosen))) @ gaps
        for bits in np.unique(pattern[~known]):
            there = pattern == bits
            kept = [column for place, column in enumerate(chosen) if not bits >> place & 1]
            if not kept:
                counted += int(there.sum())
                continue
            part = replace(self, ours=self.ours[:, rows], theirs=self.theirs[:, there])
            ours, theirs = part.numbers(kept)
            counted += np.bincount(theirs, minlength=int(ours.max(initial=0)) + 1)[ours]
        return counted


def _beyond_chance(met: int, people: tuple[int, int], ratio: float, known: float) -> float:
    """Say which share of the people who are alone is met because they are in the release, and not by chance.

    ``people`` are the cells of one person and of two. Newcomers fall into the cells of one person about as often as two
    fall into one (Good and Turing); that exactly one does is likeliest where one is expected.

    Examples
    --------
    >>> _beyond_chance(1000, (1000, 400), 1.0, 1.0), _beyond_chance(360, (1000, 400), 1.0, 1.0)
    (1.0, 0.0)
    """
    alone, pairs = people
    if not alone:
        return 0.0
    often = min(2 * (pairs + 2 * np.sqrt(pairs + 1)) / alone * ratio * known, 1.0)
    expected = float(alone * often * np.exp(-often))
    if met <= expected + _SURE * np.sqrt(expected + 1):
        return 0.0
    return float(min((met - expected) / max(known * alone - expected, 1.0), 1.0))


def _people_in(cells: Integers, people: Integers, many: int) -> Integers:
    """Count the people in each cell."""
    order = np.lexsort((people, cells))
    here, who = cells[order], people[order]
    fresh = np.ones(len(here), dtype=bool)
    fresh[1:] = (here[1:] != here[:-1]) | (who[1:] != who[:-1])
    return np.bincount(here[fresh], minlength=many)


@dataclass
class Found:
    """Who is alone on some set, who meets a single record, and how surely that is theirs and not chance."""

    alone: Flags
    people: Flags
    weight: Floats
    by_set: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def add(self, names: tuple[str, ...], rows: Integers, weight: float, people: Integers) -> None:
        """Note the records that a set finds."""
        new = rows[(self.weight[rows] == 0) & (weight > 0)]
        if len(new):
            self.by_set.append((names, len(np.unique(people[new]))))
        self.people[rows] = True
        self.weight[rows] = np.maximum(self.weight[rows], weight)


def people_of(people: Integers, rows: Flags) -> int:
    """Count the people of some records."""
    return len(np.unique(people[rows]))
