"""Rows that are half one person and half a reference, written as fast as a model can read them."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.compiling import compiled

_LONG_RUN = 64  # numbers that are quicker written than copied


@compiled
def mixed(  # noqa: PLR0917 - compiled code takes its arguments by place
    out: Floats, records: Floats, references: Floats, own: Integers, other: Integers, taken: Flags
) -> None:
    """Write, for every pair of a record and a reference, one row for every coalition.

    Row ``p * coalitions + s`` takes the record ``own[p]`` where ``taken[s]`` says so and the reference ``other[p]``
    elsewhere.
    """
    coalitions, columns = taken.shape
    for p in range(len(own)):
        record, reference = records[own[p]], references[other[p]]
        start = p * coalitions
        for s in range(coalitions):
            row = out[start + s]
            mask = taken[s]
            for j in range(columns):
                row[j] = record[j] if mask[j] else reference[j]


@compiled
def all_mixed(  # noqa: PLR0917
    out: Floats,
    records: Floats,
    references: Floats,
    own: Integers,
    other: Integers,
    joined: Flags,
    player: Integers,
    players: int,
) -> None:
    """Write, for every pair of a record and a reference, one column of ``out`` for every coalition of some players.

    Place ``p * 2**players + mask`` takes the record ``own[p]`` in the features of the players of the mask, and in those
    that ``joined`` names, and the reference ``other[p]`` elsewhere; ``player`` says whose each feature is. One feature
    lies in one piece of memory: there it is the same few values over and over, which are copied in growing runs or
    written in long ones, and neither asks anything of a single row.
    """
    coalitions = 1 << players
    for j in range(len(out)):
        moves = player[j] < players
        run = 1 << player[j] if moves else coalitions
        for p in range(len(own)):
            places = out[j, p * coalitions : (p + 1) * coalitions]
            without, within = references[other[p], j], records[own[p], j]
            if not moves:
                places[:] = within if joined[j] else without
            elif run < _LONG_RUN:
                places[:run] = without
                places[run : 2 * run] = within
                there = 2 * run
                while there < coalitions:
                    places[there : 2 * there] = places[:there]
                    there *= 2
            else:
                for start in range(0, coalitions, 2 * run):
                    places[start : start + run] = without
                    places[start + run : start + 2 * run] = within


@compiled
def added_up(worth: Floats, scores: Floats, own: Integers) -> None:
    """Add the scores of every pair, of all coalitions and classes, to those of its record."""
    pairs, many = scores.shape
    for p in range(pairs):
        total, more = worth[own[p]], scores[p]
        for s in range(many):
            total[s] += more[s]


def coalition_weights(players: int) -> Floats:
    """How much the worth of each coalition (a bit mask) adds to the Shapley value of each player.

    Examples
    --------
    >>> coalition_weights(2).tolist()
    [[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]]
    """
    masks = np.arange(1 << players)
    taken = (masks[:, None] >> np.arange(players)) & 1 == 1
    sizes = taken.sum(axis=1)
    # |S|! (n - |S| - 1)! / n! is one over n times a binomial coefficient; here S is without the player.
    binomial = np.ones(players)
    for k in range(1, players):
        binomial[k] = binomial[k - 1] * (players - k) / k
    weight = 1.0 / (players * binomial)
    joining = weight[np.maximum(sizes - 1, 0)][:, None]
    leaving = weight[np.minimum(sizes, players - 1)][:, None]
    return np.asarray(np.where(taken, joining, -leaving))
