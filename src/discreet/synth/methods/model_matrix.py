"""Predictors as the columns of a linear model: numbers centered and scaled, categories as indicators.

Columns that are constant, or that the others already say, are left out, so that every fit has one solution.

Logistic and Poisson likelihoods are maximized on such matrices, which come in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ColumnError
from discreet.synth.column_forms import Variable
from discreet.synth.methods.method import Conditional
from discreet.synth.saved_models import stored

_CHUNK = 200_000
_SAME = 1e-9
_LARGEST = 1e120


@stored("model-matrix")
@dataclass(frozen=True, eq=False)
class Design:
    """How predictors become the columns of a model matrix, its first being the intercept.

    Attributes
    ----------
    names, levels
        Of the predictors; 0 levels is a number.
    center, scale
        By column before any is left out: numbers are shifted and divided by these, indicators are not.
    kept
        Which columns stay.
    owner
        The predictor that each column comes from; -1 for the intercept.
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]
    center: Floats
    scale: Floats
    kept: Flags
    owner: Integers

    @classmethod
    def of(cls, predictors: Sequence[Variable], *, weights: Floats | None = None) -> Design:
        """Learn the columns from the observed predictors."""
        owner, center, scale = [-1], [0.0], [1.0]
        for place, variable in enumerate(predictors):
            if variable.is_number:
                values = squarable(variable)
                spread = float(values.std())
                owner.append(place)
                center.append(float(values.mean()))
                scale.append(spread if spread > 0 else 1.0)
            else:
                width = variable.levels - 1
                owner += [place] * width
                center += [0.0] * width
                scale += [1.0] * width
        everything = np.ones(len(owner), dtype=np.bool_)
        draft = cls(
            tuple(v.name for v in predictors),
            tuple(v.levels for v in predictors),
            np.array(center),
            np.array(scale),
            everything,
            np.array(owner),
        )
        gram = sum(
            (
                part.T @ (part if w is None else part * w[:, None])
                for part, w, _ in draft.parts(predictors, weights)
            ),
            start=np.zeros((len(owner), len(owner))),
        )
        return cls(draft.names, draft.levels, draft.center, draft.scale, _independent(gram), draft.owner)

    @property
    def width(self) -> int:
        """Number of columns, the intercept included."""
        return int(self.kept.sum())

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors of which no column stays."""
        there = set(self.owner[self.kept].tolist())
        return tuple(name for place, name in enumerate(self.names) if place not in there)

    def matrix(self, predictors: Sequence[Variable], rows: slice = slice(None)) -> Floats:
        """Return the model matrix of some records."""
        size = len(range(*rows.indices(len(predictors[0])))) if predictors else 0
        columns = np.empty((size, self.width), order="F")
        columns[:, 0] = 1.0
        at = 1
        place = 1
        for variable in predictors:
            if variable.is_number:
                if self.kept[place]:
                    columns[:, at] = (variable.values[rows] - self.center[place]) / self.scale[place]
                    at += 1
                place += 1
                continue
            values = variable.values[rows]
            for level in range(1, variable.levels):
                if self.kept[place]:
                    columns[:, at] = values == level
                    at += 1
                place += 1
        return columns

    def parts(
        self, predictors: Sequence[Variable], weights: Floats | None = None
    ) -> Iterator[tuple[Floats, Floats | None, slice]]:
        """Hand over the model matrix in blocks of records, so that a long file needs little memory."""
        size = len(predictors[0]) if predictors else 0
        for start in range(0, size, _CHUNK):
            rows = slice(start, min(start + _CHUNK, size))
            yield self.matrix(predictors, rows), None if weights is None else weights[rows], rows


class OfDesign(Conditional):
    """A law whose coefficients belong to the columns of a model matrix."""

    design: Design

    @property
    def dropped(self) -> tuple[str, ...]:
        """Predictors that say nothing the others do not say."""
        return self.design.dropped


def squarable(variable: Variable) -> Floats:
    """Return the values of a number, or refuse those whose squares no float can hold."""
    if len(variable) and float(np.abs(variable.values).max()) > _LARGEST:
        raise ColumnError(
            f"Column '{variable.name}' has values that are too large to be squared. If they stand for something else, "
            "name them under special_codes; otherwise divide the column by its unit, or model it with cart."
        )
    return variable.values


def _independent(gram: Floats) -> Flags:
    """Find columns that add something to those before them, by elimination on the scaled cross-products."""
    size = np.sqrt(np.maximum(np.diag(gram), 0.0))
    whole = np.where(size > 0, size, 1.0)
    rest = gram / np.outer(whole, whole)
    kept = np.zeros(len(gram), dtype=np.bool_)
    for column in range(len(gram)):
        if rest[column, column] <= _SAME:
            continue
        kept[column] = True
        rest -= np.outer(rest[:, column], rest[column]) / rest[column, column]
    return kept


# Pseudo-records that keep a logistic fit finite where a predictor tells the levels apart without error.


class PseudoRecords(NamedTuple):
    """Rows of the model matrix, their levels and their weights."""

    x: Floats
    levels: Integers
    weights: Floats


def augmented(design: Design, predictors: Sequence[Variable], levels: int) -> PseudoRecords:
    """Make two records for each column and level, half a standard deviation above and below the mean.

    Their weights add up to the number of coefficients, the intercept included (White, Daniel and Royston 2010).
    """
    total, square, count = 0.0, 0.0, 0
    low, high = np.full(design.width, np.inf), np.full(design.width, -np.inf)
    for x, _, _ in design.parts(predictors):
        total, square, count = total + x.sum(axis=0), square + (x**2).sum(axis=0), count + len(x)
        low, high = np.minimum(low, x.min(axis=0)), np.maximum(high, x.max(axis=0))
    mean = np.asarray(total / count)
    spread = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    rows, own = [], []
    for column in range(1, design.width):
        for sign in (-0.5, 0.5):
            row = mean.copy()
            row[column] = np.clip(mean[column] + sign * spread[column], low[column], high[column])
            rows += [row] * levels
            own += list(range(levels))
    if not rows:
        return PseudoRecords(np.empty((0, design.width)), np.empty(0, dtype=np.int64), np.empty(0))
    return PseudoRecords(np.array(rows), np.array(own), np.full(len(rows), design.width / len(rows)))


# Logistic likelihoods and how they are maximized, on model matrices that come in blocks.
Block = tuple[Floats, Integers, Floats]

_PENALTY = 1e-8
_LARGEST_LOG = 50.0
_MOST_STEPS = 50


def newton_logit(
    design: Design,
    predictors: Sequence[Variable],
    y: Array,
    *,
    weights: Floats | None = None,
    extra: PseudoRecords | None = None,
    sandwich: bool = False,
) -> tuple[Floats, Floats]:
    """Fit a logistic regression; return coefficients and a square root of their covariance.

    Newton steps are halved until the likelihood does not fall. With weights that sum to the number of records this
    is the pseudo-likelihood fit of a survey; its covariance is that of the model, or the ``sandwich``.
    """
    blocks = _blocks(design, predictors, y, weights, extra)
    return _newton(blocks, np.zeros(design.width), _logit_at, _logistic, sandwich=sandwich)


def newton_poisson(
    design: Design,
    predictors: Sequence[Variable],
    y: Array,
    *,
    weights: Floats | None = None,
    sandwich: bool = False,
) -> tuple[Floats, Floats]:
    """Fit a Poisson regression with a logarithmic link; as `newton_logit`."""
    blocks = _blocks(design, predictors, y, weights, None)
    start = np.zeros(design.width)
    start[0] = np.log(max(float(np.average(y, weights=weights)), 1e-12))
    return _newton(blocks, start, _poisson_at, _capped_exp, sandwich=sandwich)


def _newton(
    blocks: Sequence[Block], beta: Floats, at: Any, mean: Any, *, sandwich: bool
) -> tuple[Floats, Floats]:
    best, gradient, hessian = at(blocks, beta)
    for _ in range(_MOST_STEPS):
        step = np.linalg.solve(hessian + _PENALTY * np.eye(len(beta)), gradient)
        for _half in range(20):
            value, next_gradient, next_hessian = at(blocks, beta + step)
            if value >= best - 1e-12 * abs(best):
                break
            step = step / 2
        beta = beta + step
        gained, best, gradient, hessian = value - best, value, next_gradient, next_hessian
        if abs(gained) <= 1e-10 * (abs(best) + 1) and np.abs(step).max() < 1e-8:
            break
    covariance = np.linalg.inv(hessian + _PENALTY * np.eye(len(beta)))
    if sandwich:
        scores = [x * (w * (y - mean(x @ beta)))[:, None] for x, y, w in blocks]
        covariance = covariance @ sum(score.T @ score for score in scores) @ covariance
    values, vectors = np.linalg.eigh(covariance)
    return beta, vectors * np.sqrt(np.maximum(values, 0.0))


def multinomial_fit(
    design: Design,
    predictors: Sequence[Variable],
    classes: Array,
    n_classes: int,
    *,
    weights: Floats | None = None,
    extra: PseudoRecords | None = None,
    iterations: int = 200,
) -> tuple[Floats, bool]:
    """Fit a multinomial logistic regression by L-BFGS; return one column of coefficients a class (the first is 0)."""
    from scipy.optimize import minimize

    blocks = _blocks(design, predictors, classes, weights, extra)
    total = sum(float(w.sum()) for _, _, w in blocks)

    def loss(flat: Floats) -> tuple[float, Floats]:
        beta = np.column_stack([np.zeros(design.width), flat.reshape(design.width, n_classes - 1)])
        value, slope = 0.0, np.zeros((design.width, n_classes))
        for x, own, w in blocks:
            shares = softmax(x @ beta, axis=1)
            at = np.arange(len(own))
            value -= float(np.sum(w * np.log(np.maximum(shares[at, own], 1e-300))))
            shares[at, own] -= 1.0
            slope += x.T @ (shares * w[:, None])
        return value / total, (slope[:, 1:] / total).ravel()

    start = np.zeros(design.width * (n_classes - 1))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "ftol": 1e-10})
    beta = np.column_stack([np.zeros(design.width), found.x.reshape(design.width, n_classes - 1)])
    return beta, bool(found.success or (found.status == 1 and np.abs(found.jac).max() < 1e-3))


def ordered_fit(
    design: Design,
    predictors: Sequence[Variable],
    classes: Array,
    n_classes: int,
    *,
    weights: Floats | None = None,
    iterations: int = 200,
) -> tuple[Floats, Floats] | None:
    """Fit a proportional-odds regression; return thresholds and slopes, or None where it does not converge."""
    from scipy.optimize import minimize

    blocks = _blocks(design, predictors, classes, weights, None)
    total = sum(float(w.sum()) for _, _, w in blocks)
    upto = np.cumsum(np.bincount(classes, weights=weights, minlength=n_classes))[:-1] / total
    first = np.log(upto / (1 - upto))
    start = np.concatenate([[first[0]], np.log(np.maximum(np.diff(first), 1e-6)), np.zeros(design.width - 1)])

    def loss(flat: Floats) -> tuple[float, Floats]:
        cuts = _cuts(flat[: n_classes - 1])
        slopes = flat[n_classes - 1 :]
        value, on_cuts, on_slopes = 0.0, np.zeros(n_classes - 1), np.zeros(len(slopes))
        for x, own, w in blocks:
            eta = x[:, 1:] @ slopes
            above = _logistic(np.append(cuts, np.inf)[own] - eta)
            below = _logistic(np.append(-np.inf, cuts)[own] - eta)
            share = np.maximum(above - below, 1e-300)
            value -= float(np.sum(w * np.log(share)))
            up, down = w * above * (1 - above) / share, w * below * (1 - below) / share
            on_slopes += x[:, 1:].T @ (up - down)
            on_cuts -= np.bincount(own, up, n_classes)[:-1]
            on_cuts += np.bincount(own, down, n_classes)[1:]
        steps = np.exp(flat[1 : n_classes - 1])
        later = np.cumsum(on_cuts[::-1])[::-1]
        gradient = np.concatenate([later[:1], later[1:] * steps, on_slopes])
        return value / total, gradient / total

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "ftol": 1e-10})
    if not np.isfinite(found.fun) or not (found.success or np.abs(found.jac).max() < 1e-3):
        return None
    return _cuts(found.x[: n_classes - 1]), found.x[n_classes - 1 :]


def ordered_shares(eta: Floats, cuts: Floats) -> Floats:
    """Return the shares of ordered levels at linear predictions."""
    upto = _logistic(cuts[None, :] - eta[:, None])
    return np.diff(np.column_stack([np.zeros(len(eta)), upto, np.ones(len(eta))]), axis=1)


def _cuts(flat: Floats) -> Floats:
    """Keep thresholds in order: the first as it is, the others by positive steps."""
    return np.cumsum(np.concatenate([flat[:1], np.exp(flat[1:])]))


def _logistic(z: Floats) -> Floats:
    return np.asarray(expit(z))


def _blocks(
    design: Design,
    predictors: Sequence[Variable],
    y: Array,
    weights: Floats | None,
    extra: PseudoRecords | None,
) -> list[Block]:
    blocks = [
        (x, y[rows].astype(np.int64), np.ones(len(x)) if w is None else w)
        for x, w, rows in design.parts(predictors, weights)
    ]
    if extra is not None and len(extra.x):
        blocks.append((extra.x, extra.levels, extra.weights))
    return blocks


def _logit_at(blocks: Sequence[Block], beta: Floats) -> tuple[float, Floats, Floats]:
    value, gradient = 0.0, np.zeros(len(beta))
    hessian = np.zeros((len(beta), len(beta)))
    for x, y, w in blocks:
        eta = x @ beta
        share = _logistic(eta)
        value += float(np.sum(w * (y * eta - np.logaddexp(0.0, eta))))
        gradient += x.T @ (w * (y - share))
        hessian += x.T @ (x * (w * share * (1 - share))[:, None])
    return value, gradient, hessian


def _poisson_at(blocks: Sequence[Block], beta: Floats) -> tuple[float, Floats, Floats]:
    value, gradient = 0.0, np.zeros(len(beta))
    hessian = np.zeros((len(beta), len(beta)))
    for x, y, w in blocks:
        eta = x @ beta
        expected = _capped_exp(eta)
        value += float(np.sum(w * (y * eta - expected)))
        gradient += x.T @ (w * (y - expected))
        hessian += x.T @ (x * (w * expected)[:, None])
    return value, gradient, hessian


def _capped_exp(eta: Floats) -> Floats:
    """A step that is too long must be seen as one, not overflow."""
    return np.asarray(np.exp(np.minimum(eta, _LARGEST_LOG)))
