"""Multinomial logistic regression of a weighted survey, by pseudo-likelihood."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats

_MOST_STEPS = 100


def weighted_multinomial(exog: Floats, endog: Floats, weights: Floats) -> tuple[Floats, Floats, bool]:
    """Fit outcome by outcome against the first; return coefficients, their sandwich covariance, and whether it settled.

    Newton steps are halved until the likelihood does not fall.
    """
    outcomes, place = np.unique(endog, return_inverse=True)
    width, others = exog.shape[1], len(outcomes) - 1
    hits = (place[:, None] == np.arange(1, others + 1)).astype(np.float64)

    def at(beta: Floats) -> tuple[float, Floats]:
        scores = exog @ beta.reshape(others, width).T
        top = np.maximum(scores.max(axis=1), 0.0)
        log_total = top + np.log(np.exp(-top) + np.exp(scores - top[:, None]).sum(axis=1))
        value = float(weights @ ((hits * scores).sum(axis=1) - log_total))
        return value, np.exp(scores - log_total[:, None])

    def bread(shares: Floats) -> Floats:
        blocks = np.empty((others, width, others, width))
        for one in range(others):
            for other in range(others):
                spread = weights * shares[:, one] * (float(one == other) - shares[:, other])
                blocks[one, :, other, :] = exog.T @ (exog * spread[:, None])
        return blocks.reshape(others * width, others * width)

    beta = np.zeros(others * width)
    value, shares = at(beta)
    converged = False
    for _ in range(_MOST_STEPS):
        gradient = ((hits - shares) * weights[:, None]).T @ exog
        step = np.linalg.lstsq(bread(shares), gradient.ravel(), rcond=None)[0]
        for _half in range(30):
            next_value, next_shares = at(beta + step)
            if next_value >= value - 1e-12 * abs(value):
                break
            step = step / 2
        beta, gained, value, shares = beta + step, next_value - value, next_value, next_shares
        if abs(gained) <= 1e-10 * (abs(value) + 1) and np.abs(step).max() < 1e-6:
            converged = True
            break
    scores = ((hits - shares) * weights[:, None])[:, :, None] * exog[:, None, :]
    flat = scores.reshape(len(exog), -1)
    inverse = np.linalg.pinv(bread(shares))
    return beta, inverse @ (flat.T @ flat) @ inverse, converged
