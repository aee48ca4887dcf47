"""Seeds and streams: the same data, parameters and seed give the same bytes.

A seed opens a generator; a named child stream of it belongs to one step (``"noise/income"``), so that
adding a step or a column does not change the random numbers of the others.

What becomes of a record on its own is drawn by `KeyedDraws`: from the seed, the step, the column and the number of the
record, whatever part of the file it is read with, on whatever engine.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers, Words
from discreet.core.errors import ParameterError

Seed = int | np.random.Generator | None


def generator(seed: Seed = None, *path: str) -> np.random.Generator:
    """Open the random generator of a seed, or of a named child stream of it.

    Parameters
    ----------
    seed
        A non-negative integer, a NumPy generator (used as it is when no path is given), or None for
        fresh entropy from the operating system.
    path
        Names of the child stream, e.g. ``"pram", "region"``.

    Examples
    --------
    >>> float(generator(1, "a").random()) == float(generator(1, "a").random())
    True
    >>> float(generator(1, "a").random()) == float(generator(1, "b").random())
    False
    """
    if isinstance(seed, np.random.Generator):
        if not path:
            return seed
        seed = int(seed.integers(2**63))
    if seed is None:
        seed = fresh_seed()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError("seed must be a non-negative whole number, a NumPy Generator or None.")
    words = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") for name in path]
    return np.random.default_rng(np.random.SeedSequence([int(seed), *words]))


def some_rows(rows: int, most: int, random: np.random.Generator) -> Integers:
    """Draw at most so many places of a file, in order; all of them where there are no more.

    Examples
    --------
    >>> some_rows(3, 5, generator(1)).tolist(), len(some_rows(100, 5, generator(1)))
    ([0, 1, 2], 5)
    """
    if rows <= most:
        return np.arange(rows, dtype=np.int64)
    return np.sort(random.choice(rows, most, replace=False)).astype(np.int64)


def fresh_seed() -> int:
    """Draw a seed from the operating system, to be noted in the internal log."""
    return secrets.randbits(63)


@dataclass(frozen=True)
class KeyedDraws:
    """Random numbers that belong to records, not to places in a stream.

    A draw is SipHash-2-4 of the number of the record under a key made from the seed and the names of step and column.
    It is the same however the file is cut into pieces and whoever works on them, and who knows some draws learns
    nothing about the others.

    Parameters
    ----------
    low, high
        The two halves of the key.

    Examples
    --------
    >>> noise = KeyedDraws.of(1, "add-noise", "income")
    >>> whole = noise.uniforms(np.arange(6, dtype=np.uint64))
    >>> piece = noise.uniforms(np.arange(3, 6, dtype=np.uint64))
    >>> bool((whole[3:] == piece).all()), bool(whole[0] == whole[1])
    (True, False)
    """

    low: int
    high: int

    @classmethod
    def of(cls, seed: int, *path: str) -> KeyedDraws:
        """Make the draws of a seed and the names of step and column."""
        # Lengths go before the names, so that no two paths read alike.
        written = "".join(f"{len(name)}:{name}" for name in (str(int(seed)), *path))
        digest = hashlib.sha256(f"keyed draws {written}".encode()).digest()
        return cls(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))

    def words(self, records: Words, part: int = 0) -> Words:
        """Draw 64 bits for each record; ``part`` numbers the draws of one record."""
        from discreet.core.draw_kernels import words_of_numbers

        numbers = np.ascontiguousarray(records, dtype=np.uint64)
        drawn = np.empty(len(numbers), dtype=np.uint64)
        words_of_numbers(np.uint64(self.low), np.uint64(self.high), numbers, np.uint64(part), drawn)
        return drawn

    def uniforms(self, records: Words, part: int = 0) -> Floats:
        """Draw a number in [0, 1) for each record."""
        return (self.words(records, part) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normals(self, records: Words, part: int = 0) -> Floats:
        """Draw a standard normal number for each record, by the inverse of the distribution function."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniforms(records, part) + 2.0**-54))

    def laplace(self, records: Words, part: int = 0) -> Floats:
        """Draw a number of the Laplace law of scale 1 for each record, by the inverse of the distribution function."""
        away = self.uniforms(records, part) + (2.0**-54 - 0.5)
        return np.asarray(-np.sign(away) * np.log1p(-2 * np.abs(away)))

    def integers(self, records: Words, count: int, part: int = 0) -> Integers:
        """Draw a whole number below ``count`` (at most 2**32) for each record, each as likely to within 2**-32."""
        high = (self.words(records, part) >> np.uint64(32)) * np.uint64(count)
        return (high >> np.uint64(32)).astype(np.int64)

    def of_texts(self, texts: Any) -> Words:
        """Give every text (a Polars series without gaps) its number: equal texts have equal ones."""
        import polars as pl

        from discreet.core.draw_kernels import words_of_texts

        # The oldest layout of texts in Arrow has all letters in one buffer, with 64-bit offsets.
        arrow = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
        starts, content = arrow.buffers()[1:3]
        offsets = np.frombuffer(starts, dtype=np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
        letters = np.frombuffer(content, dtype=np.uint8) if content else np.zeros(0, dtype=np.uint8)
        numbers = np.empty(len(arrow), dtype=np.uint64)
        words_of_texts(np.uint64(self.low), np.uint64(self.high), letters, offsets, numbers)
        return numbers
