"""Which record belongs to this explanation? Models that an attacker trains on explanations of records of his own.

The attack of Luo, Jiang and Xiao (2022): explanations of known records are asked for, a model learns the way back, and
is then shown the explanation of somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from discreet.attack.explanations.features import Feature
from discreet.attack.explanations.sigmoid_network import Optimizer, SigmoidNetwork
from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.number_arrays import called

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
