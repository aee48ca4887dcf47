"""Trees of ranges, grown by parting arrays of record numbers.

A node halves its range in every dimension at once. Nodes are numbered in the order in which a walk meets them first,
so the nodes below node ``v`` are those from ``v + 1`` to ``stop[v] - 1``, and its children are found by jumping from
one ``stop`` to the next. ``order[first[v]:last[v]]`` are its records.

What a node says about its persons is kept for every column that names persons: how many they are and the exclusive or
of their hashes, which is the same whatever tree the set of persons is met in.

Counts that may be shown carry two layers of noise that stick, after outlying contributions are flattened.
"""

# ruff: noqa: PLR0917
from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import ZERO, compiled, inner
from discreet.synth.syndiffix.hashing import hash_words, normal, salted

MOST_DEPTH = 1100
SURE = 7.0  # no draw of `normal` is larger


@inner
def passes(count: int, seed: np.uint64, threshold: float, gap: float, sd: float, salt: Any, step: Any) -> Any:
    """Whether a set of so many persons is large enough to be shown; the limit is drawn, and belongs to the set."""
    if count < threshold:
        return False
    if sd == 0.0:
        return True
    middle = threshold + gap * sd
    if count >= middle + SURE * sd:
        return True
    return count >= middle + sd * normal(step ^ salted(salt, seed))


@inner
def all_pass(counts: Any, seeds: Any, threshold: float, gap: float, sd: float, salt: Any, step: Any) -> Any:
    """Whether the persons are enough by every column that names them."""
    shown = True
    for p in range(len(counts)):
        shown = shown and passes(counts[p], seeds[p], threshold, gap, sd, salt, step)
    return shown


@inner
def count_persons(
    order: Any,
    first: int,
    last: int,
    persons: Any,
    hashes: Any,
    seen: Any,
    mark: int,
    counts: Any,
    seeds: Any,
) -> None:
    """Count distinct persons of some records, and hash the set of them; records of nobody count for nothing."""
    for p in range(len(counts)):
        number = 0
        seed = np.uint64(0)
        if persons.shape[1] == 0:
            for at in range(first, last):
                seed ^= hashes[p, order[at]]
            number = last - first
        else:
            for at in range(first, last):
                who = persons[p, order[at]]
                if who >= 0 and seen[p, who] != mark:
                    seen[p, who] = mark
                    seed ^= hashes[p, who]
                    number += 1
        counts[p] = number
        seeds[p] = seed


@inner
def with_room(old: Any, room: int) -> Any:
    """Move a table to a place with room for more rows."""
    made = np.empty((room, old.shape[1]), dtype=old.dtype)
    # Element by element: assigning a slice takes seconds to compile.
    for row in range(old.shape[0]):
        for column in range(old.shape[1]):
            made[row, column] = old[row, column]
    return made


@inner
def _child(code: int, node: int, stops: Any, codes: Any) -> int:
    """Find the child of a node that has a code; -1 where there is none."""
    at = node + 1
    while at < stops[node]:
        if codes[at] == code:
            return at
        at = stops[at]
    return -1


@compiled
def grow(
    values: Any,
    order: Any,
    low: Any,
    width: Any,
    persons: Any,
    hashes: Any,
    salt: Any,
    step: Any,
    limits: Any,
    sub_root: Any,
    sub_stop: Any,
    sub_code: Any,
    sub_dead: Any,
    safe: bool,
    seen: Any,
) -> Any:
    """Grow the tree of a combination of columns over its records.

    ``limits`` are: the threshold, the gap, its deviation, the thresholds of stubs (single values, ranges), the depth
    after which few records are not split any more, and how many "few" are. ``sub_root`` and the arrays after it are
    the trees of one column less, put behind one another: root, stop, code, and whether a node ends what is above it.
    ``seen`` has -1 for every person. Returns the number of nodes and tables that have a row for each, and empty rows.
    """
    dims, rows = values.shape
    threshold, gap, sd, few_single, few_range = limits[0], limits[1], limits[2], limits[3], limits[4]
    many = len(hashes)
    room = 256
    whole = np.empty((room, 8), dtype=np.int64)  # parent code depth first last leaf stub dead
    lows = np.empty((room, dims))
    seen_low = np.empty((room, dims))
    seen_high = np.empty((room, dims))
    subs = np.empty((room, dims), dtype=np.int64)
    counts = np.empty((room, many), dtype=np.int64)
    seeds = np.empty((room, many), dtype=np.uint64)
    wait = np.empty((64 + (1 << dims) * 64, 5), dtype=np.int64)  # parent code first last depth
    wait[0, 0], wait[0, 1], wait[0, 2], wait[0, 3], wait[0, 4] = -1, 0, 0, rows, 0
    waiting = 1
    number = ZERO  # not a plain 0, for which the functions called would be compiled once more
    other = np.empty(rows, dtype=order.dtype)
    own = np.empty(rows, dtype=np.int32)
    at_code = np.zeros((1 << dims) + 1, dtype=np.int64)
    while waiting > 0:
        waiting -= 1
        parent, code, depth = wait[waiting, 0], wait[waiting, 1], wait[waiting, 4]
        first, last = wait[waiting, 2], wait[waiting, 3]
        node = number
        number += 1
        if node == room:
            room *= 2
            whole, lows, seen_low = with_room(whole, room), with_room(lows, room), with_room(seen_low, room)
            seen_high, subs = with_room(seen_high, room), with_room(subs, room)
            counts, seeds = with_room(counts, room), with_room(seeds, room)
        single = True
        for d in range(dims):
            if parent < 0:
                lows[node, d] = low[d]
            else:
                lows[node, d] = lows[parent, d]
                if (code >> d) & 1:
                    lows[node, d] += width[d] / 2.0**depth
            least, most = np.inf, -np.inf
            for at in range(first, last):
                value = values[d, order[at]]
                least = min(least, value)
                most = max(most, value)
            seen_low[node, d] = least
            seen_high[node, d] = most
            single = single and least == most
        count_persons(order, first, last, persons, hashes, seen, node, counts[node], seeds[node])
        stub = len(sub_root) > 0
        for j in range(len(sub_root)):
            if parent < 0:
                subs[node, j] = sub_root[j]
            elif subs[parent, j] < 0:
                subs[node, j] = -1
            else:
                gone = dims - 1 - j
                reduced = ((code >> (gone + 1)) << gone) | (code & ((1 << gone) - 1))
                subs[node, j] = _child(reduced, subs[parent, j], sub_stop, sub_code)
            if subs[node, j] >= 0 and not sub_dead[subs[node, j]]:
                stub = False
        shown = all_pass(counts[node], seeds[node], threshold, gap, sd, salt, step)
        enough = few_single if single else few_range
        dead = stub or not all_pass(counts[node], seeds[node], enough, gap, sd, salt, step)
        apart = False
        for d in range(dims):
            half = width[d] / 2.0 ** (depth + 1)
            apart = apart or (half > 0 and lows[node, d] + half > lows[node, d])
        split = not single and not stub and (shown or safe) and apart and depth < MOST_DEPTH
        if dims == 1 and depth > limits[5] and last - first < limits[6]:
            split = False
        whole[node, 0] = parent
        whole[node, 1] = code
        whole[node, 2] = depth
        whole[node, 3] = first
        whole[node, 4] = last
        whole[node, 5] = 0 if split else 1
        whole[node, 6] = 1 if stub else 0
        whole[node, 7] = 1 if dead else 0
        if not split:
            continue
        for c in range((1 << dims) + 1):
            at_code[c] = 0
        for at in range(first, last):
            row = order[at]
            mine = 0
            for d in range(dims):
                if values[d, row] >= lows[node, d] + width[d] / 2.0 ** (depth + 1):
                    mine |= 1 << d
            own[at] = mine
            at_code[mine + 1] += 1
        for c in range(1 << dims):
            at_code[c + 1] += at_code[c]
        if waiting + (1 << dims) > len(wait):
            wait = with_room(wait, 2 * len(wait) + (1 << dims))
        for c in range((1 << dims) - 1, -1, -1):
            if at_code[c + 1] > at_code[c]:
                wait[waiting, 0] = node
                wait[waiting, 1] = c
                wait[waiting, 2] = first + at_code[c]
                wait[waiting, 3] = first + at_code[c + 1]
                wait[waiting, 4] = depth + 1
                waiting += 1
        for at in range(first, last):
            other[first + at_code[own[at]]] = order[at]
            at_code[own[at]] += 1
        for at in range(first, last):
            order[at] = other[at]
    stop = np.empty(number, dtype=np.int64)
    for place in range(number):
        stop[place] = place + 1
    for place in range(number - 1, 0, -1):
        parent = whole[place, 0]
        stop[parent] = max(stop[parent], stop[place])
    return number, stop, whole, lows, seen_low, seen_high, subs, counts, seeds


@compiled
def lowest_root(whole: Any, stop: Any, counts: Any, seeds: Any, limits: Any, salt: Any, step: Any) -> int:
    """Walk down from the root while but one of its halves is more than a handful of outliers."""
    root = 0
    while whole[root, 5] == 0:
        kept, number = -1, 0
        at = root + 1
        while at < stop[root]:
            shown = all_pass(counts[at], seeds[at], limits[0], limits[1], limits[2], salt, step)
            if whole[at, 5] == 0 or shown:
                kept = at
                number += 1
            at = stop[at]
        if number != 1:
            break
        root = kept
    return root


@compiled
def leaf_for(value: float, whole: Any, stop: Any, lows: Any, width: float) -> int:
    """Find the leaf of one column that a value outside the range is counted with: the nearest that is there."""
    node = 0
    base = whole[0, 2]
    while whole[node, 5] == 0:
        upper = value >= lows[node, 0] + width / 2.0 ** (whole[node, 2] - base + 1)
        at = node + 1
        chosen = at
        while at < stop[node]:
            if (whole[at, 1] == 1) == upper:
                chosen = at
            at = stop[at]
        node = chosen
    return node


@compiled
def count_again(
    whole: Any, order: Any, persons: Any, hashes: Any, counts: Any, seeds: Any, limits: Any, salt: Any, step: Any,
    seen_low: Any, seen_high: Any, seen: Any,
) -> None:  # fmt: skip
    """Count the persons of every node again, after records came in from outside; ranges stay what they were."""
    for node in range(len(whole)):
        count_persons(
            order, whole[node, 3], whole[node, 4], persons, hashes, seen, node, counts[node], seeds[node]
        )
        enough = limits[3] if seen_low[node, 0] == seen_high[node, 0] else limits[4]
        dead = not all_pass(counts[node], seeds[node], enough, limits[1], limits[2], salt, step)
        whole[node, 7] = 1 if dead else 0


# Counts that may be shown: outlying contributions of persons flattened, two layers of noise that stick.


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
