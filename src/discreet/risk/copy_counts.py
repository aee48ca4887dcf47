"""How many released records lie on top of somebody, and how many would by chance?

A record is a near copy of a person when it lies much closer to them than any other person of the original does. People
themselves say how often that is chance: taken out of the original one by one, each is held against the others as if it
were a released record. Because a record within half of that distance has only one nearest person (the distances are a
metric), the counts do not depend on the order of records.

Which single values of the release can only be one person's? A turnover to the unit, a coordinate, a free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.findings import Finding
from discreet.core.randomness import Seed, generator, some_rows
from discreet.numerics.counts_of_counts import mostly_own
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace, Points
from discreet.pairs.side_by_side import plain_rows

_SLACK = 1e-12
_SURE = 0.01


@dataclass(frozen=True)
class Found:
    """How many people were found again, how many newcomers would be by chance, and of how many people.

    ``grown`` says by how much the two counts were scaled up from a sample, ``unsure`` what the standard error of the
    count by chance is, where it is known.
    """

    people: int
    by_chance: float
    of: int
    grown: float = 1.0
    unsure: float = 0.0

    @property
    def share_beyond_chance(self) -> float:
        """The share of the people found beyond chance; 0 where chance gives as many once in a hundred times."""
        from scipy import stats

        # The count by chance is itself a count: it may have been larger by about its root.
        seen, usual = self.people / self.grown, self.by_chance / self.grown
        usual += max(np.sqrt(2 * usual), self.unsure / self.grown) + 0.15
        if not self.of or stats.poisson.sf(seen - 1, usual) >= _SURE:
            return 0.0
        return float(min((self.people - self.by_chance) / self.of, 1.0))


@dataclass(frozen=True)
class CopyCounts:
    """Released records and left-out people, each with its closeness and the isolation of the person it is close to.

    Attributes
    ----------
    closeness, chance
        Distance to the nearest person over that person's distance to the nearest other, of released records and of
        people held against the others. Infinite where the nearest person is not alone.
    person
        The nearest person of each released record.
    isolation, chance_isolation
        The distance of that person to the nearest other.
    apart
        The same distance of everybody, or of a sample of the people.
    rows
        The numbers of originals and of released records, of which the arrays may be samples.
    """

    closeness: Floats
    person: Integers
    isolation: Floats
    chance: Floats
    chance_isolation: Floats
    apart: Floats
    rows: tuple[int, int]

    def outlying(self, share: float) -> float:
        """Give the isolation beyond which only this share of the people lies."""
        edge = float(np.quantile(self.apart, 1 - share))
        return edge if (self.apart > edge).any() else np.nextafter(edge, -np.inf)

    def found(self, reach: float, beyond: float = 0.0, *, single: bool = False) -> Found:
        """Count the people, of those more isolated than a distance, that are nearest to a record within reach.

        ``single`` counts only those to whom exactly one record is so near, and who would take it for theirs.
        """
        hit = (self.closeness <= reach + _SLACK) & (self.isolation > beyond)
        chance = ((self.chance <= reach + _SLACK) & (self.chance_isolation > beyond)).mean()
        _, near = np.unique(self.person[hit], return_counts=True)
        people, records = int((near == 1).sum()) if single else len(near), int(hit.sum())
        grown = self.rows[1] / len(self.closeness)
        # Several records can be near one person: chance hits are taken to be spread as the hits are.
        by_chance = chance * len(hit) * (people / records if records else 1.0)
        of = round(float((self.apart > beyond).mean()) * self.rows[0])
        return Found(min(round(people * grown), of), min(float(by_chance) * grown, float(of)), of, grown)


def count_copies(
    space: MixedSpace, ours: Points, theirs: Points, *, most: int, progress: bool = False, seed: Seed
) -> CopyCounts:
    """Measure how close released records are to people, and people to each other; larger files by a sample of records.

    Only the records that are asked about are sampled, never the people that they may be near to.
    """
    rng = generator(seed, "near_copies")
    asked, left_out = (some_rows(len(points), most, rng) for points in (theirs, ours))
    released = theirs.take(asked)
    near = nearest(space, released, ours, progress=progress, description="Nearest people")
    among = _others(space, ours, left_out, progress)
    target, person = among.index[:, 0], near.index[:, 0]
    needed = np.unique(np.concatenate([target, person]))
    known = left_out if len(left_out) == len(ours) else needed
    apart = among if known is left_out else _others(space, ours, needed, progress)
    place = np.searchsorted(known, target)
    own = apart.index[place, 0] == left_out
    others = np.where(own, apart.distance[place, 1], apart.distance[place, 0])
    isolation = apart.distance[np.searchsorted(known, person), 0]
    return CopyCounts(
        closeness=_relative(near.distance[:, 0], isolation),
        person=person,
        isolation=isolation,
        chance=_relative(among.distance[:, 0], others),
        chance_isolation=others,
        apart=among.distance[:, 0],
        rows=(len(ours), len(theirs)),
    )


@dataclass(frozen=True)
class _Others:
    index: Integers
    distance: Floats


def _others(space: MixedSpace, points: Points, rows: Integers, progress: bool) -> _Others:
    """Find the two nearest others of some records."""
    found = nearest(
        space, points.take(rows), points, k=3, progress=progress, description="Distances among people"
    )
    own = found.index == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return _Others(found.index[~own].reshape(-1, 2), found.distance[~own].reshape(-1, 2))


def _relative(distance: Floats, isolation: Floats) -> Floats:
    alone = isolation > 0
    return np.where(alone, distance / np.where(alone, isolation, 1.0), np.inf)


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

    Most of their values are one person's own, but for values that many share (no such income).

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
    counted = ours.group_by(names).agg(pl.len().alias("·many"))
    own = counted.filter(pl.col("·many") == 1).select(names)
    pairs = counted.filter(pl.col("·many") == 2).height
    chance = 2 * pairs / ours.height
    if not mostly_own(counted["·many"].to_numpy()) or own.height < _FEWEST / 2 or chance > _BY_CHANCE:
        return None
    hits = theirs.join(own, on=names, how="semi")
    people = hits.n_unique()
    newcomers = theirs.height / ours.height * (people / hits.height if hits.height else 1.0)
    name = ", ".join(names)
    held = Found(people, 2 * pairs * newcomers, own.height, unsure=2 * np.sqrt(pairs + 1) * newcomers)
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


# Do released records keep closer to the people they were made from than to people who were not used?
#
# Of the record closest to a newcomer, among the ``n`` originals and ``h`` hold-out people together, an original is the
# owner with chance ``n / (n + h)``. What is seen is held against that chance, so that the share means the same for
# every size of the hold-out: one half for newcomers, one for copies.


_NORMAL = 1.96


@dataclass(frozen=True)
class CloserShare:
    """The calibrated share, with a 95 % interval."""

    share: float
    low: float
    high: float


def closer_to_original(
    space: MixedSpace, original: Points, released: Points, holdout: Points, *, progress: bool = False
) -> CloserShare:
    """Give the share of released records closer to the original than to the hold-out, calibrated to their sizes.

    A record as close to people of both kinds counts by how many of each are so close. The interval lets the people of
    the hold-out vary: each draws the released records around it, and a small hold-out has few of them.
    """
    ours = nearest(space, released, original, progress=progress, description="To original")
    theirs = nearest(space, released, holdout, progress=progress, description="To hold-out")
    near, far = ours.distance[:, 0], theirs.distance[:, 0]
    tied = np.isclose(near, far, rtol=1e-12, atol=0)
    credit = np.where(tied, 0.5, near < far).astype(np.float64)
    if tied.any():
        rows = np.flatnonzero(tied).astype(np.int64)
        radii = np.maximum(near, far)[rows]
        counts = [
            ties_within(space, released.take(rows), side, radii).astype(np.float64)
            for side in (original, holdout)
        ]
        credit[rows] = counts[0] / (counts[0] + counts[1])
    chance = len(original) / (len(original) + len(holdout))
    drawn = np.bincount(theirs.index[:, 0], weights=1 - credit, minlength=len(holdout))
    seen = float(credit.mean())
    spread = _NORMAL * float(np.sqrt(len(drawn) * drawn.var())) / len(released)
    return CloserShare(
        *(calibrated(at, chance) for at in (seen, max(seen - spread, 0), min(seen + spread, 1)))
    )


def calibrated(share: float, chance: float) -> float:
    """Put a share on a scale on which chance is one half, nothing 0 and everything 1.

    Examples
    --------
    >>> [round(calibrated(share, 0.8), 3) for share in (0.0, 0.4, 0.8, 0.9, 1.0)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return 0.5 + 0.5 * (share - chance) / (1 - chance) if share >= chance else 0.5 * share / chance


def people_back(people: int, how: str, by_chance: float, share: float, *, linked: bool) -> Iterator[Finding]:
    """Say how many people come back, and how many would by chance; ``share`` is that of all beyond chance."""
    if people and linked:
        yield Finding(
            "same people",
            0.5,
            f"The records are those of the same people, and {counted_people(people)} can be told in it from all "
            "others: what protects them is what cannot be known about them.",
        )
    elif people:
        who = counted_people(people, "who is like no other comes", "who are like no other come")
        yield Finding(
            "people come back",
            1 + 20 * share if share else 0.5,
            f"{who} back in the release {how}; if it held new people, about {by_chance:,.0f} would.",
        )


def counted_people(people: int, one: str = "", many: str = "") -> str:
    """Count people, with the words that follow for one person and for many.

    Examples
    --------
    >>> counted_people(1, "comes", "come"), counted_people(1200, "comes", "come")
    ('1 person comes', '1,200 people come')
    """
    noun, verb = ("person", one) if people == 1 else ("people", many)
    return f"{people:,} {noun} {verb}".rstrip()
