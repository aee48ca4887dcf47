"""What a forest is made of: its settings, whom the records belong to, a tree, and the ranges that it shows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.synth.syndiffix.hashing import hash_numbers


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
    shown: Integers
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of records that may be shown for the whole tree; 0 where nothing may."""
        return int(self.shown[0])

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
