"""The pMSE of the best tree: how well can splits of the columns tell an original file from a synthetic one?

Every axis-parallel tree of depth 1 to 3 over a grid of thresholds is tried, so the best is the best. Thresholds come
from the synthetic file, or are public, and never from the original: only then does one record move the result as
little as `discreet.dp.pmse_sensitivity` says. Growing a tree step by step (``greedy``) breaks that bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError

DEEPEST = 3


def tree_pmse(
    original: Floats, synthetic: Floats, *, depth: int = 1, thresholds: int = 32, greedy: bool = False
) -> float:
    """The pMSE of the best tree between two files of numbers with as many records.

    Examples
    --------
    >>> numbers = np.arange(1.0, 11.0)[:, None]
    >>> [round(tree_pmse(numbers, numbers + shift), 8) for shift in (0.5, 3, 6, 20)]
    [0.01315789, 0.04411765, 0.10714286, 0.25]
    """
    if original.shape != synthetic.shape or original.ndim != 2:
        raise ParameterError("Both files must have as many records and columns.")
    if depth not in range(1, DEEPEST + 1):
        raise ParameterError(f"depth must be 1, 2 or {DEEPEST}: deeper trees cannot all be tried.")
    if not np.isfinite(synthetic).all():
        return 0.25
    cuts = [quantile_cuts(synthetic[:, at], thresholds) for at in range(synthetic.shape[1])]
    return best_pmse(original, synthetic, cuts, depth=depth, greedy=greedy)


def quantile_cuts(values: Floats, many: int) -> Floats:
    """Thresholds from a synthetic column: some of its values, and one above them all."""
    n = len(values)
    places = np.unique(np.linspace(0, n - 1, min(many, n)).astype(np.int64))
    found = np.unique(np.partition(values, places)[places])
    return np.append(found, np.nextafter(found[-1], np.inf))


def best_pmse(
    original: Floats, synthetic: Floats, cuts: Sequence[Floats], *, depth: int, greedy: bool = False
) -> float:
    """The pMSE of the best tree over these thresholds; a value at a threshold is above it."""
    width = max(len(own) for own in cuts)
    padded = np.full((len(cuts), width), np.inf)
    for at, own in enumerate(cuts):
        padded[at, : len(own)] = own
    from discreet.synth.pmse_mechanism.tree_kernels import codes_above

    return pmse_of(
        codes_above(original, padded), codes_above(synthetic, padded), width + 1, depth, greedy=greedy
    )


def pmse_of(original: Integers, synthetic: Integers, bins: int, depth: int, *, greedy: bool) -> float:
    """The pMSE of the best tree over codes below ``bins``."""
    from discreet.synth.pmse_mechanism import tree_kernels as kernels

    n = len(original)
    if greedy:
        found = kernels.greedy(original, synthetic, bins, depth)
    elif depth == 1:
        found = kernels.best_one(original, synthetic, bins)
    elif depth == 2:
        found = kernels.best_two(kernels.crossed_counts(original, synthetic, bins))
    else:
        found = kernels.best_three(original, synthetic, bins)
    return 0.25 - float(found) / (2 * n)
