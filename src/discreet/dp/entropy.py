"""Where do random numbers come from? The operating system, or a seed for draws that must be repeated."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.randomness import generator

Words = Callable[[int], npt.NDArray[np.uint64]]
"""Gives so many uniform words of 64 bits; every call gives new ones."""

_WORDS_AT_ONCE = 1 << 22


def os_words(size: int) -> npt.NDArray[np.uint64]:
    """Draw words from the operating system; only such draws carry a guarantee.

    Examples
    --------
    >>> len(os_words(3)), bool((os_words(4) == os_words(4)).all())
    (3, False)
    """
    # One call may be cut short by the kernel's limit; pieces of 32 MB are below it everywhere.
    parts = [
        np.frombuffer(os.urandom(8 * min(_WORDS_AT_ONCE, size - start)), dtype=np.uint64)
        for start in range(0, size, _WORDS_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def seeded_words(rng: np.random.Generator) -> Words:
    """Draw words from a seeded generator: the same law of the draws, and no guarantee.

    Examples
    --------
    >>> one, other = (seeded_words(np.random.default_rng(1)) for _ in range(2))
    >>> bool((one(5) == other(5)).all())
    True
    """

    def words(size: int) -> npt.NDArray[np.uint64]:
        return rng.integers(0, 2**64, size=size, dtype=np.uint64)

    return words


class Stream:
    """The random numbers of one treatment, table or file.

    ``stream("name")`` opens a named child generator; ``stream.words("name")`` gives bits for the draws that a guarantee
    rests on: from the operating system, unless the user gave a seed.

    Parameters
    ----------
    root, path
        The seed, and the names under which this stream stands.
    seeded
        Whether the user gave the seed, so that whoever knows it can draw again.

    Examples
    --------
    >>> stream = Stream(1, "noise", seeded=True)
    >>> bool((stream.words("a")(3) == stream.words("a")(3)).all())
    True
    """

    def __init__(self, root: int, *path: str, seeded: bool = True) -> None:
        self.root = root
        self.path = path
        self.seeded = seeded

    def __call__(self, *path: str) -> np.random.Generator:
        """Open a named child generator."""
        return generator(self.root, *self.path, *path)

    def child(self, *path: str) -> Stream:
        """Return the stream of a part."""
        return Stream(self.root, *self.path, *path, seeded=self.seeded)

    def words(self, *path: str) -> Words:
        """Open a source of bits."""
        return seeded_words(self(*path)) if self.seeded else os_words
