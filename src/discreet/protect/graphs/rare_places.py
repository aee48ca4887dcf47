"""Which of very many places hold a rare event? Drawn by the gaps between them, with exactly the law of single coins.

A coin of chance p is thrown for every one of 10^11 places, and only the few that come up are wanted. The gaps between
them are geometric: whole blocks are skipped by coins of chance (1 - p)^b, and the place within a block is accepted with
chance (1 - p)^i (Bringmann and Friedrich 2013). These chances are compared with uniform numbers of 64 binary digits in
double precision; where the two are closer than double precision can tell, they are worked out to as many digits as it
takes. So no law of a proof is bent by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from discreet.arrays import Flags, Integers
from discreet.dp import Words, uniform_below

Chance = Callable[[Context], Decimal]
"""Works a chance out to the digits of a context."""

_DOUBT = 2.0**-40
_AT_ONCE = 1 << 20


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
    block = 1 << max(math.ceil(math.log2(1 / p)), 0) if p > 0 else places
    parts, last = [], -1
    while last < places:
        left = places - 1 - last
        many = min(int(left * p + 4 * math.sqrt(left * p) + 16), _AT_ONCE)
        gaps = _gaps(chance, p, block, many, words)
        # A gap longer than all places ends the search; summing such ones would overflow.
        at = last + np.cumsum(np.minimum(gaps, places) + 1)
        parts.append(at)
        last = int(at[-1])
    found = np.concatenate(parts)
    return found[found < places]


def _gaps(chance: Chance, p: float, block: int, size: int, words: Words) -> Integers:
    """How many coins fail before one comes up."""
    blocks = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    whole = np.full(size, block, dtype=np.int64)
    while len(own):
        own = own[_all_fail(chance, p, whole[: len(own)], words)]
        # Beyond 2^20 blocks no search goes on, and numbers stay within a machine word.
        blocks[own] += 1
        own = own[blocks[own] < 2**20]
    within = np.empty(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        at = uniform_below(block, len(own), words)
        kept = _all_fail(chance, p, at, words)
        within[own[kept]] = at[kept]
        own = own[~kept]
    return blocks * block + within


def _all_fail(chance: Chance, p: float, throws: Integers, words: Words) -> Flags:
    """Say yes with the chance (1 - p)^throws that so many coins all fail."""
    drawn = words(len(throws))
    uniform = drawn.astype(np.float64) * 2.0**-64
    sure = np.exp(throws * math.log1p(-p)) if p < 1 else (throws == 0).astype(np.float64)
    yes = uniform < sure
    for place in np.flatnonzero(np.abs(uniform - sure) <= _DOUBT):
        yes[place] = _worked_out(chance, int(throws[place]), int(drawn[place]), words)
    return np.asarray(yes)


def _worked_out(chance: Chance, throws: int, first: int, words: Words) -> bool:
    """Whether a uniform number that begins with these digits is below (1 - p)^throws, to as many digits as it takes."""
    if throws == 0:
        return True
    digits, precision = 64, 60
    while True:
        context = Context(prec=precision)
        kept = context.power(context.subtract(Decimal(1), chance(context)), Decimal(throws))
        # Powers lose a few digits more than the number of throws has.
        off = context.multiply(kept, Decimal(10) ** (len(str(throws)) + 5 - precision))
        scale = Decimal(2) ** digits
        if context.divide(Decimal(first + 1), scale) <= context.subtract(kept, off):
            return True
        if context.divide(Decimal(first), scale) >= context.add(kept, off):
            return False
        first, digits, precision = (first << 64) | int(words(1)[0]), digits + 64, 2 * precision
