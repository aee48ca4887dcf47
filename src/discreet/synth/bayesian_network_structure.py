"""Which columns does each column depend on? Greedy choice by mutual information, with noise where asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.model_codec import stored

USEFULNESS = 4.0
_DENSE = 20_000_000
_GRID = 1024
"""Scores of the private choice are whole numbers of these parts of their sensitivity."""


@stored("network-node")
@dataclass(frozen=True)
class Node:
    """A column and those it is drawn from."""

    child: int
    parents: tuple[int, ...]


@dataclass(eq=False)
class Informations:
    """Mutual information between a column and sets of others, each computed once."""

    codes: Sequence[Integers]
    sizes: Sequence[int]
    weights: Floats | None = None
    _known: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    _occupied: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, child: int, parents: tuple[int, ...]) -> float:
        """Return I(child; parents) in nats."""
        key = (child, parents)
        if key not in self._known:
            joint = self._entropy((*parents, child))
            self._known[key] = max(self._entropy((child,)) + self._entropy(parents) - joint, 0.0)
        return self._known[key]

    def beyond_chance(self, child: int, parents: tuple[int, ...]) -> float:
        """Return I(child; parents) less what as many cells would show by chance (half their degrees of freedom, by n).

        Without it the parents with the most levels say most about everything: whoever is alone in a cell is predicted
        perfectly, by a copy.
        """
        known = self.of(child, parents)
        free = (self._occupied[(child,)] - 1) * (self._occupied[tuple(sorted(parents))] - 1)
        return known - free / (2 * max(len(self.codes[child]), 1))

    def _entropy(self, columns: tuple[int, ...]) -> float:
        key = (-1, tuple(sorted(columns)))
        if key not in self._known:
            counts = counts_of(packed(self.codes, self.sizes, columns)[0], self._cells(columns), self.weights)
            self._known[key] = entropy(counts)
            self._occupied[key[1]] = int(np.count_nonzero(counts))
        return self._known[key]

    def _cells(self, columns: tuple[int, ...]) -> int:
        return math.prod(self.sizes[column] for column in columns)


def packed(codes: Sequence[Integers], sizes: Sequence[int], columns: Sequence[int]) -> tuple[Integers, int]:
    """Number the cells of several columns: one code a record, and how many cells there are."""
    cells = math.prod(sizes[column] for column in columns)
    if cells >= 2**62:
        raise ParameterError(
            "The cross of these columns has more cells than can be numbered. Take fewer parents."
        )
    total = np.zeros(len(codes[0]) if codes else 0, dtype=np.int64)
    for column in columns:
        total = total * sizes[column] + codes[column]
    return total, cells


def counts_of(keys: Integers, cells: int, weights: Floats | None) -> Floats:
    """Count the records of the cells; empty cells may be left out."""
    if cells <= _DENSE:
        return np.bincount(keys, weights=weights, minlength=1).astype(np.float64)
    _, place = np.unique(keys, return_inverse=True)
    return np.bincount(place, weights=weights).astype(np.float64)


def entropy(counts: Floats) -> float:
    """Return the entropy of counts in nats.

    Examples
    --------
    >>> round(entropy(np.array([5.0, 5.0, 0.0])), 6)
    0.693147
    """
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def sensitivity(n: int, *, binary: bool) -> float:
    """How far one replaced record moves the mutual information of n (Zhang et al. 2017, lemma 4.1), in nats.

    ``binary`` holds where the column, or its only parent, has two values.

    Notes
    -----
    Two files are neighbors where one record is replaced, so n is the same in both and public. With counts c of cells,
    n I = n log n + sum c log c over the cells of both - sum over the column - sum over its parents. Let
    g(c) = c log c - (c - 1) log(c - 1), what a cell of c records gains by its last one: 0 at 1, growing, concave.
    A record in a cell of ``a``, whose column has ``r`` and whose parents ``s`` such records, holds
    g(r) + g(s) - g(a), which is at least g(max(r, s)) and so never negative, as a is at most r and s. Replacing it
    moves n I by the difference of two such terms, so by the larger of them at most. As r + s - a is at most n and g is
    concave, that is greatest at a = 1 and r = s = (n + 1) / 2, where it is 2 g((n + 1) / 2): the second formula. (Where
    the new record has the same value of the column, its r cancels, and what is left is at most g(n), which concavity
    puts below it.)

    With two values of the column, a record that changes its value leaves r and joins n + 1 - r, so that the difference
    is at most g(r) - g(n + 1 - r) + g(s) - g(a). As s - a is at most n - r, concavity bounds the last two by
    g(n + 1 - r), and g(r) is left, at most g(n): the first formula. The parents may be exchanged for the column.

    Examples
    --------
    >>> round(sensitivity(1000, binary=True), 5), round(sensitivity(1000, binary=False), 5)
    (0.00791, 0.01443)
    """
    if n < 2:
        return math.log(2)
    if binary:
        return math.log(n) / n + (n - 1) / n * math.log(n / (n - 1))
    return 2 / n * math.log((n + 1) / 2) + (n - 1) / n * math.log((n + 1) / (n - 1))


def automatic_parents(n: int, d: int, epsilon: float) -> int:
    """Choose how many parents a column may have so that its noisy counts still say something.

    Examples
    --------
    >>> automatic_parents(48842, 15, 1.0), automatic_parents(1000, 15, 0.1), automatic_parents(1000, 15, 0)
    (3, 1, 2)
    """
    most = max(d - 1, 1)
    if epsilon == 0:
        return min(2, most)
    for k in (3, 2):
        if k <= most and d > k and n * epsilon / ((d - k) * 2 ** (k + 3)) >= USEFULNESS:
            return k
    return 1


def greedy_network(
    informations: Informations,
    *,
    parents: int,
    records: int,
    epsilon: float,
    max_cells: int,
    rng: np.random.Generator,
    words: dp.Words,
) -> list[Node]:
    """Place the columns one after the other, each with the parents that say most about it.

    With ``epsilon`` the choice is by the exponential mechanism, a share of it for each of the d - 1 choices. Sets of
    parents whose table would be too large are no candidates; that depends on the domain alone. Without, fewer parents
    than ``parents`` are taken where more say nothing beyond chance, and those that say most come first.
    """
    d = len(informations.sizes)
    root = int(rng.integers(d))
    placed, network = [root], [Node(root, ())]
    while len(placed) < d:
        candidates = list(_candidates(informations.sizes, placed, parents, max_cells, fewer=not epsilon))
        if epsilon:
            scores = [informations.of(child, own) for child, own in candidates]
            limits = [_limit(informations.sizes, records, child, own) for child, own in candidates]
            # A record moves a score by its sensitivity, _GRID parts; cutting it to a whole number of parts, and the
            # rounding errors of the entropies (far below one part), move it by one more each.
            whole = [math.floor(_GRID * score / limit) for score, limit in zip(scores, limits, strict=True)]
            at = dp.chosen_privately(whole, dp.rational_epsilon(epsilon, d - 1), _GRID + 2, words)
        else:
            at = int(np.argmax([informations.beyond_chance(child, own) for child, own in candidates]))
        child, own = candidates[at]
        if not epsilon:
            own = tuple(sorted(own, key=lambda parent: -informations.beyond_chance(child, (parent,))))
        network.append(Node(child, own))
        placed.append(child)
    return network


def _candidates(
    sizes: Sequence[int], placed: Sequence[int], parents: int, max_cells: int, *, fewer: bool
) -> Iterator[tuple[int, tuple[int, ...]]]:
    free = [column for column in range(len(sizes)) if column not in placed]
    for child in free:
        found = False
        # Where all sets of the full number are too large, smaller ones are looked at, down to none.
        for count in range(min(parents, len(placed)), -1, -1):
            for own in combinations(sorted(placed), count):
                if sizes[child] * math.prod(sizes[p] for p in own) <= max_cells:
                    found = True
                    yield child, own
            if found and not fewer:
                break


def _limit(sizes: Sequence[int], records: int, child: int, parents: tuple[int, ...]) -> float:
    binary = sizes[child] == 2 or (len(parents) == 1 and sizes[parents[0]] == 2)
    return sensitivity(records, binary=binary)
