"""Can a learner that has not seen a record tell whether it is real? Cross-validated detection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.cards import Figure, OfStudy, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.findings import NEAR_COPIES, Caveat
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import compared_columns, copies_of
from discreet.utility.propensity_design import Stack, stack

_MOST_CATEGORIES = 255
_FEW_RECORDS = 20_000
_LEARNER: dict[str, Any] = {
    "max_iter": 100,
    "max_depth": 6,
    "learning_rate": 0.3,
    "early_stopping": False,
}


@measure(
    room="utility",
    work="whole-file",
    chapter="joint",
    place=4,
    figures={"value": Figure(better=0.5), "auc": Figure(better=0.5, summary=True)},
    study=OfStudy(2),
)
def detection(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    folds: Annotated[int, AtLeast(2)] = 3,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    most: int = 200_000,
    seed: Seed = 0,
) -> Measure:
    """Can a learner tell real records from released ones that it has not seen?

    Gradient boosting (100 trees of depth 6, learning rate 0.3, as the evaluations with synthcity use it) learns on all
    folds but one which records are real, and is asked about the records of the last one. The headline is the mean area
    under the ROC curve over folds: the chance that a released record looks more released than a real one. The same is
    done once more with the labels shuffled, because cross-validation is gloomy where there is nothing to find: a record
    that is asked about is missing, with its label, among those that were learned from, so that files that nobody can
    tell apart come out below 0.5.

    Also known as: classifier two-sample test; C2ST; distinguishability.

    Parameters
    ----------
    original, released
        The file before and after; or a list of copies, over which the numbers are averaged.
    folds
        Number of parts, each asked about once; real and released records are spread evenly over them.
    columns, categorical
        What to tell the files apart by (all columns that both have, but identifiers and weights, unless named), and
        which of them are numbers that are codes.
    most
        Larger files are represented by a random sample of so many records of both together.
    seed
        For the folds and the sample.

    Returns
    -------
    Measure
        ``value`` is the AUC. ``figures``: ``auc``, ``auc_sd`` (over folds and copies), ``auc_by_chance`` (labels
        shuffled: what files have that nobody can tell apart), ``excess`` (``auc`` less that), ``records`` (asked
        about), ``sampled`` (whether a sample stands for the files), ``copies``. ``detail``: ``folds``.

    How to read it
    --------------
    About 0.5, or ``auc_by_chance``, is a coin: the learner cannot tell. 1 means that every record gives itself away.
    An ``excess`` of 0.1 is far on the way. Clearly *below* 0 it is no better utility but a warning: released records
    are copies of real ones, which the learner has met with the other label.

    When not to trust it
    --------------------
    One column that is written differently (rounded, other decimals) is enough for 1, and no user may care; see which
    with `pmse`. A weak learner proves nothing: 0.5 here does not mean that nobody could tell. On few hundred records
    the figure moves by several hundredths with the seed.

    Examples
    --------
    >>> import polars as pl
    >>> rng = np.random.default_rng(1)
    >>> real, fake = (Microdata(pl.DataFrame({"x": rng.normal(at, 1, 200)})) for at in (0, 9))
    >>> round(detection(real, fake).value, 2)
    1.0
    """
    copies = copies_of(released, original)
    if most < 2 * folds:
        raise ParameterError("most must leave at least one record of each file to a fold.")
    compared = compared_columns(original, copies[0], columns)
    codes = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    scores, chance, asked, sampled = [], [], 0, False
    for number, copy in enumerate(copies, start=1):
        stacked = stack(original, copy, compared.names, categorical=codes, aggregate=False)
        if min(stacked.original_records, stacked.released_records) < folds:
            raise ParameterError(f"Each file needs at least {folds} records, one for each fold.")
        rng = generator(seed, "detection", str(number))
        kept = _sample(stacked.released, most, rng)
        sampled, asked = sampled or len(kept) < stacked.records, len(kept)
        labels = stacked.released[kept]
        found = _folds(stacked, kept, labels, folds, rng)
        scores += [(number, fold, auc) for fold, auc in enumerate(found, start=1)]
        chance += _folds(stacked, kept, rng.permutation(labels), folds, rng)
    aucs, by_chance = np.array([auc for *_, auc in scores]), np.array(chance)
    figures = {
        "auc": float(aucs.mean()),
        "auc_sd": float(aucs.std(ddof=1)),
        "auc_by_chance": float(by_chance.mean()),
        "excess": float(aucs.mean() - by_chance.mean()),
        "folds": folds,
        "records": asked,
        "sampled": sampled,
        "copies": len(copies),
    }
    return Measure(
        name="detection",
        value=figures["auc"],
        figures=figures,
        meaning=f"A learner that sees one real and one released record it has not met tells them apart with a chance "
        f"of {shown(float(figures['auc']))}; files that cannot be told apart have "
        f"{shown(float(figures['auc_by_chance']))} here.",
        caveats=[*compared.caveats, *_caveats(float(aucs.mean() - by_chance.mean()), sampled, asked)],
        parameters={"folds": folds, "columns": list(compared.names), "most": most, **_LEARNER},
        detail=engine.tables_like(
            original, folds=pl.DataFrame(scores, schema=["copy", "fold", "auc"], orient="row")
        ),
    )


def _sample(released: Flags, most: int, rng: np.random.Generator) -> Integers:
    """Draw, from each file in proportion, the records that are asked about."""
    if len(released) <= most:
        return np.arange(len(released))
    parts = []
    for side in (False, True):
        places = np.flatnonzero(released == side)
        size = max(round(most * len(places) / len(released)), 2)
        parts.append(rng.permutation(places)[:size])
    return np.sort(np.concatenate(parts))


def _folds(
    stacked: Stack,
    kept: Integers,
    labels: Flags,
    folds: int,
    rng: np.random.Generator,
) -> list[float]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    if not stacked.columns:
        return [0.5] * folds
    rows = np.column_stack([column.values[kept] for column in stacked.columns]).astype(np.float64)
    categories = [
        column.kind == "category" and len(column.levels) <= _MOST_CATEGORIES for column in stacked.columns
    ]
    parts = StratifiedKFold(folds, shuffle=True, random_state=int(rng.integers(2**31)))
    model = HistGradientBoostingClassifier(**_LEARNER, random_state=0)
    # On few records threads wait for each other longer than they work.
    threads = 1 if len(kept) < _FEW_RECORDS else None
    with threadpool_limits(limits=threads, user_api="openmp"):
        scores = []
        for learn, ask in parts.split(rows, labels):
            known = ~np.isnan(rows[learn]).all(axis=0)
            if not known.any():
                scores.append(0.5)
                continue
            model.set_params(categorical_features=np.array(categories)[known])
            model.fit(rows[learn][:, known], labels[learn])
            scores.append(float(roc_auc_score(labels[ask], model.predict_proba(rows[ask][:, known])[:, 1])))
        return scores


def _caveats(excess: float, sampled: bool, asked: int) -> list[str]:
    said: list[str] = []
    # The standard error of an AUC of 0.5 with as many real as released records.
    error = np.sqrt((asked + 1) / (3 * asked**2))
    if excess < -3 * np.sqrt(2) * error:
        sentence = (
            "Clearly below what chance gives: released records are exact or near copies of real ones. That is a "
            "privacy warning, not a sign of extra utility; see risk.neighbors."
        )
        said.append(Caveat(sentence, code=NEAR_COPIES))
    if sampled:
        said.append(
            f"Measured on a random sample of {asked:,} records; the error from that is about {error:.3f}."
        )
    return said
