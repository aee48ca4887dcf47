"""Which of the other columns predict a column? Selection from means and products alone.

All selectors work on standardized variables: on the correlations of the columns of the model matrix with each other and
with the target. A category stands for all its indicators: one of them selects it. A target that is a category is
itself a set of indicators, which are selected for together (linear probabilities choose, the logit then models).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.synth.column_forms import Variable
from discreet.synth.methods.model_matrix import Design

Selector = Literal["lasso", "ridge-threshold", "aic", "none"]

_FOLDS = 5
_ALPHAS = 40


@dataclass(frozen=True, eq=False)
class Selected:
    """The predictors that were chosen, the most important first, and the penalty that chose them."""

    places: tuple[int, ...]
    alpha: float | None = None


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums of products of predictors and targets, the intercept among the predictors, and the number of records."""

    xx: Floats
    xy: Floats
    yy: Floats
    n: float

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy, self.n + other.n)

    def __sub__(self, other: _Moments) -> _Moments:
        return _Moments(self.xx - other.xx, self.xy - other.xy, self.yy - other.yy, self.n - other.n)


@dataclass(frozen=True, eq=False)
class _Standard:
    """Correlations of predictors with each other and with the targets."""

    xx: Floats
    xy: Floats
    yy: Floats
    center: Floats
    x_scale: Floats
    y_center: Floats
    y_scale: Floats


def select(
    design: Design,
    predictors: Sequence[Variable],
    target: Variable,
    *,
    selector: Selector,
    alpha: float | Literal["cv"],
    threshold: float,
    most_columns: int,
    weights: Floats | None,
    rng: np.random.Generator,
) -> Selected:
    """Choose predictors; no more than fill ``most_columns`` columns of the model matrix."""
    y = _targets(target)
    if not design.width > 1 or not y.shape[1]:
        return Selected(())
    owner = design.owner[design.kept][1:]
    fold_of = rng.permutation(len(y)) % _FOLDS if selector == "lasso" and alpha == "cv" else None
    whole, folds = _moments(design, predictors, y, weights, fold_of)
    standard = _standardized(whole)
    used: float | None = None
    if selector == "lasso":
        used = _cross_validated(whole, folds) if alpha == "cv" else float(alpha)
        # The norm over several indicators of a target grows with their number, and so must its penalty.
        penalty = used if alpha == "cv" else used * np.sqrt(y.shape[1])
        size = np.abs(_lassos(*_as_records(standard))(penalty)).max(axis=1)
    elif selector == "ridge-threshold":
        used = 0.01 if alpha == "cv" else float(alpha)
        ridge = np.linalg.solve(standard.xx + used * np.eye(len(standard.xx)), standard.xy)
        size = np.abs(ridge).max(axis=1)
        size = np.where(size >= threshold, size, 0.0)
    elif selector == "aic":
        return _fitting(_by_aic(standard, owner, whole.n), owner, most_columns, None)
    else:
        size = np.abs(standard.xy).max(axis=1) + 1e-12
    strength = {int(place): float(size[owner == place].max()) for place in np.unique(owner)}
    chosen = sorted((p for p in strength if strength[p] > 0), key=lambda p: -strength[p])
    return _fitting(chosen, owner, most_columns, used)


def _fitting(places: Sequence[int], owner: Integers, most: int, alpha: float | None) -> Selected:
    """Leave out the weakest predictors where there are too few records for all of them."""
    kept, width = [], 0
    for place in places:
        width += int((owner == place).sum())
        if width > most:
            break
        kept.append(place)
    return Selected(tuple(kept), alpha)


def _targets(target: Variable) -> Floats:
    if target.is_number:
        return target.values[:, None]
    there = np.unique(target.values)
    # The first level says nothing that the others do not; of two levels one indicator is enough.
    return np.asarray(target.values[:, None] == there[None, 1:], dtype=np.float64)


def _moments(
    design: Design,
    predictors: Sequence[Variable],
    y: Floats,
    weights: Floats | None,
    fold_of: Integers | None,
) -> tuple[_Moments, list[_Moments]]:
    width, tasks = design.width, y.shape[1]
    count = 1 if fold_of is None else _FOLDS
    parts = [
        _Moments(np.zeros((width, width)), np.zeros((width, tasks)), np.zeros((tasks, tasks)), 0.0)
        for _ in range(count)
    ]
    for x, w, rows in design.parts(predictors, weights):
        for number in range(count):
            mine = slice(None) if fold_of is None else fold_of[rows] == number
            a, b = x[mine], y[rows][mine]
            share = np.ones(len(a)) if w is None else w[mine]
            x_share, y_share = a * share[:, None], b * share[:, None]
            parts[number] += _Moments(a.T @ x_share, a.T @ y_share, b.T @ y_share, float(share.sum()))
    return reduce(operator.add, parts), parts if count > 1 else []


def _standardized(moments: _Moments) -> _Standard:
    """Turn sums of products into correlations; the intercept is the first predictor."""
    n = moments.n
    center = moments.xx[0, 1:] / n
    y_center = moments.xy[0] / n
    xx = moments.xx[1:, 1:] / n - np.outer(center, center)
    xy = moments.xy[1:] / n - np.outer(center, y_center)
    yy = moments.yy / n - np.outer(y_center, y_center)
    x_scale, y_scale = _roots(np.diag(xx)), _roots(np.diag(yy))
    return _Standard(
        xx / np.outer(x_scale, x_scale),
        xy / np.outer(x_scale, y_scale),
        yy / np.outer(y_scale, y_scale),
        center,
        x_scale,
        y_center,
        y_scale,
    )


def _roots(variances: Floats) -> Floats:
    return np.sqrt(np.where(variances > 1e-14, variances, 1.0))


def _as_records(standard: _Standard) -> tuple[Floats, Floats]:
    """Make a small file with exactly these correlations, for which a lasso is the same and takes no time."""
    joint = np.block([[standard.xx, standard.xy], [standard.xy.T, standard.yy]])
    values, vectors = np.linalg.eigh((joint + joint.T) / 2)
    rows = (vectors * np.sqrt(np.maximum(values, 0.0))).T * np.sqrt(len(joint))
    width = len(standard.xx)
    return np.asfortranarray(rows[:, :width]), np.asfortranarray(rows[:, width:])


def _lassos(x: Floats, y: Floats) -> Callable[[float], Floats]:
    """Return the lasso of these records as a function of its penalty, each fit starting where the last one ended."""
    from sklearn.linear_model import Lasso, MultiTaskLasso

    several = y.shape[1] > 1
    model = (MultiTaskLasso if several else Lasso)(
        fit_intercept=False, warm_start=True, max_iter=10_000, tol=1e-6
    )

    def at(alpha: float) -> Floats:
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            # A penalty near zero on nearly collinear columns converges slowly; which are zero is known long before.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(alpha=alpha).fit(x, y if several else y[:, 0])
        return np.array(np.atleast_2d(model.coef_).T, dtype=np.float64)

    return at


def _cross_validated(whole: _Moments, folds: Sequence[_Moments]) -> float:
    """Return the penalty with the smallest squared error on records that were left out, fold by fold."""
    standard = _standardized(whole)
    largest = float(np.linalg.norm(standard.xy, axis=1).max())
    if largest <= 0:
        return 0.01
    alphas = largest * np.logspace(0, -3, _ALPHAS)
    error = np.zeros(_ALPHAS)
    for fold in folds:
        rest = _standardized(whole - fold)
        fit = _lassos(*_as_records(rest))
        for place, alpha in enumerate(alphas):
            slope = fit(float(alpha)) * rest.y_scale / rest.x_scale[:, None]
            beta = np.vstack([rest.y_center - rest.center @ slope, slope])
            left = fold.yy - beta.T @ fold.xy - fold.xy.T @ beta + beta.T @ fold.xx @ beta
            error[place] += float((np.diag(left) / rest.y_scale**2).sum())
    return float(alphas[int(error.argmin())])


def _by_aic(standard: _Standard, owner: Integers, n: float) -> list[int]:
    """Add the predictor that lowers Akaike's criterion most, as long as one does."""
    xx, xy, yy = standard.xx.copy(), standard.xy.copy(), standard.yy.copy()
    tasks = len(yy)
    left, chosen = [int(place) for place in np.unique(owner)], []
    while left:
        now = n * _log_det(yy)
        best, gain = -1, 0.0
        for place in left:
            mine = np.flatnonzero(owner == place)
            explained = xy[mine].T @ np.linalg.pinv(xx[np.ix_(mine, mine)], rcond=1e-9) @ xy[mine]
            gained = now - n * _log_det(yy - explained) - 2 * len(mine) * tasks
            if gained > gain:
                best, gain = place, gained
        if best < 0:
            break
        mine = np.flatnonzero(owner == best)
        inverse = np.linalg.pinv(xx[np.ix_(mine, mine)], rcond=1e-9)
        across, toward = xx[:, mine] @ inverse, xy[mine]
        yy = yy - toward.T @ inverse @ toward
        xy = xy - across @ toward
        xx = xx - across @ xx[mine]
        chosen.append(best)
        left.remove(best)
    return chosen


def _log_det(matrix: Floats) -> float:
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return float(np.log(np.maximum(values, 1e-12)).sum())
