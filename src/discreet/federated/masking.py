"""What hides a number: normal noise without bounds, and words of a ring, drawn so that nobody can draw them again.

Noise comes from the operating system's entropy (stretched by AES in counter mode where `cryptography` is installed). A
seed makes a run repeatable, for tests and lessons; whoever has the seed takes every mask off.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.compiling import compiled
from discreet.core.randomness import Seed, generator

_LAYERS = 256
_RIGHT = 3.6541528853610088  # where the tail of a normal cut into 256 layers of equal area begins
_AREA = 0.00492867323399


def child_seed(seed: Seed, *names: str) -> int | None:
    """Give a part of a run a seed of its own; None where nothing is drawn from a seed."""
    return None if seed is None else int(generator(seed, *names).integers(2**62))


class Masks:
    """The masks of one party.

    Parameters
    ----------
    seed
        None for entropy that nobody can repeat; a number for a lesson or a test.

    Examples
    --------
    >>> Masks(1).normal((2, 2)).shape, bool((Masks().ring(3) == Masks().ring(3)).all())
    ((2, 2), False)
    >>> party = Masks()
    >>> bool((party.kept((4,), "chunk 1") == party.kept((4,), "chunk 1")).all())
    True
    """

    def __init__(self, seed: Seed = None) -> None:
        self.seeded = seed is not None
        self._generator = generator(seed) if self.seeded else None
        self._key = (
            os.urandom(32)
            if self._generator is None
            else bytes(self._generator.integers(0, 256, 32, dtype=np.uint8))
        )
        self._kept_key = self._key
        self._drawn = 0

    @classmethod
    def of_key(cls, key: bytes) -> Masks:
        """Make masks whose kept noise is the same in every process that has the key; all other draws are new."""
        made = cls()
        made._kept_key = key
        return made

    def normal(self, shape: tuple[int, ...]) -> Floats:
        """Draw standard normal noise that was never drawn before."""
        self._drawn += 1
        return normals(stretched(self._key, f"fresh {self._drawn}", _needed(shape)), shape)

    def kept(self, shape: tuple[int, ...], label: str) -> Floats:
        """Draw the noise that belongs to a label: the same whenever it is asked for."""
        return normals(stretched(self._kept_key, f"kept {label}", _needed(shape)), shape)

    def ring(self, size: int) -> Array:
        """Draw words that are uniform on the ring of 64 bits."""
        self._drawn += 1
        return stretched(self._key, f"ring {self._drawn}", size)

    def whole(self, bits: int) -> int:
        """Draw one number that is uniform below 2 to the power of ``bits``."""
        self._drawn += 1
        size = -(-bits // 64)
        return int.from_bytes(stretched(self._key, f"whole {self._drawn}", size).tobytes(), "little") % (
            1 << bits
        )


class NoMasks(Masks):
    """No noise at all: the protocol in the clear, to see that masks change nothing."""

    def normal(self, shape: tuple[int, ...]) -> Floats:
        """Give zeros."""
        return np.zeros(shape)

    def kept(self, shape: tuple[int, ...], label: str) -> Floats:
        """Give zeros."""
        return np.zeros(shape)

    def ring(self, size: int) -> Array:
        """Give zeros."""
        return np.zeros(size, dtype=np.uint64)

    def whole(self, bits: int) -> int:
        """Give zero."""
        return 0


def normals(words: Array, shape: tuple[int, ...]) -> Floats:
    """Turn uniform words into standard normal numbers by Marsaglia and Tsang's layers.

    Examples
    --------
    >>> drawn = normals(stretched(b"k" * 32, "a", _needed((20_000,))), (20_000,))
    >>> abs(float(drawn.mean())) < 0.03, abs(float(drawn.std()) - 1) < 0.02
    (True, True)
    """
    size = math.prod(shape)
    made = np.empty(size)
    spare = words[size:]
    done = _fill(words[:size], spare, made, _EDGES, _HEIGHTS)
    while done < size:
        # Rejections used up the spare words, which happens by chance once in very many draws.
        more = stretched(hashlib.sha256(words[-8:].tobytes()).digest(), "more", _needed((size - done,)))
        done += _fill(words[done:size], more, made[done:], _EDGES, _HEIGHTS)
    return made.reshape(shape)


def _needed(shape: tuple[int, ...]) -> int:
    size = math.prod(shape)
    return size + size // 16 + 64


def stretched(key: bytes, label: str, words: int) -> Array:
    """Make so many words from a key, under a label of their own."""
    own = hashlib.sha256(key + label.encode()).digest()
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        stream = hashlib.shake_128(own).digest(8 * words)
    else:
        stream = Cipher(algorithms.AES(own), modes.CTR(bytes(16))).encryptor().update(bytes(8 * words))
    return np.frombuffer(stream, dtype=np.uint64)


def _layers() -> tuple[Floats, Floats]:
    """Lay the borders of the layers: equal areas under exp(-x²/2), widest first."""
    edges = np.zeros(_LAYERS + 1)
    edges[0] = _AREA / math.exp(-0.5 * _RIGHT**2)
    edges[1] = _RIGHT
    for at in range(2, _LAYERS):
        edges[at] = math.sqrt(-2.0 * math.log(_AREA / edges[at - 1] + math.exp(-0.5 * edges[at - 1] ** 2)))
    return edges, np.exp(-0.5 * edges**2)


_EDGES, _HEIGHTS = _layers()


@compiled
def _fill(words: Any, spare: Any, made: Any, edges: Any, heights: Any) -> Any:
    unit = 1.0 / 9007199254740992.0
    used = 0
    for at in range(len(made)):
        word = words[at]
        while True:
            layer = int(word & np.uint64(255))
            sign = 1.0 if word & np.uint64(256) else -1.0
            x = float(word >> np.uint64(11)) * unit * edges[layer]
            if x < edges[layer + 1]:
                made[at] = sign * x
                break
            if used + 3 > len(spare):
                return at
            first = (float(spare[used] >> np.uint64(11)) + 0.5) * unit
            if layer == 0:
                second = (float(spare[used + 1] >> np.uint64(11)) + 0.5) * unit
                beyond = -math.log(first) / edges[1]
                if -2.0 * math.log(second) >= beyond * beyond:
                    made[at] = sign * (edges[1] + beyond)
                    used += 2
                    break
            elif heights[layer] + first * (heights[layer + 1] - heights[layer]) < math.exp(-0.5 * x * x):
                made[at] = sign * x
                used += 1
                break
            word = spare[used + 2]
            used += 3
    return len(made)
