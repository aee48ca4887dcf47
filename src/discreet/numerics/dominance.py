"""Does one contributor, or two, make up most of a total?

A published total gives away a large contributor when little is left besides: whoever contributes the second
largest part subtracts it and holds an estimate of the largest. The rules of the field judge a cell by its
sorted contributions c1 >= c2 >= … and their total C:

- (n, k) dominance: sensitive when c1 + … + cn is *more than* the share k of C;
- p%: sensitive when the remainder C - c1 - c2 is *less than* the share p of c1;
- p/q (prior-posterior): the same when everybody could estimate any contribution within the share q beforehand:
  sensitive when q times the remainder is less than p times c1. With q = 1 it is p%.

All are strict, so a cell of zeros is never sensitive, and a cell with one or two contributors always is (under
p%) unless it is zero. Differences within rounding error count as equal.

Many cells are judged at once, from one array of cell ids and one of contributions.

References
----------
Hundepool, Domingo-Ferrer, Franconi, Giessing, Schulte Nordholt, Spicer and de Wolf (2012), Statistical
Disclosure Control, chapter 4. Cox (1981), Linear sensitivity measures in statistical disclosure control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError

Weighting = Literal["expand", "multiply", "own"]
Negative = Literal["refuse", "absolute"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Contributions:
    """The contributions to many cells, sorted within each, largest first. Made by `contributions`.

    Attributes
    ----------
    cells
        The distinct cell ids, in order; everything this class answers has one entry for each of them.
    starts
        Where the contributions of cell j begin; one more entry than there are cells.
    values, weights
        The contributions and how many respondents each stands for.
    whole
        Whether a contribution is taken as one respondent, whatever its weight.
    """

    cells: npt.NDArray[np.generic]
    starts: Integers
    values: Floats
    weights: Floats
    whole: bool = True

    @property
    def size(self) -> Integers:
        """The number of contributions, zeros included."""
        return np.diff(self.starts)

    @property
    def total(self) -> Floats:
        """The (weighted) total."""
        return self._sums(self.values * self.weights)

    def top(self, n: int) -> Floats:
        """The sum of the n largest contributions."""
        return self._sums(self.values * self._taken(n))

    def rest(self, n: int) -> Floats:
        """What is left without the n largest; exactly zero where there are no more than n."""
        return self._sums(self.values * (self.weights - self._taken(n)))

    def share(self, n: int) -> Floats:
        """The n largest as a share of the total; NaN where the total is zero."""
        total = self.total
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, self.top(n) / total, np.nan)

    def _taken(self, n: int) -> Floats:
        """How much of each contribution is among the n largest respondents of its cell."""
        if self.whole:
            rank = np.arange(len(self.values)) - np.repeat(self.starts[:-1], self.size)
            return (rank < n).astype(np.float64)
        through = np.cumsum(self.weights)
        before = through - self.weights
        first = np.repeat(before[self.starts[:-1]], self.size)
        return np.clip(n - (before - first), 0.0, self.weights)

    def _sums(self, parts: Floats) -> Floats:
        return np.add.reduceat(parts, self.starts[:-1]) if len(parts) else np.empty(0)


def contributions(
    cell: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    contributor: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    weighting: Weighting = "expand",
    negative: Negative = "refuse",
) -> Contributions:
    """Sort the contributions to many cells, ready for the rules.

    Parameters
    ----------
    cell
        The cell each contribution goes to: numbers or texts.
    value
        The contribution.
    contributor
        Who it belongs to. The contributions of one contributor to one cell are added first (a holding is as
        visible as a firm); without it every entry is a contributor of its own.
    weight
        Sampling weight.
    weighting
        What a weight means. ``expand``: an entry of weight w stands for w respondents with that value, so with
        w = 4 it alone fills the four largest. ``multiply``: the contribution is weight times value.
        ``own``: the total is weighted, but a respondent knows and is looked for by the own value.
    negative
        ``refuse`` them, or take the ``absolute`` values for order, contributions and total, as the rules are
        not defined otherwise: a loss can hide a gain in the published total, never in its absolute value.

    Examples
    --------
    >>> found = contributions(["a", "a", "a", "b", "b"], [60, 20, 20, 0, 0])
    >>> found.cells.tolist(), found.total.tolist(), found.top(2).tolist(), found.rest(2).tolist()
    (['a', 'b'], [100.0, 0.0], [80.0, 0.0], [20.0, 0.0])

    Of weights 4 and 7, the two largest are two of the first four:

    >>> contributions([1, 1], [100, 10], weight=[4, 7]).top(2).tolist()
    [200.0]
    """
    if weighting not in ("expand", "multiply", "own"):
        raise ParameterError("weighting must be 'expand', 'multiply' or 'own'.")
    ids, codes = np.unique(np.asarray(cell), return_inverse=True)
    values = _numbers(value, "value", codes)
    weights = np.ones(len(values)) if weight is None else _numbers(weight, "weight", codes)
    if (weights < 0).any():
        raise ParameterError(f"weight has {int((weights < 0).sum()):,} entries below zero. Mend the weights.")
    if weighting == "multiply":
        values, weights = values * weights, np.ones(len(values))
    if contributor is not None:
        if weight is not None and weighting != "multiply":
            raise ParameterError(
                f"weighting='{weighting}' cannot be combined with contributor: entries of one contributor may have "
                "different weights. Use weighting='multiply'."
            )
        codes, values = _added(codes, values, np.asarray(contributor))
        weights = np.ones(len(values))
    values = _signed(values, negative)
    order = np.lexsort((-values, codes))
    starts = np.searchsorted(codes[order], np.arange(len(ids) + 1))
    whole = weight is None or weighting != "expand"
    return Contributions(ids, starts.astype(np.int64), values[order], weights[order], whole)


def dominated(cells: Contributions, n: int, k: float) -> Flags:
    """Flag the cells whose n largest contributions make up more than the share k of the total.

    Examples
    --------
    >>> dominated(contributions([1, 1, 1], [60, 20, 20]), n=1, k=0.6).tolist()
    [False]
    """
    _whole(n)
    _fraction(k, "k", "0.75 for 75 percent")
    total = cells.total
    return cells.top(n) > k * total + _ROUNDING * np.abs(total)


def p_percent(cells: Contributions, p: float) -> Flags:
    """Flag the cells whose remainder, without the two largest, is less than the share p of the largest.

    Examples
    --------
    >>> p_percent(contributions([1, 1, 1, 2, 2], [900, 50, 50, 0, 0]), p=0.1).tolist()
    [True, False]
    """
    return prior_posterior(cells, p, 1.0)


def prior_posterior(cells: Contributions, p: float, q: float) -> Flags:
    """Flag the cells in which an estimate within q beforehand becomes one within p after publication.

    Examples
    --------
    >>> cells = contributions([1, 1, 1], [900, 100, 100])
    >>> prior_posterior(cells, p=0.1, q=1).tolist(), prior_posterior(cells, p=0.1, q=0.5).tolist()
    ([False], [True])
    """
    _fraction(p, "p", "0.1 for 10 percent")
    _fraction(q, "q", "0.5 for 50 percent")
    if q < p:
        raise ParameterError(
            f"q ({q:g}) is smaller than p ({p:g}): what everybody could estimate beforehand would already be closer "
            "than what the rule protects. Choose p below q."
        )
    largest = cells.top(1)
    return q * cells.rest(2) < p * largest - _ROUNDING * np.abs(largest)


def _added(codes: Integers, values: Floats, contributor: npt.NDArray[np.generic]) -> tuple[Integers, Floats]:
    if len(contributor) != len(values):
        raise ParameterError(f"contributor has {len(contributor):,} entries, value has {len(values):,}.")
    names, who = np.unique(contributor, return_inverse=True)
    pairs, of = np.unique(codes * len(names) + who, return_inverse=True)
    sums = np.bincount(of, weights=values, minlength=len(pairs)).astype(np.float64)
    return pairs // max(len(names), 1), sums


def _signed(values: Floats, negative: Negative) -> Floats:
    if negative == "absolute":
        return np.abs(values)
    if negative != "refuse":
        raise ParameterError("negative must be 'refuse' or 'absolute'.")
    below = int((values < 0).sum())
    if below:
        raise ParameterError(
            f"{below:,} contributions are negative, and the rules on shares of a total have no meaning then. "
            "Use negative='absolute' to judge the cells by absolute values."
        )
    return values


def _numbers(given: npt.ArrayLike, name: str, codes: Integers) -> Floats:
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != codes.shape:
        raise ParameterError(f"{name} has {numbers.size:,} entries, cell has {codes.size:,}.")
    gone = int((~np.isfinite(numbers)).sum())
    if gone:
        raise ParameterError(
            f"{name} has {gone:,} entries that are missing or not finite. Leave them out first."
        )
    return numbers


def _whole(n: int) -> None:
    if isinstance(n, bool) or n != int(n) or n < 1:
        raise ParameterError("n must be a whole number of contributors, 1 or more.")


def _fraction(share: float, name: str, example: str) -> None:
    if not 0 < share <= 1:
        raise ParameterError(f"{name} must be a share above 0 and at most 1: {example}.")
