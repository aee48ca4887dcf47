"""A Bayesian network that was fitted, from which synthetic files are drawn.

Each column has a law given the cell of its parents, and a law of numbers within their bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.synth.bayesian_network_structure import Node, packed
from discreet.synth.binned_columns import Attribute
from discreet.synth.model_codec import stored
from discreet.synth.synthesizer import Fitted, Stream


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
            above = packed(codes, sizes, node.parents)[0] if node.parents else np.zeros(n, dtype=np.int64)
            law = self.laws[place - self.joint]
            codes[node.child] = law.draw(above, stream("column", self.attributes[node.child].name))
        columns = [self._decoded(a, own, stream) for a, own in zip(self.attributes, codes, strict=True)]
        columns += [_regenerated(name, dtype, n) for name, dtype in self.keys.items()]
        return pl.DataFrame(columns)

    def _decoded(self, attribute: Attribute, codes: Integers, stream: Stream) -> pl.Series:
        if attribute.name not in self.within:
            return attribute.decode(codes, None)
        bins = np.minimum(codes, attribute.ordinary - 1)
        numbers = self.within[attribute.name].draw(bins, stream("within", attribute.name))
        return attribute.decode(codes, numbers)


def _regenerated(name: str, dtype: pl.DataType, n: int) -> pl.Series:
    """Number the records anew in place of a key."""
    numbers = pl.Series(name, np.arange(1, n + 1, dtype=np.int64))
    return numbers.cast(dtype)


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
            return np.asarray(self._hit(first, last, chance) - first)
        if not len(self.cells):
            assert self.fewer is not None
            return self.fewer.draw(parents // self.last, rng)
        at = np.minimum(np.searchsorted(self.cells, parents), len(self.cells) - 1)
        known = self.cells[at] == parents
        drawn = self.children[self._hit(self.starts[at], self.starts[at + 1], chance)]
        if self.fewer is not None:
            drawn[~known] = self.fewer.draw(parents[~known] // self.last, rng)
            return drawn
        fallback = np.searchsorted(self.margin, chance * self.margin[-1], side="right").clip(0, size - 1)
        return np.where(known, drawn, fallback)

    def _hit(self, first: Integers, last: Integers, chance: Floats) -> Integers:
        below = np.where(first > 0, self.mass[np.maximum(first - 1, 0)], 0.0)
        aim = below + chance * (self.mass[last - 1] - below)
        return np.clip(np.searchsorted(self.mass, aim, side="right"), first, last - 1)


# Which number of its bin does a synthetic record get?


WithinBin = Literal["uniform", "empirical", "histogram2", "spikes+uniform"]
WAYS: tuple[WithinBin, ...] = ("uniform", "empirical", "histogram2", "spikes+uniform")

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
