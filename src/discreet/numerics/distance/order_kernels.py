"""Compiled order of numbers, and places in it, in plain loops: the functions of NumPy take seconds to compile."""

from __future__ import annotations

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import inner

ROOM = 128  # of the stack: the larger part waits, so that it holds no more than the logarithm of the size
_FEW = 15


@inner
def put_in_order(keys: Floats, places: Integers, n: int, stack: Integers) -> None:
    """Write the places of the first n keys, in the order of the keys: quicksort around the median of three."""
    for i in range(n):
        places[i] = i
    stack[0], stack[1], waiting = 0, n - 1, 1
    while waiting > 0:
        waiting -= 1
        low, high = stack[2 * waiting], stack[2 * waiting + 1]
        while high - low >= _FEW:
            middle = (low + high) >> 1
            _swap_if_less(keys, places, middle, low)
            _swap_if_less(keys, places, high, middle)
            _swap_if_less(keys, places, middle, low)
            pivot = keys[places[middle]]
            places[high], places[middle] = places[middle], places[high]
            i, j = low, high - 1
            while True:
                while i < high and keys[places[i]] < pivot:
                    i += 1
                while j >= low and pivot < keys[places[j]]:
                    j -= 1
                if i >= j:
                    break
                places[i], places[j] = places[j], places[i]
                i += 1
                j -= 1
            places[i], places[high] = places[high], places[i]
            if high - i > i - low:
                stack[2 * waiting], stack[2 * waiting + 1] = i + 1, high
                high = i - 1
            else:
                stack[2 * waiting], stack[2 * waiting + 1] = low, i - 1
                low = i + 1
            waiting += 1
        for i in range(low + 1, high + 1):
            place, j = places[i], i
            while j > low and keys[place] < keys[places[j - 1]]:
                places[j] = places[j - 1]
                j -= 1
            places[j] = place


@inner
def _swap_if_less(keys: Floats, places: Integers, one: int, other: int) -> None:
    if keys[places[one]] < keys[places[other]]:
        places[one], places[other] = places[other], places[one]


@inner
def first_beyond(lines: Floats, low: int, high: int, value: float, itself: bool) -> int:
    """Find the first of the sorted lines whose first number is above the value, or ``itself`` as well."""
    while low < high:
        middle = (low + high) >> 1
        if lines[middle, 0] < value or (lines[middle, 0] == value and not itself):
            low = middle + 1
        else:
            high = middle
    return low
