"""One tree for every combination of columns that is asked for, each grown once and shared by all tables.

A tree of several columns stands on the trees of one column less. Whatever is asked for, and in whichever order, a
combination of columns has the same tree, the same noise and the same buckets.
"""

# ruff: noqa: PLR0917
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.synth.syndiffix.harvest_kernels import final_counts, harvest, most_buckets, weigh
from discreet.synth.syndiffix.hashing import hash_numbers, hashed, salted, set_seed
from discreet.synth.syndiffix.range_tree_kernels import count_again, grow, leaf_for, lowest_root, shown_counts

_MANY_RECORDS = 500_000
_STEPS = ("suppress", "outlier", "top", "noise of the bucket", "noise of the persons")


class Forest:
    """The trees of a file.

    Parameters
    ----------
    values
        Every column as floats.
    names
        Of the columns; they are part of the noise, in whatever order the columns stand.
    persons
        Whom the records belong to.
    settings
        Salt, thresholds and noise.
    safe
        Columns whose values may be shown however rare they are.
    """

    def __init__(
        self,
        values: Sequence[Floats],
        names: Sequence[str],
        persons: Persons,
        settings: Anonymizing,
        *,
        safe: Sequence[bool] | None = None,
    ) -> None:
        self.values = [np.ascontiguousarray(column, dtype=np.float64) for column in values]
        self.names = list(names)
        self.persons = persons
        self.settings = settings
        self.safe = list(safe) if safe is not None else [False] * len(self.names)
        self.rows = len(self.values[0]) if self.values else 0
        self.by_name = np.argsort(np.asarray(self.names, dtype=object), kind="stable").argsort()
        self.salt = np.frombuffer(settings.salt, dtype=np.uint8)
        self.steps = np.array([hashed(step) for step in _STEPS], dtype=np.uint64)
        few = max(self.rows // settings.precision_limit_row_fraction, 0)
        self.limits = np.array(
            [
                settings.low_threshold,
                settings.low_mean_gap,
                settings.suppress_sd,
                settings.singularity_low_threshold,
                settings.range_low_threshold,
                settings.precision_limit_depth,
                few,
            ],
            dtype=np.float64,
        )
        self._trees: dict[tuple[int, ...], Tree] = {}
        self.folded: dict[int, int] = {}
        """How many records of a column lie outside its range and were counted with the nearest that may be shown."""

    def sampled(self, size: int) -> Forest:
        """Return a forest over about so many of the records, evenly taken; itself where there are not more."""
        if self.rows <= size:
            return self
        rows = np.arange(0, self.rows, -(-self.rows // size))
        return Forest(
            [column[rows] for column in self.values],
            self.names,
            self.persons.of(rows),
            self.settings,
            safe=self.safe,
        )

    def combination(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Bring columns into the order in which trees have them: that of their names."""
        return tuple(sorted(dict.fromkeys(columns), key=lambda column: self.by_name[column]))

    def tree(self, columns: Sequence[int]) -> Tree:
        """Return the tree of a combination of columns."""
        key = self.combination(columns)
        if key not in self._trees:
            if len(key) > 2:
                # Buckets of the smaller trees are needed later anyway, and a tree that has them takes little room.
                for sub in combinations(key, len(key) - 1):
                    self._raw(sub)
            self._trees[key] = self._grown_one(key[0]) if len(key) == 1 else self._grown(key)
        return self._trees[key]

    def release(self, columns: Sequence[int]) -> None:
        """Forget trees inside a combination, to spare memory: those of three columns on, in a large file of two."""
        kept = 1 if self.rows > _MANY_RECORDS else 2
        for key in [key for key in self._trees if len(key) > kept and set(key) <= set(columns)]:
            del self._trees[key]

    def buckets(self, columns: Sequence[int]) -> Buckets:
        """Return the ranges of a combination that records are drawn from, columns in the order of `combination`."""
        tree, key = self.tree(columns), self.combination(columns)
        raw = self._raw(key)
        count = final_counts(
            tree.whole, tree.stop, tree.shown, raw["mode"], raw["about"], raw["first"], raw["last"]
        )
        there = count > 0
        return Buckets(raw["low"][there], raw["high"][there], count[there])

    def range_of(self, column: int) -> tuple[float, float]:
        """Return the snapped range of a column, after outliers were folded in."""
        tree = self.tree([column])
        return float(tree.lows[0, 0]), float(tree.lows[0, 0] + tree.width[0])

    def _grown_one(self, column: int) -> Tree:
        values = self.values[column]
        low, high = snap_range(float(values.min()), float(values.max()))
        order = np.argsort(values, kind="stable")
        tree = self._grow(values[np.newaxis], order, np.array([low]), np.array([high - low]), (column,), ())
        root = lowest_root(
            tree.whole, tree.stop, tree.counts, tree.seeds, self.limits, self.salt, self.steps[0]
        )
        if root:
            first, last = tree.whole[root, 3:5]
            tree.cut_down(root)
            tree.order = order[first:last]
            outside = np.concatenate([order[:first], order[last:]])
            if len(outside):
                self._fold(column, tree, outside)
                count_again(
                    tree.whole, tree.order, self.persons.of_record, self.persons.hashes, tree.counts, tree.seeds,
                    self.limits, self.salt, self.steps[0], tree.seen_low, tree.seen_high, self.persons.unseen(),
                )  # fmt: skip
        return self._with_shown((column,), tree)

    def _fold(self, column: int, tree: Tree, outside: Array) -> None:
        """Count records outside the range with the nearest leaf, and give them a value that it has."""
        whole, values = tree.whole, self.values[column].copy()
        leaves = np.flatnonzero(whole[:, 5] == 1)
        held = np.array(
            [leaf_for(value, whole, tree.stop, tree.lows, tree.width[0]) for value in values[outside]]
        )
        values[outside] = np.clip(values[outside], tree.seen_low[held, 0], tree.seen_high[held, 0])
        self.values[column] = values
        self.folded[column] = len(outside)
        sizes = np.zeros(len(whole), dtype=np.int64)
        sizes[leaves] = whole[leaves, 4] - whole[leaves, 3]
        of_row = np.concatenate([np.repeat(leaves, sizes[leaves]), held])
        tree.order = np.concatenate([tree.order, outside])[np.argsort(of_row, kind="stable")]
        upto = np.concatenate([[0], np.cumsum(sizes + np.bincount(held, minlength=len(whole)))])
        whole[:, 3] = upto[:-1]
        whole[:, 4] = upto[tree.stop]

    def _grown(self, key: tuple[int, ...]) -> Tree:
        ones = [self.tree([column]) for column in key]
        subs = tuple(combinations(key, len(key) - 1))
        values = np.stack([self.values[column] for column in key])
        low = np.array([one.lows[0, 0] for one in ones])
        width = np.array([one.width[0] for one in ones])
        return self._with_shown(key, self._grow(values, np.arange(self.rows), low, width, key, subs))

    def _grow(
        self,
        values: Array,
        order: Array,
        low: Floats,
        width: Floats,
        key: tuple[int, ...],
        subs: tuple[tuple[int, ...], ...],
    ) -> Tree:
        """Grow a tree that does not know yet which of its counts may be shown."""
        trees = [self.tree(sub) for sub in subs]
        upto = np.cumsum([0, *(len(tree.whole) for tree in trees)]).astype(np.int64)
        stops = [tree.stop + at for tree, at in zip(trees, upto[:-1], strict=True)]
        empty = [np.empty(0, dtype=np.int64)]
        number, stop, *tables = grow(
            values,
            order,
            low,
            width,
            self.persons.of_record,
            self.persons.hashes,
            self.salt,
            self.steps[0],
            self.limits,
            upto[:-1],
            np.concatenate(stops or empty),
            np.concatenate([tree.whole[:, 1] for tree in trees] or empty),
            np.concatenate([tree.whole[:, 7] for tree in trees] or empty) != 0,
            all(self.safe[column] for column in key),
            self.persons.unseen(),
        )
        whole, lows, seen_low, seen_high, sub, counts, seeds = (table[:number].copy() for table in tables)
        return Tree(whole, stop, lows, width, seen_low, seen_high, sub, counts, seeds, order)

    def _with_shown(self, key: tuple[int, ...], tree: Tree) -> Tree:
        settings = self.settings
        tree.shown = shown_counts(
            tree.whole,
            tree.lows,
            tree.width,
            tree.seen_low,
            tree.seen_high,
            tree.counts,
            tree.seeds,
            tree.order,
            self.persons.of_record,
            self.persons.hashes,
            set_seed(self.names[column] for column in key),
            np.arange(len(key)),
            settings.layer_noise_sd,
            self.limits,
            np.array([*settings.outliers, *settings.top], dtype=np.int64),
            self.salt,
            self.steps,
        )
        if len(key) == 1 and self.safe[key[0]]:
            alone = (tree.whole[:, 5] == 1) & (tree.seen_low[:, 0] == tree.seen_high[:, 0])
            tree.shown = np.where(alone, np.maximum(tree.shown, 1), tree.shown)
        return tree

    def _raw(self, key: tuple[int, ...]) -> dict[str, Any]:
        """Collect the buckets of a tree, on those of the smaller trees."""
        tree = self.tree(key)
        if tree.raw:
            return tree.raw
        subs = tuple(combinations(key, len(key) - 1)) if len(key) > 1 else ()
        below = [(self.tree(sub), self._raw(sub)) for sub in subs]
        dims, before = len(key), 0
        none, nowhere = np.empty(0, dtype=np.int64), np.empty((0, dims))
        parts: list[Sequence[Array]] = []
        for place, (sub, raw) in enumerate(below):
            ends = np.zeros((2, len(raw["low"]), dims))
            ends[:, :, [d for d in range(dims) if d != dims - 1 - place]] = raw["low"], raw["high"]
            first, last = raw["first"] + before, raw["last"] + before
            parts.append((first, last, sub.whole[:, 2], *ends, raw["weight"], raw["hidden"]))
            before += len(raw["low"])
        known = [np.concatenate(own) for own in zip(*parts, strict=True)]
        number, low, high, about, *of_node = harvest(  # type: ignore[call-arg]
            np.stack([self.values[column] for column in key]),
            tree.order,
            self.persons.of_record,
            self.persons.hashes,
            tree.whole,
            tree.stop,
            tree.lows,
            tree.width,
            tree.seen_low,
            tree.seen_high,
            tree.subs if subs else tree.subs[:, :0],
            tree.shown,
            *(known or (none, none, none, nowhere, nowhere, np.empty(0), none)),
            self.limits,
            self.salt,
            self.steps[0],
            np.uint64(salted(self.salt, set_seed(f"pick {self.names[column]}" for column in key))),
            self.persons.unseen(),
            most_buckets(tree.whole, tree.shown, dims),
        )
        tables = (table[:number].copy() for table in (low, high, about))
        names = ("low", "high", "about", "first", "last", "mode")
        tree.raw = raw = dict(zip(names, (*tables, *of_node), strict=True))
        raw["weight"], raw["hidden"] = weigh(
            tree.whole, tree.stop, tree.shown, raw["mode"], raw["about"], raw["first"], raw["last"]
        )
        if dims > 1:
            tree.lighten()
        return raw


# What a forest is made of: its settings, whom the records belong to, a tree, and the ranges that it shows.


@dataclass(frozen=True)
class Anonymizing:
    """How small sets are hidden and how much noise counts carry; `SynDiffix` says what each number means."""

    salt: bytes
    low_threshold: int = 3
    low_mean_gap: float = 2.0
    suppress_sd: float = 1.0
    layer_noise_sd: float = 1.0
    outliers: tuple[int, int] = (2, 5)
    top: tuple[int, int] = (2, 5)
    singularity_low_threshold: int = 5
    range_low_threshold: int = 15
    precision_limit_depth: int = 15
    precision_limit_row_fraction: int = 10_000

    def without_noise(self) -> Anonymizing:
        """Return the same with noise switched off, for tests and to show how the method works."""
        return replace(self, suppress_sd=0.0, layer_noise_sd=0.0)


@dataclass(frozen=True)
class Persons:
    """Whom the records belong to.

    Attributes
    ----------
    of_record
        For every column that names persons one row: the number of the person of each record, -1 for nobody. No column
        where every record is a person.
    hashes
        For every such column one row: the hashes of the persons.
    """

    of_record: Array
    hashes: Array

    @classmethod
    def records(cls, rows: int) -> Persons:
        """Take every record for a person."""
        return cls(np.empty((1, 0), dtype=np.int64), hash_numbers(0, rows)[np.newaxis])

    def of(self, rows: Array) -> Persons:
        """Return the persons of some records."""
        if not self.of_record.shape[1]:
            return Persons(self.of_record, self.hashes[:, rows])
        return Persons(self.of_record[:, rows], self.hashes)

    def unseen(self) -> Array:
        """Return a mark for every person that says that nobody was met yet; none where records are persons."""
        return np.full((len(self.hashes), self.hashes.shape[1] if self.of_record.shape[1] else 0), -1)


@dataclass(eq=False)
class Tree:
    """A tree of ranges over a combination of columns, with its buckets once they were asked for."""

    whole: Array
    stop: Integers
    lows: Floats
    width: Floats
    seen_low: Floats
    seen_high: Floats
    subs: Array
    counts: Array
    seeds: Array
    order: Array
    shown: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of records that may be shown for the whole tree; 0 where nothing may."""
        return int(self.shown[0])

    def cut_down(self, root: int) -> None:
        """Keep what hangs below a node."""
        part = slice(root, self.stop[root])
        self.width = self.width / 2.0 ** self.whole[root, 2]
        self.whole, self.stop = self.whole[part].copy(), self.stop[part] - root
        self.whole[:, 0] = np.where(self.whole[:, 0] >= root, self.whole[:, 0] - root, -1)
        self.whole[0, 0] = -1
        self.whole[:, 3:5] -= self.whole[0, 3]
        self.lows, self.seen_low, self.seen_high = self.lows[part], self.seen_low[part], self.seen_high[part]
        self.subs = self.subs[part]
        self.counts, self.seeds = self.counts[part].copy(), self.seeds[part].copy()

    def lighten(self) -> None:
        """Forget what only growing the tree and collecting its buckets needs: by far the most of it."""
        for name in ("lows", "seen_low", "seen_high", "counts", "seeds", "order"):
            setattr(self, name, getattr(self, name)[:0].copy())
        if self.subs.shape[1] > 2:
            self.subs = self.subs[:0].copy()


@dataclass(frozen=True, eq=False)
class Buckets:
    """Ranges, one column a dimension, and how many records each stands for."""

    low: Floats
    high: Floats
    count: Integers


# Ranges that do not depend on anybody: widths that are powers of two, at places that are multiples of half of them.
_MOST_TURNS = 64


@checked
def snap_range(low: float, high: float) -> tuple[float, float]:
    """Which range stands for these numbers, whoever holds the smallest and the largest of them?

    The width is the smallest power of two that the numbers need, and the range begins at a multiple of half of it;
    where it does not reach the largest number the next one is taken.

    Parameters
    ----------
    low, high
        The smallest and the largest number.

    Examples
    --------
    >>> snap_range(3, 7), snap_range(11, 21), snap_range(0.2, 0.4)
    ((0.0, 8.0), (8.0, 24.0), (0.0, 0.5))
    """
    if high < low:
        raise ParameterError("snap_range: high must not be below low.")
    first, last = float(low), float(high)
    for _ in range(_MOST_TURNS):
        width = _power_of_two(last - first)
        half = width / 2
        start = math.floor(first / half) * half
        if start + width >= last:
            return start + 0.0, start + width
        first = start
    raise ParameterError("snap_range: the numbers are too large to be told apart.")


def _power_of_two(width: float) -> float:
    if width <= 0:
        return 1.0
    fraction, exponent = math.frexp(width)
    return math.ldexp(1.0, exponent - 1 if fraction == 0.5 else exponent)
