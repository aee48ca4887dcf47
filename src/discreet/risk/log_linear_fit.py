"""Poisson log-linear models of a table of class counts, and how wrong they make the risk of sample uniques.

The counts of the cells are ``f ~ Poisson(mu)`` with ``mu = pi * lambda``; what is not in the sample adds
``Poisson((1 - pi) * lambda)`` people to a cell. A model is the list of the margins it reproduces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.core.arrays import Floats
from discreet.numerics.proportional_fitting import AxisMargin, fit_margins

Term = tuple[int, ...]

#: How many interactions are tried at each step of the search: those whose margins the model misses most.
_SHORTLIST = 3
#: An estimated error within this many standard errors of zero is no sign of a wrong model.
_CLOSE = 1.0
_SIGNIFICANT = 1.96


@dataclass(frozen=True)
class Model:
    """Fitted cell means, the margins that were fitted, and the standardized errors of tau 1 and tau 2."""

    means: Floats
    terms: tuple[Term, ...]
    errors: tuple[float, float]
    standardized: tuple[float, float]

    @property
    def wrongness(self) -> float:
        """The size of the standardized error of tau 2, which the search makes small."""
        return abs(self.standardized[1])


def independence(counts: Floats) -> Floats:
    """Return the cell means if every key were independent of the others.

    Examples
    --------
    >>> independence(np.array([[1.0, 3.0], [1.0, 3.0]])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """
    total = counts.sum()
    means = np.full(counts.shape, total)
    for axis in range(counts.ndim):
        means = means * (AxisMargin.of(counts, (axis,)).wanted / total)
    return means


def fitted_means(
    counts: Floats, terms: Iterable[Term], start: Floats, *, tolerance: float = 0.05, rounds: int = 60
) -> Floats:
    """Fit the means of a model to the margins of its terms; ``start`` must itself be of the model.

    The means of a smaller model are such a start.
    """
    margins = [AxisMargin.of(counts, term) for term in terms]
    return fit_margins(start, margins, tolerance=tolerance, rounds=rounds).cells


def risk_errors(
    counts: Floats, means: Floats, fraction: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Estimate the error a model makes in tau 1 and tau 2, and the same in standard errors.

    The criterion of Skinner and Shlomo (2008): a second-order expansion of the difference between the risk at
    the fitted and at the true cell means, in which the unknown difference of the means is replaced by the residual
    ``f - mu`` and its square by ``(f - mu)**2 - f``. Positive: the model leaves out interactions and the risk is too
    high; negative: it has too many.
    """
    missed = 1 - fraction
    weight = means * np.exp(-means)
    residual = counts - means
    square = residual**2 - counts
    errors, standardized = [], []
    for slope, bend in _derivatives(missed * means / fraction):
        first = -weight * missed * slope / fraction
        second = weight * missed**2 * bend / (2 * fraction**2)
        error = float((first * residual + second * square).sum())
        # Under a Poisson count the two parts are uncorrelated, with variances mu and 2 mu squared.
        variance = float((first**2 * means + 2 * second**2 * means**2).sum())
        errors.append(error)
        standardized.append(error / np.sqrt(variance) if variance > 0 else 0.0)
    return (errors[0], errors[1]), (standardized[0], standardized[1])


def fitted_model(counts: Floats, terms: tuple[Term, ...], fraction: float) -> Model:
    """Fit the model that keeps these margins, starting from equal cells."""
    start = np.full(counts.shape, counts.sum() / counts.size)
    means = fitted_means(counts, terms, start, tolerance=1e-6, rounds=500)
    return (
        _model(counts, means, terms, fraction)
        if fraction < 1
        else Model(means, terms, (0.0, 0.0), (0.0, 0.0))
    )


def search(counts: Floats, fraction: float) -> Iterator[Model]:
    """Grow a model from independence by the interactions that leave the smallest error, pairs before triples.

    At each step the interactions whose margins the model misses most are fitted, and the one with the smallest
    standardized error is kept. Triples are tried only when all pairs leave a significant positive error. The
    search ends when the error is near zero or negative, or has stopped falling. Every model is handed over. The
    model of all keys together is never tried: it repeats the table and says nothing of the population.
    """
    axes = range(counts.ndim)
    means = independence(counts)
    model = _model(counts, means, tuple((axis,) for axis in axes), fraction)
    yield model
    for order in (order for order in (2, 3) if order < counts.ndim):
        left = list(combinations(axes, order))
        stalled = 0
        while left and stalled < 2 and model.standardized[1] > _CLOSE:
            shortlist = sorted(left, key=lambda term: -_missed(counts, model.means, term))[:_SHORTLIST]
            grown = [_with_term(counts, model, term, fraction) for term in shortlist]
            best = min(grown, key=lambda candidate: candidate.wrongness)
            stalled = 0 if best.wrongness < model.wrongness else stalled + 1
            left.remove(best.terms[-1])
            model = best
            yield model
        if model.standardized[1] <= _SIGNIFICANT:
            return


def stays_alone(more: Floats) -> Floats:
    """Chance that a sample unique is a population unique when ``more`` people are expected beside it."""
    return np.exp(-more)


def mean_reciprocal_poisson(class_size: Floats, more: Floats) -> Floats:
    """Return E[1 / (f + X)] for a Poisson X with mean ``more``: the risk of a record in a class of f.

    Examples
    --------
    >>> mean_reciprocal_poisson(np.array([1.0, 2.0]), np.array([0.0, 0.0])).tolist()
    [1.0, 0.5]
    """
    from scipy.special import hyp1f1

    total = class_size + more
    # Two terms of the expansion about the mean are exact to six digits where classes are large.
    far = (1 + more / total**2) / total
    near = total < 150
    exact = hyp1f1(1.0, np.where(near, class_size, 1.0) + 1, -np.where(near, more, 0.0))
    return np.where(near, exact / np.where(near, class_size, 1.0), far)


def _derivatives(more: Floats) -> Iterator[tuple[Floats, Floats]]:
    """First and second derivative of the two risks by the expected number of others."""
    gone = np.exp(-more)
    yield -gone, gone
    small = more < 0.02
    x = np.where(small, 1.0, more)
    slope = np.where(small, -1 / 2 + more / 3 - more**2 / 8, (gone * (1 + x) - 1) / x**2)
    bend = np.where(small, 1 / 3 - more / 4 + more**2 / 10, (2 - gone * (x**2 + 2 * x + 2)) / x**3)
    yield slope, bend


def _model(counts: Floats, means: Floats, terms: tuple[Term, ...], fraction: float) -> Model:
    errors, standardized = risk_errors(counts, means, fraction)
    return Model(means, terms, errors, standardized)


def _with_term(counts: Floats, model: Model, term: Term, fraction: float) -> Model:
    kept = tuple(old for old in model.terms if not set(old) < set(term))
    terms = (*kept, term)
    return _model(counts, fitted_means(counts, terms, model.means), terms, fraction)


def _missed(counts: Floats, means: Floats, term: Term) -> float:
    """How badly the means miss a margin: its deviance less its degrees of freedom."""
    seen, modelled = AxisMargin.of(counts, term).wanted, AxisMargin.of(means, term).wanted
    there = seen > 0
    freedom = float(np.prod([counts.shape[axis] - 1 for axis in term]))
    return float(2 * (seen[there] * np.log(seen[there] / modelled[there])).sum()) - freedom
