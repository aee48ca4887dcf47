"""In which order do the levels of a category go best with the other columns?

A Gaussian copula sees one scale a column, so regions in alphabetical order lose what they have to do with income. The
levels are put in the order of the scores for which the sum of squared correlations with all other columns is largest
(optimal scaling): given the others' scores, those are a leading singular vector of the table of level means. Columns
take turns until the orders settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.synth.copulas.dimensions import Dimension

_ROUNDS = 6
_MOST_RECORDS = 20_000


def associated(dimensions: Sequence[Dimension], weights: Floats | None) -> list[Dimension]:
    """Return the dimensions with the levels of those without an order in the order of their best scores."""
    free = [
        at for at, dimension in enumerate(dimensions) if not dimension.ordered and len(dimension.shares) > 2
    ]
    found = list(dimensions)
    if free and len(dimensions) > 1:
        for at, order in _orders(dimensions, free, weights).items():
            place = np.argsort(order)
            found[at] = replace(
                dimensions[at],
                ranks=place[dimensions[at].ranks].astype(np.int64),
                shares=dimensions[at].shares[order],
            )
    # Two levels need no order, and chosen ones mean something: a sign of the correlation with other columns.
    return [replace(dimension, ordered=True) for dimension in found]


def _orders(
    dimensions: Sequence[Dimension], free: Sequence[int], weights: Floats | None
) -> dict[int, Integers]:
    size = len(dimensions[0].ranks)
    rows = np.unique(np.linspace(0, size - 1, min(size, _MOST_RECORDS)).astype(np.int64))
    share = np.ones(len(rows)) if weights is None else weights[rows]
    scores = np.column_stack([_standard(dimension.scores()[rows], share) for dimension in dimensions])
    orders = {at: np.arange(len(dimensions[at].shares)) for at in free}
    for _ in range(_ROUNDS):
        settled = True
        for at in free:
            codes = dimensions[at].ranks[rows]
            levels = len(dimensions[at].shares)
            mass = np.bincount(codes, share, levels)
            total = np.column_stack(
                [np.bincount(codes, share * scores[:, k], levels) for k in range(len(dimensions)) if k != at]
            )
            root = np.sqrt(np.maximum(mass, 1e-12))
            leading = np.linalg.svd(total / root[:, None], full_matrices=False)[0][:, 0]
            level_scores = np.where(mass > 0, leading / root, 0.0)
            # The sign of a singular vector is arbitrary; the one that goes with the given order is as good as any.
            if mass @ (level_scores * (np.arange(levels) - np.average(np.arange(levels), weights=mass))) < 0:
                level_scores = -level_scores
            order = np.argsort(np.round(level_scores, 12), kind="stable")
            settled &= bool((order == orders[at]).all())
            orders[at] = order
            scores[:, at] = _standard(level_scores[codes], share)
        if settled:
            break
    return orders


def _standard(scores: Floats, share: Floats) -> Floats:
    away = scores - np.average(scores, weights=share)
    spread = float(np.sqrt(np.average(away**2, weights=share)))
    return np.asarray(away / spread if spread > 1e-12 else away * 0.0)
