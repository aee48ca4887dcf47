"""Compiled loops of the neighbor search: exact distances, and a tiled scan that skips what cannot be near.

A raw distance is a sum over columns: of absolute or (``squared``) of squared differences of numbers, plus the
cost of each category that differs. With ``ignore`` a column counts only where both records have a value, and the
sum is scaled up to the weight of all columns; otherwise missing is one more value, equal to itself and at full
cost from every other.
"""

from __future__ import annotations

from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Bytes, Codes, Floats, Integers, Singles
from discreet.core.compiling import compiled, inner

SLACK = 1e-12  # relative: two sums of the same terms may differ in their last bits


class Metric(NamedTuple):
    """What a difference costs: a missing number by column, a differing category by column."""

    gaps: Floats
    costs: Floats
    squared: bool
    ignore: bool


class Tiles(NamedTuple):
    """Records in small groups of similar ones, twice: by column in single, by record in double precision."""

    columns: Singles
    lines: Codes
    numbers: Floats
    codes: Codes
    order: Integers
    copies: Integers
    starts: Integers
    lows: Floats
    highs: Floats
    holes: Bytes
    absent: Bytes
    offsets: Integers


@inner
def _raw(x: Floats, a: Codes, y: Floats, b: Codes, metric: Metric) -> float:
    """Sum the differences of one pair of records, in double precision and in column order."""
    total, common, whole = 0.0, 0.0, 0.0
    for j in range(len(x)):
        gap = metric.gaps[j]
        whole += gap
        if isnan(x[j]) or isnan(y[j]):
            if not metric.ignore and isnan(x[j]) != isnan(y[j]):
                total += gap
            continue
        common += gap
        apart = abs(x[j] - y[j])
        total += apart * apart if metric.squared else apart
    for j in range(len(a)):
        cost = metric.costs[j]
        whole += cost
        if metric.ignore and (a[j] < 0 or b[j] < 0):
            continue
        common += cost
        if a[j] != b[j]:
            total += cost
    if not metric.ignore:
        return total
    return total * (whole / common) if common > 0 else np.inf


@compiled
def paired(x: Floats, a: Codes, y: Floats, b: Codes, metric: Metric) -> Floats:
    """Give the raw distance of each record to the one in the same row of the other file."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = _raw(x[i], a[i], y[i], b[i], metric)
    return found


@compiled
def crossed(x: Floats, a: Codes, y: Floats, b: Codes, metric: Metric) -> Floats:
    """Give the raw distance of each record to every record of the other file."""
    found = np.empty((len(x), len(y)))
    for i in range(len(x)):
        for c in range(len(y)):
            found[i, c] = _raw(x[i], a[i], y[c], b[c], metric)
    return found


@inner
def _lower_bounds(x: Floats, a: Codes, tiles: Tiles, metric: Metric, bounds: Floats) -> None:
    """Bound from below the raw distance of one record to all records of each tile."""
    many, ignore, squared = len(bounds), metric.ignore, metric.squared
    for t in range(many):
        bounds[t] = 0.0
    for j in range(len(x)):
        value, gap = x[j], metric.gaps[j]
        low, high, hole = tiles.lows[j], tiles.highs[j], tiles.holes[j]
        if isnan(value):
            if not ignore:
                for t in range(many):
                    bounds[t] += 0.0 if hole[t] else gap
            continue
        for t in range(many):
            apart = max(low[t] - value, value - high[t], 0.0)
            apart = apart * apart if squared else apart
            if hole[t]:
                apart = 0.0 if ignore else min(apart, gap)
            bounds[t] += apart
    for j in range(len(a)):
        cost, last = metric.costs[j], tiles.offsets[j + 1] - 1
        if a[j] < 0:
            if not ignore:
                for t in range(many):
                    bounds[t] += cost * tiles.absent[last, t]
            continue
        line = tiles.offsets[j] + a[j]
        for t in range(many):
            away = tiles.absent[line, t]
            # A missing value is at no distance when it is ignored, so a tile that has one promises nothing.
            bounds[t] += cost * (away & tiles.absent[last, t] if ignore else away)


@inner
def _scan(  # noqa: PLR0917
    x: Floats,
    a: Codes,
    tiles: Tiles,
    metric: Metric,
    tile: np.integer[Any] | int,
    sums: Singles,
    commons: Singles,
) -> None:
    """Sum, in single precision and many records at a time, the distances to the records of one tile."""
    start, stop = tiles.starts[tile], tiles.starts[tile + 1]
    size, ignore, squared, nothing = stop - start, metric.ignore, metric.squared, np.float32(0.0)
    for c in range(size):
        sums[c] = nothing
        commons[c] = nothing
    for j in range(len(x)):
        gap, value = np.float32(metric.gaps[j]), np.float32(x[j])
        row = tiles.columns[j, start:stop]
        if isnan(value):
            if not ignore:
                for c in range(size):
                    sums[c] += nothing if isnan(row[c]) else gap
            continue
        if tiles.holes[j, tile]:
            lost = nothing if ignore else gap
            for c in range(size):
                apart = abs(value - row[c])
                apart = apart * apart if squared else apart
                sums[c] += lost if isnan(apart) else apart
                commons[c] += nothing if isnan(apart) else gap
            continue
        if squared:
            for c in range(size):
                sums[c] += (value - row[c]) * (value - row[c])
        else:
            for c in range(size):
                sums[c] += abs(value - row[c])
        if ignore:
            for c in range(size):
                commons[c] += gap
    for j in range(len(a)):
        cost, code = np.float32(metric.costs[j]), a[j]
        line = tiles.lines[j, start:stop]
        if not ignore:
            for c in range(size):
                sums[c] += cost if line[c] != code else nothing
        elif code >= 0:
            for c in range(size):
                sums[c] += cost if line[c] != code and line[c] >= 0 else nothing
                commons[c] += cost if line[c] >= 0 else nothing


@inner
def _reach(limit: float, rounding: float, columns: int, squared: bool) -> float:
    """Bound the single-precision sum of a pair whose exact sum is at most ``limit``."""
    if np.isinf(limit):
        return limit
    relative = 1.2e-7 * (columns + 4)
    if squared:
        return limit * (1 + relative) + 2 * rounding * sqrt(columns * limit) + columns * rounding * rounding
    return limit * (1 + relative) + columns * rounding


@inner
def _total(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def nearest_of(  # noqa: PLR0917
    queries: Floats,
    labels: Codes,
    tiles: Tiles,
    metric: Metric,
    rounding: float,
    nearest: Integers,
    distances: Floats,
) -> int:
    """Find the nearest records of each query, ties by position; return how many tiles had to be read.

    A tile is read when its lower bound does not exceed the worst of the k found so far. Its records are sifted in
    single precision with a margin for rounding; what passes is measured in double precision.
    """
    last = nearest.shape[1] - 1
    starts, columns = tiles.starts, len(metric.gaps) + len(metric.costs)
    whole = _total(metric.gaps) + _total(metric.costs)
    bounds = np.empty(len(starts) - 1)
    widest = 0
    for tile in range(len(bounds)):
        widest = max(widest, int(starts[tile + 1] - starts[tile]))
    sums, commons = np.empty(widest, np.float32), np.empty(widest, np.float32)
    near, places = np.empty(len(bounds), np.int64), np.empty(len(bounds), np.int64)
    keys = np.empty(len(bounds))
    stack = np.empty(ROOM, np.int64)
    read = 0
    for i in range(len(queries)):
        x, a, best, where = queries[i], labels[i], distances[i], nearest[i]
        for slot in range(last + 1):
            best[slot], where[slot] = np.inf, -1
        _lower_bounds(x, a, tiles, metric, bounds)
        first = 0
        for t in range(len(bounds)):
            if bounds[t] < bounds[first]:
                first = t
        for stage in range(2):
            many = 0
            for t in range(len(bounds)):
                if t == first if stage == 0 else bounds[t] <= best[last] * (1 + SLACK):
                    near[many], keys[many] = t, bounds[t]
                    many += 1
            put_in_order(keys, places, many, stack)
            for place in range(many):
                t = near[places[place]]
                if bounds[t] > best[last] * (1 + SLACK):
                    break
                if stage == 1 and t == first:
                    continue
                read += 1
                _scan(x, a, tiles, metric, t, sums, commons)
                size = starts[t + 1] - starts[t]
                reach = np.float32(_reach(best[last], rounding, columns, metric.squared))
                if not metric.ignore:
                    hits = 0
                    for c in range(size):
                        hits += sums[c] <= reach
                    if hits == 0:
                        continue
                for c in range(size):
                    if metric.ignore:
                        if commons[c] <= 0:
                            continue
                        limit = best[last] * (commons[c] / whole) * (1 + 1e-6)
                        reach = np.float32(_reach(limit, rounding, columns, metric.squared))
                    if sums[c] > reach:
                        continue
                    row = starts[t] + c
                    d = _raw(x, a, tiles.numbers[row], tiles.codes[row], metric)
                    label = tiles.order[row]
                    if d > best[last] or (d == best[last] and (label > where[last] or np.isinf(d))):
                        continue
                    slot = last
                    while slot > 0 and (
                        best[slot - 1] > d or (best[slot - 1] == d and where[slot - 1] > label)
                    ):
                        best[slot] = best[slot - 1]
                        where[slot] = where[slot - 1]
                        slot -= 1
                    best[slot] = d
                    where[slot] = label
                    if not metric.ignore:
                        reach = np.float32(_reach(best[last], rounding, columns, metric.squared))
    return read


@compiled
def count_within(  # noqa: PLR0917
    queries: Floats, labels: Codes, radii: Floats, tiles: Tiles, metric: Metric, counts: Integers
) -> None:
    """Count, for each query, the records at a raw distance of at most its radius (rounding forgiven)."""
    bounds = np.empty(len(tiles.starts) - 1)
    for i in range(len(queries)):
        x, a = queries[i], labels[i]
        _lower_bounds(x, a, tiles, metric, bounds)
        limit = radii[i] * (1 + SLACK) + 1e-300
        for t in range(len(bounds)):
            if bounds[t] > limit * (1 + SLACK):
                continue
            for row in range(tiles.starts[t], tiles.starts[t + 1]):
                if _raw(x, a, tiles.numbers[row], tiles.codes[row], metric) <= limit:
                    counts[i] += tiles.copies[row]


@compiled
def shared_counts(lists: Integers) -> Integers:
    """Count, for each record and each of its neighbors, the neighbors they share; one more if it is mutual."""
    n, k = lists.shape
    shared = np.zeros(n * k, dtype=np.int64)
    for i in range(n):
        for a in range(k):
            other, count = lists[i, a], 0
            for b in range(k):
                count += lists[other, b] == i
                for c in range(k):
                    count += lists[i, c] == lists[other, b]
            shared[i * k + a] = count
    return shared


# Compiled order of numbers, and places in it, in plain loops: the functions of NumPy take seconds to compile.


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
