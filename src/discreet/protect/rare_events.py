"""Which of very many places hold a rare event? Drawn by the gaps between them, with exactly the law of single coins.

A coin of chance p is thrown for every one of 10^11 places, and only the few that come up are wanted. The gaps between
them are geometric: at least k coins fail before one comes up with chance (1 - p)^k, so a gap is a waiting time of rate
-log(1 - p) (`waiting_steps`), and no law of a proof is bent by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from discreet.core.arrays import Integers
from discreet.dp.entropy import Words

Chance = Callable[[Context], Decimal]
"""Works a chance out to the digits of a context."""

_PLACES_AT_ONCE = 1 << 20


def tail_chance(rate: Fraction, steps: Fraction) -> Chance:
    """The chance that rounded Laplace noise is at least so many steps: half of exp(-rate * (steps - 1/2)).

    Examples
    --------
    >>> float(tail_chance(Fraction(1), Fraction(1))(Context(prec=30)))
    0.3032653298563167
    """
    power = rate * (steps - Fraction(1, 2))

    def worked_out(context: Context) -> Decimal:
        exponent = context.divide(Decimal(-power.numerator), Decimal(power.denominator))
        return context.divide(context.exp(exponent), Decimal(2))

    return worked_out


def slab_chance(rate: Fraction, low: Fraction, high: Fraction) -> Chance:
    """The chance that noise is at least ``low`` steps, given that it is below ``high``."""
    above_low, above_high = tail_chance(rate, low), tail_chance(rate, high)

    def worked_out(context: Context) -> Decimal:
        upper = above_high(context)
        return context.divide(
            context.subtract(above_low(context), upper), context.subtract(Decimal(1), upper)
        )

    return worked_out


def rare_places(chance: Chance, places: int, words: Words) -> Integers:
    """The places, from 0 to ``places`` - 1 and in order, whose coins of this chance come up.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> found = rare_places(lambda context: Decimal("0.01"), 100_000, os_words)
    >>> 800 < len(found) < 1200, bool((np.diff(found) > 0).all())
    (True, True)
    """
    p = float(chance(Context(prec=40)))

    def rate(context: Context) -> Decimal:
        return -context.ln(context.subtract(Decimal(1), chance(context)))

    parts, last = [], -1
    while last < places:
        left = places - 1 - last
        many = min(int(left * p + 4 * math.sqrt(left * p) + 16), _PLACES_AT_ONCE)
        gaps = waiting_steps(rate, many, words)
        # A gap longer than all places ends the search; summing such ones would overflow.
        at = last + np.cumsum(np.minimum(gaps, places) + 1)
        parts.append(at)
        last = int(at[-1])
    found = np.concatenate(parts)
    return found[found < places]


# How many whole steps does an exponential waiting time last? Millions of draws, one logarithm each, and no law bent.
#
# A uniform number U of 64 binary digits gives the time -log U; divided by the rate of a step and rounded down it is a
# geometric number. Double precision says the whole number for certain, except where the quotient lies so near the next
# one that rounding, or the digits of U not drawn yet, could decide: there, once in some 10^10 draws, more digits of U
# are drawn and the logarithm is worked out to as many digits as it takes. So the law is exactly the one that a proof
# speaks of.


Rate = Callable[[Context], Decimal]
"""Works the rate of one step out to the digits of a context."""

_AT_ONCE = 1 << 18  # draws that fit into the cache of a processor
_DIGITS = 64
# How far double precision may be off: in the quotient, relative to it; and in the logarithm, near one. Both are many
# times what NumPy promises.
_QUOTIENT = 2.0**-46
_LOGARITHM = 2.0**-50
_LONGEST = (
    2.0**62
)  # steps; whoever waits longer is said to wait so long, and numbers stay within a machine word


def fixed_rate(rate: Fraction) -> Rate:
    """The rate of a step that is a fraction."""
    return lambda context: context.divide(Decimal(rate.numerator), Decimal(rate.denominator))


def waiting_steps(rate: Rate, size: int, words: Words, *, ahead: Fraction = Fraction(0)) -> Integers:
    """Draw whole steps: the time over a step, ``ahead`` of a step added, rounded down.

    At least k steps are drawn with chance exp(-rate (k - ahead)), for every k above 0.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 0.55 < float(waiting_steps(fixed_rate(Fraction(1)), 100_000, os_words).mean()) < 0.62
    True
    """
    near, early = float(rate(Context(prec=60))), float(ahead)
    made = np.empty(size, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        digits = words(min(_AT_ONCE, size - start))
        middle = digits.astype(np.float64) + 0.5
        steps = (_DIGITS * math.log(2) - np.log(middle)) / near
        off = steps * _QUOTIENT + (_LOGARITHM + 1 / middle) / near
        least = np.minimum(np.floor(np.maximum(steps - off, 0.0) + early), _LONGEST)
        most = np.minimum(np.floor(steps + off + early), _LONGEST)
        drawn = least.astype(np.int64)
        for place in np.flatnonzero(least != most):
            drawn[place] = _worked_out(rate, int(digits[place]), ahead, words)
        made[start : start + len(drawn)] = drawn
    return made


def rounded_noise(rate: Fraction, size: int, words: Words) -> Integers:
    """Draw Laplace noise of scale 1/``rate``, rounded to the nearest whole number: the law of `dp.rounded_laplace`.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> abs(float(rounded_noise(Fraction(1), 100_000, os_words).mean())) < 0.05
    True
    """
    away = waiting_steps(fixed_rate(rate), size, words, ahead=Fraction(1, 2))
    coins = np.unpackbits(words(-(-size // _DIGITS)).view(np.uint8))[:size]
    return np.where(coins == 1, -away, away)


def _worked_out(rate: Rate, first: int, ahead: Fraction, words: Words) -> int:
    """Draw digits of the uniform number until both ends of what it can be give the same whole number of steps."""
    digits, precision = _DIGITS, 60
    while True:
        first, digits, precision = (first << 64) | int(words(1)[0]), digits + 64, 2 * precision
        if not first:
            continue
        context = Context(prec=precision)
        step = rate(context)
        early = context.divide(Decimal(ahead.numerator), Decimal(ahead.denominator))
        ends = []
        for end in (first + 1, first):
            # Both logarithms are taken of whole numbers: their difference has lost no more than twenty digits.
            time = context.subtract(context.ln(Decimal(2**digits)), context.ln(Decimal(end)))
            ends.append(context.divide(time, step))
        off = Decimal(10) ** (40 - precision) * (1 + 1 / step)
        least = math.floor(context.add(max(context.subtract(ends[0], off), Decimal(0)), early))
        if least == math.floor(context.add(context.add(ends[1], off), early)):
            return least
