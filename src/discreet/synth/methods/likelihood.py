"""Logistic likelihoods and how they are maximized, on model matrices that come in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.synth.methods.design import Design
from discreet.synth.methods.pseudo_records import PseudoRecords
from discreet.synth.variables import Variable

Block = tuple[Floats, Integers, Floats]

_PENALTY = 1e-8
_LARGEST_LOG = 50.0


def newton_logit(
    design: Design,
    predictors: Sequence[Variable],
    y: Array,
    *,
    weights: Floats | None = None,
    extra: PseudoRecords | None = None,
    iterations: int = 50,
    sandwich: bool = False,
) -> tuple[Floats, Floats]:
    """Fit a logistic regression; return coefficients and a square root of their covariance.

    Newton steps are halved until the likelihood does not fall. With weights that sum to the number of records this
    is the pseudo-likelihood fit of a survey; its covariance is that of the model, or the ``sandwich``.
    """
    blocks = _blocks(design, predictors, y, weights, extra)
    return _newton(blocks, np.zeros(design.width), _logit_at, _logistic, iterations, sandwich=sandwich)


def newton_poisson(
    design: Design,
    predictors: Sequence[Variable],
    y: Array,
    *,
    weights: Floats | None = None,
    iterations: int = 50,
    sandwich: bool = False,
) -> tuple[Floats, Floats]:
    """Fit a Poisson regression with a logarithmic link; as `newton_logit`."""
    blocks = _blocks(design, predictors, y, weights, None)
    start = np.zeros(design.width)
    start[0] = np.log(max(float(np.average(y, weights=weights)), 1e-12))
    return _newton(blocks, start, _poisson_at, _capped_exp, iterations, sandwich=sandwich)


def _newton(
    blocks: Sequence[Block], beta: Floats, at: Any, mean: Any, iterations: int, *, sandwich: bool
) -> tuple[Floats, Floats]:
    best, gradient, hessian = at(blocks, beta)
    for _ in range(iterations):
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
            shares = softmax(x @ beta)
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


def softmax(scores: Floats) -> Floats:
    """Turn scores into shares, row by row."""
    shares: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def ordered_shares(eta: Floats, cuts: Floats) -> Floats:
    """Return the shares of ordered levels at linear predictions."""
    upto = _logistic(cuts[None, :] - eta[:, None])
    return np.diff(np.column_stack([np.zeros(len(eta)), upto, np.ones(len(eta))]), axis=1)


def _cuts(flat: Floats) -> Floats:
    """Keep thresholds in order: the first as it is, the others by positive steps."""
    return np.cumsum(np.concatenate([flat[:1], np.exp(flat[1:])]))


def _logistic(z: Floats) -> Floats:
    from scipy.special import expit

    shares: Floats = expit(z)
    return shares


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
