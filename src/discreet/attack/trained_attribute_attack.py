"""How well does somebody who trains a model on the release guess a secret of people whom the model has not seen?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.attack.attribute_inference import Clues, secrets_of
from discreet.attack.success import chosen_ways
from discreet.attack.victims import victims_of
from discreet.core.arrays import Floats, Integers
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Entries, Public, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import names_checked

Learner = Literal["bayes", "tree", "boosted"]
LEARNERS: tuple[Learner, ...] = ("bayes", "tree", "boosted")

_MOST_CLASSES = 50
_OWN_TARGETS = 0.2


def _with_secrets(facts: ReleaseFacts) -> dict[str, Any] | None:
    return {"repeats": 3} if facts.roles.get("sensitive") else None


@measure(
    room="attack",
    title="Attribute attack",
    question="Does training on the release let a secret be guessed better than by chance?",
    headline="F1 (macro) beyond the better of two blind guesses",
    chapter="attackers",
    place=41,
    work="whole-file",
    references=(
        "Hittmeir, M., Mayer, R. and Ekelhart, A. (2020). A baseline for attribute disclosure risk in synthetic data. "
        "Tenth ACM Conference on Data and Application Security and Privacy, 133–143. doi:10.1145/3374664.3375722",
    ),
    figures={
        "value": Figure("F1 of the release beyond a blind guess", better="lower", summary=True),
        "f1_released": Figure("F1 (macro), trained on the release", better="lower"),
        "f1_original": Figure("F1 (macro), trained on real people"),
        "f1_majority": Figure("F1 (macro) of the commonest answer"),
        "f1_random": Figure("F1 (macro) of answers drawn by their frequency"),
        "mcc_released": Figure("Matthews correlation, trained on the release", better="lower"),
        "mcc_original": Figure("Matthews correlation, trained on real people"),
        "minority_recall_released": Figure(
            "Share of the rarest class that is found, trained on the release", unit="share", better="lower"
        ),
        "pr_auc_released": Figure(
            "Area under precision and recall of the rarest class, release", better="lower"
        ),
        "targets": Figure("People who were attacked"),
    },
    of_release=OfReleaseStudy(15, _with_secrets, ("file", "linked tables")),
)
@checked
def attribute_attack(
    original: Microdata,
    released: Microdata,
    *,
    secret: ColumnName | None = None,
    known: ColumnName | ColumnNames | None = None,
    holdout: Microdata | None = None,
    fractions: Annotated[float, Share(above=True)]
    | Annotated[Sequence[Annotated[float, Share(above=True)]], Public(), Entries()] = (1.0,),
    learners: Learner | Annotated[Sequence[Learner], Entries()] = LEARNERS,
    repeats: Annotated[int, AtLeast(1)] = 10,
    most_targets: Annotated[int, AtLeast(1)] = 10_000,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Does training on the release let a secret be guessed better than by chance?

    The attacker trains a classifier for the secret on a part of the release, and for comparison on as many real
    records, and guesses it for real people who are in neither (the targets). The scores are held against two blind
    guesses: always the commonest answer, and answers drawn by their frequency.

    Also known as: attribute inference by a trained model.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    secret
        The column to be guessed; the first sensitive one unless named. It must have at most 50 classes.
    known
        What the attacker knows; all other columns unless named.
    holdout
        The targets: real people who were not used to make the release. Without them a fifth of the original is set
        aside; the release has seen those, and a caveat says so.
    fractions
        Which parts of the release (and of the original) the attacker trains on.
    learners
        ``"bayes"`` (naive Bayes), ``"tree"``, ``"boosted"``, or several.
    repeats
        How often, with other parts and other seeds.
    most_targets
        At most so many people are attacked.
    progress
        Show a progress bar on a terminal.
    seed
        Of everything that is drawn.

    Returns
    -------
    Measure
        ``value`` is the largest mean F1 (macro) over learners and parts, less the better blind guess: above 0 the
        release gives something away about people in general, or about these. ``figures`` are of that learner and part.
        ``detail``: ``scores``, mean and standard deviation for every source, learner and part.

    How to read it
    --------------
    Look at the score of the original beside it. A release that lets the secret be guessed as well as real people do
    is faithful, and the guess is about people in general: inference, not leakage of a record. With rare classes look
    at the recall of the rarest and at the area under precision and recall; F1 hides them.

    When not to trust it
    --------------------
    Targets that helped to make the release make it look worse, and a handful of targets makes every score chance. A
    secret that follows from what is known is guessed about everybody. A better attacker than these three may exist.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> def people(n):
    ...     x = rng.integers(0, 4, n)
    ...     return Microdata(pl.DataFrame({"x": x, "ill": np.where(x == 3, "yes", "no")}))
    >>> real, others = people(400), people(200)
    >>> found = attribute_attack(real, real, secret="ill", holdout=others, learners="tree", repeats=2, seed=1)
    >>> found.figures["f1_released"], found.figures["mcc_released"]
    (1.0, 1.0)
    """
    shares = [fractions] if isinstance(fractions, int | float) else list(fractions)
    chosen = chosen_ways(learners, LEARNERS)
    wanted = secret or (original.roles.sensitive[0] if original.roles.sensitive else None)
    if wanted is None:
        raise ParameterError("Say which column is to be guessed: secret=…, or the role sensitive.")
    names_checked(original, [wanted], "secret")
    given = None if known is None else names_checked(original, known, "known")
    columns = None if given is None else [wanted, *(name for name in given if name != wanted)]
    victims = victims_of(original, released, holdout, columns=columns, what="holdout")
    rng = generator(seed, "attribute attack")
    caveats = list(victims.caveats)
    real, made, targets = victims.original, victims.released, victims.holdout
    if targets is None:
        order = rng.permutation(real.height)
        cut = max(1, round(_OWN_TARGETS * real.height))
        targets, real = real[order[:cut]], real[order[cut:]]
        caveats.append(
            "The people who were attacked helped to make the release: give a hold-out to see what a stranger learns."
        )
    if targets.height > most_targets:
        targets = targets[np.sort(rng.permutation(targets.height)[:most_targets])]
    sources = {"original": real, "released": made}
    coded = secrets_of([real[wanted], made[wanted], targets[wanted]], categorical=True)
    classes = coded[0].levels
    if classes > _MOST_CLASSES:
        raise ColumnError(
            f"Column '{wanted}' has {classes} values; guessing needs classes, at most {_MOST_CLASSES}. Recode it."
        )
    there = ~np.isnan(coded[2].values)
    truth = coded[2].values[there].astype(np.int64)
    if len(np.unique(truth)) < 2:
        raise InputError(f"Column '{wanted}' does not vary among the people to be attacked.")
    clue_names = [name for name in victims.names if name != wanted]
    if not clue_names:
        raise ParameterError(f"Nothing is known from which '{wanted}' could be guessed. Name known=[…].")
    answers = {"original": coded[0].values, "released": coded[1].values}
    rows: list[dict[str, Any]] = []
    work = [(source, share, turn) for source in sources for share in shares for turn in range(repeats)]
    for source, share, turn in track(work, description="Guessing", progress=progress):
        rows += _turn(
            sources[source].select(clue_names),
            answers[source],
            targets.select(clue_names).filter(pl.Series(there)),
            truth,
            classes,
            chosen,
            {"trained_on": source, "fraction": float(share), "turn": turn},
            generator(seed, "turn", source, str(share), str(turn)),
        )
    blind = blind_scores(truth, classes)
    scores = (
        pl.DataFrame(rows)
        .group_by("trained_on", "learner", "fraction", maintain_order=True)
        .agg(
            *(pl.col(name).mean() for name in _SCORES),
            *(pl.col(name).std().alias(f"{name}_sd") for name in _SCORES),
            pl.col("lacks_a_class").any(),
            pl.len().alias("repeats"),
        )
    )
    if scores["lacks_a_class"].any():
        caveats.append(
            "Some training parts lacked a class of the secret; their scores are counted as they are."
        )
    best = scores.filter(trained_on="released").sort("f1", descending=True).row(0, named=True)
    same = scores.filter(trained_on="original", learner=best["learner"], fraction=best["fraction"])
    floor = max(blind["majority"], blind["random"])
    value = float(best["f1"] - floor)
    return Measure(
        "attribute_attack",
        value,
        {
            "f1_released": best["f1"],
            "f1_original": same["f1"][0],
            "f1_majority": blind["majority"],
            "f1_random": blind["random"],
            "mcc_released": best["mcc"],
            "mcc_original": same["mcc"][0],
            "minority_recall_released": best["minority_recall"],
            "pr_auc_released": best["pr_auc"],
            "targets": len(truth),
        },
        f"Trained on the release, '{wanted}' of {len(truth):,} people is guessed with F1 {best['f1']:.3f}; real people "
        f"would give {same['f1'][0]:.3f}, a blind guess {floor:.3f}.",
        caveats=caveats,
        detail={"scores": scores},
        parameters={"secret": wanted, "fractions": shares, "learners": list(chosen), "repeats": repeats},
    )


_SCORES = ("f1", "mcc", "minority_recall", "pr_auc")


def _turn(  # noqa: PLR0917
    records: pl.DataFrame,
    answers: Floats,
    targets: pl.DataFrame,
    truth: Integers,
    classes: int,
    learners: Sequence[Learner],
    about: dict[str, Any],
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """Train on one part, and score every learner on the targets."""
    known = np.flatnonzero(~np.isnan(answers))
    if not len(known):
        raise InputError(f"The secret is missing in every record of the {about['trained_on']}.")
    part = known[rng.permutation(len(known))[: max(2, round(about["fraction"] * len(known)))]]
    clues = Clues.of(records[part], targets, ())
    _, codes, asked = clues.coded()
    learned = answers[part].astype(np.int64)
    lacks = len(np.unique(learned)) < classes
    rows = []
    for learner in learners:
        chances = _chances(learner, codes, learned, asked, classes, int(rng.integers(2**31)))
        rows.append({**about, "learner": learner, "lacks_a_class": lacks, **scores_of(truth, chances)})
    return rows


def _chances(  # noqa: PLR0917
    learner: Learner, codes: Any, learned: Integers, asked: Any, classes: int, seed: int
) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.tree import DecisionTreeClassifier
    from threadpoolctl import threadpool_limits

    chances = np.zeros((len(asked), classes))
    if len(np.unique(learned)) < 2:
        chances[:, learned[0]] = 1.0
        return chances
    most = np.maximum(np.max(codes, axis=0), np.max(asked, axis=0)).astype(int) + 1
    made: dict[Learner, Callable[[], Any]] = {
        "bayes": lambda: CategoricalNB(min_categories=most),
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        "boosted": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    }
    with threadpool_limits(1):
        model = made[learner]().fit(codes, learned)
        chances[:, model.classes_] = model.predict_proba(asked)
    return chances


def scores_of(truth: Integers, chances: Floats) -> dict[str, float]:
    """Score guesses: F1 by class and averaged (0 where undefined), Matthews correlation, and the rarest class alone.

    Examples
    --------
    >>> truth = np.array([0, 0, 0, 1])
    >>> always = np.tile([1.0, 0.0], (4, 1))
    >>> {name: round(score, 3) for name, score in scores_of(truth, always).items()}
    {'f1': 0.429, 'mcc': 0.0, 'minority_recall': 0.0, 'pr_auc': 0.25}
    """
    from sklearn.metrics import average_precision_score, f1_score, matthews_corrcoef

    guess = chances.argmax(axis=1)
    often = np.bincount(truth, minlength=chances.shape[1])
    rare = int(np.where(often > 0, often, len(truth) + 1).argmin())
    return {
        "f1": float(f1_score(truth, guess, labels=np.flatnonzero(often), average="macro", zero_division=0)),
        "mcc": float(matthews_corrcoef(truth, guess)),
        "minority_recall": float((guess[truth == rare] == rare).mean()),
        "pr_auc": float(average_precision_score(truth == rare, chances[:, rare])),
    }


def blind_scores(truth: Integers, classes: int) -> dict[str, float]:
    """Return F1 (macro) of the commonest answer, and of answers drawn by their frequency (expected counts)."""
    shares = np.bincount(truth, minlength=classes) / len(truth)
    there = shares[shares > 0]
    top = float(there.max())
    # Precision and recall of a class that is answered with its frequency are both that frequency.
    return {"majority": 2 * top / (1 + top) / len(there), "random": float(there.mean())}
