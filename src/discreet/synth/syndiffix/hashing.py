"""Numbers that stick to what they are about: hashes, salted seeds and normal draws, inside compiled loops.

A set of persons or of column names is the exclusive or of the hashes of its members, so that order and repetition
do not matter. A seed is salted (SHA-256 of the secret salt and the seed), so that nobody without the salt can repeat
the noise; and every step that draws has a name of its own. BLAKE2b and SHA-256 are here as compiled functions because
the trees ask for millions of them; a test holds both against Python's own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.core.arrays import Array
from discreet.core.compiling import compiled, inner

SHORTEST_SALT = 8
_31_BITS = 0x7FFFFFFF

_IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.int64,
)
_LINES = np.array(
    [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
     [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]],
    dtype=np.int64,
)  # fmt: skip
_FIRST_32 = np.array(
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19],
    dtype=np.uint32,
)


def _cube_roots() -> Array:
    """Return the round constants of SHA-256: fractions of the cube roots of the first 64 primes."""
    primes: list[int] = []
    number = 2
    while len(primes) < 64:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    found = []
    for prime in primes:
        wide = prime << 96
        root = round(wide ** (1 / 3))
        while root**3 > wide:
            root -= 1
        while (root + 1) ** 3 <= wide:
            root += 1
        found.append(root & 0xFFFFFFFF)
    return np.array(found, dtype=np.uint32)


_ROUNDS = _cube_roots()


def hashed(text: str) -> int:
    """Hash a text to 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def set_seed(texts: Iterable[str]) -> np.uint64:
    """Hash a set of texts: the order does not matter.

    Examples
    --------
    >>> bool(set_seed(["age", "sex"]) == set_seed(["sex", "age"]))
    True
    """
    seed = 0
    for text in set(texts):
        seed ^= hashed(text)
    return np.uint64(seed)


@inner
def _turned(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word >> by) | (word << (np.uint64(64) - by))


@compiled
def hash_words(words: Any, count: int) -> Any:
    """Hash up to sixteen 64-bit words: BLAKE2b of their bytes, eight bytes long."""
    state = np.empty(8, dtype=np.uint64)
    for i in range(8):
        state[i] = _IV[i]
    state[0] ^= np.uint64(0x01010008)
    work = np.empty(16, dtype=np.uint64)
    for i in range(8):
        work[i] = state[i]
        work[8 + i] = _IV[i]
    work[12] ^= np.uint64(8 * count)
    work[14] = ~work[14]
    for turn in range(12):
        for line in range(8):
            a, b, c, d = _LINES[line, 0], _LINES[line, 1], _LINES[line, 2], _LINES[line, 3]
            first, second = _SIGMA[turn, 2 * line], _SIGMA[turn, 2 * line + 1]
            x = words[first] if first < count else np.uint64(0)
            y = words[second] if second < count else np.uint64(0)
            work[a] = work[a] + work[b] + x
            work[d] = _turned(work[d] ^ work[a], np.uint64(32))
            work[c] = work[c] + work[d]
            work[b] = _turned(work[b] ^ work[c], np.uint64(24))
            work[a] = work[a] + work[b] + y
            work[d] = _turned(work[d] ^ work[a], np.uint64(16))
            work[c] = work[c] + work[d]
            work[b] = _turned(work[b] ^ work[c], np.uint64(63))
    return state[0] ^ work[0] ^ work[8]


@inner
def next_word(state: Any) -> Any:
    """Draw the next 64 bits of a small generator whose state is ``state[0]`` (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def hash_numbers(first: int, count: int) -> Array:
    """Scatter the whole numbers from ``first`` on over 64 bits, for persons that are but records (splitmix64)."""
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(first)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ (word >> np.uint64(31)))


@inner
def _turned_32(word: np.uint32, by: np.uint32) -> np.uint32:
    return np.uint32((word >> by) | (word << (np.uint32(32) - by)))


@compiled
def salted(salt: Any, seed: np.uint64) -> np.uint64:
    """Return the first eight bytes of SHA-256(salt, seed)."""
    length = len(salt) + 8
    blocks = (length + 9 + 63) // 64
    message = np.zeros(64 * blocks, dtype=np.uint8)
    for i in range(len(salt)):
        message[i] = salt[i]
    for i in range(8):
        message[len(salt) + i] = np.uint8((seed >> np.uint64(8 * i)) & np.uint64(255))
    message[length] = np.uint8(128)
    bits = 8 * length
    for i in range(8):
        message[64 * blocks - 1 - i] = np.uint8((bits >> (8 * i)) & 255)
    state = _FIRST_32.copy()
    words = np.empty(64, dtype=np.uint32)
    for block in range(blocks):
        for i in range(16):
            at = 64 * block + 4 * i
            words[i] = (
                (np.uint32(message[at]) << np.uint32(24))
                | (np.uint32(message[at + 1]) << np.uint32(16))
                | (np.uint32(message[at + 2]) << np.uint32(8))
                | np.uint32(message[at + 3])
            )
        for i in range(16, 64):
            p, q = words[i - 15], words[i - 2]
            low = _turned_32(p, np.uint32(7)) ^ _turned_32(p, np.uint32(18)) ^ np.uint32(p >> np.uint32(3))
            high = _turned_32(q, np.uint32(17)) ^ _turned_32(q, np.uint32(19)) ^ np.uint32(q >> np.uint32(10))
            words[i] = np.uint32(words[i - 16] + low + words[i - 7] + high)
        a, b, c, d = state[0], state[1], state[2], state[3]
        e, f, g, h = state[4], state[5], state[6], state[7]
        for i in range(64):
            high = _turned_32(e, np.uint32(6)) ^ _turned_32(e, np.uint32(11)) ^ _turned_32(e, np.uint32(25))
            choice = np.uint32((e & f) ^ (~e & g))
            one = np.uint32(h + high + choice + _ROUNDS[i] + words[i])
            low = _turned_32(a, np.uint32(2)) ^ _turned_32(a, np.uint32(13)) ^ _turned_32(a, np.uint32(22))
            most = np.uint32((a & b) ^ (a & c) ^ (b & c))
            two = np.uint32(low + most)
            h, g, f = g, f, e
            e = np.uint32(d + one)
            d, c, b = c, b, a
            a = np.uint32(one + two)
        state[0] += a
        state[1] += b
        state[2] += c
        state[3] += d
        state[4] += e
        state[5] += f
        state[6] += g
        state[7] += h
    found = np.uint64(0)
    for i in range(2):
        for part in range(4):
            byte = np.uint64((state[i] >> np.uint32(24 - 8 * part)) & np.uint32(255))
            found |= byte << np.uint64(8 * (4 * i + part))
    return found


@compiled
def normal(seed: np.uint64) -> float:
    """Draw a standard normal number that belongs to the seed (Box and Muller)."""
    one = float(seed & np.uint64(_31_BITS)) / _31_BITS
    two = float((seed >> np.uint64(32)) & np.uint64(_31_BITS)) / _31_BITS
    if one <= 0.0:
        one = 1.0 / _31_BITS
    return math.sqrt(-2.0 * math.log(one)) * math.sin(2.0 * math.pi * two)


@inner
def next_share(state: Any) -> float:
    """Draw the next number in [0, 1)."""
    return float(next_word(state) >> np.uint64(11)) * 2.0**-53
