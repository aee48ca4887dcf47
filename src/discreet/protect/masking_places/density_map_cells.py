"""Which cells of a density map give somebody away, and how merging or smoothing them helps.

A cell is sensitive when too few contribute to it, when one contributor makes up too much of its total (by the rules of
`discreet.numerics.dominance`), or, for a yes-or-no value, when too large a share of its people has it.

References
----------
de Jonge, E. and de Wolf, P.-P. (2016). Spatial smoothing and statistical disclosure control. In: Privacy in
Statistical Databases, Lecture Notes in Computer Science 9867, 107-117.
de Wolf, P.-P. and de Jonge, E. (2018). Safely plotting continuous variables on a map. In: Privacy in Statistical
Databases, Lecture Notes in Computer Science 11126, 347-359.
Suñé, E., Rovira, C., Ibáñez, D. and Farré, M. (2017). Statistical disclosure control on visualising geocoded
population data using a structure in quadtrees. New Techniques and Technologies for Statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.numerics.dominance import contributions, dominated, p_percent

_LARGEST_RASTER = 50_000_000
_MOST_CELLS = 2**62  # what a number of a cell can hold
_TRUNCATED = 3.0


@dataclass(frozen=True)
class SafetyRule:
    """When a cell may not be shown.

    Attributes
    ----------
    min_count
        Fewer contributors than this are too few.
    max_share
        The largest contributor, or those with the value, may not make up more than this share.
    p
        Of the p% rule, as a share; None for no such rule.
    shares
        Whether the value is yes or no.
    """

    min_count: float
    max_share: float
    p: float | None
    shares: bool


@dataclass(frozen=True)
class Records:
    """What the records bring to the map: the cell they lie in, a value, and whose it is."""

    column: Integers
    row: Integers
    value: Floats | None
    contributor: Integers | None


@dataclass(frozen=True)
class Cells:
    """Cells of a map: where they lie (in cells of level 0), how wide they are, and what is in them."""

    column: Floats
    row: Floats
    width: Integers
    count: Floats
    total: Floats
    sensitive: Flags


def gridded(records: Records, level: Integers, rule: SafetyRule) -> tuple[Cells, Integers]:
    """Put the records into cells of their level (a cell of level l is 2^l cells wide) and judge the cells.

    Returns
    -------
    tuple
        The cells, and the cell of each record.
    """
    left, top = int(records.column.min(initial=0)), int(records.row.min(initial=0))
    highest = int(level.max(initial=0))
    # Blocks are counted from a corner that all levels share, so that a block is made of whole smaller ones.
    left, top = (left >> highest) << highest, (top >> highest) << highest
    across = (records.column - left) >> level
    down = (records.row - top) >> level
    wide, tall = int(across.max(initial=0)) + 1, int(down.max(initial=0)) + 1
    if (highest + 1) * wide * tall > _MOST_CELLS:
        raise ParameterError("cell_size is too small for a map that wide: its cells cannot be numbered.")
    code, of = np.unique((level * wide + across) * tall + down, return_inverse=True)
    width = np.left_shift(1, code // (wide * tall))
    count = np.bincount(of, minlength=len(code)).astype(np.float64)
    value = records.value if records.value is not None else np.ones(len(of))
    total = np.bincount(of, weights=value, minlength=len(code)).astype(np.float64)
    sensitive = _judged(of, value, records, count, total, rule=rule)
    return (
        Cells(
            left + ((code // tall) % wide + 0.5) * width,
            top + (code % tall + 0.5) * width,
            width,
            count,
            total,
            sensitive,
        ),
        of,
    )


def merged(records: Records, levels: int, rule: SafetyRule) -> tuple[Cells, int]:
    """Merge sensitive cells with their three neighbors of the same block, level by level: a quadtree.

    Cells never overlap, so nothing is learned by taking one from another. What is still sensitive at the last level
    stays marked.

    Returns
    -------
    tuple
        The cells, and how many were sensitive before any was merged.
    """
    level = np.zeros(len(records.column), dtype=np.int64)
    cells, of = gridded(records, level, rule)
    before = int(cells.sensitive.sum())
    for step in range(1, levels + 1):
        if not cells.sensitive.any():
            break
        block = _blocks(records, step)
        unsafe = np.zeros(int(block.max(initial=0)) + 1, dtype=bool)
        unsafe[block[cells.sensitive[of]]] = True
        level[unsafe[block]] = step
        cells, of = gridded(records, level, rule)
    return cells, before


def smoothed(records: Records, bandwidth: float, rule: SafetyRule) -> tuple[Cells, int]:
    """Spread every record over its surroundings by a Gaussian kernel (bandwidth in cells), then judge the cells.

    A smoothed cell is an average over the people around it with weights w, so too few stand behind it when their
    effective number, (sum w)^2 / sum w^2, is below the minimum; the dominance rules look at the weighted
    contributions.

    Returns
    -------
    tuple
        The cells, and how many were sensitive before smoothing.
    """
    plain, _ = gridded(records, np.zeros(len(records.column), dtype=np.int64), rule)
    reach = max(1, int(np.ceil(_TRUNCATED * bandwidth)))
    column, row = (np.floor(place).astype(np.int64) for place in (plain.column, plain.row))
    left, top = int(column.min()) - reach, int(row.min()) - reach
    shape = (int(column.max()) - left + reach + 1, int(row.max()) - top + reach + 1)
    if shape[0] * shape[1] > _LARGEST_RASTER:
        raise ParameterError(
            f"The map would have {shape[0]:,} by {shape[1]:,} cells, too many to smooth. Choose a larger cell_size, or "
            "leave far points out."
        )
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / bandwidth) ** 2)
    kernel /= kernel.sum()
    here = (column - left, row - top)
    count = _blurred(_laid(shape, here, plain.count), kernel)
    total = _blurred(_laid(shape, here, plain.total), kernel)
    squares = _blurred(_laid(shape, here, plain.count), kernel**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(squares > 0, count**2 / squares, 0.0)
    sensitive = effective < rule.min_count * (1 - 1e-9)
    if rule.shares:
        sensitive |= total > rule.max_share * count * (1 + 1e-9)
    elif records.value is not None:
        sensitive |= _smooth_dominance(records, shape, (left, top), kernel, rule)
    shown = count > 0
    across, down = np.nonzero(shown)
    cells = Cells(
        (left + across + 0.5).astype(np.float64),
        (top + down + 0.5).astype(np.float64),
        np.ones(len(across), dtype=np.int64),
        count[shown],
        total[shown],
        sensitive[shown],
    )
    return cells, int(plain.sensitive.sum())


def _blocks(records: Records, level: int) -> Integers:
    across, down = records.column >> level, records.row >> level
    tall = int(down.max() - down.min()) + 1
    _, of = np.unique((across - across.min()) * tall + (down - down.min()), return_inverse=True)
    return of


def _judged(
    of: Integers, value: Floats, records: Records, count: Floats, total: Floats, *, rule: SafetyRule
) -> Flags:
    given = contributions(of, value, contributor=records.contributor, negative="absolute")
    sensitive: Flags = given.size < rule.min_count
    if records.value is None:
        return sensitive
    if rule.shares:
        return sensitive | (total > rule.max_share * count * (1 + 1e-9))
    sensitive = sensitive | dominated(given, 1, rule.max_share)
    return sensitive if rule.p is None else sensitive | p_percent(given, rule.p)


def _smooth_dominance(
    records: Records, shape: tuple[int, int], corner: tuple[int, int], kernel: Floats, rule: SafetyRule
) -> Flags:
    """Hold the largest weighted contributions of each smoothed cell against its total."""
    across, down = records.column - corner[0], records.row - corner[1]
    values = records.value if records.value is not None else np.ones(len(across))
    given = contributions(
        across * shape[1] + down, values, contributor=records.contributor, negative="absolute"
    )
    cell = np.asarray(given.cells, dtype=np.int64)
    here = (cell // shape[1], cell % shape[1])
    largest = given.top(1)
    first, second = _two_largest(
        _laid(shape, here, largest), _laid(shape, here, given.top(2) - largest), kernel
    )
    total = _blurred(_laid(shape, here, given.total), kernel)
    unsafe: Flags = first > rule.max_share * total * (1 + 1e-9)
    if rule.p is not None:
        unsafe |= total - first - second < rule.p * first * (1 - 1e-9)
    return unsafe


def _laid(shape: tuple[int, int], here: tuple[Integers, Integers], values: Floats) -> Floats:
    raster = np.zeros(shape)
    raster[here] = values
    return raster


def _blurred(raster: Floats, kernel: Floats) -> Floats:
    from scipy.ndimage import correlate1d

    once = correlate1d(raster, kernel, axis=0, mode="constant")
    twice: Floats = correlate1d(once, kernel, axis=1, mode="constant")
    return twice


def _two_largest(first: Floats, second: Floats, kernel: Floats) -> tuple[Floats, Floats]:
    """Find the two largest weighted contributions around each cell; the kernel splits into one pass an axis."""
    reach = len(kernel) // 2
    for axis in (0, 1):
        best, next_best = np.zeros_like(first), np.zeros_like(first)
        size = first.shape[axis]
        for step, weight in zip(range(-reach, reach + 1), kernel, strict=True):
            if abs(step) >= size:
                continue
            to, since = [slice(None), slice(None)], [slice(None), slice(None)]
            to[axis] = slice(max(0, -step), size - max(0, step))
            since[axis] = slice(max(0, step), size - max(0, -step))
            there, origin = tuple(to), tuple(since)
            one, two = weight * first[origin], weight * second[origin]
            ahead = best[there]
            next_best[there] = np.maximum(np.minimum(ahead, one), np.maximum(next_best[there], two))
            best[there] = np.maximum(ahead, one)
        first, second = best, next_best
    return first, second
