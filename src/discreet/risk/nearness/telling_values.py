"""Which single values of the release can only be one person's? A turnover to the unit, a coordinate, a free text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from discreet.risk.copies.side_by_side import plain_rows
from discreet.risk.nearness.copy_counts import Found

_OWN = 0.5  # from this share of values that one person has alone, a column tells people apart by itself
_BY_CHANCE = 0.05  # up to this share of newcomers have somebody's own value by chance
_FEWEST = 20
_LARGEST = 100


@dataclass(frozen=True)
class TellingColumn:
    """A column whose values are mostly one person's own, and how many of them are in the release.

    ``largest`` and ``largest_found`` count the people with the largest values, where it holds numbers.
    """

    name: str
    found: Found
    largest: int = 0
    largest_found: int = 0


def telling_columns(
    original: pl.DataFrame,
    released: pl.DataFrame,
    columns: Sequence[str],
    places: Sequence[str] = (),
) -> list[TellingColumn]:
    """Find the columns that tell people apart by themselves, the one that gives most away first.

    A newcomer has the own value of somebody by chance about as often as two people share one that nobody else has (the
    estimate of Good and Turing). ``places`` are coordinates, which tell together.
    """
    ours, theirs = plain_rows(original), plain_rows(released)
    units = [[name] for name in columns if name not in places]
    units += [list(places)] if places else []
    found = [_column(ours.select(unit), theirs.select(unit)) for unit in units]
    return sorted(
        (column for column in found if column is not None),
        key=lambda column: (-column.found.share_beyond_chance, -column.found.people),
    )


def _column(ours: pl.DataFrame, theirs: pl.DataFrame) -> TellingColumn | None:
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
    # A tenth of a small file, so that "the largest" are not everybody.
    largest = ours.sort(names, descending=True).head(min(_LARGEST, ours.height // 10))
    return TellingColumn(name, held, largest.height, largest.join(theirs, on=names, how="semi").height)
