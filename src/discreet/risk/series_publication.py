"""Series averaged over groups: what is published, what is sensitive, and what an insider learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.numerics.dominance import Contributions, Negative, contributions, dominated, p_percent


@dataclass(frozen=True)
class Rules:
    """The limits of the dominance rules and of the p% rule."""

    share: float
    p: float

    @classmethod
    def of(cls, share: float, p: float | None) -> Rules:
        """Derive p from the dominance share where it is not given."""
        p = (1 - share) / share if p is None else p
        if not 0 < p <= 1:
            raise ParameterError(
                "p must be a share above 0 and at most 1 (0.1 for 10 percent); with a share below 0.5 name it."
            )
        return cls(share, p)


@dataclass(frozen=True)
class Curves:
    """Readings as a table: one row a contributor, one column a time, NaN where there is no reading.

    Attributes
    ----------
    values
        The readings.
    who, when
        The contributors and times, in order.
    labels, groups
        The number of each contributor's group and the names of the groups, where the file gives them.
    names
        The columns the readings came from: contributor, time, reading.
    """

    values: Floats
    who: pl.Series
    when: pl.Series
    labels: Integers | None
    groups: pl.Series | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Sequence[str], negative: Negative) -> tuple[Curves, list[str]]:
        """Spread a long file (contributor, time, reading and perhaps group), and say what was done to it."""
        long = frame.rename(dict(zip(columns, ("who", "when", "reading", "label"), strict=False)))
        caveats = []
        gone = long.height - long.drop_nulls(["who", "when"]).height
        if gone:
            raise InputError(
                f"{gone:,} readings have no {columns[0]} or no {columns[1]}. Leave them out or mend them first."
            )
        labels = None if "label" not in long.columns else _one_label(long, columns)
        long = long.with_columns(pl.col("reading").cast(pl.Float64)).drop_nulls("reading")
        if long.is_empty():
            raise InputError(f"There is no reading at all in '{columns[2]}'.")
        below = int((long["reading"] < 0).sum())
        if below and negative == "refuse":
            raise ParameterError(
                f"{below:,} readings in '{columns[2]}' are negative, and shares of a total have no meaning then. "
                "Use negative='absolute' to take them by size (net metering)."
            )
        if below:
            long = long.with_columns(pl.col("reading").abs())
            caveats.append(f"{below:,} negative readings were taken by their size.")
        added = long.group_by("who", "when").agg(pl.col("reading").sum())
        if added.height < long.height:
            caveats.append(
                f"{long.height - added.height:,} readings share contributor and time with another; they were added."
            )
        who, when = (added[name].unique().sort() for name in ("who", "when"))
        rows, slots = (_positions(added[name], levels) for name, levels in (("who", who), ("when", when)))
        values = np.full((len(who), len(when)), np.nan)
        values[rows, slots] = added["reading"].to_numpy()
        numbers = groups = None
        if labels is not None:
            held = pl.DataFrame({"who": who}).join(labels, on="who", how="left", maintain_order="left")
            known = held["label"]
            groups = known.unique().sort()
            numbers = _positions(known, groups)
        return cls(values, who, when, numbers, groups, tuple(columns[:3])), caveats

    @property
    def contributors(self) -> int:
        """The number of series."""
        return len(self.values)

    @property
    def times(self) -> int:
        """The number of time slots."""
        return len(self.when)

    def for_distance(self, standardize: bool) -> Floats:
        """Fill missing readings with the mean of their time, and standardize where asked: for distances only."""
        filled = np.where(np.isnan(self.values), np.nanmean(self.values, axis=0), self.values)
        return filled / self.scales(standardize)

    def scales(self, standardize: bool) -> Floats:
        """What a distance divides each time slot by."""
        if not standardize:
            return np.ones(self.times)
        spread = np.nanstd(self.values, axis=0)
        return np.where(spread > 0, spread, 1.0)

    def slots(self, peak: Any) -> Integers:
        """Find the positions of the times of a peak: those named, or the quietest one."""
        if peak is None:
            readings = (~np.isnan(self.values)).sum(axis=0)
            means = np.where(readings == readings.max(), np.nanmean(self.values, axis=0), np.inf)
            return np.array([int(means.argmin())])
        several = isinstance(peak, Sequence | pl.Series | np.ndarray) and not isinstance(peak, str)
        wanted = list(peak) if several else [peak]
        found = [i for i, when in enumerate(self.when.to_list()) if when in set(wanted)]
        if len(found) < len(set(wanted)) or not found:
            raise ParameterError(
                f"{len(set(wanted)) - len(found)} of the times named under 'peak' do not occur in '{self.names[1]}'."
            )
        return np.array(found)


@dataclass(frozen=True)
class Publication:
    """Group means of series, with the group of every contributor."""

    curves: Curves
    labels: Integers
    k: int
    rules: Rules

    @cached_property
    def sizes(self) -> Integers:
        """The number of members of each group."""
        return np.bincount(self.labels)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.sizes)

    @cached_property
    def present(self) -> Integers:
        """How many members of each group have a reading at each time."""
        return self._summed((~np.isnan(self.curves.values)).astype(np.int64))

    @cached_property
    def totals(self) -> Floats:
        """The sum of the readings of each group at each time."""
        return self._summed(np.nan_to_num(self.curves.values))

    @cached_property
    def means(self) -> Floats:
        """What is published; NaN where nobody in the group has a reading."""
        with np.errstate(invalid="ignore"):
            return np.where(self.present > 0, self.totals / np.maximum(self.present, 1), np.nan)

    @cached_property
    def contributions(self) -> Contributions:
        """The readings of each cell, largest first; a cell's id is group × times + time."""
        rows, slots = np.nonzero(~np.isnan(self.curves.values))
        return contributions(self.labels[rows] * self.curves.times + slots, self.curves.values[rows, slots])

    @cached_property
    def flags(self) -> dict[str, Flags]:
        """Which cells each rule flags."""
        cells, rules = self.contributions, self.rules
        return {
            "dominance_1": dominated(cells, 1, rules.share),
            "dominance_2": dominated(cells, 2, rules.share),
            "p": p_percent(cells, rules.p),
        }

    @property
    def cells(self) -> int:
        """The number of published cells."""
        return len(self.contributions.cells)

    def flagged(self, rule: str) -> int:
        """How many cells a rule flags."""
        return int(self.flags[rule].sum())

    def flagged_share(self, rule: str) -> float:
        """The share of cells that a rule flags."""
        return self.flagged(rule) / self.cells

    @property
    def enough(self) -> int:
        """How many readings a cell should rest on: k where groups were formed, else 3."""
        return self.k if self.curves.labels is None else 3

    @property
    def small_cells(self) -> int:
        """How many cells rest on too few readings."""
        return int((self.contributions.size < self.enough).sum())

    @cached_property
    def information_loss(self) -> float | None:
        """The share of the variation (within times) that the means lose: SSE/SST."""
        values = self.curves.values
        lost = np.nansum((values - self.means[self.labels]) ** 2)
        total = np.nansum((values - np.nanmean(values, axis=0)) ** 2)
        return float(lost / total) if total > 0 else None

    def largest(self, rank: int) -> Floats:
        """The largest (1) or second largest (2) reading of each group at each time, 0 where there is none."""
        cells = self.contributions
        table = np.zeros(self.groups * self.curves.times)
        table[cells.cells.astype(np.int64)] = cells.top(rank) - (cells.top(rank - 1) if rank > 1 else 0.0)
        return table.reshape(self.groups, self.curves.times)

    def cell_table(self) -> pl.DataFrame:
        """One row a cell: its group, time, size, total, mean, top shares and flags."""
        cells = self.contributions
        group, slot = np.divmod(cells.cells.astype(np.int64), self.curves.times)
        return pl.DataFrame(
            {
                "group": self.group_names.gather(group),
                "time": self.curves.when.gather(slot),
                "size": cells.size,
                "total": cells.total,
                "mean": cells.total / cells.size,
                "top_1_share": cells.share(1),
                "top_2_share": cells.share(2),
                **self.flags,
                "small": cells.size < self.enough,
            },
            nan_to_null=True,
        )

    def group_table(self) -> pl.DataFrame:
        """One row a group: its members and the share of its cells that each rule flags; the worst first."""
        members = pl.DataFrame({"group": self.group_names, "members": self.sizes})
        return members.join(self._shares("group"), on="group", how="left").sort(
            "p", "dominance_1", "group", descending=[True, True, False], nulls_last=True
        )

    def time_table(self) -> pl.DataFrame:
        """One row a time: how many groups were published and the share that each rule flags."""
        return self._shares("time").sort("time")

    def protected(self) -> pl.DataFrame:
        """The long file as published: every reading replaced by the mean of its cell."""
        rows, slots = np.nonzero(~np.isnan(self.curves.values))
        who, when, reading = self.curves.names
        group = "group" if "group" not in self.curves.names else "group (published)"
        return pl.DataFrame(
            {
                who: self.curves.who.gather(rows),
                when: self.curves.when.gather(slots),
                group: self.group_names.gather(self.labels[rows]),
                reading: self.means[self.labels[rows], slots],
            }
        )

    def _shares(self, by: str) -> pl.DataFrame:
        rules = [pl.col(rule).mean() for rule in self.flags]
        return self.cell_table().group_by(by).agg(pl.len().cast(pl.Int64).alias("cells"), *rules)

    @property
    def group_names(self) -> pl.Series:
        """The names of the groups, or their numbers where they were formed."""
        names = self.curves.groups
        return pl.Series("group", np.arange(self.groups)) if names is None else names.rename("group")

    def _summed(self, parts: Any) -> Array:
        order = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[order], np.arange(self.groups))
        sums: Array = np.add.reduceat(parts[order], starts, axis=0)
        return sums


def _one_label(long: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    labels = long.select("who", "label").unique()
    if labels["label"].null_count():
        raise InputError(
            f"The group '{columns[3]}' is missing for some contributors. Every one needs a group."
        )
    if labels["who"].n_unique() < labels.height:
        raise InputError(
            f"Some contributors are in more than one group of '{columns[3]}'. Give every one a single group, or "
            "measure the periods one by one."
        )
    return labels


def _positions(values: pl.Series, levels: pl.Series) -> Integers:
    at = pl.DataFrame({"level": levels, "at": np.arange(len(levels))})
    joined = pl.DataFrame({"level": values}).join(at, on="level", how="left", maintain_order="left")
    return joined["at"].to_numpy().astype(np.int64)


# What can a customer learn who finds his own group among published averages?


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
