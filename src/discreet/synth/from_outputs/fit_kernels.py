"""Compiled fits of logistic and linear models; imported only when used."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.compiling import compiled, inner

_FAR = 30.0


@inner
def _solved(matrix: Floats, right: Floats) -> tuple[Floats, bool]:
    """Solve a symmetric positive definite system by Cholesky, scaled so that units do not matter."""
    size = len(right)
    scale = np.empty(size)
    for i in range(size):
        if matrix[i, i] <= 0.0:
            return right, False
        scale[i] = 1.0 / np.sqrt(matrix[i, i])
    root = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j] * scale[i] * scale[j]
            for m in range(j):
                total -= root[i, m] * root[j, m]
            if i == j:
                if total < 1e-11:
                    return right, False
                root[i, i] = np.sqrt(total)
            else:
                root[i, j] = total / root[j, j]
    found = right * scale
    for i in range(size):
        for m in range(i):
            found[i] -= root[i, m] * found[m]
        found[i] /= root[i, i]
    for i in range(size - 1, -1, -1):
        for m in range(i + 1, size):
            found[i] -= root[m, i] * found[m]
        found[i] /= root[i, i]
    return found * scale, True


@inner
def _usable(x: Floats, y: Floats, separable: bool) -> tuple[Flags, Flags]:
    """Find the columns that have an estimate and the records that inform the others.

    A dummy without records has none. A dummy whose records share one outcome would run to infinity; leaving out
    its records gives what the other coefficients tend to.
    """
    n, size = x.shape
    columns = np.ones(size, dtype=np.bool_)
    rows = np.ones(n, dtype=np.bool_)
    again = True
    while again:
        again = False
        for j in range(size):
            if not columns[j]:
                continue
            there, events, is_dummy = 0.0, 0.0, True
            for i in range(n):
                if rows[i] and x[i, j] != 0.0:
                    there += 1.0
                    events += y[i]
                    if x[i, j] != 1.0:
                        is_dummy = False
            alike = separable and is_dummy and events in (0.0, there)
            if there == 0.0 or alike:
                columns[j] = False
                again = True
                if there > 0.0:
                    for i in range(n):
                        if x[i, j] != 0.0:
                            rows[i] = False
    return columns, rows


@compiled
def logit(x: Floats, y: Floats, start: Floats, most: int) -> tuple[Floats, bool]:
    """Fit a logistic model by iteratively reweighted least squares, from a given start; NaN where there is none."""
    n, size = x.shape
    columns, rows = _usable(x, y, True)
    there = np.flatnonzero(columns)
    answer = np.full(size, np.nan)
    k = len(there)
    if k == 0:
        return answer, False
    beta = np.zeros(k)
    for a in range(k):
        beta[a] = start[there[a]] if np.isfinite(start[there[a]]) else 0.0
    hessian = np.empty((k, k))
    score = np.empty(k)
    row = np.empty(k)
    last = -np.inf
    for _ in range(most):
        hessian[:] = 0.0
        score[:] = 0.0
        likelihood, farthest = 0.0, 0.0
        for i in range(n):
            if not rows[i]:
                continue
            eta = 0.0
            for a in range(k):
                row[a] = x[i, there[a]]
                eta += row[a] * beta[a]
            farthest = max(farthest, abs(eta))
            away = np.exp(-abs(eta))
            chance = 1.0 / (1.0 + away) if eta >= 0.0 else away / (1.0 + away)
            likelihood += y[i] * eta - max(eta, 0.0) - np.log1p(away)
            spread = chance * (1.0 - chance)
            for a in range(k):
                if row[a] == 0.0:
                    continue
                score[a] += row[a] * (y[i] - chance)
                weighted = row[a] * spread
                for b in range(a + 1):
                    hessian[a, b] += weighted * row[b]
        for a in range(k):
            for b in range(a):
                hessian[b, a] = hessian[a, b]
        if likelihood < last - 1e-6 * abs(last):
            # A warm start can overshoot; begin again from zero, from where the iterations are tame.
            beta[:] = 0.0
            last = -np.inf
            continue
        last = likelihood
        step, solvable = _solved(hessian, score)
        if not solvable:
            return answer, False
        beta += step
        gain = 0.0
        for a in range(k):
            gain += step[a] * score[a]
        if gain < 1e-14 * n:
            # Separated data fit ever better while the chances run to 0 and 1.
            if farthest > _FAR and likelihood > -1e-6 * n:
                return answer, False
            for a in range(k):
                answer[there[a]] = beta[a]
            return answer, True
    return answer, False


@compiled
def least_squares(x: Floats, y: Floats) -> tuple[Floats, bool]:
    """Fit a linear model; NaN where a column has no records."""
    n, size = x.shape
    columns, _ = _usable(x, y, False)
    there = np.flatnonzero(columns)
    answer = np.full(size, np.nan)
    k = len(there)
    if k == 0 or n <= k:
        return answer, False
    beta = np.zeros(k)
    cross = np.zeros((k, k))
    right = np.zeros(k)
    # The second round solves for the residuals of the first, which wins back digits lost in the cross-products.
    for turn in range(2):
        right[:] = 0.0
        for i in range(n):
            rest = y[i]
            for a in range(k):
                rest -= x[i, there[a]] * beta[a]
            for a in range(k):
                value = x[i, there[a]]
                if value == 0.0:
                    continue
                right[a] += value * rest
                if turn == 0:
                    for b in range(k):
                        cross[a, b] += value * x[i, there[b]]
        step, solvable = _solved(cross, right)
        if not solvable:
            return answer, False
        beta += step
    for a in range(k):
        answer[there[a]] = beta[a]
    return answer, True
