"""Compiled loops over candidates in a box, and over the letters of two words."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Bytes, Codes, Floats, Integers
from discreet.core.compiling import compiled, inner
from discreet.numerics.distance.order_kernels import first_beyond


@compiled
def matches_in_boxes(  # noqa: PLR0917
    numbers: Floats,
    fuzzy: Codes,
    starts: Integers,
    stops: Integers,
    others: Floats,
    other_fuzzy: Codes,
    tolerances: Floats,
    allowed: Bytes,
    offsets: Integers,
    widths: Integers,
    counts: Integers,
    back: Integers,
    only: Integers,
    pairs: Integers,
    first_only: bool,
) -> int:
    """Count the records in each box; note the last one found and, if there is room, every pair.

    The candidates of a record stand between ``starts`` and ``stops``, sorted by their first number.
    """
    found = 0
    for i in range(len(numbers)):
        if stops[i] <= starts[i]:
            continue
        first, last = starts[i], stops[i]
        if numbers.shape[1]:
            first = first_beyond(others, starts[i], stops[i], numbers[i, 0] - tolerances[0], True)
            last = first_beyond(others, starts[i], stops[i], numbers[i, 0] + tolerances[0], False)
        for c in range(first, last):
            inside = True
            for j in range(1, numbers.shape[1]):
                if abs(numbers[i, j] - others[c, j]) > tolerances[j]:
                    inside = False
                    break
            if not inside:
                continue
            for j in range(fuzzy.shape[1]):
                if not allowed[offsets[j] + fuzzy[i, j] * widths[j] + other_fuzzy[c, j]]:
                    inside = False
                    break
            if inside:
                counts[i] += 1
                back[c] += 1
                only[i] = c
                if found < len(pairs):
                    pairs[found, 0] = i
                    pairs[found, 1] = c
                found += 1
                if first_only:
                    break
    return found


@inner
def edit_similarity(a: Codes, b: Codes) -> float:
    """Levenshtein: one minus the edits from one word to the other over the length of the longer."""
    if len(a) == 0 and len(b) == 0:
        return 1.0
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            changed = corner + (a[i] != b[j])
            corner = row[j + 1]
            row[j + 1] = min(changed, min(row[j], row[j + 1]) + 1)
    return float(1.0 - row[len(b)] / max(len(a), len(b)))


@inner
def jaro_winkler_similarity(a: Codes, b: Codes) -> float:
    """Jaro-Winkler (Winkler 1990): shared letters in about the same place, with a bonus for a common start."""
    if len(a) == 0 and len(b) == 0:
        return 1.0
    window = max(max(len(a), len(b)) // 2 - 1, 0)
    taken_a, taken_b = np.zeros(len(a), np.uint8), np.zeros(len(b), np.uint8)
    shared = 0
    for i in range(len(a)):
        for j in range(max(0, i - window), min(len(b), i + window + 1)):
            if not taken_b[j] and a[i] == b[j]:
                taken_a[i] = 1
                taken_b[j] = 1
                shared += 1
                break
    if shared == 0:
        return 0.0
    swapped, j = 0, 0
    for i in range(len(a)):
        if taken_a[i]:
            while not taken_b[j]:
                j += 1
            swapped += a[i] != b[j]
            j += 1
    jaro = (shared / len(a) + shared / len(b) + (shared - swapped / 2) / shared) / 3
    start = 0
    while start < min(4, len(a), len(b)) and a[start] == b[start]:
        start += 1
    return jaro + start * 0.1 * (1 - jaro)


@compiled
def similar_words(
    letters: Codes, starts: Integers, others: Codes, other_starts: Integers, winkler: bool
) -> Floats:
    """Compare each word with each word of the other list; words are given as their letters, end to end."""
    found = np.empty((len(starts) - 1, len(other_starts) - 1))
    for i in range(len(starts) - 1):
        a = letters[starts[i] : starts[i + 1]]
        for j in range(len(other_starts) - 1):
            b = others[other_starts[j] : other_starts[j + 1]]
            found[i, j] = jaro_winkler_similarity(a, b) if winkler else edit_similarity(a, b)
    return found
