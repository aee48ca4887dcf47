"""How many things occur once, twice, …: what would be counted in more, or other, people, and what is one's own?

How often something was seen (the people of a class, the matches of a description) is taken as a draw of a Poisson law
whose rate differs from thing to thing. The law of the rates is estimated without assuming its form: the
maximum-likelihood mixture of Kiefer and Wolfowitz (1956), by EM.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array, Floats, Integers

MOST_COUNTED = 24  # counts up to here are told apart; what occurs more often is neither alone nor new
_STEPS = 200
_RESAMPLES = 50


def rates_of(lowest: float) -> Floats:
    """Lay rates from the lowest to well beyond the largest count that is told apart.

    Examples
    --------
    >>> rates_of(0.02)[[0, -1]].round(2).tolist()
    [0.02, 48.0]
    """
    return np.geomspace(lowest, 2.0 * MOST_COUNTED, 60)


def count_law(rates: Floats) -> Floats:
    """Give the chance of each count for each rate; the last count means so many or more."""
    from scipy.stats import poisson

    law = np.asarray(poisson.pmf(np.arange(MOST_COUNTED + 1), rates[:, None]), dtype=np.float64)
    law[:, -1] = poisson.sf(MOST_COUNTED - 1, rates)
    return law


def mixture_weights(draws: Floats, law: Floats, steps: int = _STEPS, start: Floats | None = None) -> Floats:
    """Fit the weights of the rates to each line of counts of counts, from equal ones or from those of ``start``."""
    shares = draws / draws.sum(axis=1, keepdims=True)
    weights = (
        np.full((len(draws), len(law)), 1 / len(law)) if start is None else np.repeat(start, len(draws), 0)
    )
    for _ in range(steps):
        expected = weights @ law
        weights *= np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0) @ law.T
    return weights


def alone_in_both(sizes: Integers, times: float) -> tuple[float, float]:
    """Expect how many classes hold one person here and one among ``times`` as many new people; and how unsure that is.

    ``sizes`` are those of the classes that have somebody. A class of rate r holds one of each with the chance
    ``r exp(-r) · tr exp(-tr)``; the sum over all classes is the alternating series of Good and Toulmin (1956), summed
    here over the fitted rates because the series itself swings wildly where classes are large. Its first term,
    ``2t`` times the pairs, is the most that it can be. The standard error is that of classes drawn again.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rates = rng.exponential(1.0, 5000)
    >>> here, there = rng.poisson(rates), rng.poisson(rates)
    >>> expected, error = alone_in_both(here[here > 0], 1.0)
    >>> bool(abs(expected - ((here == 1) & (there == 1)).sum()) < 2 * error)
    True
    """
    seen = np.bincount(np.minimum(sizes[sizes > 0], MOST_COUNTED), minlength=MOST_COUNTED + 1).astype(
        np.float64
    )
    classes = seen.sum()
    if not seen[1] or not seen[2] or times <= 0:
        return 0.0, 0.0
    rates = rates_of(1 / classes)
    occupied = -np.expm1(-rates)
    law = count_law(rates)[:, 1:] / occupied[:, None]
    again = np.random.default_rng([int(classes)]).multinomial(int(classes), seen / classes, size=_RESAMPLES)
    alone = times * rates**2 * np.exp(-(1 + times) * rates) / occupied
    # Where most classes hold one person, rates are told apart slowly: few steps would call chance too small.
    fitted = mixture_weights(seen[None, 1:], law, 5 * _STEPS)
    redrawn = mixture_weights(again[:, 1:].astype(np.float64), law, 2 * _STEPS, fitted)
    spread = float((redrawn @ alone).std()) * classes
    return min(float((fitted @ alone)[0]) * classes, 2 * times * float(seen[2])), spread


# Which columns tell people apart by a single value? An income to the cent, also where many have none.


_OWN = 0.5  # from this share of values that one person has alone, a column tells people apart by itself
_SHARED, _MANY = 0.01, 5  # values of more people than this share, and than so many, are left aside for that
_LEAST = 0.1  # of all people must have one, or these are the rare values of a column of groups


def mostly_own(counts: Array) -> bool:
    """Whether most values are one person's alone, but for those that many share, from how many people have each.

    Examples
    --------
    >>> mostly_own(np.array([1, 1, 2])), mostly_own(np.array([2, 2, 1]))
    (True, False)
    >>> mostly_own(np.array([700, *[1] * 300])), mostly_own(np.array([900, 60, *[1] * 40]))
    (True, False)
    """
    people, own = int(np.sum(counts)), int(np.sum(counts == 1))
    few = int(np.sum(counts[counts <= max(_MANY, _SHARED * people)]))
    return people > 0 and own >= max(_OWN * few, _LEAST * people)
