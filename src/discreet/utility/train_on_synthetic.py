"""Does a model trained on the release predict real people as well as one trained on the original?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.cards import Figure, OfPair, OfStudy, measure
from discreet.core.constraints import ColumnName, ColumnNames, Share
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import listed_files

Task = Literal["classification", "regression"]
Learner = Literal["linear", "forest", "boosting"]
_LEARNERS: tuple[Learner, ...] = ("linear", "forest", "boosting")
_MOST_LEVELS = 20
_GRIDS: Mapping[str, dict[str, list[Any]]] = {
    "linear": {"strength": [0.01, 0.1, 1.0, 10.0]},
    "forest": {"min_samples_leaf": [1, 5, 20], "max_features": ["sqrt", 0.5]},
    "boosting": {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]},
}


def _where_people_are_left(facts: ReleaseFacts) -> dict[str, Any] | None:
    there = facts.target and (facts.holdout or facts.shape == "linked tables")
    return {"learners": ["linear", "forest"]} if there else None


@measure(
    room="utility",
    work="whole-file",
    title="Training on the release",
    question="Does a model trained on the release predict real people as well?",
    headline="loss of predictive power",
    chapter="specific",
    place=2,
    leading=True,
    figures={
        "value": Figure(better="lower"),
        "gap": Figure(better="lower", summary=True),
        "best_released": Figure(better="higher", summary=True),
    },
    compare=OfPair(8, "utility", usual=False, one_type=True),
    study=OfStudy(6, {"learners": ["linear", "forest"]}),
    of_release=OfReleaseStudy(13, _where_people_are_left),
    tells=("score",),
)
def train_on_synthetic(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    target: ColumnName,
    *,
    holdout: Microdata | None = None,
    holdout_share: Annotated[float, Share(above=True, below=True)] = 0.3,
    learners: Learner | Sequence[Learner] = _LEARNERS,
    task: Literal["auto", "classification", "regression"] = "auto",
    search: bool = False,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    seed: Seed = None,
) -> Measure:
    """Does a model trained on the release predict real people as well as one trained on the original?

    Each learner is trained twice, on the original and on the release (on every copy), and both are tested on real
    records that neither has seen.

    Also known as: TSTR; train on synthetic, test on real; machine learning efficacy.

    Parameters
    ----------
    original, released
        What to train on: the original, and the release or a list of copies.
    target
        The column to predict.
    holdout
        Real records that took no part in making the release. Without them ``holdout_share`` of the original is held
        out of its own training, though the release knows it: that flatters the release, and a caveat says so.
    holdout_share
        Share of the original to hold out where there is no ``holdout``.
    learners
        ``"linear"`` (logistic for categories), ``"forest"``, ``"boosting"``.
    task
        ``"classification"`` or ``"regression"``; by default numbers with more than 20 values are regressed.
    search
        Whether each learner first looks for its best settings, by cross-validation within what it is trained on.
    columns, categorical
        Predictors (every other column but identifiers and weights unless named), and which of them are numbers that
        are codes.
    seed
        For the split and the learners.

    Returns
    -------
    Measure
        ``value`` is the gap: how much worse the release does, as the mean over learners of real minus released score
        (AUC for two classes, balanced accuracy for more, R² for numbers). ``figures``: ``gap``, ``worst_gap``,
        ``best_real``, ``best_released``, and for each learner its two scores. ``detail``: ``scores`` with all of them:
        accuracy, balanced accuracy, F1, AUC, log loss, or R², root mean squared and mean absolute error.

    How to read it
    --------------
    A gap of 0 says that one may train on the release instead. A gap of 0.05 in AUC is felt in practice. Look at
    ``best_real`` first: where even the original predicts nothing, a gap of 0 is no praise. Compare learners: a release
    often serves a linear model and fails a forest.

    When not to trust it
    --------------------
    Without a ``holdout`` the release has seen the records it is tested on. One target is one question; try several.
    The score hangs on few test records where the target is rare. With ``search`` part of a gap may be the search's
    luck.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(1).normal(size=300)
    >>> real = Microdata(pl.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no")}))
    >>> round(train_on_synthetic(real, real, "y", learners="linear", seed=1).figures["linear_real"], 2)
    1.0
    """
    copies = listed_files(released)
    chosen = (learners,) if isinstance(learners, str) else tuple(learners)
    files = _Files.read(original, copies, holdout, target, columns, categorical, task, holdout_share, seed)
    rows = []
    base = int(generator(seed, "learners").integers(2**31))
    for learner in chosen:
        for what, train in (
            ("original", files.real),
            *((f"copy {i}", t) for i, t in enumerate(files.copies)),
        ):
            model = _trained(learner, files, train, search, base)
            rows.append({"learner": learner, "trained_on": what, **_scores(model, files)})
    table = pl.DataFrame(rows, infer_schema_length=None)
    primary = files.primary
    figures: dict[str, Any] = {}
    gaps = []
    for learner in chosen:
        own = table.filter(pl.col("learner") == learner)
        real = float(own.filter(pl.col("trained_on") == "original")[primary].item())
        other = float(np.mean(own.filter(pl.col("trained_on") != "original")[primary].to_numpy()))
        figures |= {f"{learner}_real": real, f"{learner}_released": other}
        gaps.append(real - other)
    figures = {
        "gap": float(np.mean(gaps)),
        "worst_gap": max(gaps),
        "best_real": max(figures[f"{name}_real"] for name in chosen),
        "best_released": max(figures[f"{name}_released"] for name in chosen),
        **figures,
        "test_records": len(files.test[1]),
        "copies": len(copies),
    }
    words = {"auc": "AUC", "balanced_accuracy": "balanced accuracy", "r2": "R²"}[primary]
    return Measure(
        name="train_on_synthetic",
        value=figures["gap"],
        figures=figures,
        meaning=(
            f"Models trained on the release predict '{target}' of real people with {shown(figures['best_released'])} "
            f"{words} at best, trained on the original with {shown(figures['best_real'])}; the mean gap is "
            f"{shown(float(figures['gap']))}."
        ),
        caveats=files.notes,
        parameters={
            "target": target,
            "task": files.task,
            "score": primary,
            "learners": list(chosen),
            "search": search,
            "columns": list(files.predictors),
            "holdout": holdout is not None,
        },
        detail=engine.tables_like(original, scores=table),
    )


@dataclass(frozen=True)
class _Files:
    """Coded predictors and outcomes of what is trained and tested on."""

    predictors: tuple[str, ...]
    categories: Flags
    task: Task
    classes: int
    real: tuple[Floats, Any]
    copies: list[tuple[Floats, Any]]
    test: tuple[Floats, Any]
    notes: list[str]

    @property
    def primary(self) -> str:
        if self.task == "regression":
            return "r2"
        return "auc" if self.classes == 2 else "balanced_accuracy"

    @classmethod
    def read(  # noqa: PLR0917
        cls,
        original: Microdata,
        copies: Sequence[Microdata],
        holdout: Microdata | None,
        target: str,
        columns: str | Sequence[str] | None,
        categorical: str | Sequence[str],
        task: str,
        share: float,
        seed: Seed,
    ) -> _Files:
        predictors = _predictors(original, target, columns)
        coded = {categorical} if isinstance(categorical, str) else set(categorical)
        sources = [original, *copies, *([holdout] if holdout is not None else [])]
        for data in sources:
            need_known((target, *predictors), data.schema, "Every file needs it.")
        frames = [engine.collect(data, [*predictors, target]).drop_nulls(target) for data in sources]
        notes = []
        if any(frame.is_empty() for frame in frames):
            raise InputError(f"A file has no records with a value of '{target}'.")
        kind = _task(frames[0][target], task)
        outcomes, classes = _outcomes(frames, target, kind)
        tables, categories = _coded(frames, predictors, coded)
        parts = list(zip(tables, outcomes, strict=True))
        if holdout is not None:
            test, real = parts[-1], parts[0]
        else:
            order = generator(seed, "holdout").permutation(frames[0].height)
            held = max(1, round(share * len(order)))
            rows, outcome = parts[0]
            test, real = (
                (rows[order[:held]], outcome[order[:held]]),
                (rows[order[held:]], outcome[order[held:]]),
            )
            notes.append(
                "The test records are part of the original that the release was made from, which flatters the release. "
                "Give a holdout that took no part in it."
            )
        if kind == "classification" and any(
            len(np.unique(part[1])) < 2 for part in (real, *parts[1 : 1 + len(copies)])
        ):
            raise InputError(
                f"'{target}' has only one value in a training file, so there is nothing to learn."
            )
        return cls(
            predictors, categories, kind, classes, real, parts[1 : 1 + len(copies)], test, notes
        )  # fmt: skip


def _predictors(original: Microdata, target: str, columns: str | Sequence[str] | None) -> tuple[str, ...]:
    need_known([target], original.schema, "It was named as target.")
    if columns is not None:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        found = tuple(name for name in names if name != target)
    else:
        aside = {*original.roles.identifiers, original.roles.weight, target}
        found = tuple(name for name in original.columns if name not in aside)
    if not found:
        raise ParameterError("There is no column to predict from. Name some with columns=[…].")
    return found


def _task(values: pl.Series, task: str) -> Task:
    number = values.dtype.is_numeric()
    if task == "regression" and not number:
        raise ColumnError("The target is a category; task='regression' needs a number.")
    if task == "regression" or (task == "auto" and number and values.n_unique() > _MOST_LEVELS):
        return "regression"
    return "classification"


def _outcomes(frames: Sequence[pl.DataFrame], target: str, kind: Task) -> tuple[list[Any], int]:
    if kind == "regression":
        return [frame[target].cast(pl.Float64).to_numpy() for frame in frames], 0
    texts = [engine.as_text(engine.plain_text(frame[target])) for frame in frames]
    levels = pl.concat(texts).unique().sort()
    # The classes of the original come first, so that "two classes" does not hang on what a copy invented.
    known = texts[0].unique().sort()
    every = [*known.to_list(), *(level for level in levels.to_list() if level not in set(known.to_list()))]
    codes = {level: place for place, level in enumerate(every)}
    return [text.replace_strict(codes, return_dtype=pl.Int64).to_numpy() for text in texts], len(every)


def _coded(
    frames: Sequence[pl.DataFrame], predictors: Sequence[str], coded: set[str]
) -> tuple[list[Floats], Flags]:
    """Code the predictors of all files alike; a missing number stays missing, a missing category is a level."""
    columns: list[list[Floats]] = [[] for _ in frames]
    categories = []
    for name in predictors:
        parts = [frame[name] for frame in frames]
        number = name not in coded and all(
            part.dtype.is_numeric() or part.dtype.is_temporal() for part in parts
        )
        categories.append(not number)
        if number:
            values = [
                (part.to_physical() if part.dtype.is_temporal() else part).cast(pl.Float64).to_numpy()
                for part in parts
            ]
            # A file that knows none of a number learns nothing from it, which learners cannot read off gaps alone.
            values = [np.zeros(len(held)) if np.isnan(held).all() else held for held in values]
        else:
            texts = [engine.as_text(engine.plain_text(part)).fill_null("\x00missing") for part in parts]
            every = pl.concat(texts).unique().sort().to_list()
            place = {level: float(at) for at, level in enumerate(every)}
            values = [text.replace_strict(place, return_dtype=pl.Float64).to_numpy() for text in texts]
        for held, column in zip(columns, values, strict=True):
            held.append(column)
    return [np.column_stack(held) for held in columns], np.array(categories, dtype=np.bool_)


def _trained(learner: str, files: _Files, train: tuple[Floats, Any], search: bool, seed: int) -> Any:
    from sklearn.model_selection import GridSearchCV

    model, rename = _model(learner, files, seed)
    if search:
        grid = {rename(name): values for name, values in _GRIDS[learner].items()}
        scoring = "r2" if files.task == "regression" else "neg_log_loss"
        model = GridSearchCV(model, grid, cv=3, scoring=scoring)
    return model.fit(*train)


def _model(learner: str, files: _Files, seed: int) -> tuple[Any, Callable[[str], str]]:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    regress = files.task == "regression"
    numbers, categories = np.flatnonzero(~files.categories), np.flatnonzero(files.categories)
    if learner == "boosting":
        kind = HistGradientBoostingRegressor if regress else HistGradientBoostingClassifier
        few = [
            bool(is_category) and float(np.nanmax(files.real[0][:, at], initial=0)) < 250
            for at, is_category in enumerate(files.categories)
        ]
        wide = [
            any(float(np.nanmax(part[0][:, at], initial=0)) >= 250 for part in (*files.copies, files.test))
            for at in range(len(few))
        ]
        usable = [one and not other for one, other in zip(few, wide, strict=True)]
        return kind(random_state=seed, categorical_features=usable), lambda name: name
    clean = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
            ("categories", OneHotEncoder(handle_unknown="ignore"), categories),
        ]
    )
    if learner == "forest":
        kind = RandomForestRegressor if regress else RandomForestClassifier
        forest = kind(n_estimators=100, min_samples_leaf=5, random_state=seed)
        step = type(forest).__name__.lower()
        return make_pipeline(clean, forest), lambda name: f"{step}__{name}"
    if regress:
        return make_pipeline(clean, Ridge(alpha=1.0)), lambda _: "ridge__alpha"
    return make_pipeline(clean, LogisticRegression(max_iter=1000)), lambda _: "logisticregression__C"


def _scores(model: Any, files: _Files) -> dict[str, float | None]:
    from sklearn import metrics

    rows, truth = files.test
    guess = model.predict(rows)
    if files.task == "regression":
        return {
            "r2": float(metrics.r2_score(truth, guess)),
            "rmse": float(np.sqrt(metrics.mean_squared_error(truth, guess))),
            "mae": float(metrics.mean_absolute_error(truth, guess)),
        }
    chances = np.full((len(rows), files.classes), 1e-9)
    chances[:, model.classes_.astype(np.int64)] = np.maximum(model.predict_proba(rows), 1e-9)
    chances /= chances.sum(axis=1, keepdims=True)
    recalls = [float((guess[truth == level] == level).mean()) for level in np.unique(truth)]
    return {
        "accuracy": float(metrics.accuracy_score(truth, guess)),
        "balanced_accuracy": float(np.mean(recalls)),
        "f1": float(metrics.f1_score(truth, guess, average="macro", zero_division=0)),
        "auc": _auc(truth, chances),
        "log_loss": float(metrics.log_loss(truth, chances, labels=np.arange(files.classes))),
    }


def _auc(truth: Integers, chances: Floats) -> float | None:
    """Average, over the classes that the test records have, the AUC of each against the rest."""
    from sklearn.metrics import roc_auc_score

    seen = np.unique(truth)
    if len(seen) < 2:
        return None
    if chances.shape[1] == 2:
        return float(roc_auc_score(truth, chances[:, 1]))
    return float(np.mean([roc_auc_score(truth == level, chances[:, level]) for level in seen]))
