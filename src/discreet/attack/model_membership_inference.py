"""Does a trained model give away who was in its training data?

Models know their training records better than others. The black-box attacker asks the model about a person and looks
how sure it is of the truth. Who also has data like the training data fits models of the same kind with and without the
person, and weighs by a likelihood ratio whether the answer looks like that of a model that has seen them (Carlini and
others' attack). The cut, and which attacker is believed, is chosen on one half of the people and judged on the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from discreet.attack.membership_inference import LIRA, ROC_FIGURES, Scores, methods_table, roc_figures
from discreet.attack.structural_attack import SACRO
from discreet.attack.success import RISK_FIGURES, Tally, Trial, measured
from discreet.attack.victims import drawn
from discreet.core.arrays import Flags, Floats, Integers, rows_of
from discreet.core.cards import measure
from discreet.core.constraints import AtLeast
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure

_WAYS = {"black box": "by how sure the model is", "likelihood ratio": "by shadow models of its kind"}
_TINY = 1e-6


@measure(
    room="attack",
    title="Membership in a model",
    headline="of the training records are recognized by what the model says",
    chapter="attackers",
    place=8,
    work="whole-file",
    references=(LIRA, SACRO),
    figures={**RISK_FIGURES, **ROC_FIGURES},
    tells=("chosen",),
)
@checked
def model_membership(
    model: Any,
    X: Any,
    y: Any,
    *,
    others: tuple[Any, Any],
    shadows: int = 16,
    attacks: Annotated[int, AtLeast(1)] = 2_000,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Does a trained model give away who was in its training data?

    Also known as: membership inference of models.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator, or anything with ``predict_proba`` (and ``classes_``), or with ``predict`` for
        a number.
    X, y
        What it was trained on.
    others
        Records of people it was not trained on, with their outcomes: ``(X, y)``.
    shadows
        How many models of the same kind are fitted for the likelihood ratio, each to every second record; 0 for the
        black-box attack alone. What is no scikit-learn estimator cannot be refitted.
    attacks
        How many members, and how many others, are attacked.
    progress
        Show a progress bar on a terminal.
    seed
        Who is attacked, and which records each shadow model sees.

    Returns
    -------
    Measure
        ``attack_rate``: members recognized; ``control_rate``: others taken for members by the same cut; ``value`` the
        risk (attack - holdout) / (1 - holdout), ``risk_low`` and ``risk_high`` (95 %); ``auc``, ``tpr_at_fpr_001`` and
        ``tpr_at_fpr_01`` of the chosen attacker over all cuts. ``detail``: ``methods``, ``records``.

    How to read it
    --------------
    A model that treats strangers like its own has a risk that cannot be told from zero. A forest of full-grown trees
    has one near 1: it answers for a member with what it remembers.

    When not to trust it
    --------------------
    Averages hide the few; see the scores in ``detail["records"]``. Records of others from another population look like
    non-members for reasons that have nothing to do with the model.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = generator(1)
    >>> X, y = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> found = model_membership(model, X[:300], y[:300], others=(X[300:], y[300:]), shadows=0, seed=1)
    >>> found.value > 0.8, found.figures["attack_rate"]
    (True, 1.0)
    """
    if shadows and shadows < 8:
        raise ParameterError("shadows must be 0 (black box alone) or at least 8.")
    truth, strangers = rows_of(y, "y").ravel(), rows_of(others[1], "others").ravel()
    root = int(generator(seed).integers(2**62))
    for what, table, outcome in (("X", X, truth), ("others", others[0], strangers)):
        records = len(table) if hasattr(table, "columns") else len(rows_of(table, what))
        if records != len(outcome):
            raise InputError(f"{what} has {records:,} records and {len(outcome):,} outcomes.")
    if np.shape(X)[1:] != np.shape(others[0])[1:]:
        raise InputError("X and others must have the same columns.")
    caveats = _apart(X, others[0])
    inside = drawn(len(truth), attacks, generator(root, "members"))
    outside = drawn(len(strangers), attacks, generator(root, "others"))
    if min(len(inside), len(outside)) < 4:
        raise ParameterError("Too few people to attack: four members and four others at least.")
    people = (_rows(X, inside), _rows(others[0], outside))
    outcomes = (truth[inside], strangers[outside])
    sure = Scores(*(_sureness(model, table, value) for table, value in zip(people, outcomes, strict=True)))
    scores = {"black box": sure}
    if shadows:
        refit = _refit(model)
        if refit is None:
            caveats.append(
                f"A {type(model).__name__} cannot be refitted here: the attacker with shadow models was not tried."
            )
        else:
            scores["likelihood ratio"] = _by_shadows(
                refit, people, outcomes, sure, shadows=shadows, root=root, progress=progress
            )
    found = _judged(scores, root)
    return measured(
        "model_membership",
        Trial(found.attack, found.holdout, found.guessed),
        doing=f"recognizes a training record ({_WAYS[found.method]})",
        figures=roc_figures(scores[found.method]),
        caveats=caveats,
        parameters={
            "model": type(model).__name__,
            "chosen": found.method,
            "shadows": shadows,
            "attacks": attacks,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            methods=lambda: methods_table(scores),
            records=lambda: pl.DataFrame(
                {"record": inside, **{name.replace(" ", "_"): one.members for name, one in scores.items()}}
            ),
        ),
    )


class _Judged(NamedTuple):
    """The attacker who was chosen on one half of the people, and what they achieved on the other."""

    method: str
    attack: Tally
    holdout: Tally
    guessed: float


def _judged(scores: Mapping[str, Scores], root: int) -> _Judged:
    """Choose attacker and cut on one half of the people, and count on the other."""
    first = next(iter(scores.values()))
    rng = generator(root, "halves")
    halves = [_half(len(side), rng) for side in first]
    best: tuple[float, str, float] | None = None
    for name, one in scores.items():
        gain, cut = best_cut(one.members[halves[0]], one.others[halves[1]])
        if best is None or gain > best[0]:
            best = (gain, name, cut)
    assert best is not None
    _, method, cut = best
    attack, holdout = (
        Tally.of(side[~half] >= cut) for side, half in zip(scores[method], halves, strict=True)
    )
    # Who says "member" blindly as often as the attacker does is right about members just as often.
    guessed = (attack.hits + holdout.hits) / (attack.tries + holdout.tries)
    return _Judged(method, attack, holdout, guessed)


def _half(rows: int, rng: np.random.Generator) -> Flags:
    chosen = np.zeros(rows, dtype=bool)
    chosen[rng.permutation(rows)[: rows // 2]] = True
    return chosen


def best_cut(members: Floats, others: Floats) -> tuple[float, float]:
    """Find the score from which on most more members than others are found, as shares, and how many more.

    Examples
    --------
    >>> best_cut(np.array([0.9, 0.8, 0.1]), np.array([0.5, 0.1, 0.0]))
    (0.66..., 0.8)
    """
    cuts = np.unique(np.concatenate([members, others]))
    # From the lowest score on everybody is taken for a member, which is no decision.
    cuts = cuts[1:] if len(cuts) > 1 else cuts
    inside = 1 - np.searchsorted(np.sort(members), cuts, side="left") / len(members)
    outside = 1 - np.searchsorted(np.sort(others), cuts, side="left") / len(others)
    at = int(np.argmax(inside - outside))
    return float(inside[at] - outside[at]), float(cuts[at])


def _rows(table: Any, rows: Integers) -> Any:
    """Take records of whatever kind of table the model takes."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    return (
        table[rows] if hasattr(table, "__getitem__") and hasattr(table, "shape") else np.asarray(table)[rows]
    )


def _apart(X: Any, others: Any) -> list[str]:
    """Refuse others who are the members, of whom nothing could be told; name those that are shared."""
    ours, theirs = (
        pl.DataFrame(np.asarray(table.to_numpy() if hasattr(table, "to_numpy") else table).astype(str))
        for table in (X, others)
    )
    shared = theirs.join(ours.unique(), on=ours.columns, how="semi").height
    if shared == theirs.height and ours.unique().height > 0.5 * ours.height:
        raise ParameterError(
            "Every record of others is among the training records: give people the model was not trained on."
        )
    if not shared or ours.unique().height <= 0.5 * ours.height:
        return []
    return [
        f"{shared:,} records of others are among the training records too: if they are the same people, the risk is "
        "higher than it looks."
    ]


def _sureness(model: Any, table: Any, outcome: Any) -> Floats:
    """Say how sure the model is of the truth: the log-odds of the true class, or how small the error of a number is."""
    try:
        with warnings.catch_warnings(action="ignore"):
            if hasattr(model, "predict_proba"):
                chances = np.asarray(model.predict_proba(table), dtype=np.float64)
                classes = np.asarray(getattr(model, "classes_", np.arange(chances.shape[1])))
                place = np.searchsorted(classes, outcome)
                known = (place < len(classes)) & (classes[np.minimum(place, len(classes) - 1)] == outcome)
                right = np.where(
                    known, chances[np.arange(len(outcome)), np.minimum(place, len(classes) - 1)], 0.0
                )
                clipped = np.clip(right, _TINY, 1 - _TINY)
                return np.asarray(np.log(clipped / (1 - clipped)))
            guess = np.asarray(model.predict(table))
    except Exception as error:
        raise InputError(
            f"The model refused the records ({type(error).__name__}). A model that cannot take missing values or text "
            "needs them as it was trained on: fill or code them, or give the whole pipeline."
        ) from error
    if (
        guess.dtype.kind in "fiu"
        and np.asarray(outcome).dtype.kind in "fiu"
        and not hasattr(model, "classes_")
    ):
        return np.asarray(-np.log(np.abs(guess.ravel() - outcome) + _TINY))
    return np.asarray((guess.ravel() == outcome).astype(np.float64))


def _refit(model: Any) -> Callable[[Any, Any], Any] | None:
    """Make a function that fits a model of the same kind anew, or nothing where that is not possible."""
    from sklearn.base import clone

    try:
        clone(model)
    except (TypeError, RuntimeError):
        return None
    return lambda table, outcome: clone(model).fit(table, outcome)


def _by_shadows(
    refit: Callable[[Any, Any], Any],
    people: tuple[Any, Any],
    outcomes: tuple[Any, Any],
    sure: Scores,
    *,
    shadows: int,
    root: int,
    progress: bool,
) -> Scores:
    """Fit models to halves of everybody, and weigh the answer of the model by those of models with and without."""
    everybody = _together(people[0], people[1])
    truth = np.concatenate(outcomes)
    size = len(truth)
    held = np.zeros((size, shadows), dtype=bool)
    answers = np.empty((size, shadows))
    for number in track(range(shadows), description="Shadow models", progress=progress):
        rng = generator(root, "shadow", str(number // 2))
        chosen = np.zeros(size, dtype=bool)
        chosen[rng.permutation(size)[: size // 2]] = True
        held[:, number] = chosen if number % 2 == 0 else ~chosen
        rows = np.flatnonzero(held[:, number]).astype(np.int64)
        try:
            with warnings.catch_warnings(action="ignore"):
                fitted = refit(_rows(everybody, rows), truth[rows])
        except Exception as error:
            raise InputError(
                f"The model could not be fitted to half of the people ({type(error).__name__}): a class may be too "
                "rare, or there are too few. Use shadows=0 for the black-box attack alone."
            ) from error
        answers[:, number] = _sureness(fitted, everybody, truth)
    own = np.concatenate([sure.members, sure.others])
    ratio = _log_law(own, answers, held) - _log_law(own, answers, ~held)
    return Scores(ratio[: len(sure.members)], ratio[len(sure.members) :])


def _together(first: Any, second: Any) -> Any:
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    if hasattr(first, "toarray"):
        from scipy.sparse import vstack

        return vstack([first, second]).tocsr()
    return np.concatenate([np.asarray(first), np.asarray(second)])


def _log_law(own: Floats, answers: Floats, use: Flags) -> Floats:
    """Give the log-density of an answer under the normal law of the shadow models' answers, spread pooled over all."""
    count = np.maximum(use.sum(axis=1), 1)
    mean = (answers * use).sum(axis=1) / count
    spread = ((answers - mean[:, None]) ** 2 * use).sum(axis=1) / count
    # Few shadow models say little about the spread of one person: that of all people steadies it.
    steady = 0.5 * spread + 0.5 * float(spread.mean()) + 1e-6
    return np.asarray(-0.5 * np.log(steady) - (own - mean) ** 2 / (2 * steady))
