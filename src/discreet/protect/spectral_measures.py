"""What spectral anonymization costs in precision, and whether masked records are still original ones.

For the limiting covariances of means and of the covariance matrix, rows are taken to be independent and normal, and the
eigenvalues of the covariance matrix to be distinct.
"""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.constraints import AtLeast
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.parameters import checked

Statistic = Literal["mean", "cov"]
SpectralSource = Literal["O", "P", "J", "original"]

EQUAL = 1e-8
"""Relative gap below which two neighboring eigen- or singular values count as equal."""


@checked
def asymptotic_cov(
    Sigma: npt.ArrayLike,
    n: Annotated[int, AtLeast(1)],
    method: SpectralSource = "O",
    what: Statistic = "mean",
) -> Floats:
    """How precise are the mean and the covariance matrix of a spectrally anonymized file?

    Parameters
    ----------
    Sigma
        Covariance matrix of the columns, p × p.
    n
        Number of records; 1 gives the limiting covariance of sqrt(n) times the statistic.
    method
        ``"O"``, ``"P"`` or ``"J"``, or ``"original"`` for the file as it was.
    what
        ``"mean"``: covariance matrix of the p means. ``"cov"``: covariance matrix of the p² entries of the sample
        covariance matrix, in the order of its rows.

    Notes
    -----
    With Sigma = O Lambda O', the mean has covariance Sigma / n for P and the original, 2 Sigma / n for J and O. The
    entries of the covariance matrix have R (I + K) R' / n in the original and R (2 I + 2 K - 2 V) R' / n after
    spectral anonymization; R is the Kronecker product of O Lambda^(1/2) with itself, K the commutation matrix and V
    the diagonal matrix of vec(I). R must not be made from the symmetric root O Lambda^(1/2) O': V changes with
    rotation. In the basis of the eigenvectors variances lose nothing and covariances half their precision.

    Examples
    --------
    >>> asymptotic_cov([[2, 0], [0, 1]], 1, method="P", what="cov").diagonal().round(6).tolist()
    [8.0, 4.0, 4.0, 2.0]
    >>> asymptotic_cov([[2, 0], [0, 1]], 1, method="original", what="cov").diagonal().round(6).tolist()
    [8.0, 2.0, 2.0, 2.0]
    """
    sigma = _checked(Sigma)
    if what == "mean":
        return np.asarray(sigma * ((2.0 if method in ("J", "O") else 1.0) / n))
    p = len(sigma)
    values, vectors = np.linalg.eigh(sigma)
    if method != "original" and p > 1:
        top = max(float(values[-1]), np.finfo(float).tiny)
        if (np.diff(values) < EQUAL * top).any():
            warnings.warn(
                "Two eigenvalues of Sigma are equal: the asymptotic formula for covariances of a spectrally "
                "anonymized file does not hold then.",
                DiscreetWarning,
                stacklevel=2,
            )
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    commutation = np.eye(p * p).reshape(p, p, p, p).transpose(1, 0, 2, 3).reshape(p * p, p * p)
    core = np.eye(p * p) + commutation
    if method != "original":
        core = 2 * core - 2 * np.diag(np.eye(p).ravel())
    spread = np.kron(root, root)
    return np.asarray(spread @ core @ spread.T / n)


def standard_error_inflation(
    Sigma: npt.ArrayLike, method: SpectralSource = "O", what: Statistic = "mean"
) -> Floats:
    """By which factor do standard errors grow through spectral anonymization?

    Parameters
    ----------
    Sigma
        Covariance matrix of the columns.
    method, what
        As in `asymptotic_cov`.

    Returns
    -------
    numpy.ndarray
        One factor for each mean, or a p × p matrix with one for each entry of the covariance matrix.

    Examples
    --------
    >>> standard_error_inflation([[2, 0], [0, 1]], "O", "cov").round(3).tolist()
    [[1.0, 1.414], [1.414, 1.0]]
    >>> standard_error_inflation([[2, 0], [0, 1]], "P").tolist()
    [1.0, 1.0]
    """
    sigma = _checked(Sigma)
    after = asymptotic_cov(sigma, 1, method, what).diagonal()
    before = asymptotic_cov(sigma, 1, "original", what).diagonal()
    factor = np.sqrt(np.divide(after, before, out=np.ones_like(before), where=before > 0))
    return factor if what == "mean" else factor.reshape(sigma.shape)


def relative_error(found: npt.ArrayLike, theory: npt.ArrayLike) -> float:
    """How far is a simulated covariance matrix from the theoretical one, relative to its size (Frobenius)?

    Examples
    --------
    >>> relative_error([[1.1, 0], [0, 1]], [[1, 0], [0, 1]]).__round__(4)
    0.0707
    """
    right = np.asarray(theory, dtype=float)
    return float(np.linalg.norm(np.asarray(found, dtype=float) - right) / np.linalg.norm(right))


def expected_match_rate(method: str, n: int, perturbed: int, rank: int) -> float:
    """Which share of records is released unchanged, on average?

    P: a released record is an original one where all permutations agree on it. If all ``rank`` singular vectors
    are permuted that is any original record, n^(1 - rank); if only some are, the others pin the record to itself
    and all permutations have to leave it in its place, n^(-perturbed). J: all signs are plus, 2^(-perturbed).
    O: never.

    Examples
    --------
    >>> expected_match_rate("P", 25, 2, 2), expected_match_rate("J", 25, 2, 2), expected_match_rate("O", 25, 2, 2)
    (0.04, 0.25, 0.0)
    """
    if not perturbed:
        return 1.0
    if method == "P":
        return float(n) ** (1 - rank if perturbed == rank else -perturbed)
    return 2.0**-perturbed if method == "J" else 0.0


def _checked(given: Any) -> Floats:
    sigma = np.asarray(given, dtype=float)
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or not sigma.size:
        raise ParameterError("Sigma must be a square matrix.")
    if not np.isfinite(sigma).all() or not np.allclose(sigma, sigma.T):
        raise ParameterError("Sigma must be symmetric and finite.")
    if np.linalg.eigvalsh(sigma)[0] < -1e-8 * max(float(np.abs(sigma).max()), 1e-300):
        raise ParameterError("Sigma must be a covariance matrix: it has a negative eigenvalue.")
    return sigma


# Is a masked record still one of the original ones? Nearest originals of masked records.


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
