"""Classes counted in people: distinct persons, one value a person, one weight a person.

The same rules as in `discreet.engine`: the records of one person in a class count once, and of several sensitive
values a person stands for the one that most persons of the class have, among equals for the rarest in the file.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine import ClassCounts


def distinct_people(owners: Integers, units: Integers, many: int) -> Integers:
    """Count the persons of each class.

    Examples
    --------
    >>> distinct_people(np.array([0, 0, 1, 1]), np.array([7, 7, 7, 8]), 2).tolist()
    [1, 2]
    """
    pairs = np.unique(_paired(owners, units))
    return np.bincount(pairs // _span(units), minlength=many).astype(np.int64)


def one_value_each(
    owners: Integers, units: Integers, codes: Integers, domain: pl.Series, many: int
) -> ClassCounts:
    """Count the persons of each class by the value each of them stands for; values are positions in the domain."""
    width, span = max(len(domain), 1), _span(units)
    triples = np.unique(_paired(owners, units) * width + codes)
    pair, value = triples // width, triples % width
    owner = pair // span
    cell = owner * width + value
    _, place, in_class = np.unique(cell, return_inverse=True, return_counts=True)
    in_file = np.bincount(value, minlength=width)
    order = np.lexsort((value, in_file[value], -in_class[place], pair))
    chosen = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
    cells, counts = np.unique(cell[chosen], return_counts=True)
    starts = np.searchsorted(cells // width, np.arange(many + 1)).astype(np.int64)
    several = int(len(triples) - len(np.unique(pair)))
    return ClassCounts(pl.DataFrame, domain, starts, cells % width, counts.astype(np.int64), several=several)


def weight_of_people(owners: Integers, units: Integers, weights: Floats, many: int) -> Floats:
    """Add up the weights of each class, every person with the mean weight of its records there."""
    pairs, place = np.unique(_paired(owners, units), return_inverse=True)
    mean = np.bincount(place, weights=weights) / np.bincount(place)
    return np.bincount(pairs // _span(units), weights=mean, minlength=many).astype(np.float64)


def _span(units: Integers) -> int:
    return int(units.max(initial=0)) + 1


def _paired(owners: Integers, units: Integers) -> Integers:
    """Number the pairs of class and person; with at most as many of each as records, they fit easily."""
    return owners.astype(np.int64) * _span(units) + units
