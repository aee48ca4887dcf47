"""How many released records lie on top of somebody, and how many would by chance?

A record is a near copy of a person when it lies much closer to them than any other person of the original does. People
themselves say how often that is chance: taken out of the original one by one, each is held against the others as if it
were a released record. Because a record within half of that distance has only one nearest person (the distances are a
metric), the counts do not depend on the order of records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from discreet.arrays import Floats, Integers
from discreet.distance import MixedSpace, Points, nearest
from discreet.randomness import Seed, generator

_SLACK = 1e-12
_SURE = 0.01


@dataclass(frozen=True)
class Found:
    """How many people were found again, how many newcomers would be by chance, and of how many people.

    ``grown`` says by how much the two counts were scaled up from a sample.
    """

    people: int
    by_chance: float
    of: int
    grown: float = 1.0

    @property
    def share_beyond_chance(self) -> float:
        """The share of the people found beyond chance; 0 where chance gives as many once in a hundred times."""
        # The count by chance is itself a count: it may have been larger by about its root.
        seen, usual = self.people / self.grown, self.by_chance / self.grown
        usual += np.sqrt(2 * usual) + 0.15
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
    asked, left_out = (_some(len(points), most, rng) for points in (theirs, ours))
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


def _some(size: int, most: int, rng: np.random.Generator) -> Integers:
    if size <= most:
        return np.arange(size, dtype=np.int64)
    return np.sort(rng.choice(size, most, replace=False)).astype(np.int64)
