"""A Bayesian network that was fitted, from which synthetic files are drawn, and how its structure is chosen.

Each column has a law given the cell of its parents, and a law of numbers within their bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.dp.entropy import Stream
from discreet.numerics.alias_tables import places_within
from discreet.numerics.codes import CodedColumns
from discreet.numerics.mutual_information import count_entropy
from discreet.synth.binned_columns import Attribute
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted


@stored("fitted-bayesian-network")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedBayesianNetwork(Fitted):
    """A network that was fitted.

    Attributes
    ----------
    edges
        ``{column: parents}`` in the order in which columns are drawn.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    attributes: Sequence[Attribute]
    network: Sequence[Node]
    laws: Sequence[CellLaw]
    within: Mapping[str, BinLaw]
    keys: Mapping[str, pl.DataType]
    joint: int
    left_out: Mapping[str, str]
    combining_rule: str = "simple"

    @property
    def edges(self) -> dict[str, tuple[str, ...]]:
        """The parents of every column, in the order in which columns are drawn."""
        names = [attribute.name for attribute in self.attributes]
        return {names[node.child]: tuple(names[parent] for parent in node.parents) for node in self.network}

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw the columns in the order of the network."""
        sizes = [attribute.size for attribute in self.attributes]
        codes: list[Integers] = [np.zeros(n, dtype=np.int64) for _ in sizes]
        start = 0
        if self.joint:
            together = [node.child for node in self.network[: self.joint + 1]]
            cell = self.laws[0].draw(np.zeros(n, dtype=np.int64), stream("joint"))
            for column in reversed(together):
                codes[column] = cell % sizes[column]
                cell = cell // sizes[column]
            start = self.joint + 1
        for place in range(start, len(self.network)):
            node = self.network[place]
            parents = CodedColumns(codes, sizes).project(node.parents)
            above = parents.crossed() if node.parents else np.zeros(n, dtype=np.int64)
            law = self.laws[place - self.joint]
            codes[node.child] = law.draw(above, stream("column", self.attributes[node.child].name))
        columns = [self._decoded(a, own, stream) for a, own in zip(self.attributes, codes, strict=True)]
        columns += [pl.Series(name, np.arange(1, n + 1)).cast(dtype) for name, dtype in self.keys.items()]
        return pl.DataFrame(columns)

    def _decoded(self, attribute: Attribute, codes: Integers, stream: Stream) -> pl.Series:
        if attribute.name not in self.within:
            return attribute.decode(codes, None)
        bins = np.minimum(codes, attribute.ordinary - 1)
        numbers = self.within[attribute.name].draw(bins, stream("within", attribute.name))
        return attribute.decode(codes, numbers)


# The law of one column given the cell of its parents: counts, plain or with discrete Laplace noise.
@stored("cell-law")
@dataclass(frozen=True, eq=False)
class CellLaw:
    """Counts of the child within every cell of the parents.

    Attributes
    ----------
    cells
        Cells of the parents that have records, in order; None where all of them do.
    starts
        Where each cell begins.
    children
        Codes of the child, cell after cell; None where every cell has all of them.
    mass
        Running counts.
    margin
        Running counts of the child alone, for a cell that no record has.
    fewer, last
        The law given all parents but the last, which has so many codes: for cells that are not among ``cells``.
    """

    cells: Integers | None
    starts: Integers | None
    children: Integers | None
    mass: Floats
    margin: Floats
    fewer: CellLaw | None = None
    last: int = 1

    @classmethod
    def counted(
        cls,
        parents: Integers,
        child: Integers,
        size: int,
        weights: Floats | None,
        *,
        sizes: Sequence[int] = (),
        least: int = 1,
    ) -> CellLaw:
        """Count the cells that occur.

        A cell that fewer than ``least`` records share would hand their values on as they stand: it is left to the law
        given one parent less. ``sizes`` are the numbers of codes of the parents, in the order they were packed in.
        """
        if len(sizes) and least > 1:
            _, cell, company = np.unique(parents, return_inverse=True, return_counts=True)
            shared = company[cell] >= least
            if not shared.all():
                above = cls.counted(parents // sizes[-1], child, size, weights, sizes=sizes[:-1], least=least)
                if not shared.any():
                    return above.reached_by(sizes[-1])
                own = None if weights is None else weights[shared]
                return replace(
                    cls.counted(parents[shared], child[shared], size, own), fewer=above, last=sizes[-1]
                )
        keys, place = np.unique(parents * size + child, return_inverse=True)
        counts = np.bincount(place, weights=weights, minlength=len(keys)).astype(np.float64)
        cells, starts = np.unique(keys // size, return_index=True)
        margin = np.bincount(child, weights=weights, minlength=size)
        return cls(
            cells,
            np.append(starts, len(keys)).astype(np.int64),
            keys % size,
            np.cumsum(counts),
            np.cumsum(margin, dtype=np.float64),
        )

    def reached_by(self, size: int) -> CellLaw:
        """Return this law for cells that are packed with one parent more, which it leaves aside."""
        none = np.empty(0, dtype=np.int64)
        return CellLaw(none, np.zeros(1, dtype=np.int64), none, np.empty(0), self.margin, self, size)

    @classmethod
    def noisy(
        cls, parents: Integers, child: Integers, shape: tuple[int, int], epsilon: Fraction, words: dp.Words
    ) -> CellLaw:
        """Count all cells, add noise to each, and take what is left above zero; a cell left empty is uniform."""
        cells, size = shape
        counts = np.bincount(parents * size + child, minlength=cells * size)
        noisy = counts + dp.discrete_laplace(epsilon, len(counts), words)
        table = np.clip(noisy, 0, None).astype(np.float64).reshape(cells, size)
        table[table.sum(axis=1) == 0] = 1.0
        return cls(None, None, None, np.cumsum(table), np.cumsum(table.sum(axis=0)))

    def draw(self, parents: Integers, rng: np.random.Generator) -> Integers:
        """Draw a code for every record, given the cell of its parents."""
        size = len(self.margin)
        chance = rng.random(len(parents))
        if self.cells is None or self.starts is None or self.children is None:
            first, last = parents * size, (parents + 1) * size
            return places_within(self.mass, first, last, chance) - first
        if not len(self.cells):
            assert self.fewer is not None
            return self.fewer.draw(parents // self.last, rng)
        at = np.minimum(np.searchsorted(self.cells, parents), len(self.cells) - 1)
        known = self.cells[at] == parents
        drawn = self.children[places_within(self.mass, self.starts[at], self.starts[at + 1], chance)]
        if self.fewer is not None:
            drawn[~known] = self.fewer.draw(parents[~known] // self.last, rng)
            return drawn
        fallback = np.searchsorted(self.margin, chance * self.margin[-1], side="right").clip(0, size - 1)
        return np.where(known, drawn, fallback)


# Which number of its bin does a synthetic record get?
WithinBin = Literal["uniform", "empirical", "histogram2", "spikes+uniform"]

_FINER = 10
_SPIKE = 0.1


@stored("bin-law")
@dataclass(frozen=True, eq=False)
class BinLaw:
    """The law of a number within its bins.

    Attributes
    ----------
    edges
        Borders of the bins.
    values, mass
        Values that are drawn as they are, bin after bin, and their running masses; empty where there are none.
    starts
        Where the values of each bin begin.
    smooth
        Mass of each bin that is spread evenly over it.
    """

    edges: Floats
    values: Floats
    mass: Floats
    starts: Integers
    smooth: Floats
    finer: Floats | None = None
    """Masses of the ten parts of each bin, where there are any."""

    @classmethod
    def fit(
        cls,
        numbers: Floats,
        codes: Integers,
        edges: Floats,
        *,
        way: WithinBin,
        epsilon: Fraction | None = None,
        weights: Floats | None = None,
        words: dp.Words,
    ) -> BinLaw:
        """Learn the law; ``epsilon`` is that of the discrete Laplace noise on the finer histogram."""
        bins = len(edges) - 1
        none = np.empty(0)
        if way == "uniform":
            return cls(edges, none, none, np.zeros(bins + 1, dtype=np.int64), np.ones(bins))
        own = np.ones(len(numbers)) if weights is None else weights
        if way == "histogram2":
            width = np.diff(edges)[codes]
            part = np.where(width > 0, (numbers - edges[codes]) / np.where(width > 0, width, 1.0), 0.0)
            fine = np.clip((part * _FINER).astype(np.int64), 0, _FINER - 1)
            counts: Floats = np.bincount(codes * _FINER + fine, weights=own, minlength=bins * _FINER).astype(
                float
            )
            if epsilon is not None:
                counts = counts + dp.discrete_laplace(epsilon, len(counts), words)
            table = np.clip(counts, 0.0, None).reshape(bins, _FINER)
            empty = table.sum(axis=1) == 0
            table[empty] = 1.0
            return cls(edges, none, none, np.zeros(bins + 1, dtype=np.int64), np.zeros(bins), table)
        values, place = np.unique(numbers, return_inverse=True)
        mass = np.bincount(place, weights=own, minlength=len(values))
        at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
        smooth = np.zeros(bins)
        if way == "spikes+uniform":
            total = np.bincount(at, weights=mass, minlength=bins)
            spike = mass >= _SPIKE * total[at]
            smooth = np.bincount(at[~spike], weights=mass[~spike], minlength=bins).astype(np.float64)
            values, mass, at = values[spike], mass[spike], at[spike]
        starts = np.searchsorted(at, np.arange(bins + 1))
        return cls(edges, values, np.cumsum(mass), starts.astype(np.int64), smooth)

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Draw one number for every code of a bin."""
        low, high = self.edges[codes], self.edges[codes + 1]
        if self.finer is not None:
            running = np.cumsum(self.finer, axis=1)[codes]
            aim = rng.random(len(codes)) * running[:, -1]
            fine = (running <= aim[:, None]).sum(axis=1).clip(0, _FINER - 1)
            return np.asarray(low + (fine + rng.random(len(codes))) / _FINER * (high - low))
        even = low + rng.random(len(codes)) * (high - low)
        if not len(self.values):
            return np.asarray(even)
        first, last = self.starts[codes], self.starts[codes + 1]
        below = np.where(first > 0, self.mass[np.maximum(first - 1, 0)], 0.0)
        own = np.where(last > first, self.mass[np.maximum(last - 1, 0)] - below, 0.0)
        aim = rng.random(len(codes)) * (own + self.smooth[codes])
        at = np.searchsorted(self.mass, below + aim, side="right")
        observed = self.values[np.clip(at, first, np.maximum(last - 1, first)).clip(0, len(self.values) - 1)]
        return np.where((aim < own) & (last > first), observed, even)


# Which columns does each column depend on? Greedy choice by mutual information, with noise where asked for.
USEFULNESS = 4.0
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
            counts = CodedColumns(self.codes, self.sizes).project(columns).occupied(self.weights)
            self._known[key], self._occupied[key[1]] = count_entropy(counts), len(counts)
        return self._known[key]


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
