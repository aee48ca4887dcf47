"""The earth mover's distance of every class from the whole file, on sparse counts.

Reference: N. Li, T. Li, S. Venkatasubramanian, t-Closeness, ICDE 2007.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.engine import ClassCounts
from discreet.hierarchy import Hierarchy


def ordered_emd(counts: ClassCounts) -> Floats:
    """Earth mover's distance of each class from the file, for values one step apart: the mean cumulative gap.

    Between two values that occur in a class its cumulative share is constant and the file's only rises, so the
    summed gap over that stretch follows from prefix sums and the point where the two cross.
    """
    m = len(counts.values)
    sizes, owners = counts.sizes, counts.owners
    if m < 2:
        return np.zeros(len(sizes))
    file_share = np.cumsum(counts.overall)[:-1]
    prefix = np.concatenate([[0.0], np.cumsum(file_share)])
    ran = np.cumsum(counts.counts)
    class_share = (ran - (ran - counts.counts)[counts.starts[:-1]][owners]) / sizes[owners]
    start = np.minimum(counts.codes, m - 1)
    stop = np.minimum(np.append(counts.codes[1:], m - 1), m - 1)
    stop[counts.starts[1:] - 1] = m - 1
    cross = np.clip(np.searchsorted(file_share, class_share), start, stop)
    gap = (
        class_share * (cross - start)
        - (prefix[cross] - prefix[start])
        + (prefix[stop] - prefix[cross])
        - class_share * (stop - cross)
    )
    head = prefix[counts.codes[counts.starts[:-1]]]
    distances: Floats = (np.add.reduceat(gap, counts.starts[:-1]) + head) / (m - 1)
    np.maximum(distances, 0.0, out=distances)
    return distances


def hierarchical_emd(counts: ClassCounts, hierarchy: Hierarchy, column: str) -> Floats:
    """Earth mover's distance where moving costs the height at which two values meet, over the full height.

    Summed over the tree, the cost of Li et al. (2007) is the mean over all levels below the root of the total
    variation distance at that level.
    """
    values = counts.values.drop_nulls()
    hierarchy.check(values, column=column)
    codes = np.asarray(hierarchy.levels_matrix(values))
    if counts.values.null_count():
        codes = np.vstack([codes, codes.max(axis=0) + 1])
    height = codes.shape[1] - 1
    levels = [_total_variation(counts, codes[:, level]) for level in range(height)]
    result: Floats = np.mean(levels, axis=0)
    return result


def _total_variation(counts: ClassCounts, groups: Integers) -> Floats:
    """Compute the total variation distance of each class after joining values into groups."""
    overall = np.bincount(groups, weights=counts.overall)
    width = len(overall)
    cell = counts.owners * width + groups[counts.codes]
    cells, where = np.unique(cell, return_inverse=True)
    owner, group = cells // width, cells % width
    share = np.bincount(where, weights=counts.counts) / counts.sizes[owner]
    excess = np.maximum(share - overall[group], 0)
    return np.bincount(owner, weights=excess, minlength=len(counts.sizes)).astype(np.float64)
