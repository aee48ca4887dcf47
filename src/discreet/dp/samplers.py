"""Noise of an exactly known law, in whole numbers.

Every draw is made of coins of an exactly known chance (`discreet.dp.entropy`); no logarithm and no rounding comes in,
so the law is the one that a proof speaks of, to the last digit. The methods are those of Canonne, Kamath and Steinke
(2020), *The discrete Gaussian for differential privacy*, carried out for many draws at once. Single draws and the
noise of a cube stand at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ParameterError
from discreet.dp.calibration import GRID, LARGEST_EPSILON, SMALLEST_EPSILON
from discreet.dp.entropy import (
    WORD,
    Chances,
    Words,
    alternating,
    bernoulli,
    bernoulli_exp,
    leading_ones,
    os_words,
    runs_of_one_in_e,
    uniform_below,
)

_AT_ONCE = 1 << 20
_FEW = 24  # draws that are faster one by one
_DOUBT = 2.0**-36  # relative; far more than a chance in double precision is off for distances that are drawn
_TINY = 2.0**-62  # absolute, for the digits of the uniform number that are not known yet
LARGEST_VARIANCE = 2**40
SMALLEST_VARIANCE = Fraction(1, 2**20)


def discrete_laplace(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x with chances proportional to exp(-``epsilon`` times the size of x) (two-sided geometric).

    Also known as: geometric mechanism; two-sided geometric; discrete Laplace.

    Parameters
    ----------
    epsilon
        One over the scale; a fraction as `discreet.dp.rational_epsilon` gives it.
    size
        How many.
    words
        The source of bits; `discreet.dp.os_words` where a guarantee is claimed.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> abs(float(discrete_laplace(Fraction(1), 100_000, os_words).mean())) < 0.05
    True
    """
    _check_grid(epsilon)
    if size == 1:
        return np.asarray([one_discrete_laplace(epsilon, words)], dtype=np.int64)
    if size <= _FEW and words is os_words:
        # Nobody can draw these again, so the order in which words are taken is free.
        held = held_words(words)
        return np.asarray([one_discrete_laplace(epsilon, held) for _ in range(size)], dtype=np.int64)
    return _many_discrete_laplace(epsilon, size, words)


def _many_discrete_laplace(epsilon: Fraction, size: int, words: Words) -> Integers:
    made = np.empty(size, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        own = np.arange(start, min(start + _AT_ONCE, size))
        while len(own):
            drawn = _one_sided(epsilon, len(own), words)
            negative = uniform_below(2, len(own), words) == 1
            # Zero would come with both signs, so the negative one is drawn again.
            kept = ~(negative & (drawn == 0))
            made[own[kept]] = np.where(negative, -drawn, drawn)[kept]
            own = own[~kept]
    return made


def rounded_laplace(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw continuous Laplace noise of scale 1/``epsilon``, rounded to the nearest whole number, exactly.

    It is 0 with chance 1 - exp(-epsilon/2); beyond that every step is exp(-epsilon) times as likely as the one before.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> abs(float(rounded_laplace(Fraction(1), 100_000, os_words).mean())) < 0.05
    True
    """
    _check_grid(epsilon)
    moved = bernoulli_exp([epsilon / 2], np.zeros(size, dtype=np.int64), words)
    made = np.zeros(size, dtype=np.int64)
    many = int(moved.sum())
    sign = 1 - 2 * uniform_below(2, many, words)
    made[moved] = sign * (1 + _one_sided(epsilon, many, words))
    return made


def discrete_gaussian(variance: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x with chances proportional to exp(-x² / (2 ``variance``)).

    Also known as: discrete Gaussian; Canonne-Kamath-Steinke.

    Parameters
    ----------
    variance
        The parameter sigma², a fraction between 2^-20 and 2^40; the variance of the draws is about that.
    size, words
        As in `discrete_laplace`.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 3.8 < float(discrete_gaussian(Fraction(4), 100_000, os_words).var()) < 4.2
    True
    """
    check_variance(variance)
    variance = Fraction(variance)
    scale = math.isqrt(math.floor(variance)) + 1
    made = np.empty(size, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        own = np.arange(start, min(start + _AT_ONCE, size))
        while len(own):
            drawn = discrete_laplace(Fraction(1, scale), len(own), words)
            kept = _as_likely_as_gaussian(np.abs(drawn), variance, scale, words)
            made[own[kept]] = drawn[kept]
            own = own[~kept]
    return made


def check_variance(variance: Fraction) -> None:
    """Refuse a variance for which Gaussian noise could not be drawn exactly; to be asked before anything is spent.

    Examples
    --------
    >>> check_variance(Fraction(4))
    """
    if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ParameterError(
            "The variance of discrete Gaussian noise must lie between 2^-20 and 2^40. Choose another epsilon or delta."
        )


def poisson(means: Sequence[Fraction], which: Integers, words: Words) -> Integers:
    """Draw Poisson counts of mean ``means[i]`` for every ``i`` of ``which``.

    A count is the sum of one draw for every whole unit of its mean and one for the rest, so the work grows with the
    sum of the means. A draw of mean m of at most 1 proposes k with chance 2^-(k+1) and takes it with chance
    (2m)^k / (2 k!), which is at most 1.

    Also known as: Poisson sampler.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 2.9 < float(poisson([Fraction(3)], np.zeros(50_000, dtype=np.int64), os_words).mean()) < 3.1
    True
    """
    if not all(0 <= mean < 2**62 for mean in means):
        raise ParameterError("The mean of a Poisson count must be 0 or more, and less than 2^62.")
    whole = np.asarray([math.floor(mean) for mean in means], dtype=np.int64)
    made = _small_poisson([mean - math.floor(mean) for mean in means], which, words)
    one = [Fraction(1)]
    ends = np.cumsum(whole[which])
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, _AT_ONCE):
        many = min(_AT_ONCE, total - start)
        drawn = _small_poisson(one, np.zeros(many, dtype=np.int64), words)
        place = np.searchsorted(ends, np.arange(start, start + many), side="right")
        np.add.at(made, place, drawn)
    return made


def weighted_rows(weights: npt.NDArray[np.uint64], rows: Integers, words: Words) -> Integers:
    """Draw a column for every row of a table of whole weights, each row of which adds up to 2^62.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> table = np.array([[2**62, 0], [0, 2**62]], dtype=np.uint64)
    >>> weighted_rows(table, np.array([0, 1, 1]), os_words).tolist()
    [0, 1, 1]
    """
    running = np.cumsum(weights, axis=1, dtype=np.uint64)
    if len(rows) and (running[rows, -1] != 2**62).any():
        raise ParameterError("Every row of weights must add up to 2^62.")
    drawn = words(len(rows)) >> np.uint64(2)
    made = np.empty(len(rows), dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    present, starts = np.unique(rows[order], return_index=True)
    for row, here in zip(present, np.split(order, starts[1:]), strict=True):
        made[here] = np.searchsorted(running[row], drawn[here], side="right")
    return made


def shuffled(size: int, words: Words) -> Integers:
    """Draw an order of ``size`` things, every order with the same chance.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> sorted(shuffled(5, os_words).tolist())
    [0, 1, 2, 3, 4]
    """
    while True:
        keys = words(size)
        order = np.argsort(keys, kind="stable")
        # Given that no two words are equal, all orders are alike; equal ones are drawn anew.
        if not (np.diff(keys[order]) == 0).any():
            return order.astype(np.int64)


def _as_likely_as_gaussian(distances: Integers, variance: Fraction, scale: int, words: Words) -> Flags:
    """Say yes with chance exp(-(distance - variance / scale)² / (2 variance)), for every distance.

    The chance is computed in double precision and compared with a uniform number of which 64 digits are known. Only
    where they are closer than the computation can be off, once in 10^11 draws, is the chance worked out exactly.
    """
    gaps = distances - float(variance / scale)
    chances = np.exp(-gaps * gaps / (2 * float(variance)))
    drawn = words(len(distances))
    uniform = drawn.astype(np.float64) / WORD
    yes = uniform < chances
    for at in np.flatnonzero(np.abs(uniform - chances) <= _DOUBT * chances + _TINY):
        rate = (int(distances[at]) - variance / scale) ** 2 / (2 * variance)
        yes[at] = _is_below_exp(int(drawn[at]), rate, words)
    return np.asarray(yes)


def _is_below_exp(first: int, rate: Fraction, words: Words) -> bool:
    """Whether a uniform number whose first 64 binary digits are ``first`` is below exp(-``rate``), exactly."""
    digits, terms = 64, 16
    while True:
        low, high = _exp_between(rate, terms)
        if Fraction(first + 1, 2**digits) <= low:
            return True
        if Fraction(first, 2**digits) >= high:
            return False
        first, digits, terms = (first << 64) | int(words(1)[0]), digits + 64, 2 * terms


def _exp_between(rate: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Bounds on exp(-``rate``): the sums of an alternating series after one term more and one term less."""
    halvings = max(math.ceil(rate), 1).bit_length()
    small = rate / 2**halvings
    term = total = Fraction(1)
    for k in range(1, 2 * terms):
        term *= -small / k
        total += term
    low, high = total, total + abs(term)
    for _ in range(halvings):
        low, high = low * low, high * high
    return low, high


def _one_sided(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x of 0 or more with chances proportional to exp(-epsilon x)."""
    steps, parts = epsilon.numerator, epsilon.denominator
    low = np.empty(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        drawn = uniform_below(parts, len(own), words)
        # Said yes to with chance exp(-drawn / parts): a number below `drawn` is a yes of chance drawn / parts.
        kept = alternating(partial(_is_below, drawn, parts, words), len(own), words)
        low[own[kept]] = drawn[kept]
        own = own[~kept]
    high = runs_of_one_in_e(size, words)
    if (high >= LONGEST_RUN).any():
        raise ParameterError("The source of random bits is broken: it gave a run that cannot occur.")
    return (low + parts * high) // steps


def _small_poisson(means: Sequence[Fraction], which: Integers, words: Words) -> Integers:
    made = np.zeros(len(which), dtype=np.int64)
    unit = Chances([mean.as_integer_ratio() for mean in means])
    own = np.flatnonzero(np.asarray([mean > 0 for mean in means], dtype=bool)[which])
    taken: list[Fraction] = []
    while len(own):
        proposed = leading_ones(len(own), words)
        while len(taken) <= int(proposed.max()):
            k = len(taken)
            taken.append(Fraction(2**k, 2 * math.factorial(k)))
        kept = bernoulli(taken, proposed, words)
        # The chance mean^k is k yeses of chance mean each.
        needed = np.where(kept, proposed, 0)
        open_ = np.flatnonzero(needed > 0)
        while len(open_):
            on = unit.drawn(which[own[open_]], words)
            kept[open_[~on]] = False
            needed[open_] -= 1
            open_ = open_[on]
            open_ = open_[needed[open_] > 0]
        made[own[kept]] = proposed[kept]
        own = own[~kept]
    return made


def _is_below(bounds: Integers, parts: int, words: Words, open_: Integers) -> Flags:
    return np.asarray(uniform_below(parts, len(open_), words) < bounds[open_])


def _check_grid(epsilon: Fraction) -> None:
    fits = SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON and Fraction(epsilon).denominator <= GRID
    if not fits:
        raise ParameterError(
            "epsilon must be a fraction as rational_epsilon gives it, for draws to be exact."
        )


# One draw at a time, without arrays.
#
# A single noisy answer is what people ask for most, and arrays of one place cost ten times the draw itself. Every
# function takes the same words in the same order as its neighbor for many, so that one draw is the same number
# whichever drew it: one law, proved once. A test holds the two against each other.


_HELD = 64
LONGEST_RUN = 2**12
"""A run of so many has the chance exp(-4096); below it every number stays within 63 bits."""


def held_words(words: Words) -> Words:
    """Give words one at a time from a few that are fetched together.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> len(held_words(os_words)(1))
    1
    """
    held: list[int] = []

    def one(_: int) -> Any:
        if not held:
            held.extend(words(_HELD).tolist())
        return (held.pop(),)

    return one


def one_below(bound: int, words: Words) -> int:
    """Draw a whole number from 0 to ``bound`` - 1, each with the same chance.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> one_below(1, os_words)
    0
    """
    unused = 64 - max((bound - 1).bit_length(), 1)
    while True:
        drawn = int(words(1)[0]) >> unused
        if drawn < bound:
            return drawn


def one_discrete_laplace(epsilon: Fraction, words: Words) -> int:
    """Draw a whole number x with a chance proportional to exp(-``epsilon`` times the size of x).

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> abs(one_discrete_laplace(Fraction(1000), os_words))
    0
    """
    while True:
        drawn = one_one_sided(epsilon, words)
        negative = one_below(2, words) == 1
        # Zero would come with both signs, so the negative one is drawn again.
        if drawn or not negative:
            return -drawn if negative else drawn


def one_one_sided(epsilon: Fraction, words: Words) -> int:
    """Draw a whole number x of 0 or more with a chance proportional to exp(-``epsilon`` x).

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> one_one_sided(Fraction(1000), os_words)
    0
    """
    steps, parts = epsilon.numerator, epsilon.denominator
    while True:
        low = one_below(parts, words)
        if _stops_at_odd(lambda bound=low: one_below(parts, words) < bound, words):  # type: ignore[misc]
            break
    high = 0
    while _stops_at_odd(_always, words):
        high += 1
        if high >= LONGEST_RUN:
            raise ParameterError("The source of random bits is broken: it gave a run that cannot occur.")
    return (low + parts * high) // steps


def _always() -> bool:
    return True


def _stops_at_odd(yes: Callable[[], bool], words: Words) -> bool:
    """Say yes with chance exp(-p), where ``yes()`` says yes with chance p: von Neumann's game."""
    k = 1
    while True:
        on = yes()
        # Drawn whatever was said, as for many at once.
        if k > 1 and one_below(k, words) != 0:
            on = False
        if not on:
            return k % 2 == 1
        k += 1


# Noise for several numbers at once when each can move as far as the largest: the K-norm mechanism of the cube.
#
# Method: Hardt and Talwar (2010), and Awan and Slavković (2020) for sums that a regression needs. A vector of whole
# numbers z has a chance proportional to exp(-rate max |z|). Drawn exactly: first the half-width k of a cube, with
# chances proportional to (2k + 1)^d exp(-rate k), then a point of the cube.


def cube_noise(rate: Fraction, size: int, words: Words) -> Integers:
    """Draw ``size`` whole numbers whose largest distance from 0 decides how likely they are together.

    Also known as: K-norm mechanism; l-infinity noise.

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
