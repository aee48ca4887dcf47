"""Compiled loops of local suppression: counting agreement, choosing cells, giving cells back.

Keys are codes, one row a combination; 0 is a missing (or suppressed) value. A set of keys is a list of columns.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.core.compiling import compiled, inner

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@inner
def _start(codes: Codes, row: int, columns: Integers, last: int) -> int:
    mixed = np.uint64(1469598103934665603)
    for column in columns:
        mixed = (mixed ^ np.uint64(codes[row, column])) * _MIX
        mixed ^= mixed >> _SHIFT
    return np.int64(mixed & np.uint64(last))  # type: ignore[return-value]


@inner
def _alike(left: Codes, i: int, right: Codes, j: int, columns: Integers) -> bool:
    for column in columns:  # noqa: SIM110 - a generator does not compile
        if left[i, column] != right[j, column]:
            return False
    return True


@inner
def _slot_of(  # noqa: PLR0917 - compiled code takes arrays by position
    codes: Codes, row: int, others: Codes, firsts: Integers, slots: Integers, columns: Integers
) -> int:
    """Find the slot of the combination of a row, or the empty one where it would be."""
    last = len(slots) - 1
    slot = _start(codes, row, columns, last)
    while slots[slot] >= 0 and not _alike(codes, row, others, firsts[slots[slot]], columns):
        slot = (slot + 1) & last
    return slot


@inner
def _empty_slots(many: int) -> Integers:
    size = 16
    while size < 2 * many:
        size *= 2
    return np.full(size, -1, dtype=np.int64)


@inner
def _laid_out(codes: Codes, firsts: Integers, columns: Integers) -> Integers:
    """Lay combinations, all different, out in slots."""
    slots = _empty_slots(len(firsts))
    for number in range(len(firsts)):
        slot = _start(codes, firsts[number], columns, len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number
    return slots


@compiled
def numbered(codes: Codes, rows: Integers, columns: Integers) -> tuple[Integers, Integers]:
    """Number the distinct combinations of some columns among some rows, in order of first appearance.

    Returns the number of each row's combination, and the first row of each combination.
    """
    slots = _empty_slots(len(rows))
    firsts = np.empty(len(rows), dtype=np.int64)
    numbers = np.empty(len(rows), dtype=np.int64)
    found = 0
    for position in range(len(rows)):
        row = rows[position]
        slot = _slot_of(codes, row, codes, firsts, slots, columns)
        if slots[slot] < 0:
            slots[slot] = found
            firsts[found] = row
            found += 1
        numbers[position] = slots[slot]
    return numbers, firsts[:found].copy()


@compiled
def numbered_beside(
    codes: Codes, sought: Integers, rows: Integers, columns: Integers
) -> tuple[Integers, int]:
    """Number those rows that are alike to one that is sought, in order of first appearance; -1 for the others.

    What is sought are some of the rows. Returns the number of each row's combination, and how many there are.
    """
    _, firsts = numbered(codes, sought, columns)
    slots = _laid_out(codes, firsts, columns)
    label = np.full(len(firsts), -1, dtype=np.int64)
    found = np.full(len(rows), -1, dtype=np.int64)
    many = 0
    for position in range(len(rows)):
        number = slots[_slot_of(codes, rows[position], codes, firsts, slots, columns)]
        if number >= 0:
            if label[number] < 0:
                label[number] = many
                many += 1
            found[position] = label[number]
    return found, many


@compiled
def add_agreeing(  # noqa: PLR0917 - compiled code takes arrays by position
    codes: Codes,
    rows: Integers,
    records: Integers,
    weights: Floats,
    asking: Codes,
    askers: Integers,
    columns: Integers,
    found: Integers,
    found_weight: Floats,
) -> None:
    """Add to each asker the records (and their weights) of the rows that are alike on these columns.

    The askers are put into the table and the rows stream past it: askers are few, rows are many.
    """
    numbers, firsts = numbered(asking, askers, columns)
    slots = _laid_out(asking, firsts, columns)
    total = np.zeros(len(firsts), dtype=np.int64)
    total_weight = np.zeros(len(firsts), dtype=np.float64)
    for row in rows:
        number = slots[_slot_of(codes, row, asking, firsts, slots, columns)]
        if number >= 0:
            total[number] += records[row]
            total_weight[number] += weights[row]
    for position in range(len(askers)):
        found[askers[position]] += total[numbers[position]]
        found_weight[askers[position]] += total_weight[numbers[position]]


@inner
def _enough(size: int, weight: float, k: int, least: Floats) -> bool:
    return size >= k and (size >= len(least) or weight >= least[size])


@compiled
def serve_the_stranded(  # noqa: PLR0917 - compiled code takes arrays by position
    best: Integers,
    stranded: Integers,
    helped: Flags,
    safe: Integers,
    records: Integers,
    k: int,
    pair: Integers,
    place: Integers,
    start: Integers,
    members: Integers,
) -> Integers:
    """Let rows that may choose what they give up choose so that rows without a choice find company.

    A row that gives up set a agrees with a stranded row that gives up set b when the two are alike on all other
    keys. The members of such a party who have set a to choose, and whom nobody needs where they are, come over.

    Parameters
    ----------
    best
        The set that each row gives up, or -1.
    stranded
        The rows that no set helps.
    helped, safe
        By set and row: whether it is enough by itself, and the company among rows that keep their values.
    records, k
        The records of each row, and how many are enough.
    pair
        By two sets: which union of sets.
    place, start, members
        By union of sets: the party of each row (or -1), and who is in each party.

    Returns
    -------
    numpy.ndarray
        The set that each row gives up, or -1.
    """
    chosen = best.copy()
    needed = np.zeros(len(best), dtype=np.bool_)
    sets = len(pair)
    for willing in range(2):
        for x in stranded:
            if chosen[x] >= 0:
                continue
            best_set, best_moves = -1, 2**62
            for b in range(sets):
                found, offered = safe[b, x] + records[x], 0
                for a in range(sets):
                    union = pair[a, b]
                    party = place[union, x]
                    for y in members[start[union, party] : start[union, party + 1]]:
                        if chosen[y] == a:
                            found += records[y]
                        elif willing and helped[a, y] and chosen[y] >= 0 and not needed[y]:
                            there = pair[chosen[y], b]
                            if place[there, y] != place[there, x]:
                                offered += records[y]
                if found + offered >= k and max(k - found, 0) < best_moves:
                    best_set, best_moves = b, max(k - found, 0)
            if best_set < 0:
                continue
            chosen[x] = best_set
            needed[x] = True
            missing = best_moves
            for a in range(sets):
                union = pair[a, best_set]
                party = place[union, x]
                for y in members[start[union, party] : start[union, party + 1]]:
                    if chosen[y] == a:
                        needed[y] = True
                    elif missing > 0 and helped[a, y] and chosen[y] >= 0 and not needed[y]:
                        there = pair[chosen[y], best_set]
                        if place[there, y] != place[there, x]:
                            chosen[y] = a
                            needed[y] = True
                            missing -= records[y]
    return chosen


@inner
def _shown(codes: Codes, row: int, on: Flags) -> int:
    shown = 0
    for column in range(codes.shape[1]):
        if on[column] and codes[row, column]:
            shown += 1
    return shown


@inner
def _agree(codes: Codes, i: int, j: int, on: Flags) -> bool:
    for column in range(codes.shape[1]):
        if on[column]:
            left, right = codes[i, column], codes[j, column]
            if left and right and left != right:
                return False
    return True


@compiled
def give_back(  # noqa: PLR0917 - compiled code takes arrays by position
    codes: Codes,
    records: Integers,
    total_weight: Floats,
    rows: int,
    size: Integers,
    weight: Floats,
    on: Flags,
    k: Integers,
    least: Floats,
    row_of: Integers,
    candidate: Integers,
    key: Integers,
    value: Codes,
    own_weight: Floats,
) -> Flags:
    """Return suppressed cells to their values, one after the other, where nobody needs the gap.

    Parameters
    ----------
    codes, records, total_weight, rows
        The distinct combinations as they are, how many records and how much weight each has, and how many there
        are; the arrays have room for one more row a candidate and are changed in place.
    size, weight
        Company of each row, by demand.
    on, k, least
        The columns of each demand and what is enough for it.
    row_of
        The row of each record with a candidate cell, changed in place.
    candidate, key, value, own_weight
        The cells to try: the record, the key, the code to put back, the weight of the record.

    Returns
    -------
    numpy.ndarray
        True for the cells that were given back.
    """
    given = np.zeros(len(candidate), dtype=np.bool_)
    demands = len(k)
    new_size = np.zeros(demands, dtype=np.int64)
    new_weight = np.zeros(demands, dtype=np.float64)
    for cell in range(len(candidate)):
        row, column = row_of[candidate[cell]], key[cell]
        codes[rows] = codes[row]
        codes[rows, column] = value[cell]
        fine = True
        for demand in range(demands):
            new_size[demand], new_weight[demand] = size[demand, row], weight[demand, row]
            if not on[demand, column]:
                continue
            shown = _shown(codes, rows, on[demand])
            new_size[demand], new_weight[demand] = 1, own_weight[cell]
            for other in range(rows):
                others = records[other] - (1 if other == row else 0)
                if others == 0:
                    continue
                agrees = _agree(codes, other, rows, on[demand])
                shows = _shown(codes, other, on[demand])
                if agrees and shows >= shown:
                    new_size[demand] += others
                    new_weight[demand] += total_weight[other] - (own_weight[cell] if other == row else 0.0)
                if not agrees and shows < shown and _agree(codes, other, row, on[demand]):
                    fine = _enough(
                        size[demand, other] - 1,
                        weight[demand, other] - own_weight[cell],
                        k[demand],
                        least[demand],
                    )
                    if not fine:
                        break
            fine = fine and _enough(new_size[demand], new_weight[demand], k[demand], least[demand])
            if not fine:
                break
        if not fine:
            continue
        given[cell] = True
        for demand in range(demands):
            if not on[demand, column]:
                continue
            shown = _shown(codes, rows, on[demand])
            for other in range(rows):
                shows = _shown(codes, other, on[demand])
                before = shows <= shown - 1 and _agree(codes, other, row, on[demand])
                after = shows <= shown and _agree(codes, other, rows, on[demand])
                size[demand, other] += np.int64(after) - np.int64(before)
                weight[demand, other] += own_weight[cell] * (np.int64(after) - np.int64(before))
        size[:, rows], weight[:, rows] = new_size, new_weight
        records[row] -= 1
        total_weight[row] -= own_weight[cell]
        records[rows], total_weight[rows] = 1, own_weight[cell]
        row_of[candidate[cell]] = rows
        rows += 1
    return given
