"""How far do two sets of estimates agree? Overlap of intervals and of ellipsoids, standardized differences."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import numbers_of
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator


@overload
def interval_overlap(a: tuple[float, float], b: tuple[float, float]) -> float: ...
@overload
def interval_overlap(a: npt.ArrayLike, b: npt.ArrayLike) -> Any: ...
@checked
def interval_overlap(a: npt.ArrayLike, b: npt.ArrayLike) -> Any:
    """How much of two confidence intervals is shared?

    The shared length is divided by the length of either interval, and the two shares are averaged.

    Parameters
    ----------
    a, b
        Lower and upper end; or tables of two columns, one interval a row.

    Returns
    -------
    float or numpy.ndarray
        1 for the same interval; negative, and the more so the wider the gap, for intervals apart; NaN where an
        interval has no length.

    How to read it
    --------------
    An overlap of 1 says that both files give the same answer with the same certainty. About 0.75 is a difference of
    one standard error, 0.5 of two. Below 0 the two intervals share nothing, and a reader of the release would be
    misled. Look at the smallest of a model, not only at the mean.

    When not to trust it
    --------------------
    Two wide intervals overlap whatever they say: an overlap of 0.9 between useless estimates is no virtue. It is no
    test. A release with too small standard errors may overlap well and still be too sure of itself.

    Examples
    --------
    >>> round(interval_overlap((1, 3), (2, 5)), 6), interval_overlap((0, 1), (2, 4))
    (0.416667, -0.75)
    """
    one = numbers_of(a, "a", missing=True, infinite=True)
    other = numbers_of(b, "b", missing=True, infinite=True)
    if one.shape[-1:] != (2,) or other.shape[-1:] != (2,):
        raise ParameterError("An interval is a lower and an upper end; give pairs, or tables of two columns.")
    if (one[..., 0] > one[..., 1]).any() or (other[..., 0] > other[..., 1]).any():
        raise ParameterError("The lower end of an interval lies above its upper end.")
    if one.ndim > 1 and other.ndim > 1 and one.shape != other.shape:
        raise ParameterError("a and b must be one interval each, or tables of as many intervals.")
    shared = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [
            np.where(width > 0, shared / width, np.nan)
            for width in (one[..., 1] - one[..., 0], other[..., 1] - other[..., 0])
        ]
    overlap = (shares[0] + shares[1]) / 2
    return float(overlap) if overlap.ndim == 0 else overlap


@checked
def ellipsoid_overlap(
    estimates: npt.ArrayLike,
    covariance: npt.ArrayLike,
    other_estimates: npt.ArrayLike,
    other_covariance: npt.ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: Seed = 0,
) -> tuple[float, float]:
    """How much do the joint confidence regions of two fits share?

    Estimates are drawn from the normal distribution of either fit; the share that falls into the confidence ellipsoid
    of the other is divided by the level, and the two are averaged.

    Parameters
    ----------
    estimates, covariance, other_estimates, other_covariance
        Of the two fits, for the same coefficients.
    level
        Of the confidence region.
    draws
        How many estimates are drawn; both fits use the same random numbers.
    seed
        For the draws.

    Returns
    -------
    tuple
        The overlap, between 0 and about 1, and its Monte Carlo error; NaN where a covariance is singular.

    How to read it
    --------------
    About 1 says that both files support the same sets of coefficients. Intervals may overlap one by one while the
    ellipsoids do not: then the files disagree about coefficients together.

    When not to trust it
    --------------------
    With many coefficients small differences add up and the overlap falls towards 0 quickly. It is no test. It needs
    full covariances; where one is singular there is no answer.

    Examples
    --------
    >>> ellipsoid_overlap([0, 0], [[1, 0], [0, 1]], [0, 0], [[1, 0], [0, 1]])[0] > 0.99
    True
    """
    from scipy.stats import chi2

    if not 0 < level < 1:
        raise ParameterError("level must lie between 0 and 1, e.g. 0.95.")
    if draws < 2:
        raise ParameterError("draws must be at least 2; 10,000 give an error below 0.01.")
    b, v = _fit_of(estimates, covariance, "")
    c, w = _fit_of(other_estimates, other_covariance, "other_")
    if len(b) != len(c):
        raise ParameterError(
            f"estimates holds {len(b):,} coefficients and other_estimates {len(c):,}; give the same ones."
        )
    if not all(np.isfinite(part).all() for part in (b, c, v, w)):
        return float("nan"), float("nan")
    try:
        low, high = np.linalg.cholesky(v), np.linalg.cholesky(w)
    except np.linalg.LinAlgError:
        return float("nan"), float("nan")
    noise = generator(seed, "ellipsoid").standard_normal((draws, len(b)))
    limit = chi2.ppf(level, len(b))
    shares = []
    for center, root, to, other in ((b, low, c, high), (c, high, b, low)):
        away = np.linalg.solve(other, (center + noise @ root.T - to).T)
        shares.append((away**2).sum(axis=0) <= limit)
    each = (shares[0].astype(np.float64) + shares[1]) / (2 * level)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(draws))


def _fit_of(estimates: npt.ArrayLike, covariance: npt.ArrayLike, prefix: str) -> tuple[Floats, Floats]:
    """Read the coefficients of a fit and their covariance, which belong together."""
    b = numbers_of(estimates, f"{prefix}estimates", missing=True, infinite=True)
    v = numbers_of(covariance, f"{prefix}covariance", missing=True, infinite=True)
    if b.ndim != 1 or v.shape != (len(b), len(b)):
        raise ParameterError(
            f"{prefix}estimates must be a list of coefficients, and {prefix}covariance a square table with a row and a "
            "column for each."
        )
    return b, v
