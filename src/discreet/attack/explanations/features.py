"""What the attacker wants to know: the features of a record, as numbers to be learned and as values to be scored.

Ranges and levels come from the attacker's own data and never from the records under attack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError, unknown_name

Kind = Literal["continuous", "discrete", "categorical"]

CLOSE_ENOUGH = 0.1
"""A continuous value counts as found within this share of the range, unless a threshold is given."""


@dataclass(frozen=True)
class Feature:
    """One feature: its columns, how it is scored and what the attacker's data say of it.

    A block of several columns is one categorical variable, one column a category.
    """

    name: str
    columns: tuple[int, ...]
    kind: Kind
    seen: Floats
    threshold: float | None = None

    @property
    def is_block(self) -> bool:
        """Whether it is a block of indicator columns."""
        return len(self.columns) > 1

    @cached_property
    def values(self) -> Floats:
        """The values seen, as one number a record."""
        return self.read(self.seen)

    @cached_property
    def levels(self) -> Floats:
        """The different values seen."""
        return np.unique(self.values[~np.isnan(self.values)])

    @property
    def constant(self) -> bool:
        """Whether the attacker's data hold one value only: there is nothing to find out."""
        return len(self.levels) < 2

    @property
    def reach(self) -> float:
        """The range of the values seen."""
        return float(self.levels[-1] - self.levels[0]) if not self.constant else 1.0

    @property
    def close(self) -> float:
        """How far off a guess may be and still count."""
        if self.kind != "continuous":
            return 0.5
        return CLOSE_ENOUGH * self.reach if self.threshold is None else self.threshold

    def read(self, rows: Floats) -> Floats:
        """The feature of records as one number each; of a block the place of the category, -1 for none of them."""
        if not self.is_block:
            return np.asarray(rows[:, self.columns[0]])
        block = rows[:, list(self.columns)]
        return np.where(block.max(axis=1) > 0, block.argmax(axis=1), -1).astype(np.float64)

    def encoded(self, values: Floats) -> Floats:
        """What a model is to learn: a number in [0, 1], or an indicator for every level."""
        if self.kind == "categorical":
            return np.asarray(values[:, None] == self.levels[None, :], dtype=np.float64)
        filled = np.where(np.isnan(values), np.nanmean(self.values), values)
        return np.asarray((filled - self.levels[0]) / self.reach)[:, None]

    def decoded(self, outputs: Floats) -> Floats:
        """The guess that outputs stand for."""
        if self.kind == "categorical":
            return np.asarray(self.levels[outputs.argmax(axis=1)])
        guess = np.asarray(self.levels[0] + outputs[:, 0] * self.reach)
        return guess if self.kind == "continuous" else np.asarray(self.levels[_nearest(self.levels, guess)])

    @property
    def width(self) -> int:
        """How many numbers a model learns for it."""
        return len(self.levels) if self.kind == "categorical" else 1

    @property
    def usual(self) -> float:
        """The blind guess: the mean, or the most frequent value where values are levels."""
        known = self.values[~np.isnan(self.values)]
        if self.kind == "continuous":
            return float(known.mean())
        levels, counts = np.unique(known, return_counts=True)
        return float(levels[counts.argmax()])

    def errors(self, guess: Floats, truth: Floats) -> Floats:
        """How far off guesses are, in shares of the range; of categories 0 or 1. NaN where the truth is missing."""
        if self.kind == "categorical":
            return np.where(np.isnan(truth), np.nan, (guess != truth).astype(np.float64))
        return np.abs(guess - truth) / self.reach

    def hits(self, guess: Floats, truth: Floats) -> Flags:
        """Which guesses count as successes."""
        if self.kind != "continuous":
            return np.asarray(guess == truth)
        return np.asarray(np.abs(guess - truth) < self.close)

    def random_guess(self, truth: Floats) -> tuple[Floats, Floats]:
        """Expected error and chance of success of a value drawn from those seen, for every true value."""
        known = np.sort(self.values[~np.isnan(self.values)])
        many = len(known)
        if self.kind != "continuous":
            same = (np.searchsorted(known, truth, "right") - np.searchsorted(known, truth, "left")) / many
            if self.kind == "categorical":
                return 1 - same, same
        below = np.searchsorted(known, truth, "right")
        sums = np.concatenate([[0.0], np.cumsum(known)])
        gap = truth * (2 * below - many) + sums[-1] - 2 * sums[below]
        if self.kind == "discrete":
            return gap / many / self.reach, same
        # Strictly closer than the threshold, as for the attack itself.
        inside = np.searchsorted(known, truth + self.close, "left") - np.searchsorted(
            known, truth - self.close, "right"
        )
        return gap / many / self.reach, np.maximum(inside, 0) / many


def features_of(
    auxiliary: Floats,
    *,
    groups: Sequence[Sequence[int]] | None,
    names: Sequence[str] | None,
    categorical: Collection[str | int],
    discrete: Collection[str | int],
    thresholds: Mapping[str, float] | None,
) -> tuple[Feature, ...]:
    """Read from the attacker's data what there is to find out."""
    columns = [tuple(group) for group in groups] if groups else [(i,) for i in range(auxiliary.shape[1])]
    called = list(names) if names is not None else [f"x{i + 1}" for i in range(len(columns))]
    if len(called) != len(columns) or len(set(called)) != len(called):
        raise ParameterError(f"names must give {len(columns)} different names, one a feature.")
    as_categories, as_levels = (
        _places(categorical, called, "categorical"),
        _places(discrete, called, "discrete"),
    )
    for name, threshold in (thresholds or {}).items():
        if name not in called:
            raise ParameterError(unknown_name(name, called, what="feature"))
        if threshold <= 0:
            raise ParameterError(f"The threshold of '{name}' must be more than 0.")
    made = []
    for place, (name, own) in enumerate(zip(called, columns, strict=True)):
        kind: Kind = "continuous"
        if len(own) > 1:
            kind = "categorical"
            block = auxiliary[:, list(own)]
            if not np.isin(block, (0.0, 1.0)).all() or (block.sum(axis=1) > 1).any():
                raise ParameterError(
                    f"The columns of feature '{name}' are a group, and a group must hold indicators: at most one 1 a "
                    "record, else 0."
                )
        elif place in as_categories:
            kind = "categorical"
        elif place in as_levels:
            kind = "discrete"
        made.append(Feature(name, own, kind, auxiliary, (thresholds or {}).get(name)))
    return tuple(made)


def _places(given: Collection[str | int], names: Sequence[str], what: str) -> set[int]:
    found = set()
    for one in [given] if isinstance(given, str) else given:
        if isinstance(one, str) and one in names:
            found.add(names.index(one))
        elif isinstance(one, int | np.integer) and 0 <= int(one) < len(names):
            found.add(int(one))
        else:
            raise ParameterError(f"{what}: {unknown_name(str(one), names, what='feature')}")
    return found


def _nearest(levels: Floats, guess: Floats) -> Integers:
    right = np.clip(np.searchsorted(levels, guess), 1, len(levels) - 1)
    return np.asarray(right - (guess - levels[right - 1] < levels[right] - guess))
