"""Compiled loops that look whole numbers up among many others."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.compiling import compiled, inner

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@inner
def _slot(value: int, last: int) -> int:
    mixed = np.uint64(value) * _MIX
    return np.int64((mixed ^ (mixed >> _SHIFT)) & np.uint64(last))  # type: ignore[return-value]


@compiled
def laid_out(keys: Integers) -> Any:
    """Lay whole numbers, all different, out in a table of slots."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    for place in range(len(keys)):
        slot = _slot(keys[place], size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = place
    return slots


@compiled
def looked_up(values: Integers, keys: Integers, slots: Any) -> Integers:
    """The place of each value among the keys that were laid out; -1 where it is none of them."""
    found = np.empty(len(values), dtype=np.int64)
    last = len(slots) - 1
    for position in range(len(values)):
        slot = _slot(values[position], last)
        while slots[slot] >= 0 and keys[slots[slot]] != values[position]:
            slot = (slot + 1) & last
        found[position] = slots[slot]
    return found
