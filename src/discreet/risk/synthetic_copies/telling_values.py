"""Which single values of the release can only be one person's? A turnover to the unit, a coordinate, a free text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from discreet.arrays import Floats
from discreet.pairs.side_by_side import plain_rows
from discreet.risk.synthetic_copies.copy_counts import Found

_OWN = 0.5  # from this share of values that one person has alone, a column tells people apart by itself
_BY_CHANCE = 0.05  # up to this share of newcomers have somebody's own value by chance
_FEWEST = 20
_LARGEST = 100


@dataclass(frozen=True)
class TellingColumn:
    """A column whose values are mostly one person's own, and how many of them are in the release.

    ``largest`` are the people with the largest numbers, found where a released one is theirs, exactly or almost.
    """

    name: str
    found: Found
    largest: Found = field(default_factory=lambda: Found(0, 0.0, 0))


def telling_columns(
    original: pl.DataFrame,
    released: pl.DataFrame,
    columns: Sequence[str],
    places: Sequence[str] = (),
    reach: float = 0.0,
) -> list[TellingColumn]:
    """Find the columns that tell people apart by themselves, the one that gives most away first.

    A newcomer has the own value of somebody by chance about as often as two people share one that nobody else has (the
    estimate of Good and Turing). ``places`` are coordinates, which tell together. One
    of the largest numbers is almost somebody's within ``reach`` of its distance to the next number of the original.
    """
    ours, theirs = plain_rows(original), plain_rows(released)
    units = [[name] for name in columns if name not in places]
    units += [list(places)] if places else []
    found = [_column(ours.select(unit), theirs.select(unit), reach) for unit in units]
    return sorted(
        (column for column in found if column is not None),
        key=lambda column: (-column.found.share_beyond_chance, -column.found.people),
    )


def _column(ours: pl.DataFrame, theirs: pl.DataFrame, reach: float) -> TellingColumn | None:
    names = ours.columns
    ours, theirs = ours.drop_nulls(), theirs.drop_nulls()
    if ours.height < _FEWEST:
        return None
    counted = ours.group_by(names).agg(n=pl.len())
    own = counted.filter(pl.col("n") == 1).select(names)
    chance = 2 * counted.filter(pl.col("n") == 2).height / ours.height
    if own.height < _OWN * ours.height or chance > _BY_CHANCE:
        return None
    hits = theirs.join(own, on=names, how="semi")
    people = hits.n_unique()
    by_chance = chance * theirs.height * (people / hits.height if hits.height else 1.0)
    name = ", ".join(names)
    held = Found(people, by_chance, own.height)
    if len(names) > 1 or not ours.schema[names[0]].is_numeric():
        return TellingColumn(name, held)
    numbers = [part[names[0]].to_numpy() for part in (ours, theirs)]
    return TellingColumn(name, held, _largest(numbers[0], numbers[1], reach))


def _largest(ours: Floats, theirs: Floats, reach: float) -> Found:
    """Count those of the people with the largest numbers who have a released number on or next to their own."""
    # A tenth of a small file, so that "the largest" are not everybody; two more say how far the last are from others.
    count = min(_LARGEST, len(ours) // 10)
    ordered = np.sort(ours)[::-1][: count + 2]
    gaps = -np.diff(ordered)
    before, after = np.concatenate([[np.inf], gaps])[:count], gaps[:count]
    own = np.minimum(before, after)
    rising = ordered[:count][::-1]
    place = np.searchsorted(rising, theirs)
    near = [np.clip(place - 1, 0, count - 1), np.clip(place, 0, count - 1)]
    apart = [np.abs(theirs - rising[at]) for at in near]
    nearest = count - 1 - np.where(apart[0] <= apart[1], *near)
    hit = np.minimum(*apart) <= reach * own[nearest]
    # By chance: each of them held against the others, as a newcomer. Its neighbor would then be as far from its other
    # side as that is, or from the one beyond.
    inner = np.concatenate([[np.inf, np.inf], gaps])
    others = np.where(before <= after, inner[:count], np.concatenate([gaps, [np.inf]])[1 : count + 1])
    across = before + after
    chance = float((own <= reach * np.minimum(others, across)).mean()) if count else 0.0
    # Numbers that fall as they like come so near to this share of the others; a hundred people alone say it unsurely.
    expected = max(chance, reach) * count * len(theirs) / len(ours)
    return Found(len(np.unique(nearest[hit])), expected, count)
