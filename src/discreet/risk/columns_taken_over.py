"""Which columns of a release are those of the original, record by record, while others were made new?

Two samples of people differ by chance. Columns of one file that were put into another do not: together they have the
same tables, in every pair. Half a record that is real is found by whoever knows it, although the other half differs,
and is hidden from every distance over all columns.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl

from discreet.core.arrays import Array

_LEVELS = 128
_TOO_EQUAL = -4.0  # standard errors: once in 30,000 pairs of columns by chance
_JOINS = -3.0


def columns_taken_over(original: pl.DataFrame, released: pl.DataFrame) -> list[str]:
    """Find the columns whose pairs are more alike in both files than those of two samples of people can be.

    A pair is held by how much its table differs beyond its margins: for samples that is a chi-square. The columns that
    agree best come first, and one joins them while its pairs with all of them agree too well.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> real, new = ({name: rng.integers(0, 12, 900) for name in "abcd"} for _ in range(2))
    >>> half = pl.DataFrame({"a": new["a"], "b": real["b"], "c": real["c"], "d": real["d"]})
    >>> [columns_taken_over(pl.DataFrame(real), file) for file in (half.reverse(), pl.DataFrame(new))]
    [['b', 'c', 'd'], []]
    """
    names = original.columns if original.height and released.height else []
    coded = {name: _coded(original[name], released[name]) for name in names}
    excess, variance = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for one, other in combinations(range(len(names)), 2):
        beyond = _beyond_margins(coded[names[one]], coded[names[other]])
        for at in ((one, other), (other, one)):
            excess[at], variance[at] = beyond
    alike = excess / np.sqrt(np.maximum(variance, 1.0))
    if not alike.size or alike.min() > _TOO_EQUAL:
        return []
    members = [int(place) for place in np.unravel_index(int(alike.argmin()), alike.shape)]
    while len(members) < len(names):
        together = excess[:, members].sum(axis=1) / np.sqrt(np.maximum(variance[:, members].sum(axis=1), 1.0))
        together[members] = 0.0
        if together.min() > _JOINS:
            break
        members.append(int(together.argmin()))
    return [names[place] for place in sorted(members)]


def _coded(ours: pl.Series, theirs: pl.Series) -> tuple[Array, Array, int]:
    """Number the values of a column in both files: rare labels together, many numbers in bands of as many people."""
    both = pl.concat([ours.cast(pl.Float64), theirs.cast(pl.Float64)]) if ours.dtype.is_numeric() else None
    if both is not None and both.n_unique() > _LEVELS:
        values = both.fill_null(np.nan).to_numpy()
        edges = np.unique(np.nanquantile(values, np.arange(1, _LEVELS) / _LEVELS))
        codes = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values))
    else:
        texts = pl.concat([ours.cast(pl.String), theirs.cast(pl.String)]).fill_null("")
        places = {
            value: at for at, (value, _) in enumerate(Counter(texts.to_list()).most_common(_LEVELS - 1))
        }
        codes = texts.replace_strict(list(places), list(places.values()), default=_LEVELS - 1).to_numpy()
    codes = codes.astype(np.int64)
    return codes[: len(ours)], codes[len(ours) :], int(codes.max(initial=0)) + 1


def _beyond_margins(one: tuple[Array, Array, int], other: tuple[Array, Array, int]) -> tuple[float, float]:
    """By how much more than by chance the tables of two columns differ beyond their margins, and its variance."""
    ours, theirs = (
        np.bincount(first * other[2] + second, minlength=one[2] * other[2]).reshape(one[2], other[2])
        for first, second in ((one[0], other[0]), (one[1], other[1]))
    )
    both, variance = _beyond_chance(ours.ravel(), theirs.ravel())
    rows, columns = (_beyond_chance(ours.sum(axis=axis), theirs.sum(axis=axis))[0] for axis in (1, 0))
    return both - rows - columns, variance


def _beyond_chance(ours: Array, theirs: Array) -> tuple[float, float]:
    """Chi-square of two rows of counts beyond its mean, and its variance, when each record is in either file by lot."""
    there = ours + theirs > 0
    ours, together = ours[there].astype(np.float64), (ours + theirs)[there].astype(np.float64)
    share = ours.sum() / together.sum()
    spread = share * (1 - share)
    squares = (ours - together * share) ** 2 / (together * spread)
    variance = (2.0 + (1.0 - 6.0 * spread) / (together * spread)).sum()
    return float((squares - 1.0).sum() + 1.0), float(variance)
