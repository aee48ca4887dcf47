"""Which of very many places hold a rare event? Drawn by the gaps between them, with exactly the law of single coins.

A coin of chance p is thrown for every one of 10^11 places, and only the few that come up are wanted. The gaps between
them are geometric: at least k coins fail before one comes up with chance (1 - p)^k, so a gap is a waiting time of rate
-log(1 - p) (`discreet.protect.graphs.exponential_steps`), and no law of a proof is bent by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from discreet.core.arrays import Integers
from discreet.dp import Words
from discreet.protect.graphs.exponential_steps import waiting_steps

Chance = Callable[[Context], Decimal]
"""Works a chance out to the digits of a context."""

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

    def rate(context: Context) -> Decimal:
        return -context.ln(context.subtract(Decimal(1), chance(context)))

    parts, last = [], -1
    while last < places:
        left = places - 1 - last
        many = min(int(left * p + 4 * math.sqrt(left * p) + 16), _AT_ONCE)
        gaps = waiting_steps(rate, many, words)
        # A gap longer than all places ends the search; summing such ones would overflow.
        at = last + np.cumsum(np.minimum(gaps, places) + 1)
        parts.append(at)
        last = int(at[-1])
    found = np.concatenate(parts)
    return found[found < places]
