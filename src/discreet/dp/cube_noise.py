"""Noise for several numbers at once when each can move as far as the largest: the K-norm mechanism of the cube.

Method: Hardt and Talwar (2010), and Awan and Slavković (2020) for sums that a regression needs. A vector of whole
numbers z has a chance proportional to exp(-rate max |z|). Drawn exactly: first the half-width k of a cube, with chances
proportional to (2k + 1)^d exp(-rate k), then a point of the cube.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.core.arrays import Integers
from discreet.dp.coins import bernoulli, uniform_below
from discreet.dp.entropy import Words
from discreet.dp.samplers import discrete_laplace


def cube_noise(rate: Fraction, size: int, words: Words) -> Integers:
    """Draw ``size`` whole numbers whose largest distance from 0 decides how likely they are together.

    Parameters
    ----------
    rate
        A fraction as `discreet.dp.rational_epsilon` gives it: epsilon by the largest distance that one unit can move
        any of the numbers.
    size
        How many numbers.
    words
        The source of bits.

    Notes
    -----
    A cube of half-width k is proposed by the sum of d + 1 one-sided draws, which has chances proportional to
    (k + d choose d) exp(-rate k), and taken with the chance (2k + 1)^d / (2^d (k + 1) … (k + d)), which is at most 1
    and a fraction. A point lies in all cubes that are wide enough, so their sum falls with exp(-rate) a step.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> len(cube_noise(Fraction(1, 8), 5, os_words))
    5
    """
    while True:
        two_sided = discrete_laplace(rate, size + 1, words)
        width = int(np.where(two_sided >= 0, two_sided, -two_sided - 1).sum())
        taken = Fraction((2 * width + 1) ** size, 2**size * math.prod(range(width + 1, width + size + 1)))
        if bernoulli([taken], np.zeros(1, dtype=np.int64), words)[0]:
            return uniform_below(2 * width + 1, size, words) - width
