"""One draw at a time: what `discreet.dp.samplers` draws for many, without arrays.

A single noisy answer is what people ask for most, and arrays of one place cost ten times the draw itself. Every
function takes the same words in the same order as its neighbor for many, so that one draw is the same number whichever
drew it: one law, proved once. A test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.core.errors import ParameterError
from discreet.dp.entropy import Words

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
