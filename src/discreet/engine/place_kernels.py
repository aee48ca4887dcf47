"""Compiled loops that look whole numbers up among many others, or keep the lowest of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.compiling import compiled, inner

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


@compiled
def keep_lowest(  # noqa: PLR0917 - compiled code takes arrays by position
    owner: Integers, numbers: Integers, start: Integers, most: Integers, held: Integers, filled: Integers
) -> None:
    """Keep the lowest numbers of each owner, as many as it may hold, in its part of ``held``: a heap, highest first."""
    for position in range(len(owner)):
        who, number = owner[position], numbers[position]
        first, count = start[who], filled[who]
        if count < most[who]:
            at = count
            filled[who] = count + 1
            while at > 0 and held[first + (at - 1) // 2] < number:
                held[first + at] = held[first + (at - 1) // 2]
                at = (at - 1) // 2
            held[first + at] = number
        elif number < held[first]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= count:
                    break
                if child + 1 < count and held[first + child + 1] > held[first + child]:
                    child += 1
                if held[first + child] <= number:
                    break
                held[first + at] = held[first + child]
                at = child
            held[first + at] = number
