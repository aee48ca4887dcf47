"""The law of one column given the cell of its parents: counts, plain or with discrete Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import dp
from discreet.arrays import Floats, Integers


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
    """

    cells: Integers | None
    starts: Integers | None
    children: Integers | None
    mass: Floats
    margin: Floats

    @classmethod
    def counted(cls, parents: Integers, child: Integers, size: int, weights: Floats | None) -> CellLaw:
        """Count the cells that occur."""
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
        at = np.minimum(np.searchsorted(self.cells, parents), len(self.cells) - 1)
        known = self.cells[at] == parents
        drawn = self.children[self._hit(self.starts[at], self.starts[at + 1], chance)]
        fallback = np.searchsorted(self.margin, chance * self.margin[-1], side="right").clip(0, size - 1)
        return np.where(known, drawn, fallback)

    def _hit(self, first: Integers, last: Integers, chance: Floats) -> Integers:
        below = np.where(first > 0, self.mass[np.maximum(first - 1, 0)], 0.0)
        aim = below + chance * (self.mass[last - 1] - below)
        return np.clip(np.searchsorted(self.mass, aim, side="right"), first, last - 1)

    def state(self) -> dict[str, Any]:
        """Return the law for a model file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> CellLaw:
        """Make the law again."""
        return cls(**{name: state[name] for name in cls.__dataclass_fields__})
