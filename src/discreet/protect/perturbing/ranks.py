"""Numbers by their ranks: normal scores and rank correlations, with gaps where the data has them."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats


def normal_scores(values: Floats) -> Floats:
    """Give each known value the normal quantile of its rank, scaled to variance 1; NaN where it is missing.

    Examples
    --------
    >>> normal_scores(np.array([5.0, 1.0, np.nan, 9.0])).round(3).tolist()
    [0.0, -1.225, nan, 1.225]
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    known = ~np.isnan(values)
    scores = np.full(len(values), np.nan)
    if known.any():
        made = ndtri((rankdata(values[known]) - 0.5) / known.sum())
        spread = made.std()
        scores[known] = (made - made.mean()) / spread if spread > 0 else 0.0
    return scores


def rank_correlation(matrix: Floats) -> Floats:
    """Spearman's rank correlations; each pair of columns by the records that know both, 0 where one is constant.

    Examples
    --------
    >>> rank_correlation(np.array([[1.0, 10.0], [2.0, 1000.0], [3.0, 100.0]])).round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    from scipy.stats import rankdata

    size = matrix.shape[1]
    known = ~np.isnan(matrix)
    found = np.eye(size)
    whole = np.flatnonzero(known.all(axis=0))
    if len(whole):
        found[np.ix_(whole, whole)] = _correlation(rankdata(matrix[:, whole], axis=0))
    for i in range(size):
        for j in range(i):
            if i in whole and j in whole:
                continue
            both = known[:, i] & known[:, j]
            pair = rankdata(matrix[both][:, [i, j]], axis=0)
            found[i, j] = found[j, i] = _correlation(pair)[0, 1] if both.any() else 0.0
    np.fill_diagonal(found, 1.0)
    return found


def _correlation(matrix: Floats) -> Floats:
    centered = matrix - matrix.mean(axis=0)
    length = np.sqrt((centered**2).sum(axis=0))
    unit = centered / np.where(length > 0, length, 1.0)
    return np.asarray(unit.T @ unit)
