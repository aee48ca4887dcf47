"""How often would predicates single somebody out in a control as large as the original?

Whether a description fits exactly one person depends on how many people there are. Where the control is larger, some of
its people are drawn. Where it is smaller, nobody can be added: the counts that were seen are taken as draws of a
Poisson law whose rate differs from predicate to predicate, the law of the rates is estimated without assuming its form
(the maximum-likelihood mixture of Kiefer and Wolfowitz, by EM), and the chance of exactly one match is computed at the
size of the original. The estimate is worth fewer tries than were made; a bootstrap says how many.
"""

from __future__ import annotations

import numpy as np

from discreet.attack.success import Tally
from discreet.core.arrays import Floats, Integers

_MOST = 24  # matches in the control; with more, exactly one at a larger size is out of reach
_STEPS = 200
_RESAMPLES = 100


def at_size(counts: Integers, size: int, wanted: int, rng: np.random.Generator) -> Tally:
    """Estimate how many predicates fit exactly one person among ``wanted``, from their matches among ``size``.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rates = rng.exponential(1.0, 2000)
    >>> seen = at_size(rng.poisson(rates / 2), 500, 1000, rng)
    >>> bool(abs(seen.rate - np.mean(rates * np.exp(-rates))) < 0.03)
    True
    """
    if size >= wanted:
        return Tally(float(np.count_nonzero(counts == 1)), float(len(counts)))
    times = wanted / size
    seen = np.bincount(np.minimum(counts, _MOST), minlength=_MOST + 1).astype(np.float64)
    draws = np.vstack([seen, rng.multinomial(len(counts), seen / seen.sum(), size=_RESAMPLES)])
    rates = np.concatenate([[0.0], np.geomspace(0.02, 2.0 * _MOST, 60)])
    chances = _mixtures(draws, rates) @ (times * rates * np.exp(-times * rates))
    rate, spread = float(np.clip(chances[0], 0, 1)), float(chances[1:].var())
    tries = float(len(counts))
    if spread > 0 and 0 < rate < 1:
        tries = float(np.clip(rate * (1 - rate) / spread, 1.0, tries))
    return Tally(rate * tries, tries)


def _mixtures(draws: Floats, rates: Floats) -> Floats:
    """Fit the weights of the rates to each line of counts of counts; the last count means so many or more."""
    from scipy.stats import poisson

    law = poisson.pmf(np.arange(_MOST + 1), rates[:, None])
    law[:, -1] = poisson.sf(_MOST - 1, rates)
    shares = draws / draws.sum(axis=1, keepdims=True)
    weights = np.full((len(draws), len(rates)), 1 / len(rates))
    for _ in range(_STEPS):
        expected = weights @ law
        weights *= np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0) @ law.T
    return weights
