"""Sentences that say when a number must not be trusted, with a code by which the program knows them.

A caveat is a text like any other: it prints, sorts and goes into JSON as one. Where a measure must leave one out or a
study must pass one on, it asks for the code and never searches the sentence, which may be reworded any day.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

WEIGHTS_UNUSED = "weights unused"
NEAR_COPIES = "near copies"


class Caveat(str):
    """A sentence with a code.

    Examples
    --------
    >>> said = Caveat("Survey weights are not used here.", code=WEIGHTS_UNUSED)
    >>> said.startswith("Survey"), said.code
    (True, 'weights unused')
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, sentence: str, code: str) -> Self:
        """Make a text of the sentence, and remember its code."""
        made = super().__new__(cls, sentence)
        made.code = code
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.code


def code_of(caveat: str) -> str | None:
    """Return the code of a caveat; a plain sentence has none."""
    return caveat.code if isinstance(caveat, Caveat) else None


def without(caveats: Iterable[str], code: str) -> list[str]:
    """Leave the caveats of one code out.

    Examples
    --------
    >>> without(["Mind the gap.", Caveat("No weights.", code=WEIGHTS_UNUSED)], WEIGHTS_UNUSED)
    ['Mind the gap.']
    """
    return [caveat for caveat in caveats if code_of(caveat) != code]
