"""The loops of the lattice search: merge classes that look alike at coarser levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.compiling import compiled


@compiled
def merge_classes(codes: Any, columns: Any, radix: Any, exact: Any, rows: Any, sizes: Any) -> Any:  # noqa: PLR0917
    """Merge classes whose codes agree in the given columns, numbering them by first appearance.

    A class is known by one of its base rows, because all its rows agree at this and every coarser level. Where
    the packed codes do not fit 64 bits (``exact`` is false) they only serve as hash and the codes are compared.

    Parameters
    ----------
    codes
        Base rows by (key, level) columns.
    columns
        The column of each key at the wanted levels.
    radix
        The place value of each key in the packed code.
    rows, sizes
        A base row and the number of records of each class to merge.

    Returns
    -------
    owners, rows, sizes
        The new class of each old one; a base row and the number of records of each new class.
    """
    n = rows.shape[0]
    slots = 16
    while slots < 2 * n:
        slots *= 2
    shift = np.uint64(64)
    width = slots
    while width > 1:
        width //= 2
        shift -= np.uint64(1)
    table = np.full(slots, -1, np.int32)
    packed_of = np.empty(n, np.uint64)
    owners = np.empty(n, np.int64)
    new_rows = np.empty(n, np.int64)
    new_sizes = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        row = rows[i]
        packed = np.uint64(0)
        for j in range(columns.shape[0]):
            packed += np.uint64(codes[row, columns[j]]) * radix[j]
        mixed = packed ^ (packed >> np.uint64(32))
        slot = np.int64((mixed * np.uint64(0x9E3779B97F4A7C15)) >> shift)
        while True:
            at = table[slot]
            if at < 0:
                table[slot] = found
                packed_of[found] = packed
                new_rows[found] = row
                new_sizes[found] = sizes[i]
                owners[i] = found
                found += 1
                break
            if packed_of[at] == packed:
                same = True
                if not exact:
                    other = new_rows[at]
                    for j in range(columns.shape[0]):
                        if codes[row, columns[j]] != codes[other, columns[j]]:
                            same = False
                            break
                if same:
                    new_sizes[at] += sizes[i]
                    owners[i] = at
                    break
            slot = (slot + np.int64(1)) & np.int64(slots - 1)
    return owners, new_rows[:found].copy(), new_sizes[:found].copy()


@compiled
def total_cost(  # noqa: PLR0917
    codes: Any, columns: Any, offsets: Any, costs: Any, rows: Any, sizes: Any, violating: Any, suppressed: Any
) -> Any:
    """Add up what all records cost: those of violating classes ``suppressed`` each, the others by their codes.

    ``costs[offsets[c] + code]`` is the cost of a code in column c.
    """
    total = 0.0
    for i in range(sizes.shape[0]):
        if violating[i]:
            total += sizes[i] * suppressed
            continue
        row = rows[i]
        each = 0.0
        for j in range(columns.shape[0]):
            column = columns[j]
            each += costs[offsets[column] + codes[row, column]]
        total += sizes[i] * each
    return total


@compiled
def first_finer(nodes: Any, many: Any, node: Any) -> Any:
    """Find the first of the listed nodes that is at most as coarse as the given one in every key, else -1."""
    for i in range(many):
        finer = True
        for j in range(node.shape[0]):
            if nodes[i, j] > node[j]:
                finer = False
                break
        if finer:
            return i
    return -1
