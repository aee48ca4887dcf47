"""Which number of its bin does a synthetic record get?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats, Integers

WithinBin = Literal["uniform", "empirical", "histogram2", "spikes+uniform"]
WAYS: tuple[WithinBin, ...] = ("uniform", "empirical", "histogram2", "spikes+uniform")

_FINER = 10
_SPIKE = 0.1


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

    def state(self) -> dict[str, Any]:
        """Return the law for a model file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> BinLaw:
        """Make the law again."""
        return cls(**{name: state[name] for name in cls.__dataclass_fields__})
