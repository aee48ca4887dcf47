"""Noisy tables of one and two columns, and how they are made to agree.

Everything here works on codes, and on tables that carry noise already, except the counting itself. What is done to a
noisy table costs no privacy.

Exact counts, before any noise, never leave the rounds in which they are taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.dp.samplers import LARGEST_VARIANCE
from discreet.engine.counting_kernels import count_pair, count_triple
from discreet.synth.saved_models import stored

CLEAR = 3.0  # standard deviations of the noise above which a level stands for itself
_ROUNDS = 200
_AGREED = 1e-9
_SMALLEST = 1e-300
_NEVER = 1e-9  # a count instead of zero, so that margins can always be reached


@stored("grouping")
@dataclass(frozen=True, eq=False)
class Grouping:
    """Levels of one column in groups that are large enough to be told from noise.

    Attributes
    ----------
    group
        The group of each level.
    shares
        The estimated count of each level; how records are divided within their group.
    size
        Number of groups.
    """

    group: Integers
    shares: Floats
    size: int


def variance_of(rho: float, tables: int, most: int = 1) -> Fraction:
    """The variance of noise on so many tables that cost rho together, where one unit has at most so many records.

    All records of a unit may lie in one cell, so that it moves a table by their number.

    Examples
    --------
    >>> variance_of(0.5, 3), variance_of(0.5, 1, most=2)
    (Fraction(3, 1), Fraction(4, 1))
    """
    return Fraction(tables * most * most) / (2 * Fraction(rho))


def check_noise(rho: float, tables: int, most: int) -> None:
    """Refuse a budget for which noise could not be drawn exactly, before anything is spent."""
    if variance_of(rho, tables, most) > LARGEST_VARIANCE:
        raise ParameterError(
            "The budget is too small for so many columns and records a person: its noise cannot be drawn exactly. "
            "Raise epsilon or delta, leave columns out, or take fewer records_per_person."
        )


def noisy(counts: Integers, variance: Fraction, words: dp.Words) -> Floats:
    """Add discrete Gaussian noise to counts."""
    return (counts + dp.discrete_gaussian(variance, len(counts), words)).astype(np.float64)


def grouped(counts: Floats, records: float, spread: float, ordered: int, groups: int) -> Grouping:
    """Put levels that cannot be told from noise together: neighbors of a number, or all rare levels of a category.

    Parameters
    ----------
    counts
        Noisy counts by level.
    records
        The estimated number of records.
    spread
        The standard deviation of the noise.
    ordered
        How many levels at the start have an order; the rest (missing) stands for itself.
    groups
        About how many groups a number gets.

    Examples
    --------
    >>> grouped(np.array([500.0, 1.0, 2.0, 480.0]), 983.0, 5.0, 0, 16).group.tolist()
    [0, 2, 2, 1]
    >>> grouped(np.array([500.0, 1.0, 2.0, 480.0]), 983.0, 5.0, 4, 16).group.tolist()
    [0, 1, 1, 1]
    """
    shares = on_simplex(counts, records)
    group = np.zeros(len(counts), dtype=np.int64)
    if not ordered:
        clear = shares >= CLEAR * spread
        group[clear] = np.arange(clear.sum())
        group[~clear] = clear.sum()
        return Grouping(group, shares, int(group.max()) + 1)
    wanted, held, at = max(CLEAR * spread, records / groups), 0.0, 0
    for level in range(ordered):
        group[level] = at
        held += shares[level]
        if held >= wanted and level < ordered - 1:
            at, held = at + 1, 0.0
    if held < CLEAR * spread and at:
        group[:ordered][group[:ordered] == at] = at - 1
        at -= 1
    group[ordered:] = np.arange(at + 1, at + 1 + len(counts) - ordered)
    return Grouping(group, shares, int(group.max()) + 1)


def as_they_are(counts: Floats, records: float) -> Grouping:
    """Every level a group of its own, for bins that are public."""
    return Grouping(np.arange(len(counts)), on_simplex(counts, records), len(counts))


def group_margin(counts: Floats, grouping: Grouping, variance: float) -> tuple[Floats, Floats]:
    """The noisy counts of groups, and their variance."""
    levels = np.bincount(grouping.group, minlength=grouping.size).astype(np.float64)
    sums = np.bincount(grouping.group, weights=counts, minlength=grouping.size)
    return sums.astype(np.float64), levels * variance


def on_simplex(counts: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and add up to the total.

    Examples
    --------
    >>> on_simplex(np.array([5.0, -1.0, 3.0]), 6.0).tolist()
    [4.0, 0.0, 2.0]
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)
    return np.asarray(np.clip(counts - excess[last[-1] if len(last) else 0], 0.0, None))


def best_margin(estimates: list[tuple[Floats, Floats]], total: float) -> Floats:
    """Average several noisy versions of one margin, each ``(counts, variance)``, by their precision."""
    weights = sum(1 / variance for _, variance in estimates)
    means = sum(counts / variance for counts, variance in estimates) / weights
    return on_simplex(np.asarray(means), total)


def agreeing(
    table: Floats, margins: Sequence[tuple[tuple[int, ...], Floats]], allowed: Floats | None = None
) -> Floats:
    """A table near a noisy one that has these margins: no negative count, then raked.

    Parameters
    ----------
    table
        Noisy counts.
    margins
        Counts and the axes of the table that they belong to; all add up to the same.
    allowed
        0 for cells that cannot occur, 1 for all others.

    Examples
    --------
    >>> wanted = [((0,), np.array([2.0, 4.0])), ((1,), np.array([3.0, 3.0]))]
    >>> made = agreeing(np.array([[3.0, -1.0], [0.0, 4.0]]), wanted)
    >>> made.sum(axis=1).round(6).tolist(), made.sum(axis=0).round(6).tolist()
    ([2.0, 4.0], [3.0, 3.0])
    """
    total = float(margins[0][1].sum())
    kept = np.ones(table.shape) if allowed is None else allowed
    made = np.zeros(table.shape)
    open_ = kept > 0
    if not open_.any():
        raise ParameterError("No cell of a table is left that can occur. Declare less as impossible.")
    made[open_] = on_simplex(table[open_], total) + _NEVER
    shaped = []
    for axes, counts in margins:
        away = tuple(at for at in range(table.ndim) if at not in axes)
        shape = tuple(size if at in axes else 1 for at, size in enumerate(table.shape))
        shaped.append((away, counts.reshape(shape)))
    for _ in range(_ROUNDS):
        off = 0.0
        for away, counts in shaped:
            sums = made.sum(axis=away, keepdims=True)
            off = max(off, float(np.abs(sums - counts).max()))
            made *= counts / np.maximum(sums, _SMALLEST)
        if off <= _AGREED * max(total, 1.0):
            break
        made += _NEVER * 1e-3 * kept
    return np.asarray(made)


# How many records has every cell of a table? Exact counts, before any noise: they never leave the rounds.
#
# Every column is coded once, in the smallest whole numbers that hold its codes, so that a table of a million records is
# counted in about a millisecond.


Small = npt.NDArray[np.integer[Any]]

_SIDE_BY_SIDE = 2**16  # cells up to which several tallies fit into the nearer memory
_IN_REACH = 2**14  # cells up to which a table of three columns costs little more than one of two


def counted(columns: Sequence[int], codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """The table of these columns, cell by cell; the last column moves fastest.

    Examples
    --------
    >>> codes = [np.array([0, 1, 1], dtype=np.uint8), np.array([2, 0, 0], dtype=np.uint8)]
    >>> counted((0, 1), codes, [2, 3]).tolist(), counted((1,), codes, [2, 3]).tolist()
    ([0, 0, 1, 2, 0, 0], [2, 0, 1])
    """
    own = [codes[column] for column in columns]
    shape = [sizes[column] for column in columns]
    cells = math.prod(shape)
    if cells > _SIDE_BY_SIDE:
        return np.bincount(_joined(own, shape), minlength=cells)
    if len(own) == 1:
        return np.bincount(own[0], minlength=cells)
    first = own[0] if len(own) == 2 else _joined(own[:-1], shape[:-1])
    return np.asarray(count_pair(first, own[-1], shape[-1], cells))


def counted_pairs(
    pairs: Sequence[tuple[int, int]], codes: Sequence[Small], sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Integers]]:
    """The tables of many pairs of columns, each once: three at a time where a third column ties them together.

    Examples
    --------
    >>> codes = [np.array(own, dtype=np.uint8) for own in ([0, 1, 1], [2, 0, 0], [1, 1, 0])]
    >>> {pair: cells.tolist() for pair, cells in counted_pairs([(0, 1), (0, 2), (1, 2)], codes, [2, 3, 2])}[0, 2]
    [0, 1, 1, 1]
    """
    left = dict.fromkeys(pairs)
    while left:
        a, b = next(iter(left))
        del left[a, b]
        third = next(
            (
                c
                for c in range(b + 1, len(codes))
                if (a, c) in left and (b, c) in left and sizes[a] * sizes[b] * sizes[c] <= _IN_REACH
            ),
            None,
        )
        if third is None:
            yield (a, b), counted((a, b), codes, sizes)
            continue
        del left[a, third], left[b, third]
        shape = (sizes[a], sizes[b], sizes[third])
        joint = count_triple(codes[a], codes[b], codes[third], shape[1:], math.prod(shape)).reshape(shape)
        yield (a, b), joint.sum(axis=2).ravel()
        yield (a, third), joint.sum(axis=1).ravel()
        yield (b, third), joint.sum(axis=0).ravel()


def _joined(codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """One number for the codes of several columns."""
    made = codes[0].astype(np.int64)
    for own, size in zip(codes[1:], sizes[1:], strict=True):
        made *= size
        made += own
    return made
