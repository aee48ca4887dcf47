"""How does an attacker guess a column from the others? Nearest neighbor, forest and boosted trees, on a release alone.

Every way of guessing learns from the released records and answers for the people it is asked about. Labels are guessed
as codes; a number is guessed so that it is often near, by medians and not by means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ColumnError
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace, Points, as_float
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.forest import grow_forest

Method = Literal["nearest", "forest", "boosted"]
METHODS: tuple[Method, ...] = ("nearest", "forest", "boosted")

_TREES = 8
_BINS = 256
_ROUNDS = 20  # of boosting
_CLASSES = (
    12  # that boosting tells apart: it grows a tree for each in every round, so rare ones are never guessed
)


@dataclass(frozen=True)
class Secret:
    """A column to be guessed, as numbers: labels by their place among ``levels``; NaN where it is missing."""

    values: Floats
    levels: int

    @property
    def is_number(self) -> bool:
        """Whether it is guessed by tolerance."""
        return self.levels == 0


def secrets_of(columns: Sequence[pl.Series], *, categorical: bool) -> list[Secret]:
    """Write the same column of several files as numbers or as codes of labels that mean the same in all."""
    dtype = columns[0].dtype
    if (dtype.is_numeric() or dtype.is_temporal()) and not categorical:
        return [Secret(as_float(column), 0) for column in columns]
    texts = [column.cast(pl.String) for column in columns]
    levels = pl.concat(texts).drop_nulls().unique().sort()
    return [
        Secret(
            text.cast(pl.Enum(levels)).to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            len(levels),
        )
        for text in texts
    ]


@dataclass(frozen=True)
class Clues:
    """What is known about the released records and about the people to be guessed, placed in one space."""

    space: MixedSpace
    released: Points
    people: Points

    @classmethod
    def of(cls, released: pl.DataFrame, people: pl.DataFrame, categorical: Sequence[str]) -> Clues:
        """Place both in the space of the release, which is what an attacker has."""
        codes = [name for name in categorical if name in released.columns]
        space = MixedSpace.fit(released, people, categorical=codes)
        if not space.columns:
            raise ColumnError(
                "Nothing varies in the release in the known columns, so nothing can be inferred from them. Name others "
                "with known=[…]."
            )
        return cls(space, space.place(released), space.place(people))

    def coded(self) -> tuple[list[Feature], Array, Array]:
        """Code released records and people as trees see them; missing values are values of their own."""
        numbers, codes = self.released.numbers, self.released.codes
        features = [Feature.numeric(column, max_bins=_BINS) for column in numbers.T]
        features += [Feature.category(len(levels) + 1) for levels in self.space.levels]
        return (
            features,
            encode(features, [*numbers.T, *(codes.T + 1)]),
            encode(features, [*self.people.numbers.T, *(self.people.codes.T + 1)]),
        )


def guesses(
    method: Method, clues: Clues, secret: Secret, rng: np.random.Generator, *, progress: bool = False
) -> Floats:
    """Guess the secret of everybody asked about, from released records whose secret is not missing."""
    known = np.flatnonzero(~np.isnan(secret.values)).astype(np.int64)
    ways: dict[Method, Callable[[], Floats]] = {
        "nearest": lambda: _of_nearest(clues, secret, known, progress),
        "forest": lambda: _of_forest(clues, secret, known, rng),
        "boosted": lambda: _of_boosting(clues, secret, known, rng),
    }
    return ways[method]()


def _of_nearest(clues: Clues, secret: Secret, known: Integers, progress: bool) -> Floats:
    released = clues.released if len(known) == len(clues.released) else clues.released.take(known)
    found = nearest(clues.space, clues.people, released, progress=progress, description="Guessing").index[
        :, 0
    ]
    return secret.values[known[found]]


def _of_forest(clues: Clues, secret: Secret, known: Integers, rng: np.random.Generator) -> Floats:
    features, codes, asked = clues.coded()
    values = secret.values if secret.is_number else np.nan_to_num(secret.values).astype(np.int32)
    outcome = np.where(np.isnan(secret.values), 0.0, secret.values) if secret.is_number else values
    forest = grow_forest(
        codes,
        features,
        outcome,
        rng=rng,
        n_classes=secret.levels,
        n_trees=_TREES,
        rows=known,
        min_leaf=2,
        threads=2,
    )
    answers = []
    for tree in forest.trees:
        leaves = tree.leaves(asked, rng)
        if secret.is_number:
            leaf = np.repeat(np.arange(tree.n_leaves), np.diff(tree.starts))
            held = pl.DataFrame({"leaf": leaf, "value": secret.values[tree.rows]})
            medians = held.group_by("leaf").agg(pl.col("value").median()).sort("leaf")
            by_leaf = np.full(tree.n_leaves, np.nan)
            by_leaf[medians["leaf"].to_numpy()] = medians["value"].to_numpy()
            answers.append(by_leaf[leaves])
        else:
            answers.append(np.nan_to_num(tree.leaf_shares)[leaves])
    if secret.is_number:
        middle: Floats = np.nanmedian(np.stack(answers), axis=0)
        return middle
    most: Floats = np.sum(answers, axis=0).argmax(axis=1).astype(np.float64)
    return most


def _of_boosting(clues: Clues, secret: Secret, known: Integers, rng: np.random.Generator) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    learned = np.column_stack([clues.released.numbers, clues.released.codes])[known]
    asked = np.column_stack([clues.people.numbers, clues.people.codes])
    values = secret.values[known]
    settings = {"max_iter": _ROUNDS, "early_stopping": False, "random_state": int(rng.integers(2**31))}
    # One thread: sums over several differ in their last bits from machine to machine.
    with threadpool_limits(1):
        if secret.is_number:
            model = HistGradientBoostingRegressor(loss="absolute_error", **settings)
            return np.asarray(model.fit(learned, values).predict(asked), dtype=np.float64)
        often, counts = np.unique(values, return_counts=True)
        often = often[np.argsort(-counts, kind="stable")][:_CLASSES]
        if len(often) == 1:
            return np.full(len(asked), often[0])
        taken = np.isin(values, often)
        model = HistGradientBoostingClassifier(**settings)
        return np.asarray(model.fit(learned[taken], values[taken]).predict(asked), dtype=np.float64)


def is_right(guess: Floats, truth: Floats, secret: Secret, tolerance: float, reach: float) -> Flags:
    """Say which guesses are right: labels equal, numbers within a share of the true one, dates within a share of all.

    The difference counts in both directions.
    """
    if not secret.is_number:
        same: Flags = guess == truth
        return same
    allowed = np.abs(truth) * tolerance if reach == 0 else np.full(len(truth), reach * tolerance)
    near: Flags = np.abs(guess - truth) <= allowed + 1e-9 * np.abs(truth)
    return near


def blind_guess(secret: Secret, tolerance: float, reach: float) -> float:
    """Find the one answer that is right most often in the release: what to say of anybody without looking.

    Examples
    --------
    >>> blind_guess(Secret(np.array([0.0, 1.0, 1.0]), 2), 0.05, 0.0)
    1.0
    >>> 100 <= blind_guess(Secret(np.array([1.0, 50.0, 100.0, 101.0, 103.0]), 0), 0.05, 0.0) <= 105
    True
    """
    values = np.sort(secret.values[~np.isnan(secret.values)])
    if not secret.is_number:
        return float(np.bincount(values.astype(np.int64)).argmax())
    # A guess is right for the values whose tolerance reaches it; the best guess lies at the end of such a reach.
    spread = np.abs(values) * tolerance if reach == 0 else np.full(len(values), reach * tolerance)
    lows, highs = np.sort(values - spread), np.sort(values + spread)
    covered = np.searchsorted(lows, highs, side="right") - np.arange(len(highs))
    return float(highs[int(covered.argmax())])
