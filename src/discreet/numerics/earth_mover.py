"""The earth mover's distance of every class from the whole file, on sparse counts.

Reference: N. Li, T. Li, S. Venkatasubramanian, t-Closeness, ICDE 2007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.engine import ClassCounts

if TYPE_CHECKING:
    from discreet.hierarchy import Hierarchy


def ordered_emd(counts: ClassCounts) -> Floats:
    """Earth mover's distance of each class from the file, for values one step apart: the mean cumulative gap."""
    from discreet.numerics.earth_mover_kernels import mean_cumulative_gap

    if len(counts.values) < 2:
        return np.zeros(len(counts.starts) - 1)
    file_share = np.cumsum(counts.overall)[:-1]
    found: Floats = mean_cumulative_gap(counts.starts, counts.codes, counts.counts, file_share)
    return found


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
