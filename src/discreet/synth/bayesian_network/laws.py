"""The law of one column given the cell of its parents: counts, plain or with discrete Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats, Integers


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

    def state(self) -> dict[str, Any]:
        """Return the law for a model file."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"fewer": None if self.fewer is None else self.fewer.state()}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> CellLaw:
        """Make the law again."""
        known = {name: state[name] for name in cls.__dataclass_fields__ if name in state}
        if known.get("fewer") is not None:
            known["fewer"] = cls.restored(known["fewer"])
        return cls(**known)
