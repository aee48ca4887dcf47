"""Which record belongs to this explanation? Models that an attacker trains on explanations of records of his own.

The attack of Luo, Jiang and Xiao (2022): explanations of known records are asked for, a model learns the way back, and
is then shown the explanation of somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers, called
from discreet.core.errors import ParameterError, unknown_name

_ROUNDING = 1e-12

Attack = Literal["linear", "affine-per-feature", "tree", "mlp"]


@runtime_checkable
class Regression(Protocol):
    """Anything that learns several outputs at once, as scikit-learn's regressions do."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from pairs of rows."""

    def predict(self, X: Any) -> Any:
        """Give outputs for new rows."""


@dataclass(frozen=True)
class Inverse:
    """What the attacker trains, and what is to be said of it.

    Attributes
    ----------
    attack
        ``linear`` (least squares of all features on all scores), ``affine-per-feature`` (each feature from its own
        score), ``tree``, ``mlp``, or an object with ``fit`` and ``predict``.
    optimizer, epochs, batch_size
        Of ``mlp``.
    seed
        Opens the generator of whatever is random in training.
    """

    attack: Attack | Regression = "linear"
    optimizer: Optimizer = "adam"
    epochs: int = 500
    batch_size: int = 32
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def __post_init__(self) -> None:
        if isinstance(self.attack, str):
            if self.attack not in get_args(Attack):
                raise ParameterError(unknown_name(self.attack, get_args(Attack), what="attack model"))
        elif not isinstance(self.attack, Regression):
            raise ParameterError(
                "attack must be the name of an attack model, or an object with fit and predict."
            )

    @property
    def label(self) -> str:
        """What a table calls it."""
        if not isinstance(self.attack, str):
            return type(self.attack).__name__
        return f"mlp ({self.optimizer})" if self.attack == "mlp" else self.attack

    def guesses(
        self, scores: Floats, records: Floats, shown: Sequence[Floats], features: Sequence[Feature]
    ) -> tuple[list[list[Floats]], list[str]]:
        """Train on explanations of known records, and guess every feature behind each set of explanations shown.

        Returns the guesses (a list of features for every set) and what must be said about the training.
        """
        wanted = [feature.encoded(feature.read(records)) for feature in features]
        if self.attack == "affine-per-feature":
            outputs = [_each_from_its_own(scores, wanted, other) for other in shown]
            told = _silent(scores, features)
        else:
            targets = np.hstack(wanted)
            model, told = self._trained(scores, targets)
            outputs = []
            for other in shown:
                made = np.asarray(called(model.predict, "attack", other), dtype=np.float64).reshape(
                    len(other), -1
                )
                if made.shape[1] != targets.shape[1] or not np.isfinite(made).all():
                    raise ParameterError(
                        f"The attack model must give {targets.shape[1]} finite numbers a record, one a learned output."
                    )
                outputs.append(np.split(made, np.cumsum([f.width for f in features])[:-1], axis=1))
        return [[f.decoded(o) for f, o in zip(features, one, strict=True)] for one in outputs], told

    def _trained(self, scores: Floats, targets: Floats) -> tuple[Regression, list[str]]:
        if self.attack == "linear":
            line = _LeastSquares().fit(scores, targets)
            return line, line.doubts
        if self.attack == "tree":
            from sklearn.tree import DecisionTreeRegressor

            tree = DecisionTreeRegressor(random_state=int(self.rng.integers(2**31)))
            return tree.fit(scores, targets), []
        if self.attack == "mlp":
            net = SigmoidNetwork(
                4 * scores.shape[1], self.optimizer, self.epochs, self.batch_size, rng=self.rng
            )
            return net.fit(scores, targets), []
        assert not isinstance(self.attack, str)
        from sklearn.base import BaseEstimator, clone

        model = clone(self.attack) if isinstance(self.attack, BaseEstimator) else self.attack
        outputs = targets if targets.shape[1] > 1 else targets[:, 0]
        called(model.fit, "attack", scores, outputs)
        return model, []


class _LeastSquares:
    """All outputs from all scores by least squares; the smallest solution where several fit."""

    def fit(self, scores: Floats, targets: Floats) -> _LeastSquares:
        self.middle, self.level = scores.mean(axis=0), targets.mean(axis=0)
        spread = scores.std(axis=0)
        # Scores differ in size by orders; on one scale the rank is that of the information and not of the units.
        self.scale = np.where(_varies(scores), spread, 1.0)
        self.slopes, _, rank, _ = np.linalg.lstsq(
            (scores - self.middle) / self.scale, targets - self.level, rcond=1e-10
        )
        self.doubts = []
        if len(scores) < scores.shape[1] + 1:
            self.doubts.append(
                f"The attacker has {len(scores)} records for {scores.shape[1]} scores: fewer than one more than there "
                "are scores, so the smallest of many solutions was taken. With more records the attack gets better."
            )
        elif rank < scores.shape[1]:
            self.doubts.append(
                f"The scores have rank {int(rank)} of {scores.shape[1]} in the attacker's records (a feature without "
                "effect, or records that lie in a plane): the smallest of many solutions was taken. Try "
                "attack='affine-per-feature' as well."
            )
        return self

    def predict(self, scores: Floats) -> Floats:
        return np.asarray(self.level + (scores - self.middle) / self.scale @ self.slopes)


def _each_from_its_own(scores: Floats, wanted: Sequence[Floats], shown: Floats) -> list[Floats]:
    """Every feature by a straight line through its own score; with several classes through that with most spread."""
    made = []
    players = len(wanted)
    for place, targets in enumerate(wanted):
        own = scores[:, place::players]
        pick = int(own.std(axis=0).argmax())
        x, asked = own[:, pick], shown[:, place::players][:, pick]
        gap = x - x.mean()
        power = float(gap @ gap)
        slope = (
            gap @ (targets - targets.mean(axis=0)) / power
            if _varies(own)[pick]
            else np.zeros(targets.shape[1])
        )
        made.append(targets.mean(axis=0) + (asked - x.mean())[:, None] * slope)
    return made


def _varies(scores: Floats) -> Flags:
    """Which scores differ between records, by more than the rounding of sums."""
    return np.asarray(np.ptp(scores, axis=0) > _ROUNDING * max(float(np.abs(scores).max()), 1e-290))


def _silent(scores: Floats, features: Sequence[Feature]) -> list[str]:
    players = len(features)
    mute = [
        feature.name for place, feature in enumerate(features) if not _varies(scores[:, place::players]).any()
    ]
    if not mute:
        return []
    return [
        f"{len(mute)} of {players} features have the same score in every record (the model does not use them, or they "
        "are constant): their value cannot be read from their own score, and the mean was guessed."
    ]


# What the attacker wants to know: the features of a record, as numbers to be learned and as values to be scored.
#
# Ranges and levels come from the attacker's own data and never from the records under attack.


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
    for name in thresholds or {}:
        if name not in called:
            raise ParameterError(unknown_name(name, called, what="feature"))
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


# A small network of sigmoids, trained by one of four optimizers: the inverse that the literature trains.
#
# One hidden layer, sigmoids throughout, mean squared error, parameters drawn from N(0, 1); mini-batches take the mean
# gradient. Written in NumPy, so that the attack needs no library for deep learning.


Optimizer = Literal["sgd", "momentum", "rmsprop", "adam"]

_RATES: dict[Optimizer, float] = {"sgd": 0.01, "momentum": 0.01, "rmsprop": 0.001, "adam": 0.001}
_TINY = 1e-7


@dataclass
class SigmoidNetwork:
    """Inputs, ``hidden`` sigmoids, as many sigmoids as outputs: fitted with ``fit``, asked with ``predict``.

    Outputs lie between 0 and 1, so what is learned must be scaled to that. Inputs are standardized by what was seen in
    training.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> net = SigmoidNetwork(hidden=8, optimizer="adam", epochs=1500, rng=np.random.default_rng(1))
    >>> found = net.fit(x, (x + 1) / 2).predict(x)
    >>> bool(np.abs(found - (x + 1) / 2).mean() < 0.1)
    True
    """

    hidden: int
    optimizer: Optimizer = "adam"
    epochs: int = 500
    batch_size: int = 32
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    _weights: list[Floats] = field(default_factory=list, init=False, repr=False)
    _scale: tuple[Floats, Floats] | None = field(default=None, init=False, repr=False)

    def fit(self, inputs: Floats, outputs: Floats) -> SigmoidNetwork:
        """Train on pairs of rows."""
        spread = inputs.std(axis=0)
        self._scale = (inputs.mean(axis=0), np.where(spread > 0, spread, 1.0))
        scaled = self._scaled(inputs)
        self._weights = [
            self.rng.normal(size=(inputs.shape[1], self.hidden)),
            np.asarray(self.rng.normal(size=self.hidden)),
            self.rng.normal(size=(self.hidden, outputs.shape[1])),
            np.asarray(self.rng.normal(size=outputs.shape[1])),
        ]
        step = _Step(self.optimizer, self._weights)
        for _ in range(self.epochs):
            order = self.rng.permutation(len(scaled))
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                step(self._gradient(scaled[batch], outputs[batch]))
        return self

    def predict(self, inputs: Floats) -> Floats:
        """Give the outputs for new rows."""
        if self._scale is None:
            raise ParameterError("The network has learned nothing yet: call fit first.")
        w1, b1, w2, b2 = self._weights
        return _sigmoid(_sigmoid(self._scaled(inputs) @ w1 + b1) @ w2 + b2)

    def _scaled(self, inputs: Floats) -> Floats:
        assert self._scale is not None
        return np.asarray((inputs - self._scale[0]) / self._scale[1])

    def _gradient(self, inputs: Floats, outputs: Floats) -> list[Floats]:
        w1, b1, w2, b2 = self._weights
        inner = _sigmoid(inputs @ w1 + b1)
        made = _sigmoid(inner @ w2 + b2)
        outer = (made - outputs) * made * (1 - made) * (2.0 / made.size)
        back = (outer @ w2.T) * inner * (1 - inner)
        return [inputs.T @ back, back.sum(axis=0), inner.T @ outer, outer.sum(axis=0)]


class _Step:
    """One rule for moving all parameters along their gradients, in place."""

    def __init__(self, optimizer: Optimizer, weights: list[Floats]) -> None:
        self.optimizer = optimizer
        self.rate = _RATES[optimizer]
        self.weights = weights
        self.first = [np.zeros_like(weight) for weight in weights]
        self.second = [np.zeros_like(weight) for weight in weights]
        self.steps = 0

    def __call__(self, gradients: list[Floats]) -> None:
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.weights[i] -= self.rate * self._rule(i, gradient)

    def _rule(self, i: int, gradient: Floats) -> Any:
        if self.optimizer == "sgd":
            return gradient
        if self.optimizer == "momentum":
            self.first[i] = 0.9 * self.first[i] + gradient
            return self.first[i]
        if self.optimizer == "rmsprop":
            self.second[i] = 0.9 * self.second[i] + 0.1 * gradient * gradient
            return gradient / (np.sqrt(self.second[i]) + _TINY)
        self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
        self.second[i] = 0.999 * self.second[i] + 0.001 * gradient * gradient
        mean = self.first[i] / (1 - 0.9**self.steps)
        return mean / (np.sqrt(self.second[i] / (1 - 0.999**self.steps)) + _TINY)


def _sigmoid(numbers: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(numbers, -500, 500))))
