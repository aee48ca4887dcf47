"""Into how many bins does a variable go, into which bin a value, and how much does a randomized bin tell?

Bins of all sites lie on one common range.

Fewer bins give a smaller epsilon after randomization, that is more privacy (one sentence of the source has it the other
way round; its formula has not).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from discreet.core.arrays import Floats, Integers, numbers_of
from discreet.core.constraints import Above, AtLeast, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.protect.transition_matrices import local_epsilon, one_step_invariant, theta_for_epsilon


@checked
def freedman_diaconis_bins(
    values: Any, *, max_bins: Annotated[int, AtLeast(1)] | None = None
) -> tuple[int, str]:
    """How many bins suit a column? Range / (2 IQR n^(-1/3)), rounded up; and the rule that was used.

    Where the quartiles agree, Sturges' rule takes over: ceil(log2 n) + 1.

    Also known as: Freedman-Diaconis rule.

    Examples
    --------
    >>> freedman_diaconis_bins([1, 2, 2, 3, 4, 4, 5, 6, 7, 9, 12, 15])
    (4, 'freedman-diaconis')
    """
    known = numbers_of(values, "values", missing=True, infinite=True, empty=True).reshape(-1)
    known = known[np.isfinite(known)]
    if not len(known):
        raise ParameterError("There are no values to bin.")
    low, high = np.quantile(known, (0.25, 0.75))
    reach = float(known.max() - known.min())
    if reach == 0:
        return 1, "constant"
    if high > low:
        # An exact whole number of bins must not become one more by rounding.
        many, rule = (
            math.ceil(reach / (2 * (high - low) * len(known) ** (-1 / 3)) - 1e-9),
            "freedman-diaconis",
        )
    else:
        many, rule = math.ceil(math.log2(len(known))) + 1, "sturges"
    return max(1, min(many, max_bins or many)), rule


@checked
def bin_edges(low: float, high: float, bins: int) -> Floats:
    """Lay the borders of bins of equal width on a range.

    Examples
    --------
    >>> bin_edges(0, 20, 4).tolist()
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high) or bins < 1:
        raise ParameterError("A range has two finite ends, the lower one first, and at least one bin.")
    return low + (high - low) * np.arange(bins + 1) / bins


@checked
def bin_codes(values: Any, edges: Floats) -> Integers:
    """Tell the bin of every value, -1 where it is missing; values beyond the range go to the end bins.

    Examples
    --------
    >>> bin_codes([1, 2, 2, 3, 4, 4, 5, 6, 7, 9, 12, 15, 20, 99], bin_edges(0, 20, 4)).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3]
    """
    given = numbers_of(values, "values", missing=True, infinite=True, empty=True)
    codes = np.searchsorted(edges[1:-1], given, side="right").astype(np.int64)
    return np.where(np.isnan(given), -1, codes)


def threshold_of(code: int, edges: Floats) -> float:
    """Bring the border between bins ``code`` and ``code + 1`` back to the scale of the values.

    A value on the border belongs to the upper bin, and ``x <= threshold`` goes to the lower: the threshold is the last
    number below the border.
    """
    if code < 0:
        return -1.7e308
    return float(np.nextafter(edges[code + 1], -np.inf))


# How much does a randomized value tell? Local epsilon of the invariant matrix that `protect.Pram` draws from.


_LEAST = 0.25  # of the average: what a place counts as that may not occur


@checked
def invariant_pram_epsilon(counts: Any, theta: Annotated[float, Share()]) -> float:
    """Which local epsilon has the invariant matrix P_ii = 1 - theta T_min / T_i of these counts?

    It is computed from the whole matrix. The closed form of the literature, by the two largest counts, is too small
    above theta = (c - 1) / c. At theta = 1 the rarest category is never kept, and epsilon is infinite. Categories
    that do not occur are left out: they would switch the randomization off.

    The matrix is made from counts. Where these are the site's own, epsilon is that of a fixed, public matrix; that the
    matrix depends on the data costs more, which it does not say.

    Parameters
    ----------
    counts
        How often each category occurs.
    theta
        Strength in [0, 1].

    Examples
    --------
    >>> round(invariant_pram_epsilon([50, 30, 20], 0.3), 6), round(invariant_pram_epsilon([1000, 10, 10], 0.9), 4)
    (2.590267, 4.6052)
    """
    known = _known(counts)
    if len(known) < 2:
        return 0.0
    return local_epsilon(one_step_invariant(known, theta))


@checked
def invariant_pram_theta(counts: Any, epsilon: Annotated[float, Above(0)]) -> float:
    """Which strength gives the invariant matrix of these counts this local epsilon?

    Also known as: theta of PRAM.

    Examples
    --------
    >>> round(invariant_pram_theta([50, 30, 20], 3.0), 6)
    0.213503
    """
    return theta_for_epsilon(_known(counts), epsilon)


def _known(counts: Any) -> Any:
    given = numbers_of(counts, "counts", least=0, empty=True).reshape(-1)
    return given[given > 0]


def public_matrix(
    codes: Any, places: Sequence[int], *, labels: Sequence[Any] | None = None,
    prior: Mapping[Any, float] | None = None, counts_epsilon: float = 1.0, theta: float | None = None,
    epsilon: float | None = None, seed: int | None = None,
) -> dict[int, dict[int, float]]:  # fmt: skip
    """With which chances may a column be exchanged, so that the chances themselves give no exact count away?

    The invariant matrix of a public prior, or of counts with Laplace noise. All places that could occur are in it,
    whether they do or not: which values a site has not seen is no one's business. Places that are not in the prior, or
    rarer in the noisy counts, count as a quarter of the average: a place of no count would switch the exchange off. The
    matrix keeps expected counts only as far as the counts that it was made from are right.

    Parameters
    ----------
    codes
        The column, as whole numbers.
    places
        All numbers that could occur.
    labels
        What the places are called in the prior; their numbers unless given.
    prior
        Public counts; noise on the column's own unless given.
    counts_epsilon
        The budget of the noisy counts. A record is in one place, so that it moves them by one.
    theta, epsilon
        The strength, or the local epsilon that the matrix is to have.
    seed
        For the same noise again; nothing is then promised.

    Examples
    --------
    >>> made = public_matrix([0, 0, 1], [0, 1], prior={0: 50, 1: 50}, theta=0.2)
    >>> {place: {other: round(chance, 3) for other, chance in row.items()} for place, row in made.items()}
    {0: {0: 0.8, 1: 0.2}, 1: {0: 0.2, 1: 0.8}}
    """
    if prior is not None:
        names = list(labels) if labels is not None else list(places)
        counts = np.array([float(prior.get(name, prior.get(str(name), 0.0))) for name in names])
        if not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
            raise ParameterError("counts: public counts must be numbers of at least 0, and not all 0.")
        rare = counts == 0
    else:
        from discreet.dp.mechanisms import laplace

        own = np.asarray(codes)
        exact = np.array([float((own == place).sum()) for place in places])
        noisy = laplace(exact, sensitivity=1, epsilon=counts_epsilon, seed=seed).value
        counts = np.maximum(np.asarray(noisy, dtype=np.float64), 0.0)
        rare = counts <= counts.mean() * _LEAST
    counts = np.where(rare, max(counts.mean() * _LEAST, 1.0), counts)
    if len(counts) < 2:
        return {int(place): {int(place): 1.0} for place in places}
    strength = theta_for_epsilon(counts, epsilon) if epsilon is not None else float(theta or 0.0)
    matrix = one_step_invariant(counts, strength)
    return {
        int(place): {int(other): float(matrix[at, to]) for to, other in enumerate(places)}
        for at, place in enumerate(places)
    }
