"""Compiled loops that find and count predicates: conjunctions of conditions ``low <= column <= high``.

Files are written one line a column; a missing value is minus infinity, and lies only in the interval of itself.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled

ENOUGH = 64  # matches; a predicate of more is far from singling anybody out


@compiled
def count_matches(lines: Floats, columns: Integers, lows: Floats, highs: Floats, counts: Integers) -> None:
    """Count the records that each predicate holds for, up to `ENOUGH`; columns of -1 are no conditions."""
    rows = lines.shape[1]
    for p in range(len(columns)):
        found = 0
        for row in range(rows):
            inside = True
            for c in range(columns.shape[1]):
                column = columns[p, c]
                if column < 0:
                    break
                value = lines[column, row]
                if value < lows[p, c] or value > highs[p, c]:
                    inside = False
                    break
            if inside:
                found += 1
                if found >= ENOUGH:
                    break
        counts[p] = found


@compiled
def greedy_predicates(  # noqa: PLR0917
    lines: Floats, targets: Integers, offered: Integers, sizes: Integers, chosen: Integers, left: Integers
) -> None:
    """For each target take the condition that leaves the smallest crowd, again and again, until it is alone.

    ``offered`` holds the columns a target may be described by, ``sizes`` how many records share each of its values;
    a column in which it is alone already is not used, for that is no conjunction. ``chosen`` takes the columns in
    their order, ``left`` the crowd at the end.
    """
    rows = lines.shape[1]
    crowd = np.empty(rows, dtype=np.int64)
    for t in range(len(targets)):
        target = targets[t]
        used = np.zeros(offered.shape[1], dtype=np.uint8)
        start, fewest = -1, rows + 1
        for o in range(offered.shape[1]):
            if sizes[t, o] == 1:
                used[o] = 1
            elif sizes[t, o] < fewest:
                start, fewest = o, sizes[t, o]
        if start < 0:
            left[t] = rows
            continue
        used[start] = 1
        chosen[t, 0] = offered[t, start]
        many = 0
        value = lines[offered[t, start], target]
        for row in range(rows):
            if lines[offered[t, start], row] == value:
                crowd[many] = row
                many += 1
        for step in range(1, chosen.shape[1]):
            best, fewest = -1, many
            for o in range(offered.shape[1]):
                if used[o]:
                    continue
                column = offered[t, o]
                value = lines[column, target]
                same = 0
                for i in range(many):
                    same += lines[column, crowd[i]] == value
                if same < fewest:
                    best, fewest = o, same
            if best < 0:
                break
            used[best] = 1
            column = offered[t, best]
            chosen[t, step] = column
            value = lines[column, target]
            kept = 0
            for i in range(many):
                if lines[column, crowd[i]] == value:
                    crowd[kept] = crowd[i]
                    kept += 1
            many = kept
            if many == 1:
                break
        left[t] = many


@compiled
def isolating_paths(  # noqa: PLR0917
    lines: Floats,
    labels: Integers,
    targets: Integers,
    picks: Integers,
    cuts: Floats,
    lows: Floats,
    highs: Floats,
    depths: Integers,
) -> None:
    """Walk each target down a random tree until it is alone: a column by chance, a cut by chance, its own side.

    Whoever is alone after few cuts stands out. ``lows`` and ``highs`` take the sides by column (the whole line where
    it was not cut), ``depths`` the number of cuts, or 0 where the target was never alone.
    """
    rows = lines.shape[1]
    crowd = np.empty(rows, dtype=np.int64)
    for t in range(len(targets)):
        target = targets[t]
        many = rows
        for row in range(rows):
            crowd[row] = row
        for step in range(picks.shape[1]):
            column = picks[t, step]
            value = lines[column, target]
            if labels[column] or value == -np.inf:
                low, high = value, value
            else:
                least, most = np.inf, -np.inf
                for i in range(many):
                    other = lines[column, crowd[i]]
                    if other == -np.inf:
                        continue
                    least, most = min(least, other), max(most, other)
                if least == most:
                    continue
                cut = least + cuts[t, step] * (most - least)
                low, high = max(lows[t, column], np.finfo(np.float64).min), highs[t, column]
                if value <= cut:
                    high = min(high, cut)
                else:
                    low = max(low, np.nextafter(cut, np.inf))
            lows[t, column], highs[t, column] = low, high
            kept = 0
            for i in range(many):
                other = lines[column, crowd[i]]
                if low <= other <= high:
                    crowd[kept] = crowd[i]
                    kept += 1
            many = kept
            if many == 1:
                depths[t] = step + 1
                break
