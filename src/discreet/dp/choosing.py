"""Choose one of several candidates privately: a better score makes it likelier, never certain."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError
from discreet.dp.coins import bernoulli_exp, uniform_below
from discreet.dp.entropy import Words

_FEWEST_AT_ONCE, _MOST_AT_ONCE = 64, 4096  # the first proposals often have one that is taken


def chosen_privately(
    scores: Sequence[int | Fraction] | Integers, epsilon: Fraction, sensitivity: int | Fraction, words: Words
) -> int:
    """Choose with chances proportional to exp(epsilon score / (2 sensitivity)): the exponential mechanism, exactly.

    A candidate is proposed at random and taken with the chance exp(-epsilon (best - score) / (2 sensitivity)), until
    one is taken; scores are whole numbers or fractions, so that nothing is rounded.

    Parameters
    ----------
    scores
        One a candidate; higher is better.
    epsilon
        The budget of this choice.
    sensitivity
        How far one person can move any score.
    words
        The source of bits; `discreet.dp.os_words` where a guarantee is claimed.

    Returns
    -------
    int
        The place of the candidate.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> chosen_privately([0, 100_000, 3], Fraction(1), 1, os_words)
    1
    """
    if not len(scores):
        raise ParameterError("There is no candidate to choose from.")
    if epsilon < 0 or sensitivity <= 0:
        raise ParameterError("epsilon must not be negative and sensitivity must be more than 0.")
    best = scores.max().item() if isinstance(scores, np.ndarray) else max(scores)
    unit = Fraction(epsilon) / (2 * Fraction(sensitivity))
    many = min(2 * len(scores), _FEWEST_AT_ONCE)
    while True:
        proposed = uniform_below(len(scores), many, words)
        # Of long lists only those that were proposed are worked out.
        different, which = np.unique(proposed, return_inverse=True)
        own = [scores[at].item() if isinstance(scores, np.ndarray) else scores[at] for at in different]
        taken = np.flatnonzero(bernoulli_exp([unit * (best - score) for score in own], which, words))
        if len(taken):
            return int(proposed[taken[0]])
        many = min(2 * many, _MOST_AT_ONCE)
