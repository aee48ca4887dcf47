"""What does Poisson synthesis of a table guarantee? Epsilon and delta for a pseudocount alpha, and back.

Every cell of a table of counts is replaced by a draw from Poisson(count + alpha). Two neighboring tables differ by
one person in one cell, in which the counts are a and a - 1. Two definitions are in use, and both are worked out:

- ``probabilistic``: with chance more than 1 - delta the likelihood ratio of the draw lies within e^-epsilon…e^epsilon,
  whichever of the two tables is the true one. It implies the next.
- ``tight``: (epsilon, delta)-differential privacy itself, with the smallest delta that is true.

References
----------
Jackson, Mitra, Francis and Dove (2022), On integrating the number of synthetic data sets into the a priori synthesis
approach; and their work on saturated count models. Quick (2021), Generating Poisson-distributed differentially
private synthetic data. Machanavajjhala et al. (2008), Privacy: theory meets practice on the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError, unknown_name

Guarantee = Literal["probabilistic", "tight"]

_BLOCK = 256
_LARGEST_ALPHA = 1e7
MOST_EPSILON = 700  # its exponential is still a number
# Quotients that are whole numbers in truth may fall a rounding error short.
_GUARD = 1e-12


def delta(alpha: float, epsilon: float, *, guarantee: Guarantee = "probabilistic") -> float:
    """The delta that a pseudocount buys at some epsilon, over all counts and both directions.

    Parameters
    ----------
    alpha
        The pseudocount added to every cell; more than 0.
    epsilon
        The bound on the log likelihood ratio.
    guarantee
        ``probabilistic`` or ``tight``, see above.

    Examples
    --------
    >>> round(delta(1, 2), 6), round(delta(1, 2, guarantee="tight"), 6)
    (0.052653, 0.02561)
    """
    _check_alpha(alpha)
    _check_epsilon(epsilon)
    if guarantee == "tight":
        # Poisson(a + alpha) is Poisson(1 + alpha) with the same noise added to both neighbors, which only hides
        # more: the count 1 is the worst, and delta falls with alpha.
        return float(_tight(np.array([1.0]), alpha, epsilon)[0])
    if guarantee != "probabilistic":
        raise ParameterError(unknown_name(str(guarantee), ["probabilistic", "tight"], what="guarantee"))
    return worst_count(alpha, epsilon)[1]


def worst_count(alpha: float, epsilon: float) -> tuple[int, float]:
    """The count whose presence shows most, and its (probabilistic) delta.

    From epsilon 1 on it is a count of 1 in every case tried, which nobody has proved; so it is always looked for.
    Searched from 1 upward, until Chernoff's bound says that no larger count can be worse.

    Examples
    --------
    >>> worst, found = worst_count(1, 0.5)
    >>> worst, round(found, 6)
    (2, 0.551916)
    """
    _check_alpha(alpha)
    _check_epsilon(epsilon)
    best, at, first = 0.0, 1, 1
    while True:
        counts = np.arange(first, first + _BLOCK, dtype=np.float64)
        found = _probabilistic(counts, alpha, epsilon)
        here = int(np.argmax(found))
        if found[here] > best + 1e-15:
            best, at = float(found[here]), int(counts[here])
        first += _BLOCK
        if _bound_beyond(first, alpha, epsilon) <= best:
            return at, best


def epsilon(alpha: float, delta: float) -> float:
    """The smallest epsilon for which a pseudocount keeps (epsilon, delta)-differential privacy (tight).

    Examples
    --------
    >>> round(epsilon(1, 0.02561), 3)
    2.0
    """
    _check_alpha(alpha)
    _check_delta(delta)
    one = np.array([1.0])
    return least_epsilon(lambda epsilon: float(_tight(one, alpha, epsilon)[0]), delta, 80)


def least_epsilon(delta_at: Callable[[float], float], delta: float, halvings: int) -> float:
    """Find the smallest epsilon with a delta that falls as epsilon grows, by halving an interval so often."""
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        low, high = high, 2 * high
        if high > MOST_EPSILON:
            raise ParameterError(
                f"alpha is too small: no epsilon of up to {MOST_EPSILON} has so small a delta."
            )
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def calibrate(epsilon: float, delta: float, *, guarantee: Guarantee = "probabilistic") -> float:
    """The smallest pseudocount that reaches a wanted guarantee.

    The probabilistic delta is a saw-tooth in alpha: a larger alpha may be worse. The answer is recomputed before it is
    given, and it holds for this alpha, not for every larger one.

    Parameters
    ----------
    epsilon, delta
        What is wanted.
    guarantee
        ``probabilistic`` or ``tight``.

    Examples
    --------
    >>> round(calibrate(2, 0.05), 6), round(calibrate(3, 0.05), 6)
    (0.895255, 0.357952)
    """
    _check_epsilon(epsilon)
    _check_delta(delta)
    if guarantee == "tight":
        return _calibrated_tight(epsilon, delta)
    if guarantee != "probabilistic":
        raise ParameterError(unknown_name(str(guarantee), ["probabilistic", "tight"], what="guarantee"))
    if epsilon >= 1:
        return _first_tooth(epsilon, delta)
    return _scanned(epsilon, delta)


def data_dependent_delta(smallest: int, epsilon: float) -> float:
    """The delta of drawing without a pseudocount where the intruder's smallest count is known.

    It depends on the data and is **no** differential privacy guarantee: another table with a smaller count would
    have another one. ``smallest`` is at least 1.

    Examples
    --------
    >>> round(data_dependent_delta(3, 1), 6), round(data_dependent_delta(5, 1), 6)
    (0.110674, 0.042621)
    """
    from scipy.special import pdtrc

    _check_epsilon(epsilon)
    if smallest < 1 or smallest != int(smallest):
        raise ParameterError(
            "smallest must be a whole number of at least 1: zeros cannot be drawn without alpha."
        )
    top = math.floor((1 + epsilon) / math.log((smallest + 1) / smallest) + _GUARD)
    return float(pdtrc(top, smallest + 1))


def likelihood_ratio(synthetic: int, count: int, alpha: float = 0.0) -> float:
    """How much more likely a synthetic count is when one person more is in the cell than ``count``.

    Examples
    --------
    >>> round(likelihood_ratio(5, 1), 3)
    11.772
    """
    if count + alpha <= 0:
        return math.inf if synthetic else math.exp(-1.0)
    return math.exp(synthetic * math.log((count + 1 + alpha) / (count + alpha)) - 1)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The probabilistic delta of counts with normal noise of standard deviation sigma, for comparison.

    Examples
    --------
    >>> round(gaussian_delta(2, 1), 6), round(gaussian_delta(1, 2), 6)
    (0.052284, 0.073017)
    """
    from scipy.special import ndtr

    _check_epsilon(epsilon)
    if not sigma > 0:
        raise ParameterError("sigma must be more than 0.")
    half = 1 / (2 * sigma)
    return float(ndtr(half - sigma * epsilon) + ndtr(-sigma * epsilon - half))


def dirichlet_alpha(total: int, epsilon: float) -> float:
    """The smallest pseudocount of any cell for epsilon-differentially private multinomial-Dirichlet synthesis.

    The total is public, and neighbors differ by one person who moves to another cell. It is the *smallest* of the
    pseudocounts that must reach it.

    Examples
    --------
    >>> round(dirichlet_alpha(1000, 1), 3)
    581.977
    """
    _check_epsilon(epsilon)
    if total < 1:
        raise ParameterError("total must be at least 1.")
    return total / math.expm1(epsilon)


def synthesize_sparse(
    cells: npt.ArrayLike,
    counts: npt.ArrayLike,
    size: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    structural: npt.ArrayLike = (),
) -> tuple[Integers, Integers]:
    """Synthesize a table far too large to write out: only cells that are not zero are kept.

    The law is exactly that of Poisson(count + alpha) in every cell: the number of empty cells that fill up is
    binomial, they are drawn without repetition, and each gets a Poisson draw that is not zero.

    Parameters
    ----------
    cells, counts
        The numbers (from 0) of the occupied cells, each once, and their counts.
    size
        How many cells the table has, empty ones included; public knowledge.
    alpha
        The pseudocount.
    rng
        The generator.
    structural
        The numbers of impossible cells, public knowledge; they stay empty.

    Returns
    -------
    cells, counts
        The cells that are not zero in the synthetic table, in order.

    Examples
    --------
    >>> made, many = synthesize_sparse([5, 900_000_000], [3, 2], 10**9, 1e-9, np.random.default_rng(1))
    >>> bool((made < 10**9).all()), len(made) == len(many) < 20
    (True, True)
    """
    known = np.asarray(cells, dtype=np.int64)
    true = checked_counts(counts)
    barred = np.unique(np.asarray(structural, dtype=np.int64))
    _check_alpha(alpha)
    if len(known) != len(true) or len(np.unique(known)) < len(known):
        raise ParameterError("cells and counts need one entry an occupied cell, each cell once.")
    taken = np.union1d(known, barred)
    if len(taken) and (taken[0] < 0 or taken[-1] >= size):
        raise ParameterError(f"cells must be numbered from 0 to {size - 1:,}.")
    if len(taken) < len(known) + len(barred):
        raise ParameterError("Some cells are both occupied and declared impossible.")
    drawn = rng.poisson(true + alpha)
    filled = int(rng.binomial(size - len(taken), -math.expm1(-alpha)))
    new = _distinct_empty(filled, size, taken, rng)
    place = np.concatenate([known, new])
    many = np.concatenate([drawn, positive_poisson(alpha, len(new), rng)])
    order = np.argsort(place, kind="stable")
    kept = order[many[order] > 0]
    return place[kept], many[kept]


def positive_poisson(mean: float, size: int, rng: np.random.Generator) -> Integers:
    """Draw from the Poisson law given that the draw is not zero.

    The first event of a Poisson process that has one at all, then the events after it.
    """
    first = -np.log1p(-rng.random(size) * -math.expm1(-mean))
    return 1 + rng.poisson(np.maximum(mean - first, 0.0))


def checked_counts(counts: npt.ArrayLike) -> Integers:
    """Refuse what is no table of counts: negative, broken, missing numbers."""
    given = np.asarray(counts)
    if given.dtype.kind not in "biuf" or (given.dtype.kind == "f" and not np.isfinite(given).all()):
        raise ParameterError("Counts must be whole numbers; some are missing or no numbers.")
    if (given < 0).any() or (given.dtype.kind == "f" and (given != np.floor(given)).any()):
        raise ParameterError(
            "Counts must be whole numbers of 0 or more. Weighted totals are no counts: one person would change them "
            "by a whole weight."
        )
    return given.astype(np.int64)


def _distinct_empty(many: int, size: int, taken: Integers, rng: np.random.Generator) -> Integers:
    """Draw distinct cells among those not taken: positions among the empty ones, moved past the taken ones."""
    free = size - len(taken)
    found = np.empty(0, dtype=np.int64)
    if many > free // 2 or free < 4096:
        found = np.sort(rng.permutation(free)[:many])
    else:
        while len(found) < many:
            extra = rng.integers(free, size=int(1.1 * (many - len(found))) + 16)
            found = np.unique(np.concatenate([found, extra]))
        found = np.sort(rng.permutation(found)[:many])
    # The k-th taken cell has taken[k] - k empty ones before it.
    before = taken - np.arange(len(taken))
    return found + np.searchsorted(before, found, side="right")


def _thresholds(counts: Floats, alpha: float, epsilon: float) -> tuple[Floats, Floats]:
    """The largest and smallest draws whose likelihood ratio is within bounds."""
    with np.errstate(divide="ignore"):
        step = np.log((counts + alpha) / (counts - 1 + alpha))
    upper = np.floor((1 + epsilon) / step + _GUARD)
    lower = np.maximum(0.0, np.ceil((1 - epsilon) / step - _GUARD))
    return lower, upper


def _probabilistic(counts: Floats, alpha: float, epsilon: float) -> Floats:
    from scipy.special import pdtr, pdtrc

    lower, upper = _thresholds(counts, alpha, epsilon)
    worst = np.zeros(len(counts))
    for mean in (counts + alpha, counts - 1 + alpha):
        below = np.where(lower > 0, pdtr(np.maximum(lower - 1, 0), mean), 0.0)
        worst = np.maximum(worst, pdtrc(upper, mean) + below)
    return worst


def _tight(counts: Floats, alpha: float, epsilon: float) -> Floats:
    """The hockey-stick divergences: beyond a threshold one of the two laws is e^epsilon times the other."""
    from scipy.special import pdtr, pdtrc

    lower, upper = _thresholds(counts, alpha, epsilon)
    more, less = counts + alpha, counts - 1 + alpha
    odds = math.exp(epsilon)
    above = pdtrc(upper, more) - odds * pdtrc(upper, less)
    last = np.maximum(lower - 1, 0)
    below = np.where(lower > 0, pdtr(last, less) - odds * pdtr(last, more), 0.0)
    return np.asarray(np.maximum(0.0, np.maximum(above, below)))


def _bound_beyond(count: int, alpha: float, epsilon: float) -> float:
    """Chernoff's bound on the probabilistic delta of this and every larger count; 1 where it says nothing yet.

    The thresholds lie between (1 ± epsilon) times the two means, since 1/log(m/(m-1)) lies between m - 1 and m.
    Relative to the means they move outward as the count grows, so that the bound falls.
    """
    less, more = count - 1 + alpha, count + alpha
    up, down = (1 + epsilon) * less / more, (1 - epsilon) * more / less
    if up <= 1 or down >= 1:
        return 1.0
    too_large = math.exp(-more * (up * math.log(up) - up + 1))
    too_small = math.exp(-less * (down * math.log(down) - down + 1)) if down > 0 else 0.0
    return min(1.0, too_large + too_small)


def _first_tooth(epsilon: float, target: float) -> float:
    """Within a tooth delta rises with alpha, so that the smallest valid alpha is the start of one."""
    j = 1
    while True:
        alpha = 1.0 / math.expm1((1 + epsilon) / j)
        nudged = alpha * (1 + 1e-9)
        if delta(nudged, epsilon) <= target:
            return nudged
        j += 1
        _refuse_beyond_reach(alpha)


def _scanned(epsilon: float, target: float) -> float:
    """Below epsilon 1 the worst count changes: walk up in steps of a percent, then look more closely."""
    alpha, step = 1e-3, 1.01
    while delta(alpha, epsilon) > target:
        alpha *= step
        _refuse_beyond_reach(alpha)
    for close in np.geomspace(alpha / step, alpha, 101):
        if delta(float(close), epsilon) <= target:
            return float(close)
    return alpha


def _calibrated_tight(epsilon: float, target: float) -> float:
    one = np.array([1.0])
    high = 1e-3
    while _tight(one, high, epsilon)[0] > target:
        high *= 2
        _refuse_beyond_reach(high)
    low = 0.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        fits = middle > 0 and _tight(one, middle, epsilon)[0] <= target
        low, high = (low, middle) if fits else (middle, high)
    return high


def _refuse_beyond_reach(alpha: float) -> None:
    if alpha > _LARGEST_ALPHA:
        raise ParameterError(
            "No alpha below ten million reaches this guarantee. Choose a larger epsilon or delta."
        )


def _check_alpha(alpha: float) -> None:
    if not (alpha > 0 and math.isfinite(alpha)):
        raise ParameterError(
            "alpha must be more than 0. Without it an empty cell stays empty for sure, and nothing is guaranteed."
        )


def _check_epsilon(epsilon: float) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ParameterError("epsilon must be more than 0.")
    if epsilon > MOST_EPSILON:
        raise ParameterError(
            f"epsilon must be at most {MOST_EPSILON}: beyond it a guarantee says nothing and cannot be computed."
        )


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError("delta must lie between 0 and 1.")
