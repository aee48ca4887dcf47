"""Is a masked record still one of the original ones? Nearest originals of masked records."""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet.core.arrays import Floats

_TREE_COLUMNS = 20
"""Columns beyond which a k-d tree looks at nearly every record, so that comparing all of them is faster."""


def nearest_distances(points: Floats, originals: Floats) -> Floats:
    """Give the distance of each point to its nearest original record.

    Examples
    --------
    >>> nearest_distances(np.array([[0.0, 1.0]]), np.array([[0.0, 0.0], [3.0, 1.0]])).tolist()
    [1.0]
    """
    if points.shape[1] <= _TREE_COLUMNS:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(originals).query(points, workers=-1)[0])
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(originals)
    nearest = search.kneighbors(points, return_distance=False)[:, 0]
    # Brute force squares and subtracts; the exact distance to the record it found tells a match from a near one.
    return np.asarray(np.linalg.norm(points - originals[nearest], axis=1))


def match_measures(
    original: Floats, masked: Floats, *, tolerance: float = 1e-6, rows: np.ndarray | None = None
) -> dict[str, float]:
    """Measure how near the masked records lie to original ones.

    Parameters
    ----------
    original, masked
        One row a record.
    tolerance
        Records nearer than this to an original one count as matches.
    rows
        Masked records to look at; all unless given.

    Returns
    -------
    dict
        ``euc``: mean distance to the nearest original record. ``matches``: share of matches. ``duplicates``: share
        of original records that have an equal one in the original file. ``matches_beyond_duplicates``: by how much the
        matches exceed that share.

    Examples
    --------
    >>> before = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> match_measures(before, np.array([[0.0, 0.0], [3.0, 3.0]]))["euc"]
    0.5
    """
    chosen = np.arange(len(masked)) if rows is None else rows
    distance = nearest_distances(masked[chosen], original)
    matches = float((distance < tolerance).mean())
    duplicates = float(pl.DataFrame(original).is_duplicated().to_numpy().mean())
    return {
        "euc": float(distance.mean()),
        "matches": matches,
        "duplicates": duplicates,
        "matches_beyond_duplicates": max(matches - duplicates, 0.0),
    }
