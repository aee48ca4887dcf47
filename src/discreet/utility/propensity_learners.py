"""Models of which file a record came from: logistic or linear, a tree, boosting, or a function of the user's own.

Every model is prepared for a stack of two files and hands back a `Fit`, whose scores are held against each other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
import scipy

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.randomness import generator
from discreet.utility.propensity_design import Design, Stack, designed, rank, without_rare_levels

if TYPE_CHECKING:
    from discreet.numerics.trees.coding import Feature


_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fit:
    """Propensity scores of cells of like records.

    Attributes
    ----------
    scores
        The estimated chance, by cell, that a record is a released one.
    ours, every
        Weight of the released records of each cell, and of all.
    columns
        Coefficients, the intercept among them, of a model with fixed ones.
    leaves
        Leaves of a tree.
    separated
        Whether some records were told apart for sure.
    """

    scores: Floats
    ours: Floats
    every: Floats
    columns: int | None = None
    leaves: int | None = None
    separated: bool = False
    converged: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of the released records."""
        return float(self.ours.sum() / self.every.sum())

    @property
    def pmse(self) -> float:
        """The mean squared distance of the scores from the share of released records; exactly 0 where all are equal."""
        away = self.scores - self.share
        # Scores that differ from the share by rounding alone say nothing, and two such nothings have no ratio.
        away = np.where(np.abs(away) < _ROUNDING, 0.0, away)
        return float(self.every @ away**2 / self.every.sum())


class Prepared(Protocol):
    """A model whose predictors are laid out; only the labels change from fit to fit."""

    @property
    def stacked(self) -> Stack:
        """The files it was prepared for."""
        ...

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit with the true labels, or with these."""
        ...


class Learner(Protocol):
    """A kind of propensity model."""

    fixed_columns: bool

    def prepare(self, stacked: Stack) -> Prepared:
        """Lay out the predictors."""
        ...


def score_distances(fit: Fit) -> dict[str, float]:
    """Compare the scores of the two files: SPECKS, the Mann-Whitney U and AUC, and PO50.

    PO50 is the percentage of records that the threshold c classifies correctly, less 50; a score of exactly c counts
    as half right, so that files that cannot be told apart have 0.
    """
    order = np.argsort(fit.scores)
    scores = fit.scores[order]
    released, original = fit.ours[order], (fit.every - fit.ours)[order]
    # Equal scores of different records may differ in their last digits; they must not be ranked by them.
    same = 1e-9 * float(scores[-1] - scores[0])
    last = np.flatnonzero(np.append(np.diff(scores) > same, True))
    after, before = np.cumsum(released)[last], np.cumsum(original)[last]
    total, rest = after[-1], before[-1]
    here, there = np.diff(after, prepend=0.0), np.diff(before, prepend=0.0)
    u = float((here * (before - there / 2)).sum())
    away = scores[last] - fit.share
    tied = np.abs(away) <= max(same, 1e-12)
    right = (here * (away > 0) + there * (away < 0))[~tied].sum() + (here + there)[tied].sum() / 2
    return {
        "specks": float(np.abs(after / total - before / rest).max()),
        "po50": float(100 * right / (total + rest) - 50),
        "u": u,
        "auc": float(u / (total * rest)),
    }


# Logistic propensity scores, and their one-pass linear approximation.


_ROUNDS = 60
_SETTLED = 1e-13
_EXTREME = 1e-8
_UNSURE = 1e4
_RIDGE = 1e-6
_SLOW = 0.05


@dataclass(frozen=True)
class Logit:
    """A main-effects or two-way logistic model of which file a record came from.

    ``linear`` stops after the first step: expression (3.4.10) of the theory, one pass over the records.
    """

    interactions: int = 1
    squares: bool = False
    linear: bool = False

    fixed_columns = True

    def prepare(self, stacked: Stack) -> PreparedLogit:
        """Lay out the predictors once, for as many fits as are wanted."""
        stacked = without_rare_levels(stacked)
        _, every = stacked.masses()
        design = designed(stacked, interactions=self.interactions, squares=self.squares)
        squares, _ = design.products(every, np.zeros(design.rows))
        kept = design.without_aliased(squares)
        at = np.flatnonzero(np.isin(design.keep, kept.keep))
        return PreparedLogit(stacked, kept, squares[np.ix_(at, at)], every, self.linear)


@dataclass(frozen=True)
class PreparedLogit:
    """Predictors and their products, ready for fits with the true or with permuted labels."""

    stacked: Stack
    design: Design
    squares: Floats
    every: Floats
    linear: bool

    def coefficients_of(self, variables: tuple[str, ...]) -> int:
        """Count the coefficients, less the intercept, that involve other variables than these."""
        return self.design.size - rank(self.design, self.squares, variables)

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit the model; with ``spread`` also say how sure the coefficients are."""
        ours, _ = self.stacked.masses(released)
        share = float(ours.sum() / self.every.sum())
        start = np.zeros(self.design.size)
        start[0] = np.log(share / (1 - share))
        squares = _Factor(share * (1 - share) * self.squares)
        pulled = self.design.pulls(ours - share * self.every)
        if self.linear:
            away = self.design.predictions(share * (1 - share) * squares.solve(pulled))
            return Fit(share + away, ours, self.every, columns=self.design.size, details=self._told(None))
        return self._newton(start, squares, pulled, ours, spread=spread)

    def _newton(self, beta: Floats, factor: _Factor, pulled: Floats, ours: Floats, *, spread: bool) -> Fit:
        """Newton's method that keeps the curvature as long as it serves: a cheap pass a step, not a dear one."""
        share = float(ours.sum() / self.every.sum())
        extreme = False
        known = factor.variances() if spread else None
        penalty = np.zeros(len(beta))
        step = factor.solve(pulled)
        gain = float(step @ pulled)
        scores = np.full(len(ours), share)
        fresh = True
        settled = gain <= _SETTLED
        cost = float(-ours.sum() * np.log(share) - (self.every.sum() - ours.sum()) * np.log(1 - share))
        for _ in range(_ROUNDS):
            if settled:
                break
            beta, scores, pulled, cost = self._stepped(beta, step, ours, penalty, cost)
            if not extreme and min(float(scores.min()), 1 - float(scores.max())) < _EXTREME:
                extreme = True
                penalty[1:] = _RIDGE
                pulled = pulled - penalty * beta
                cost += float(0.5 * penalty @ beta**2)
            step = factor.solve(pulled)
            now = float(step @ pulled)
            if now > _SLOW * gain or not fresh:
                factor = self._curvature(scores, penalty)
                step = factor.solve(pulled)
                now = float(step @ pulled)
            fresh = now <= _SLOW * gain
            gain = now
            settled = gain <= _SETTLED
        curvature = None
        if spread:
            # Of a large file the last curvature serves: near the null it hardly changes.
            curvature = factor if self.design.is_large and not extreme else self._curvature(scores, penalty)
        # Extreme scores may be earned; a coefficient that nothing holds back has next to no curvature left.
        separated = bool(
            extreme
            and curvature is not None
            and known is not None
            and (curvature.variances() > _UNSURE * known).any()
        )
        return Fit(
            scores,
            ours,
            self.every,
            columns=self.design.size,
            separated=separated,
            converged=settled,
            details=self._told(curvature, beta),
        )

    def _stepped(
        self, beta: Floats, step: Floats, ours: Floats, penalty: Floats, before: float
    ) -> tuple[Floats, Floats, Floats, float]:
        """Go a step, or the part of it that makes the fit better."""
        for halved in range(12):
            to = beta + step * 0.5**halved
            linear = self.design.predictions(to)
            cost = self._cost(linear, to, ours, penalty)
            if cost <= before + 1e-10 * abs(before):
                break
        scores: Floats = scipy.special.expit(linear)
        return to, scores, self.design.pulls(ours - self.every * scores) - penalty * to, cost

    def _cost(self, linear: Floats, beta: Floats, ours: Floats, penalty: Floats) -> float:
        likelihood = ours @ linear - self.every @ (np.maximum(linear, 0) + np.log1p(np.exp(-np.abs(linear))))
        return float(-likelihood + 0.5 * penalty @ beta**2)

    def _curvature(self, scores: Floats, penalty: Floats) -> _Factor:
        squares, _ = self.design.products(self.every * scores * (1 - scores), np.zeros(len(scores)))
        return _Factor(squares + np.diag(penalty))

    def _told(self, curvature: _Factor | None, beta: Floats | None = None) -> dict[str, Any]:
        if beta is None or curvature is None:
            return {"terms": self.design.kept_terms}
        return {
            "terms": self.design.kept_terms,
            "beta": beta,
            "covariance": curvature.inverse(),
        }


class _Factor:
    """A curvature, scaled to unit diagonal and factored; a hair is added where rounding made it singular."""

    def __init__(self, squares: Floats) -> None:
        self._scale = 1 / np.sqrt(np.maximum(np.diag(squares), 1e-300))
        unit = squares * np.outer(self._scale, self._scale)
        for hair in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
            with contextlib.suppress(np.linalg.LinAlgError):
                self._held = scipy.linalg.cho_factor(unit + hair * np.eye(len(unit)), lower=True)
                break
        else:
            # Sums of squares of unit diagonal are off by rounding only, far below the last hair.
            raise InputError(
                "The curvature of the propensity model could not be factored. Leave out columns with extreme numbers."
            )

    def solve(self, pulled: Floats) -> Floats:
        solved: Floats = self._scale * scipy.linalg.cho_solve(self._held, self._scale * pulled)
        return solved

    def variances(self) -> Floats:
        variances: Floats = np.diag(self.inverse()).copy()
        return variances

    def inverse(self) -> Floats:
        inverse: Floats = scipy.linalg.cho_solve(self._held, np.eye(len(self._scale))) * np.outer(
            self._scale, self._scale
        )
        return inverse


# A classification tree of which file a record came from, as rpart grows and prunes it.


USUAL_CART: Mapping[str, float] = {"cp": 1e-3, "minsplit": 20, "minbucket": 7, "maxdepth": 30}


@dataclass(frozen=True)
class Cart:
    """A tree with Gini splits, pruned by misclassified records: one leaf costs ``cp`` times the errors of the root."""

    cp: float = 1e-3
    minsplit: int = 20
    minbucket: int = 7
    maxdepth: int = 30

    fixed_columns = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Cart:
        """Take the options of ``tree=``, the usual ones for the rest."""
        for name in options:
            if name not in USUAL_CART:
                raise ParameterError(unknown_name(name, USUAL_CART, what="option of tree"))
        return cls(**options)

    def prepare(self, stacked: Stack) -> PreparedCart:
        """Code the predictors once; only the labels change from fit to fit."""
        from discreet.numerics.trees.coding import Feature, encode

        features = [
            Feature.category(len(column.levels))
            if column.kind == "category"
            else Feature.numeric(column.values)
            for column in stacked.columns
        ]
        codes = encode(features, [column.values for column in stacked.columns])
        if stacked.cell is not None:
            codes = np.asfortranarray(codes[stacked.cell])
        return PreparedCart(stacked, self, features, codes)


@dataclass(frozen=True)
class PreparedCart:
    """Coded predictors, ready for trees with the true or with permuted labels."""

    stacked: Stack
    settings: Cart
    features: list[Feature]
    codes: Any

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Grow and prune a tree; the score of a record is the share of released ones in its leaf."""
        from discreet.numerics.trees.growing import grow_classification
        from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, RISK, START, STOP, VALUE, WEIGHT
        from discreet.utility.propensity_kernels import LEAF, SPLIT, worthwhile

        labels, ours, each = self.stacked.by_record(released)
        if not self.features:
            return Fit(np.full(len(labels), ours.sum() / each.sum()), ours, each, leaves=1)
        tree = grow_classification(
            self.codes,
            self.features,
            labels.astype(np.int32),
            2,
            rng=generator(0),
            weights=self.stacked.weight,
            min_leaf=int(self.settings.minbucket),
            min_split=int(self.settings.minsplit),
            cp=0.0,
            max_depth=int(self.settings.maxdepth),
        )
        nodes, figures = tree.nodes.astype(np.int64), tree.figures
        inner = nodes[:, FEATURE] >= 0
        left, right = np.where(inner, nodes[:, LEFT], 0), np.where(inner, nodes[:, RIGHT], 0)
        errors = figures[:, WEIGHT] * np.minimum(figures[:, VALUE], 1 - figures[:, VALUE])
        fate = worthwhile(errors, left, right, float(self.settings.cp) * errors[0])
        ends = np.flatnonzero(fate == LEAF)
        ends = ends[np.argsort(nodes[ends, START])]
        scores = np.empty(len(labels))
        scores[tree.rows] = np.repeat(figures[ends, VALUE], nodes[ends, STOP] - nodes[ends, START])
        details = {}
        if spread:
            split, risk = np.flatnonzero(fate == SPLIT), figures[:, RISK]
            gains = np.maximum(risk[split] - risk[left[split]] - risk[right[split]], 0.0)
            details["importances"] = np.bincount(nodes[split, FEATURE], gains, len(self.features))
        return Fit(scores, ours, each, leaves=len(ends), details=details)


# Gradient boosting, or any function of the user's own, as the model of which file a record came from.


_MOST_CATEGORIES = 255
USUAL_BOOSTING: Mapping[str, Any] = {
    "max_iter": 50,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "early_stopping": False,
}


@dataclass(frozen=True)
class Boosting:
    """Histogram gradient boosting (scikit-learn); ``options`` are those of its classifier."""

    options: Mapping[str, Any] = field(default_factory=dict)

    fixed_columns = False

    def prepare(self, stacked: Stack) -> PreparedScorer:
        """Lay out the predictors once."""
        table = np.column_stack([column.values for column in stacked.columns] or [np.zeros(stacked.cells)])
        categories = [
            column.kind == "category" and len(column.levels) <= _MOST_CATEGORIES for column in stacked.columns
        ] or [False]
        rows: Floats = (table if stacked.cell is None else table[stacked.cell]).astype(np.float64)
        return PreparedScorer(
            stacked, lambda labels, weight: self._scores(rows, categories, labels, weight), rows
        )

    def _scores(
        self, rows: Floats, categories: list[bool], labels: Flags, weight: Floats | None
    ) -> tuple[Floats, Callable[[Floats], Floats]]:
        from sklearn.ensemble import HistGradientBoostingClassifier

        try:
            model = HistGradientBoostingClassifier(
                **{**USUAL_BOOSTING, "random_state": 0, **self.options}, categorical_features=categories
            ).fit(rows, labels, sample_weight=weight)
        except TypeError as error:
            raise ParameterError(
                "tree holds an option that gradient boosting does not know; it takes those of scikit-learn's "
                "HistGradientBoostingClassifier, e.g. max_iter or max_leaf_nodes."
            ) from error
        return model.predict_proba(rows)[:, 1], lambda other: model.predict_proba(other)[:, 1]


@dataclass(frozen=True)
class Custom:
    """A function of the user: (predictors as a table, labels) to the chance of being released, by record."""

    scorer: Callable[[pl.DataFrame, Flags], Any]

    fixed_columns = False

    def prepare(self, stacked: Stack) -> PreparedScorer:
        """Lay out the predictors once."""
        rows = stacked.table() if stacked.cell is None else stacked.table()[stacked.cell]
        rows.columns = [column.name for column in stacked.columns]

        def scores(labels: Flags, weight: Floats | None) -> tuple[Floats, None]:
            found = np.asarray(self.scorer(rows, labels), dtype=np.float64).ravel()
            if (
                len(found) != len(labels)
                or not np.isfinite(found).all()
                or found.min() < 0
                or found.max() > 1
            ):
                raise ParameterError(
                    f"The model function must give one number between 0 and 1 for each of the {len(labels):,} records."
                )
            return found, None

        return PreparedScorer(stacked, scores, None)


@dataclass(frozen=True)
class PreparedScorer:
    """Predictors, ready for fits with the true or with permuted labels."""

    stacked: Stack
    scorer: Callable[[Flags, Floats | None], tuple[Floats, Callable[[Floats], Floats] | None]]
    rows: Floats | None

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit and score."""
        labels, ours, each = self.stacked.by_record(released)
        scores, model = self.scorer(labels, self.stacked.weight)
        details: dict[str, Any] = {}
        if spread and model is not None and self.rows is not None:
            rows, again = self.rows, model
            details["importances_later"] = lambda: _importances(rows, again, scores)
        return Fit(scores, ours, each, details=details)


def _importances(rows: Floats, model: Callable[[Floats], Floats], scores: Floats) -> Floats:
    """Say how far the scores move, in squares, when one column is shuffled."""
    order = np.random.default_rng(0).permutation(len(rows))
    moved = []
    for column in range(rows.shape[1]):
        other = rows.copy()
        other[:, column] = rows[order, column]
        moved.append(float(((model(other) - scores) ** 2).mean()))
    return np.array(moved)
