"""Counts that may be shown: outlying contributions of persons flattened, two layers of noise that stick."""

# ruff: noqa: PLR0917
from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled, inner
from discreet.synth.syndiffix.hashing import hash_words, normal, salted
from discreet.synth.syndiffix.tree_kernels import all_pass

MOST_TOP = 64


@inner
def _between(low: int, high: int, seed: np.uint64) -> int:
    return low + int(seed % np.uint64(high - low + 1))


@inner
def flattened(
    amounts: Any, seeds: Any, persons: int, unowned: float, flatten: Any, salt: Any, steps: Any
) -> Any:
    """Take the excess off the largest contributions.

    ``amounts`` are the largest contributions of persons in descending order and ``seeds`` the hashes of these persons;
    ``flatten`` the intervals of how many count as outliers and how many as the group they are brought down to. Returns
    what is taken off the total and the mean of the top group; -1 for the first where there are too few persons.
    """
    low_out, high_out, low_top, high_top = flatten[0], flatten[1], flatten[2], flatten[3]
    if persons < low_out + low_top:
        return -1.0, 0.0
    excess = high_out + high_top - persons
    if excess > 0:
        span_out, span_top = high_out - low_out, high_top - low_top
        less = excess * span_out // max(span_out + span_top, 1)
        high_out -= less
        high_top -= excess - less
        if high_top < low_top:
            high_out -= low_top - high_top
            high_top = low_top
    who = np.uint64(0)
    for i in range(min(high_out + high_top, len(amounts))):
        who ^= seeds[i]
    who = salted(salt, who)
    out = _between(low_out, high_out, who ^ steps[1])
    top = _between(low_top, high_top, who ^ steps[2])
    mean = 0.0
    for i in range(out, out + top):
        mean += amounts[i]
    mean /= top
    off = 0.0
    for i in range(out):
        off += max(amounts[i] - mean, 0.0)
    return off, mean


@inner
def _largest(
    order: Any, first: int, last: int, persons: Any, hashes: Any, given: Any, amounts: Any, seeds: Any
) -> Any:
    """Find the largest contributions of persons to some records; returns persons, owned and unowned records."""
    owned, unowned, number = 0, 0, 0
    for at in range(first, last):
        who = persons[order[at]]
        if who >= 0:
            given[who] += 1
            owned += 1
        else:
            unowned += 1
    kept = 0
    for at in range(first, last):
        who = persons[order[at]]
        if who < 0 or given[who] == 0:
            continue
        amount = given[who]
        given[who] = 0
        number += 1
        place = kept
        while place > 0 and (
            amounts[place - 1] < amount or (amounts[place - 1] == amount and seeds[place - 1] > hashes[who])
        ):
            place -= 1
        if place >= len(amounts):
            continue
        kept = min(kept + 1, len(amounts))
        for i in range(kept - 1, place, -1):
            amounts[i] = amounts[i - 1]
            seeds[i] = seeds[i - 1]
        amounts[place] = amount
        seeds[place] = hashes[who]
    return number, owned, unowned, kept


@compiled
def shown_counts(
    whole: Any,
    lows: Any,
    width: Any,
    seen_low: Any,
    seen_high: Any,
    counts: Any,
    seeds: Any,
    order: Any,
    persons: Any,
    hashes: Any,
    names: np.uint64,
    by_name: Any,
    layer_sd: float,
    limits: Any,
    flatten: Any,
    salt: Any,
    steps: Any,
) -> Any:
    """Give every node the number of records that may be shown for it: 0 where it may not be shown, else at least 1.

    ``steps`` are the hashed names of the steps: the test of small sets, outliers, top, and the two layers of noise.
    """
    nodes, dims = lows.shape
    shown = np.zeros(nodes, dtype=np.int64)
    words = np.empty(dims, dtype=np.float64)
    most = flatten[1] + flatten[3]
    amounts = np.empty(most, dtype=np.int64)
    top_seeds = np.empty(most, dtype=np.uint64)
    given = np.zeros(hashes.shape[1] if persons.shape[1] else 0, dtype=np.int64)
    base = whole[0, 2]
    for node in range(nodes):
        if not all_pass(counts[node], seeds[node], limits[0], limits[1], limits[2], salt, steps[0]):
            continue
        total = float(whole[node, 4] - whole[node, 3])
        deviation, set_seed, few = layer_sd, np.uint64(0), False
        for p in range(len(hashes)):
            set_seed ^= seeds[node, p]
        if persons.shape[1]:
            whole_total = total
            deviation = 0.0
            for p in range(len(persons)):
                number, owned, unowned, kept = _largest(
                    order, whole[node, 3], whole[node, 4], persons[p], hashes[p], given, amounts, top_seeds
                )
                off, mean = flattened(amounts[:kept], top_seeds[:kept], number, unowned, flatten, salt, steps)
                if off < 0:
                    few = True
                    continue
                count = owned - off
                deviation = max(deviation, layer_sd * max(count / number, 0.5 * mean))
                total = min(total, count + max(unowned - off, 0.0), whole_total)
        if few:
            continue
        noise = 0.0
        if deviation > 0.0:
            for place in range(dims):
                d = by_name[place]
                middle = seen_low[node, d]
                if seen_low[node, d] != seen_high[node, d]:
                    middle = lows[node, d] + width[d] / 2.0 ** (whole[node, 2] - base + 1)
                words[place] = middle + 0.0
            label = hash_words(words.view(np.uint64), dims)
            noise = deviation * normal(steps[3] ^ salted(salt, names ^ label))
            noise += deviation * normal(steps[4] ^ salted(salt, set_seed))
        shown[node] = max(1, int(np.rint(total + noise)))
    return shown
