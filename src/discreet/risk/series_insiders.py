"""What can a customer learn who finds his own group among published averages?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.risk.series_publication import Publication

_TIE = 1e-9
_BLOCK = 5_000_000


@dataclass(frozen=True)
class Insiders:
    """Customers who looked for their group.

    Attributes
    ----------
    who
        Their positions among the contributors.
    guess
        The group each found nearest.
    chances
        1 where that is the own group, 0 where not; with ties the chance to pick the own one among them.
    peaks
        The smallest peak that makes sure the own group is found; NaN without a reading at that time.
    """

    who: Integers
    guess: Integers
    chances: Floats
    peaks: Floats

    @property
    def success(self) -> float:
        """The share of insiders who find their group."""
        return float(self.chances.mean())


def find_groups(found: Publication, who: Integers, slots: Integers, *, standardize: bool = False) -> Insiders:
    """Let customers look for the published series nearest to their own, over the times they have a reading for.

    Where a group published nothing, the mean of all readings of that time stands in. ``slots`` are the times at
    which the peak attacker adds to the own series.
    """
    scales = found.curves.scales(standardize)
    middle = np.nanmean(found.curves.values, axis=0)
    centers = (np.where(np.isnan(found.means), middle, found.means) - middle) / scales
    blocks = np.array_split(who, max(1, len(who) * found.groups // _BLOCK))
    parts = []
    for block in blocks:
        # Measured from the middle of each time, the products below stay small, hence exact.
        own = (found.curves.values[block] - middle) / scales
        squared = _squared_distances(own, centers)
        guess, chances = _guesses(squared, own, centers, found.labels[block])
        peaks = np.where(np.isnan(own[:, slots]).any(axis=1), np.nan, 0.0)
        lost = np.flatnonzero(chances < 1)
        rise = _Rise.of(found, block[lost], slots, scales)
        peaks[lost] = _peaks(squared[lost], own[np.ix_(lost, slots)], centers[:, slots], rise)
        parts.append((guess, chances, peaks))
    guess, chances, peaks = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Insiders(who, guess, chances, peaks)


def what_insiders_learn(found: Publication, insiders: Insiders) -> pl.DataFrame:
    """Tabulate, for each insider in the right group, how closely the others are bounded.

    Columns: ``contributor``, ``group``, ``size``; ``guess`` and ``success``; ``times`` with another member
    present; ``others_mean``, the mean of what is left per other member; ``median_width`` and ``smallest_width``,
    the width of the interval [0, S] for the largest other member relative to its reading (1 is exact);
    ``times_within_p``, how often S is within p of it; ``exact_times``, how often there is only one other;
    ``peak_needed``, the smallest peak that makes sure; ``period_width``, the bound on the largest other member
    over all these times together.
    """
    who, curves = insiders.who, found.curves
    group = found.labels[who]
    own = curves.values[who]
    here = ~np.isnan(own)
    others = np.where(here, found.present[group] - 1, 0)
    left = np.where(others > 0, found.totals[group] - np.nan_to_num(own), np.nan)
    largest, second = found.largest(1)[group], found.largest(2)[group]
    target = np.where(own >= largest, second, largest)
    usable = (others > 0) & (target > 0)
    width = np.full(own.shape, np.nan)
    # What is left is at least the largest other; rounding must not say otherwise.
    np.divide(left, target, out=width, where=usable)
    width = np.maximum(width, 1.0, where=usable, out=width)
    within = usable & (width - 1 < found.rules.p)
    known = np.asarray(usable.any(axis=1))
    names = found.group_names
    per_other = np.divide(left, others, out=np.full(own.shape, np.nan), where=others > 0)
    return pl.DataFrame(
        {
            "contributor": curves.who.gather(who),
            "group": names.gather(group),
            "size": found.sizes[group],
            "guess": names.gather(insiders.guess),
            "success": insiders.chances,
            "times": (others > 0).sum(axis=1),
            "others_mean": _row_means(per_other),
            "median_width": _by_row(np.nanmedian, width, known),
            "smallest_width": _by_row(np.nanmin, width, known),
            "times_within_p": within.sum(axis=1),
            "exact_times": (others == 1).sum(axis=1),
            "peak_needed": insiders.peaks,
            "period_width": _period_widths(found, who, left),
        },
        nan_to_null=True,
    )


def _squared_distances(own: Floats, centers: Floats) -> Floats:
    known, there = (~np.isnan(own)).astype(np.float64), np.nan_to_num(own)
    squared = (there**2).sum(axis=1)[:, None] - 2 * there @ centers.T + known @ (centers**2).T
    return np.asarray(np.maximum(squared, 0.0))


def _guesses(squared: Floats, own: Floats, centers: Floats, labels: Integers) -> tuple[Integers, Floats]:
    """Pick the nearest group; distances that differ by rounding only are ties."""
    size = np.maximum(np.nansum(own**2, axis=1), (centers**2).sum(axis=1).max())
    tied = squared <= (squared.min(axis=1) + _TIE * size)[:, None]
    right = tied[np.arange(len(labels)), labels]
    return tied.argmax(axis=1), np.where(right, 1 / tied.sum(axis=1), 0.0)


@dataclass(frozen=True)
class _Rise:
    """What a peak of 1 adds to the insider's distance from other groups, and from the own group."""

    labels: Integers
    elsewhere: Floats
    at_home: Floats

    @classmethod
    def of(cls, found: Publication, who: Integers, slots: Integers, scales: Floats) -> _Rise:
        labels = found.labels[who]
        members = np.maximum(found.present[np.ix_(labels, slots)], 1)
        return cls(labels, 1 / scales[slots], (1 - 1 / members) / scales[slots])


def _peaks(squared: Floats, own: Floats, centers: Floats, rise: _Rise) -> Floats:
    """Find the smallest peak, from just above which each insider finds the own group.

    With a peak h at some times the insider's own series moves by h there and the mean of the own group by h/r.
    The squared distance to another group grows by 2h Σ(x-c) + h² Σ1, that to the own one by
    2h Σ(1-1/r)(x-c) + h² Σ(1-1/r)². The own group is nearest where the difference is above zero for every other
    group: outside an interval of h for each, between the roots of a parabola. The answer is the end of the
    stretch of such intervals that begins at 0.
    """
    at = np.arange(len(own))
    elsewhere = (own @ rise.elsewhere)[:, None] - (centers @ rise.elsewhere)[None, :]
    at_home = ((own - centers[rise.labels]) * rise.at_home).sum(axis=1)
    square = (rise.elsewhere**2).sum() - (rise.at_home**2).sum(axis=1)
    constant = squared - squared[at, rise.labels][:, None]
    low, high = _between_roots(square[:, None], 2 * (elsewhere - at_home[:, None]), constant)
    low[at, rise.labels], high[at, rise.labels] = np.inf, -np.inf
    return np.where(np.isnan(own).any(axis=1), np.nan, _end_of_stretch(low, high))


def _between_roots(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Return the interval where a h² + b h + c <= 0, for a > 0; empty (inf, -inf) where it never is."""
    inside = b * b - 4 * a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    # The root of larger size first, the other from the product of both: no cancellation.
    larger = -(b + np.where(b >= 0, 1.0, -1.0) * root) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = larger / a, np.where(larger != 0, c / larger, 0.0)
    low, high = np.minimum(first, second), np.maximum(first, second)
    real = inside >= 0
    return np.where(real, low, np.inf), np.where(real, high, -np.inf)


def _end_of_stretch(low: Floats, high: Floats) -> Floats:
    """Walk from 0 through overlapping intervals and return where each row comes out."""
    order = np.argsort(low, axis=1)
    low, high = np.take_along_axis(low, order, axis=1), np.take_along_axis(high, order, axis=1)
    reached = np.maximum(np.maximum.accumulate(high, axis=1), 0.0)
    before = np.concatenate([np.zeros((len(low), 1)), reached[:, :-1]], axis=1)
    gap = low > before
    first = np.where(gap.any(axis=1), gap.argmax(axis=1), low.shape[1])
    ends = np.concatenate([before, reached[:, -1:]], axis=1)
    stretch: Floats = ends[np.arange(len(low)), first]
    return stretch


def _period_widths(found: Publication, who: Integers, left: Floats) -> Floats:
    """Bound the largest other member over the whole period; the target is fixed by its own total."""
    totals = np.nansum(found.curves.values, axis=1)
    order = np.lexsort((-totals, found.labels))
    starts = np.searchsorted(found.labels[order], np.arange(found.groups))
    first = order[starts]
    second = order[np.minimum(starts + 1, len(order) - 1)]
    group = found.labels[who]
    target = np.where(first[group] == who, second[group], first[group])
    used = np.where(np.isnan(left), 0.0, np.nan_to_num(found.curves.values[target])).sum(axis=1)
    alone = found.sizes[group] < 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((used > 0) & ~alone, np.nansum(left, axis=1) / used, np.nan)


def _row_means(table: Floats) -> Floats:
    counted = (~np.isnan(table)).sum(axis=1)
    nothing = np.full(len(table), np.nan)
    means: Floats = np.divide(np.nansum(table, axis=1), counted, out=nothing, where=counted > 0)
    return means


def _by_row(summary: object, table: Floats, known: Flags) -> Floats:
    out = np.full(len(table), np.nan)
    if known.any():
        out[known] = summary(table[known], axis=1)  # type: ignore[operator]
    return out
