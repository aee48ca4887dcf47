"""Numbers that a key and a record determine: SipHash-2-4 (Aumasson and Bernstein 2012), compiled.

A keyed one-way function and not a plain hash: whoever knows the old and the new value of one record can work out the
number behind it, and must not get from there to the key, which gives those of all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner


@inner
def _rounds(v0: Any, v1: Any, v2: Any, v3: Any, times: Any) -> Any:
    for _ in range(times):
        v0 += v1
        v1 = (v1 << np.uint64(13)) | (v1 >> np.uint64(51))
        v1 ^= v0
        v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
        v2 += v3
        v3 = (v3 << np.uint64(16)) | (v3 >> np.uint64(48))
        v3 ^= v2
        v0 += v3
        v3 = (v3 << np.uint64(21)) | (v3 >> np.uint64(43))
        v3 ^= v0
        v2 += v1
        v1 = (v1 << np.uint64(17)) | (v1 >> np.uint64(47))
        v1 ^= v2
        v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0, v1, v2, v3


@inner
def _opened(k0: Any, k1: Any) -> Any:
    return (
        k0 ^ np.uint64(0x736F6D6570736575),
        k1 ^ np.uint64(0x646F72616E646F6D),
        k0 ^ np.uint64(0x6C7967656E657261),
        k1 ^ np.uint64(0x7465646279746573),
    )


@inner
def _closed(v0: Any, v1: Any, v2: Any, v3: Any, last: Any) -> Any:
    v3 ^= last
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
    v0 ^= last
    v2 ^= np.uint64(0xFF)
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


@compiled
def words_of_numbers(k0: Any, k1: Any, numbers: Any, part: Any, words: Any) -> Any:
    """Write a word of 64 bits for each number: SipHash of the number and the part, 16 bytes in all."""
    for i in range(len(numbers)):
        v0, v1, v2, v3 = _opened(k0, k1)
        for message in (numbers[i], part):
            v3 ^= message
            v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
            v0 ^= message
        words[i] = _closed(v0, v1, v2, v3, np.uint64(16) << np.uint64(56))


@compiled
def words_of_texts(k0: Any, k1: Any, content: Any, starts: Any, words: Any) -> Any:
    """Write a word of 64 bits for each text: SipHash of its bytes, which lie between neighboring starts."""
    for i in range(len(starts) - 1):
        v0, v1, v2, v3 = _opened(k0, k1)
        length = starts[i + 1] - starts[i]
        message = np.uint64(0)
        for at in range(length):
            message |= np.uint64(content[starts[i] + at]) << np.uint64(8 * (at & 7))
            if at & 7 == 7:
                v3 ^= message
                v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
                v0 ^= message
                message = np.uint64(0)
        words[i] = _closed(v0, v1, v2, v3, message | (np.uint64(length & 0xFF) << np.uint64(56)))
