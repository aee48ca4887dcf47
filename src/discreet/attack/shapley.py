"""How much did each feature of a record move its prediction? Shapley values, exact, by permutations or in closed form.

A coalition of features takes the values of the record, all others those of a reference; the Shapley value of a feature
is what it adds to the score, averaged over the orders in which features may join (Shapley 1953; Lundberg and Lee 2017).
The exact engine asks the model for every coalition of every pair of record and reference once, in large batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Flags, Floats, Integers, called, numbers_of
from discreet.core.constraints import AtLeast
from discreet.core.errors import InputError, ParameterError, load_extra, unknown_name
from discreet.core.parameters import checked
from discreet.core.randomness import generator

Predict = Callable[[Floats], Any]
"""A model: takes records as rows of numbers, gives one score a row, or one for every class."""

Method = Literal["exact", "permutation", "linear"]

MOST_PLAYERS = 16
_ROWS_AT_ONCE = 1 << 13  # a dozen features of so many rows stay in the cache between writing and reading
_LINEAR_ENOUGH = 1e-6


@dataclass(frozen=True, repr=False)
class Explanation:
    """Shapley values of records.

    Attributes
    ----------
    values
        One row a record, one column a feature; with several classes the features of one class after the other.
    standard_errors
        How far off they may be by chance, in the same shape; None where they are exact.
    base
        The mean score of the references, one number a class.
    scores
        The scores of the records, one column a class.
    """

    values: Floats
    standard_errors: Floats | None
    base: Floats
    scores: Floats

    @property
    def approximate(self) -> bool:
        """Whether the values were estimated."""
        return self.standard_errors is not None

    def __repr__(self) -> str:
        rows, columns = self.values.shape
        how = "estimated" if self.approximate else "exact"
        return f"Explanation({rows:,} records, {columns} values each, {how})"


@checked
def shapley_values(
    predict: Predict,
    X: npt.ArrayLike,
    reference: npt.ArrayLike,
    method: Method = "exact",
    *,
    groups: Sequence[Sequence[int]] | None = None,
    permutations: int = 64,
    force: bool = False,
    allow_nan: bool = False,
    seed: int | None = None,
) -> Floats:
    """How much did each feature of each record move its score away from the references?

    The arguments are those of `explain`, which also gives standard errors and the mean score of the references.

    Also known as: SHAP; KernelSHAP; Shapley sampling.

    Examples
    --------
    >>> shapley_values(lambda rows: 2 * rows[:, 0] - rows[:, 1], [[3.0, 1.0]], [[1.0, 0.0], [1.0, 2.0]]).tolist()
    [[4.0, 0.0]]
    """
    return explain(
        predict,
        X,
        reference,
        method,
        groups=groups,
        permutations=permutations,
        force=force,
        allow_nan=allow_nan,
        seed=seed,
    ).values


@checked
def explain(
    predict: Predict,
    X: Any,
    reference: Any,
    method: Method = "exact",
    *,
    groups: Sequence[Sequence[int]] | None = None,
    permutations: Annotated[int, AtLeast(2)] = 64,
    force: bool = False,
    allow_nan: bool = False,
    seed: int | None = None,
) -> Explanation:
    """What are the Shapley values of these records, and how sure are they?

    Parameters
    ----------
    predict
        The model: takes an array of rows, gives one score a row (of a classifier the probability of one class, or its
        logit), or one column a class.
    X
        The records to explain, as numbers.
    reference
        The background records that stand for a feature nobody knows; averaged over.
    method
        ``exact`` asks for all coalitions of features; ``permutation`` draws orders in antithetic pairs and says how far
        off it is; ``linear`` reads the slopes of a model that is linear, and refuses one that is not.
    groups
        Columns that belong to one feature (the block of one categorical variable), as lists of column numbers; every
        column is its own feature unless given.
    permutations
        How many pairs of orders ``permutation`` draws.
    force
        Let ``exact`` work on more than 16 features: every one more doubles the work.
    allow_nan
        Let records hold NaN, for a model that takes them.
    seed
        For the orders drawn.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> found = explain(lambda rows: rows[:, 0] * rows[:, 1], [[2.0, 3.0]], [[0.0, 0.0]])
    >>> found.values.tolist(), found.approximate
    ([[3.0, 3.0]], False)
    """
    records, background = _rows(X, "X", allow_nan), _rows(reference, "reference", allow_nan)
    if records.shape[1] != background.shape[1]:
        raise ParameterError(
            f"X has {records.shape[1]} columns and reference {background.shape[1]}; both must have those of the model."
        )
    player = _players(groups, records.shape[1])
    game = _Game(predict, records, background, player, int(player.max()) + 1)
    if method == "exact":
        if game.players > MOST_PLAYERS and not force:
            raise ParameterError(
                f"The exact method asks the model for 2^{game.players} coalitions a record and reference. Use "
                "method='permutation', group columns that belong together, or say force=True."
            )
        return _exact(game)
    if method == "linear":
        return _linear(game)
    return _by_permutations(game, permutations, generator(seed, "shapley", "permutations"))


def scored(predict: Predict, rows: Floats) -> Floats:
    """Ask the model, and hand its scores on as one column a class; refuse what are no scores for these rows."""
    answer = np.asarray(called(predict, "predict", rows))
    if answer.ndim == 0 or answer.ndim > 2 or len(answer) != len(rows):
        raise ParameterError(
            "predict must give one score a row, or one row of scores: it was given "
            f"{len(rows):,} rows and gave an array of shape {answer.shape}."
        )
    if answer.dtype.kind not in "biuf":
        raise ParameterError("predict must give numbers: probabilities or scores, not names of classes.")
    scores = answer.astype(np.float64, copy=False).reshape(len(rows), -1)
    # A sum is quicker than a look at every score, and finite only where all of them are.
    with np.errstate(all="ignore"):
        total = scores.sum()
    if not np.isfinite(total) and not np.isfinite(scores).all():
        told = (
            " The records have NaN, which this model does not take: fill them first."
            if np.isnan(rows).any()
            else ""
        )
        raise ParameterError(f"predict gave scores that are NaN or infinite.{told}")
    return scores


@dataclass(frozen=True)
class _Game:
    """A model, the records, the references and which feature each column belongs to."""

    predict: Predict
    records: Floats
    references: Floats
    player: Integers
    players: int

    def explained(self, values: Floats, errors: Floats | None = None) -> Explanation:
        """Put the classes side by side: one row a record."""
        flat = values.transpose(0, 2, 1).reshape(len(values), -1)
        spread = None if errors is None else errors.transpose(0, 2, 1).reshape(len(errors), -1)
        base = scored(self.predict, self.references).mean(axis=0)
        return Explanation(flat, spread, base, scored(self.predict, self.records))


def _exact(game: _Game) -> Explanation:
    """Sum the scores of every coalition over the references, then weigh them once."""
    from discreet.attack.shapley_kernels import added_up, coalition_weights

    coalitions = 1 << game.players
    weights = coalition_weights(game.players)
    worth: Floats | None = None
    classes = 1
    # One question varies as many players as there is room for; the others are in, or out, for all of it.
    moving = min(game.players, _ROWS_AT_ONCE.bit_length() - 1)
    step = 1 << moving
    for start in range(0, coalitions, step):
        staying = (start >> game.player) & 1 == 1
        for own, scores in _answers(game, staying, moving):
            if worth is None:
                classes = scores.shape[1] // step
                worth = np.zeros((len(game.records), coalitions * classes))
            added_up(worth[:, start * classes : (start + step) * classes], scores, own)
    assert worth is not None
    worth /= len(game.references)
    by_class = worth.reshape(len(worth), coalitions, classes)
    return game.explained(np.einsum("msc,sp->mpc", by_class, weights, optimize=True))


def _answers(game: _Game, staying: Flags, moving: int) -> Any:
    """Scores of all coalitions of some players for blocks of (record, reference) pairs, in the order of the records."""
    from discreet.attack.shapley_kernels import all_mixed

    coalitions = 1 << moving
    pairs = len(game.records) * len(game.references)
    at_once = max(_ROWS_AT_ONCE // coalitions, 1)
    # Feature by feature in memory: quicker to write so, and a model reads its rows like any others.
    room = np.empty((len(game.player), min(at_once, pairs) * coalitions))
    for start in range(0, pairs, at_once):
        own, other = np.divmod(np.arange(start, min(start + at_once, pairs)), len(game.references))
        mixture = room[:, : len(own) * coalitions]
        all_mixed(mixture, game.records, game.references, own, other, staying, game.player, moving)
        yield own, scored(game.predict, mixture.T).reshape(len(own), -1)


def _by_permutations(game: _Game, pairs: int, rng: np.random.Generator) -> Explanation:
    """Let features join in random orders and in the reverse of each; every pair of orders meets one reference.

    The references are dealt out evenly. What is then missing in the sum (the score minus the mean score of all
    references) is given to the features whose estimate is least certain.
    """
    from discreet.attack.shapley_kernels import mixed

    n, people = game.players, len(game.records)
    dealt = _dealt(len(game.references), pairs, rng)
    total = squares = None
    at_once = max(_ROWS_AT_ONCE // (2 * n), 1)
    room = np.empty((min(at_once, people) * 2 * n, game.records.shape[1]))
    for reference in dealt:
        order = rng.permutation(n)
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        sizes = np.arange(n + 1)[:, None]
        forward, backward = place < sizes, (n - 1 - place) < sizes
        # Nobody and everybody stand in both orders; they are asked for once.
        taken = np.ascontiguousarray(np.vstack([forward, backward[1:-1]])[:, game.player])
        made: list[Floats] = []
        for start in range(0, people, at_once):
            own = np.arange(start, min(start + at_once, people))
            rows = room[: len(own) * len(taken)]
            mixed(rows, game.records, game.references, own, np.full(len(own), reference), taken)
            worth = scored(game.predict, rows).reshape(len(own), len(taken), -1)
            there = np.diff(worth[:, : n + 1], axis=1)
            back = np.diff(
                np.concatenate([worth[:, :1], worth[:, n + 1 :], worth[:, n : n + 1]], axis=1), axis=1
            )
            made.append((there[:, place] + back[:, n - 1 - place]) / 2)
        one = np.concatenate(made)
        total = one if total is None else total + one
        squares = one * one if squares is None else squares + one * one
    assert total is not None
    assert squares is not None
    values = total / pairs
    errors = np.sqrt(np.maximum(squares / pairs - values * values, 0.0) / (pairs - 1))
    base = scored(game.predict, game.references).mean(axis=0)
    gap = scored(game.predict, game.records) - base - values.sum(axis=1)
    doubt = errors * errors
    sure = doubt.sum(axis=1, keepdims=True)
    share = np.divide(doubt, sure, out=np.zeros_like(doubt), where=sure > 0)
    return game.explained(values + share * gap[:, None, :], errors)


def _dealt(references: int, pairs: int, rng: np.random.Generator) -> Integers:
    """Which reference each pair of orders meets: all of them equally often, as far as that goes."""
    rounds = [rng.permutation(references) for _ in range(-(-pairs // references))]
    return np.concatenate(rounds)[:pairs]


def _linear(game: _Game) -> Explanation:
    """Read the slopes off a few questions, and check on the records themselves that there is nothing but slopes."""
    if np.isnan(game.records).any() or np.isnan(game.references).any():
        raise ParameterError("A linear model takes no NaN. Fill them first.")
    middle = game.references.mean(axis=0)
    both = np.vstack([game.records, game.references])
    reach = np.ptp(both, axis=0)
    reach = np.where(reach > 0, reach, 1.0)
    asked = scored(game.predict, np.vstack([middle, middle + np.diag(reach)]))
    slopes = (asked[1:] - asked[0]) / reach[:, None]
    told = scored(game.predict, both)
    implied = asked[0] + (both - middle) @ slopes
    size = max(float(np.abs(told - told.mean(axis=0)).max()), float(np.abs(asked).max()), 1e-300)
    if float(np.abs(told - implied).max()) > _LINEAR_ENOUGH * size:
        raise ParameterError(
            "predict is not linear in its columns: its answers differ from those of the slopes. Use method='exact' or "
            "'permutation'."
        )
    parts = (game.records - middle)[:, :, None] * slopes
    values = np.zeros((len(parts), game.players, parts.shape[2]))
    for column, player in enumerate(game.player):
        values[:, player] += parts[:, column]
    return game.explained(values)


def _rows(given: Any, name: str, allow_nan: bool) -> Floats:
    array = given.to_numpy() if hasattr(given, "to_numpy") else given
    rows: Array = numbers_of(array, name, missing=True, infinite=False)
    if rows.ndim != 2:
        raise ParameterError(f"{name} must have rows and columns: one row a record, one column a feature.")
    if not rows.shape[1]:
        raise InputError(f"{name} has no columns.")
    if not allow_nan and np.isnan(rows).any():
        raise ParameterError(
            f"{name} has missing values: what a record mixed with a reference is then is not defined. Fill them, or "
            "say allow_nan=True where the model takes NaN."
        )
    return np.ascontiguousarray(rows)


def _players(groups: Sequence[Sequence[int]] | None, columns: int) -> Integers:
    """Which feature each column belongs to."""
    if groups is None:
        return np.arange(columns)
    named = [column for group in groups for column in group]
    if sorted(named) != list(range(columns)) or any(not len(group) for group in groups):
        raise ParameterError(f"groups must name every column from 0 to {columns - 1} once.")
    player = np.empty(columns, dtype=np.int64)
    player[named] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return player


# Who explains? The methods of this room, an explainer of the ``shap`` package, or any function of one's own.


Explainer = Method | Callable[[Predict, Floats, Floats], Any] | Any

ShapKind = Literal["exact", "permutation", "linear", "tree"]


@dataclass(frozen=True)
class Explained:
    """Explanations of one set of records, and whether they were estimated."""

    values: Floats
    approximate: bool


@dataclass(frozen=True)
class Explaining:
    """One way of explaining, asked about several sets of records."""

    explainer: Explainer
    predict: Predict
    reference: Floats
    groups: Sequence[Sequence[int]] | None = None
    permutations: int = 64
    force: bool = False
    allow_nan: bool = False
    seed: int | None = None

    @property
    def label(self) -> str:
        """What a table calls it."""
        if isinstance(self.explainer, str):
            return self.explainer
        return getattr(self.explainer, "__name__", type(self.explainer).__name__)

    def of(self, records: Floats) -> Explained:
        """Explain records: one row each, one column a feature and class."""
        if isinstance(self.explainer, str):
            if self.explainer not in get_args(Method):
                raise ParameterError(unknown_name(self.explainer, get_args(Method), what="explainer"))
            found = explain(
                self.predict,
                records,
                self.reference,
                self.explainer,  # type: ignore[arg-type]
                groups=self.groups,
                permutations=self.permutations,
                force=self.force,
                allow_nan=self.allow_nan,
                seed=self.seed,
            )
            return Explained(found.values, found.approximate)
        if hasattr(self.explainer, "shap_values"):
            answer = called(self.explainer.shap_values, "explainer", records)
        elif callable(self.explainer):
            answer = called(self.explainer, "explainer", self.predict, records, self.reference)
        else:
            raise ParameterError(
                f"explainer must be one of {', '.join(map(repr, get_args(Method)))}, an explainer of the package shap, "
                "or a function of the model, the records and the references."
            )
        # Nobody but the explainer knows whether it is exact; it counts as an estimate.
        return Explained(self._by_feature(_flat(answer, len(records))), approximate=True)

    def _by_feature(self, values: Floats) -> Floats:
        """Add up the columns of a group, where an explainer knows nothing of groups."""
        columns = self.reference.shape[1]
        if values.shape[1] % columns:
            players = columns if self.groups is None else len(self.groups)
            if values.shape[1] % players:
                raise ParameterError(
                    f"The explainer gave {values.shape[1]} numbers a record for {columns} columns; it must give one a "
                    "column, or one a column and class."
                )
            return values
        if self.groups is None:
            return values
        cube = values.reshape(len(values), -1, columns)
        parts = [cube[:, :, list(group)].sum(axis=2) for group in self.groups]
        return np.stack(parts, axis=2).reshape(len(values), -1)


@checked
def shap_explainer(
    kind: ShapKind, *, model: Any = None, seed: int | None = None, **options: Any
) -> Callable[[Predict, Floats, Floats], Floats]:
    """How do I let the package ``shap`` explain?

    Parameters
    ----------
    kind
        Which of its explainers. ``tree`` and ``linear`` look into the model itself. Any other explainer of shap can be
        given as ``explainer=`` as it is, once made for a model and a background.
    model
        The fitted model, for ``tree`` and ``linear``; the others ask ``predict``.
    seed
        For ``permutation``.
    options
        Handed to the call of the explainer, e.g. ``max_evals``.

    Returns
    -------
    A function to be given as ``explainer=``.

    Examples
    --------
    >>> shap_explainer("exact").__name__
    'shap exact'
    """
    if kind in ("tree", "linear") and model is None:
        raise ParameterError(f"The {kind} explainer of shap looks into the model: give it as model=.")

    def explained(predict: Predict, records: Floats, reference: Floats) -> Floats:
        shap = load_extra("shap", extra="dev", purpose="Explaining with shap")
        if kind == "tree":
            made = shap.TreeExplainer(model, reference).shap_values(records, check_additivity=False)
            return _flat(made, len(records))
        if kind == "linear":
            return _flat(shap.LinearExplainer(model, reference).shap_values(records), len(records))
        masker = shap.maskers.Independent(reference, max_samples=len(reference))
        if kind == "exact":
            return _flat(shap.explainers.Exact(predict, masker)(records, **options).values, len(records))
        maker = shap.explainers.Permutation(predict, masker, seed=seed)
        return _flat(maker(records, silent=True, **options).values, len(records))

    explained.__name__ = f"shap {kind}"
    return explained


def _flat(answer: Any, records: int) -> Floats:
    """One row a record, whatever form an explainer gives its answer: a list of classes, a cube, an object around it."""
    given = getattr(answer, "values", answer)
    try:
        cube = np.stack(given, axis=2) if isinstance(given, list) else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("The explainer must give numbers, one row a record.") from error
    if cube.ndim not in (2, 3) or len(cube) != records:
        raise ParameterError(f"The explainer must give one row a record: {records:,} rows.")
    if not np.isfinite(cube).all():
        raise ParameterError("The explainer gave values that are NaN or infinite.")
    return cube if cube.ndim == 2 else cube.transpose(0, 2, 1).reshape(records, -1)
