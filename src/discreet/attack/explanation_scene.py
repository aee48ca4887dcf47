"""What an attack on explanations is run with, what may be shown instead of them, and how guesses are scored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import dp
from discreet.attack.explanation_inversion import Feature, Inverse, features_of
from discreet.attack.shapley import Explaining
from discreet.attack.success import Tally, excess
from discreet.core.arrays import Flags, Floats, Integers, numbers_of
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked, typed_parameters
from discreet.core.randomness import generator


@dataclass(frozen=True)
class Outcome:
    """What one attack achieved: a row a record, a column a feature.

    ``errors`` and ``hits`` are NaN and false where the truth is missing (``known``); ``mistaken`` are the hits with
    somebody else's explanation.
    """

    guesses: Floats
    errors: Floats
    hits: Flags
    mistaken: Flags
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Everything an attack is run with: explanations and records of the attacker and of the people under attack."""

    features: tuple[Feature, ...]
    known_scores: Floats
    known: Floats
    scores: Floats
    truth: Floats
    attackable: Flags

    def attacked(self, inverse: Inverse, rows: Any, other: Any) -> Outcome:
        """Train on some of the attacker's records, and guess those under attack.

        ``other`` says whose explanation stands for each person's in the control.
        """
        guesses, doubts = inverse.guesses(
            self.known_scores[rows], self.known[rows], (self.scores, self.scores[other]), self.features
        )
        own, mistaken = (list(zip(self.features, one, self.truth.T, strict=True)) for one in guesses)
        return Outcome(
            np.stack([guess for _, guess, _ in own], axis=1),
            np.stack([feature.errors(guess, truth) for feature, guess, truth in own], axis=1),
            np.stack([feature.hits(guess, truth) for feature, guess, truth in own], axis=1),
            np.stack([feature.hits(guess, truth) for feature, guess, truth in mistaken], axis=1),
            tuple(doubts),
        )


def staged(
    explaining: Explaining,
    auxiliary: Any,
    target: Any,
    *,
    names: Sequence[str] | None,
    categorical: Collection[str | int],
    discrete: Collection[str | int],
    thresholds: Mapping[str, float] | None,
    include_constant: bool,
    allow_overlap: bool,
) -> tuple[Scene, list[str]]:
    """Explain the attacker's records and those under attack, after checking that they can be told apart."""
    known, hidden = record_table(auxiliary, "auxiliary"), record_table(target, "target")
    columns = explaining.reference.shape[1]
    for rows, name in ((known, "auxiliary"), (hidden, "target")):
        if rows.shape[1] != columns:
            raise ParameterError(f"{name} has {rows.shape[1]} columns and reference {columns}.")
        if not explaining.allow_nan and np.isnan(rows).any():
            raise ParameterError(
                f"{name} has missing values. Fill them, or say allow_nan=True where the model takes NaN."
            )
    if len(known) < 2:
        raise InputError("auxiliary must hold at least 2 records: nothing can be learned from one.")
    if names is None and explaining.groups is None and hasattr(auxiliary, "columns"):
        names = [str(name) for name in auxiliary.columns]
    told = []
    shared = _shared(known, hidden)
    if shared:
        if not allow_overlap:
            raise ParameterError(
                f"{shared:,} of {len(hidden):,} records in target are also in auxiliary: the attacker would know them "
                "already, which makes the attack look better than it is. Take them out, or say allow_overlap=True."
            )
        told.append(
            f"{shared:,} of {len(hidden):,} records under attack equal a record of the attacker: the success rate is "
            "too high by what he knew already."
        )
    features = features_of(
        known,
        groups=explaining.groups,
        names=names,
        categorical=categorical,
        discrete=discrete,
        thresholds=thresholds,
    )
    attackable = np.array([include_constant or not feature.constant for feature in features])
    if not attackable.any():
        raise InputError(
            "Every feature is constant in auxiliary: there is nothing that an attack could find out."
        )
    if not attackable.all():
        told.append(
            f"{int((~attackable).sum())} of {len(features)} features are constant among the attacker's records and "
            "cannot be attacked; they are left out of the means."
        )
    mine, theirs = explaining.of(known), explaining.of(hidden)
    if mine.approximate:
        told.append(
            "The explanations are estimates (or come from an explainer that does not say): exact ones could give away "
            "more."
        )
    truth = np.stack([feature.read(hidden) for feature in features], axis=1)
    if np.isnan(truth).any():
        told.append(f"{int(np.isnan(truth).sum()):,} values under attack are missing; they are not scored.")
    return Scene(features, mine.values, known, theirs.values, truth, attackable), told


def guarded(scene: Scene, guard: Guard | None, seed: int | None) -> tuple[Scene, float | None]:
    """Let everybody see what a guard shows, and say how much of the explanations it keeps."""
    if guard is None:
        return scene, None
    # The attack is an experiment in the house: its noise is drawn from a seed and nothing of it is published.
    draws = generator(seed, "shapley", "guard")
    shown = [
        guard.apply(values, seed=int(draws.integers(2**62))).values
        for values in (scene.known_scores, scene.scores)
    ]
    filled = [np.where(np.isnan(values), 0.0, values) for values in shown]
    kept = explanation_fidelity(scene.scores, filled[1])
    return Scene(scene.features, filled[0], scene.known, filled[1], scene.truth, scene.attackable), kept


def rates(scene: Scene, outcome: Outcome) -> dict[str, Any]:
    """The figures of one attack; a record is one try, its success the share of its features that were found."""
    open_ = ~np.isnan(scene.truth) & scene.attackable
    people = np.flatnonzero(open_.any(axis=1))
    if not len(people):
        raise InputError("Every value under attack is missing: there is nothing to score.")
    count = len(people)
    attack = Tally(min(_share(outcome.hits, open_)[people].sum(), count), count)
    control = Tally(min(_share(outcome.mistaken, open_)[people].sum(), count), count)
    blind, drawn = _blind(scene)
    found = excess(attack, control)
    numeric = [i for i, f in enumerate(scene.features) if f.kind != "categorical" and scene.attackable[i]]
    reach = np.array([scene.features[i].reach for i in numeric])
    mae = _mean(outcome.errors, open_)
    mae_mean, mae_random = _mean(blind[0], open_), _mean(drawn[0], open_)
    nearest = min(mae_mean, mae_random)
    return {
        "attack_rate": attack.rate,
        "control_rate": control.rate,
        "baseline_rate": max(_mean(blind[1], open_), _mean(drawn[1], open_)),
        "risk": found.risk,
        "risk_low": found.low,
        "risk_high": found.high,
        "attacks": count,
        "control_attacks": count,
        "mae": mae,
        "mae_original": float(np.nanmean(outcome.errors[:, numeric] * reach)) if numeric else None,
        "mae_mean": mae_mean,
        "mae_random": mae_random,
        "relative_risk": 1 - mae / nearest if nearest > 0 else None,
    }


def _blind(scene: Scene) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Errors and successes of guessing the usual value, and expected ones of drawing a value, for every truth."""
    usual, drawn = [], []
    for i, feature in enumerate(scene.features):
        truth = scene.truth[:, i]
        guess = np.full(len(truth), feature.usual)
        usual.append((feature.errors(guess, truth), feature.hits(guess, truth).astype(np.float64)))
        drawn.append(feature.random_guess(truth))
    return tuple(  # type: ignore[return-value]
        tuple(np.stack([pair[k] for pair in pairs], axis=1) for k in (0, 1)) for pairs in (usual, drawn)
    )


def _mean(values: Floats, open_: Flags) -> float:
    return float(values[open_].mean())


def _share(hits: Flags, open_: Flags) -> Floats:
    many = open_.sum(axis=1)
    return np.asarray(np.divide((hits & open_).sum(axis=1), many, out=np.zeros(len(many)), where=many > 0))


def by_feature(scene: Scene, outcome: Outcome) -> pl.DataFrame:
    """How well each feature was found."""
    blind, drawn = _blind(scene)
    rows = []
    for i, feature in enumerate(scene.features):
        known = ~np.isnan(scene.truth[:, i])
        mae = float(outcome.errors[known, i].mean()) if known.any() else None
        least = float(min(blind[0][known, i].mean(), drawn[0][known, i].mean())) if known.any() else None
        rows.append(
            {
                "feature": feature.name,
                "kind": feature.kind,
                "attackable": bool(scene.attackable[i]),
                "attack_rate": float(outcome.hits[known, i].mean()) if known.any() else None,
                "control_rate": float(outcome.mistaken[known, i].mean()) if known.any() else None,
                "baseline_rate": float(max(blind[1][known, i].mean(), drawn[1][known, i].mean()))
                if known.any()
                else None,
                "mae": mae,
                "mae_original": None if mae is None or feature.kind == "categorical" else mae * feature.reach,
                "mae_baseline": least,
                "relative_risk": None if mae is None or not least else 1 - mae / least,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def by_record(scene: Scene, outcome: Outcome) -> pl.DataFrame:
    """How well each record was found: numbers of features and errors, no values."""
    open_ = ~np.isnan(scene.truth) & scene.attackable
    errors = np.where(open_, outcome.errors, 0.0).sum(axis=1) / np.maximum(open_.sum(axis=1), 1)
    return pl.DataFrame(
        {
            "record": np.arange(len(scene.truth)),
            "features_found": (outcome.hits & open_).sum(axis=1),
            "features": open_.sum(axis=1),
            "mae": errors,
        }
    )


def record_table(given: Any, name: str) -> Floats:
    """Read records as rows of numbers, gaps as NaN."""
    array = given.to_numpy() if hasattr(given, "to_numpy") else given
    rows = numbers_of(array, name, missing=True)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ParameterError(f"{name} must have rows and columns: one row a record, one column a feature.")
    return np.ascontiguousarray(rows)


def _shared(known: Floats, hidden: Floats) -> int:
    """How many records under attack equal one of the attacker's."""
    both, codes = np.unique(np.vstack([known, hidden]), axis=0, return_inverse=True)
    mine = np.zeros(len(both), dtype=bool)
    mine[codes.ravel()[: len(known)]] = True
    return int(mine[codes.ravel()[len(known) :]].sum())


def checked_sizes(sizes: Sequence[int] | None, many: int) -> list[int]:
    """Refuse sizes that the attacker's records do not have."""
    if sizes is None:
        return [many]
    wanted = sorted({int(size) for size in sizes})
    if not wanted or wanted[0] < 2 or wanted[-1] > many:
        raise ParameterError(f"sizes must be numbers of auxiliary records, from 2 to {many:,}.")
    return wanted


def somebody_else(people: int, seed: int | None) -> Integers:
    """Whose explanation stands for each person's: everybody's is somebody else's, where there are two."""
    order = generator(seed, "shapley", "control").permutation(people)
    other = np.empty(people, dtype=np.int64)
    other[order] = np.roll(order, 1)
    return other


# What may be shown instead of an explanation, so that the record behind it is harder to find?
#
# Rounding and leaving out make the attack harder and promise nothing. Noise can keep a promise about the record that is
# explained: its scores are first held within a public bound, and the noise is drawn by `discreet.dp`.


@dataclass(frozen=True, repr=False)
class Guarded:
    """Explanations that may be shown.

    Attributes
    ----------
    values
        In the shape of the explanations.
    guarantee
        What is proved, or None.
    why_none
        Why nothing is claimed, where nothing is.
    """

    values: Floats
    guarantee: str | None
    why_none: str

    def __repr__(self) -> str:
        return f"Guarded({len(self.values):,} records; {self.guarantee or 'no guarantee: ' + self.why_none})"


class Guard(Protocol):
    """A way of showing less than the explanation."""

    @property
    def label(self) -> str:
        """What a table calls it."""

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Make what is shown from explanations, one row a record."""


@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "RoundedExplanation")
class RoundedExplanation:
    """Round scores to a grid.

    Parameters
    ----------
    step
        The width of the grid.

    Examples
    --------
    >>> RoundedExplanation(step=0.5).apply([[0.6, -0.1]]).values.tolist()
    [[0.5, 0.0]]
    """

    step: Annotated[float, Above(0)]

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"rounded to {self.step:g}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Round explanations, one row a record."""
        _no_ledger(ledger, "rounding")
        # Adding 0 turns a negative zero into a plain one.
        return Guarded(
            np.round(_rows(values) / self.step) * self.step + 0.0, None, "rounding proves nothing."
        )


@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "TopFeatures")
class TopFeatures:
    """Show the scores of the features that matter most to a record, and nothing of the others.

    Parameters
    ----------
    t
        How many features.
    hidden
        What stands for a score that is not shown.

    Examples
    --------
    >>> TopFeatures(t=1).apply([[0.6, -0.7, 0.1]]).values.tolist()
    [[0.0, -0.7, 0.0]]
    """

    t: Annotated[int, AtLeast(1)]
    hidden: float = 0.0

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"top {self.t}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Hide all but the largest scores, one row a record; of equal ones the first is kept."""
        _no_ledger(ledger, "leaving scores out")
        rows = _rows(values)
        place = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, : self.t]
        made = np.full_like(rows, self.hidden)
        np.put_along_axis(made, place, np.take_along_axis(rows, place, axis=1), axis=1)
        return Guarded(made, None, "which features are shown depends on the record.")


@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "NoisyExplanation")
class NoisyExplanation:
    """Hold scores within a public bound, and add noise that hides which record was explained.

    The promise is about the record that is explained, against any other record. It says nothing about the people whom
    the model or the references were made from, and every further explanation of the same record costs epsilon again.

    Parameters
    ----------
    epsilon
        The budget of one explanation.
    bound
        What a score may be at most, in size; larger ones are held at it. It must be known without the data: scores of
        a probability are never larger than 1.
    noise
        ``laplace``, or ``gaussian``, which needs ``delta``.
    delta
        Of Gaussian noise.

    Examples
    --------
    >>> shown = NoisyExplanation(epsilon=1.0, bound=0.5).apply([[0.6, -0.7]])
    >>> shown.guarantee
    '1-differential privacy against replacing one record.'
    """

    epsilon: float
    bound: Annotated[float, Above(0)]
    noise: Literal["laplace", "gaussian"] = "laplace"
    delta: float = 0.0

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        if (self.noise == "gaussian") != (0 < self.delta < 1):
            raise ParameterError(
                "Gaussian noise needs a delta between 0 and 1, and Laplace noise takes none."
            )

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"{self.noise} noise, epsilon {self.epsilon:g}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Add noise to explanations, one row a record; with a ledger the price is entered first.

        Another record changes one row: each of its scores by at most twice the bound.
        """
        rows = np.clip(_rows(values), -self.bound, self.bound)
        columns = rows.shape[1]
        given: dict[str, Any] = {
            "epsilon": self.epsilon,
            "adjacency": "replace",
            "purpose": "explanation of a record",
            "ledger": ledger,
            "seed": seed,
        }
        if self.noise == "laplace":
            noisy = dp.laplace(rows, sensitivity=2 * columns * self.bound, **given)
        else:
            moved = 2 * float(np.sqrt(columns)) * self.bound
            noisy = dp.gaussian(rows, sensitivity=moved, delta=self.delta, **given)
        return Guarded(np.asarray(noisy.value, dtype=np.float64), noisy.guarantee, noisy.why_none)


@checked
def explanation_fidelity(before: npt.ArrayLike, after: npt.ArrayLike) -> float | None:
    """How much of the order of the features does what is shown keep? The mean rank correlation over the records.

    Records all of whose shown scores are equal keep no order: they count as 0. None where no record had one.

    Examples
    --------
    >>> explanation_fidelity([[3.0, 2.0, 1.0]], [[3.0, 2.0, 2.5]])
    0.5
    """
    first, second = _rows(before), _rows(after)
    if first.shape != second.shape:
        raise ParameterError("Both sets of explanations must have the same records and features.")
    ranked, shown = _centered_ranks(first), _centered_ranks(second)
    power, kept = (ranked**2).sum(axis=1), (shown**2).sum(axis=1)
    judged = power > 0
    if not judged.any():
        return None
    together = (ranked * shown).sum(axis=1)[judged]
    sizes = np.sqrt(power * kept)[judged]
    return float(np.divide(together, sizes, out=np.zeros_like(together), where=sizes > 0).mean())


def _centered_ranks(rows: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1)
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))


def _rows(values: npt.ArrayLike) -> Floats:
    rows = numbers_of(values, "values")
    if rows.ndim != 2:
        raise ParameterError("values must be explanations: one row a record, one column a feature.")
    return rows


def _no_ledger(ledger: dp.Ledger | None, what: str) -> None:
    if ledger is not None:
        raise ParameterError(
            f"A ledger takes releases with a guarantee, and {what} makes none. Leave out the ledger."
        )
