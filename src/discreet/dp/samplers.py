"""Noise of an exactly known law, in whole numbers.

Every draw is made from uniform words of 64 bits by comparisons of whole numbers and fractions; no logarithm and no
rounding comes in, so the law is the one that a proof speaks of, to the last digit. The methods are those of Canonne,
Kamath and Steinke (2020), *The discrete Gaussian for differential privacy*, carried out for many draws at once.

Where a probability is a fraction, its first 64 binary digits are compared with a word; in the one case of 2^64 where
they are equal the remaining digits decide, in Python's whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from discreet.arrays import Flags, Integers
from discreet.dp.budget import GRID, LARGEST_EPSILON, SMALLEST_EPSILON
from discreet.dp.entropy import Words
from discreet.dp.single_draws import LONGEST_RUN, one_discrete_laplace
from discreet.errors import ParameterError

_WORD = 2**64
_AT_ONCE = 1 << 20
_DOUBT = 2.0**-36  # relative; far more than a chance in double precision is off for distances that are drawn
_TINY = 2.0**-62  # absolute, for the digits of the uniform number that are not known yet
LARGEST_VARIANCE = 2**40
SMALLEST_VARIANCE = Fraction(1, 2**20)


def uniform_below(bound: int, size: int, words: Words) -> Integers:
    """Draw whole numbers from 0 to ``bound`` - 1, each with the same chance; ``bound`` is at most 2^63.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bool((uniform_below(6, 1000, os_words) < 6).all())
    True
    """
    if not 1 <= bound <= 2**63:
        raise ParameterError("bound must be a whole number from 1 to 2^63.")
    unused = np.uint64(64 - max((bound - 1).bit_length(), 1))
    drawn = words(size) >> unused
    open_ = np.flatnonzero(drawn >= np.uint64(bound))
    while len(open_):
        again = words(len(open_)) >> unused
        drawn[open_] = again
        open_ = open_[again >= np.uint64(bound)]
    return drawn.astype(np.int64)


def bernoulli(chances: Sequence[Fraction], which: Integers, words: Words) -> Flags:
    """Say yes with the chance ``chances[i]`` for every ``i`` of ``which``.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bernoulli([Fraction(0), Fraction(1)], np.array([0, 1, 1]), os_words).tolist()
    [False, True, True]
    """
    return _Chances(chances).drawn(which, words)


class _Chances:
    """Fractions between 0 and 1 with their first 64 binary digits, worked out once for many draws."""

    def __init__(self, chances: Sequence[Fraction]) -> None:
        if any(not 0 <= chance <= 1 for chance in chances):
            raise ParameterError("A chance must lie between 0 and 1.")
        self.exact = chances
        self.sure = np.asarray([chance == 1 for chance in chances], dtype=bool)
        self.first = [
            0 if chance == 1 else chance.numerator * _WORD // chance.denominator for chance in chances
        ]
        self.heads = np.asarray(self.first, dtype=np.uint64)

    def drawn(self, which: Integers, words: Words) -> Flags:
        """Say yes or no for every place of ``which``."""
        heads, sure = self.heads[which], self.sure[which]
        drawn = words(len(which))
        yes = (drawn < heads) | sure
        for tie in np.flatnonzero((drawn == heads) & ~sure):
            at = int(which[tie])
            rest = self.exact[at] * _WORD - self.first[at]
            yes[tie] = bool(rest) and bool(bernoulli([rest], np.zeros(1, dtype=np.int64), words)[0])
        return np.asarray(yes)


def bernoulli_exp(rates: Sequence[Fraction], which: Integers, words: Words) -> Flags:
    """Say yes with the chance exp(-``rates[i]``) for every ``i`` of ``which``; rates are 0 or more.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bool(bernoulli_exp([Fraction(0)], np.zeros(100, dtype=np.int64), os_words).all())
    True
    """
    if any(rate < 0 for rate in rates):
        raise ParameterError("A rate must be 0 or more.")
    # Nothing beyond 2^40 is ever said yes to, and the number stays within a machine word.
    whole = np.asarray([min(math.floor(rate), 2**40) for rate in rates], dtype=np.int64)[which]
    parts = _Chances([rate - math.floor(rate) for rate in rates])
    yes = np.ones(len(which), dtype=bool)
    large = np.flatnonzero(whole > 0)
    yes[large] = _runs_of_one_in_e(len(large), words) >= whole[large]
    left = np.flatnonzero(yes)
    own = which[left]
    yes[left] = _alternating(lambda open_: parts.drawn(own[open_], words), len(left), words)
    return yes


def discrete_laplace(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x with chances proportional to exp(-``epsilon`` times the size of x) (two-sided geometric).

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
    if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ParameterError("The variance of discrete Gaussian noise must lie between 2^-20 and 2^40.")
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


def poisson(means: Sequence[Fraction], which: Integers, words: Words) -> Integers:
    """Draw Poisson counts of mean ``means[i]`` for every ``i`` of ``which``.

    A count is the sum of one draw for every whole unit of its mean and one for the rest, so the work grows with the
    sum of the means. A draw of mean m of at most 1 proposes k with chance 2^-(k+1) and takes it with chance
    (2m)^k / (2 k!), which is at most 1.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 2.9 < float(poisson([Fraction(3)], np.zeros(50_000, dtype=np.int64), os_words).mean()) < 3.1
    True
    """
    if any(mean < 0 for mean in means):
        raise ParameterError("The mean of a Poisson count must be 0 or more.")
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
    uniform = drawn.astype(np.float64) / _WORD
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


def one_sided_geometric(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x of 0 or more with chances proportional to exp(-``epsilon`` x).

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 0.55 < float(one_sided_geometric(Fraction(1), 100_000, os_words).mean()) < 0.62
    True
    """
    _check_grid(epsilon)
    made = np.empty(size, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        made[start : start + _AT_ONCE] = _one_sided(epsilon, min(_AT_ONCE, size - start), words)
    return made


def _one_sided(epsilon: Fraction, size: int, words: Words) -> Integers:
    """Draw whole numbers x of 0 or more with chances proportional to exp(-epsilon x)."""
    steps, parts = epsilon.numerator, epsilon.denominator
    low = np.empty(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        drawn = uniform_below(parts, len(own), words)
        # Said yes to with chance exp(-drawn / parts): a number below `drawn` is a yes of chance drawn / parts.
        kept = _alternating(partial(_is_below, drawn, parts, words), len(own), words)
        low[own[kept]] = drawn[kept]
        own = own[~kept]
    high = _runs_of_one_in_e(size, words)
    if (high >= LONGEST_RUN).any():
        raise ParameterError("The source of random bits is broken: it gave a run that cannot occur.")
    return (low + parts * high) // steps


def _is_below(bounds: Integers, parts: int, words: Words, open_: Integers) -> Flags:
    return np.asarray(uniform_below(parts, len(open_), words) < bounds[open_])


def _runs_of_one_in_e(size: int, words: Words) -> Integers:
    """How often a coin of chance 1/e comes up before it first fails."""
    runs = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        own = own[_alternating(lambda open_: np.ones(len(open_), dtype=bool), len(own), words)]
        runs[own] += 1
    return runs


def _alternating(yes: Callable[[Integers], Flags], size: int, words: Words) -> Flags:
    """Say yes with chance exp(-p), where ``yes(places)`` says yes with chance p: von Neumann's game.

    In round k one goes on with chance p/k; who stops in an odd round has said yes.
    """
    stopped = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    k = 1
    while len(own):
        on = yes(own)
        if k > 1:
            on &= uniform_below(k, len(own), words) == 0
        stopped[own[~on]] = k
        own = own[on]
        k += 1
    return np.asarray(stopped % 2 == 1)


def _small_poisson(means: Sequence[Fraction], which: Integers, words: Words) -> Integers:
    made = np.zeros(len(which), dtype=np.int64)
    unit = _Chances(means)
    own = np.flatnonzero(np.asarray([mean > 0 for mean in means], dtype=bool)[which])
    taken: list[Fraction] = []
    while len(own):
        proposed = _leading_ones(len(own), words)
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


def _leading_ones(size: int, words: Words) -> Integers:
    """How often a fair coin comes up before it first fails."""
    runs = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        own = own[uniform_below(2, len(own), words) == 1]
        runs[own] += 1
    return runs


def _check_grid(epsilon: Fraction) -> None:
    fits = SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON and Fraction(epsilon).denominator <= GRID
    if not fits:
        raise ParameterError(
            "epsilon must be a fraction as rational_epsilon gives it, for draws to be exact."
        )
