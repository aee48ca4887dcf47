"""What would a recipe cost, before it is tried? Column losses are known; what must be hidden is estimated from classes.

The codings of the columns are numbers in memory, so that the classes of a recipe are counted in milliseconds. Records
in classes that are too small, or that break a model, lose about so many cells each; how many is learned from the
recipes that were tried. What looking a person up teaches about their sensitive values is counted as well, and a
recipe pays for what exceeds the limit of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.stats import binom

from discreet.core.arrays import Floats, Integers
from discreet.engine.comparable import distinct_values
from discreet.protect import AlphaK, LDiversity, TCloseness
from discreet.workflow.recipes import Frame, Recipe
from discreet.workflow.usual_treatments import CUT, GROUP

_CELLS_FOR_COMPANY = 1.3
_CELLS_FOR_MODELS = 3.0  # where larger groups are to mend it; hidden records lose all their keys
_BINS = 24
_LEVELS = 300
_ENOUGH = 0.1
_MOST_CLASSES = 1_000
_PRICE = 3.0  # of learning more than is allowed, per unit: more than any column can cost
_MARGIN = 0.92  # the part of the limit on learning that is aimed at, for suppression shifts it a little


@dataclass(frozen=True)
class Exposure:
    """What stands out in the classes of a recipe: records in small ones, in ones that break a model, and learning.

    ``moved`` is the loss through sensitive values that swaps give to others.
    """

    small: int
    broken: float
    learned: float
    moved: float = 0.0


@dataclass
class Forecast:
    """Predicts the loss of recipes.

    Attributes
    ----------
    frame
        The ladders and aims.
    sensitive
        The sensitive columns.
    weights
        The weight of each compared column in the loss; they add up to 1.
    cells
        How many cells a record without company loses, as learned so far.
    """

    frame: Frame
    sensitive: Mapping[str, pl.Series]
    weights: Mapping[str, float]
    cells: float = _CELLS_FOR_COMPANY
    asked: int = 0
    _outcomes: dict[tuple[str, int], _Outcome] = field(default_factory=dict)
    _known: dict[tuple[tuple[tuple[str, int], ...], int, int], Exposure] = field(default_factory=dict)

    def of_columns(self, recipe: Recipe) -> float:
        """Give what the codings alone cost: a lower bound of the loss."""
        return sum(
            self.weights.get(column, 0.0) * self.frame.ladders[column].rungs[place].loss
            for column, place in recipe.rungs
        )

    def loss(self, recipe: Recipe) -> float:
        """Predict the loss of a recipe, with what it would have to pay for learning too much."""
        found = self.exposure(recipe)
        for_models = len(self.frame.keys) if recipe.hide else _CELLS_FOR_MODELS
        cells = (found.small * self.cells + found.broken * for_models) / max(1, self.records)
        keys = [self.weights.get(key, 0.0) for key in self.frame.keys]
        excess = max(0.0, found.learned - _MARGIN * self.frame.aims.learned)
        return self.of_columns(recipe) + cells * float(np.mean(keys or [0.0])) + found.moved + _PRICE * excess

    def correct(self, ratio: float) -> None:
        """Take over how much more, or less, was lost by hiding than was forecast."""
        self.cells = min(6.0, max(0.5, self.cells * ratio))

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.frame.ladders[self.frame.keys[0]].rungs[0].codes) if self.frame.keys else 0

    def exposure(self, recipe: Recipe) -> Exposure:
        """Count the records in classes that are too small or break a model, and what is learned on average."""
        at = (recipe.rungs, recipe.k, recipe.swap)
        if at not in self._known:
            self.asked += 1
            owners, sizes = self._classes(recipe)
            small = sizes < recipe.k
            hidden = int(sizes[small].sum())
            swaps = self.frame.swaps[recipe.swap]
            learned, moved = 0.0, 0.0
            # Records of small classes will join others: the larger classes say what those will be like. Where hardly
            # any class is large, some of the small ones must do.
            seen = ~small
            if sizes[seen].sum() < _ENOUGH * self.records:
                seen[:: 1 + len(sizes) // _MOST_CLASSES] = True
            rows = np.flatnonzero(seen[owners])
            owners, sizes, small = (np.cumsum(seen) - 1)[owners[rows]], sizes[seen], small[seen]
            sound = np.ones(len(sizes))
            for name in self.sensitive:
                outcome = self._outcome(recipe, name)
                true = outcome.shares(owners, sizes, rows)
                mixed = self._mixed(recipe, name)
                shares = (1 - mixed) * true + mixed * outcome.overall
                aimed = [model for model in swaps if model.columns == (name,)]
                if aimed:
                    spread, share = outcome.swapped(shares, sizes, aimed)
                    moved += self.weights.get(name, 0.0) * share
                    learned = max(learned, outcome.learned(spread, sizes, against=true) * (1 - mixed))
                    continue
                learned = max(learned, outcome.learned(true, sizes) * (1 - mixed))
                for model in self.frame.aims.models:
                    if model.columns == (name,):
                        sound *= 1 - outcome.chance_to_break(model, shares, sizes, drawn=mixed > 0)
            broken = (1 - sound[~small]) @ sizes[~small]
            self._known[at] = Exposure(hidden, float(broken), learned, moved)
        return self._known[at]

    def _outcome(self, recipe: Recipe, column: str) -> _Outcome:
        """Give a sensitive column as the recipe codes it."""
        place = recipe.rung(column)
        if (column, place) not in self._outcomes:
            rung = None if column not in self.frame.ladders else self.frame.ladders[column].rungs[place]
            coarser = rung is not None and rung.kind in (CUT, GROUP)
            values = pl.Series(rung.codes).cast(pl.String) if coarser and rung else self.sensitive[column]
            self._outcomes[column, place] = _Outcome.of(values)
        return self._outcomes[column, place]

    def _mixed(self, recipe: Recipe, column: str) -> float:
        ladder = self.frame.ladders.get(column)
        return 0.0 if ladder is None else ladder.rungs[recipe.rung(column)].mixed

    def _classes(self, recipe: Recipe) -> tuple[Integers, Integers]:
        chosen = dict(recipe.rungs)
        packed, room = np.zeros(self.records, dtype=np.int64), 1
        for key in self.frame.keys:
            rung = self.frame.ladders[key].rungs[chosen.get(key, 0)]
            width = rung.labels + 1
            if room > 2**62 // width:
                _, packed = np.unique(packed, return_inverse=True)
                room = int(packed.max(initial=0)) + 1
            packed = packed * width + rung.codes
            room *= width
        _, owners, sizes = np.unique(packed, return_inverse=True, return_counts=True)
        return owners.astype(np.int64), sizes.astype(np.int64)


@dataclass(frozen=True)
class _Outcome:
    """A sensitive column with few values: numbers in bins, rare categories as one."""

    codes: Integers
    width: int
    ordered: bool
    overall: Floats

    @classmethod
    def of(cls, values: pl.Series) -> _Outcome:
        codes, ordered = _binned(values)
        width = int(codes.max(initial=0)) + 1
        overall = np.bincount(codes, minlength=width) / max(1, len(codes))
        return cls(codes, width, ordered, overall)

    def shares(self, owners: Integers, sizes: Integers, rows: Integers) -> Floats:
        """Give the share of each value in each class, from the rows of these classes."""
        counts = np.bincount(owners * self.width + self.codes[rows], minlength=len(sizes) * self.width)
        shares: Floats = counts.reshape(len(sizes), self.width) / sizes[:, None]
        return shares

    def learned(self, shares: Floats, sizes: Integers, *, against: Floats | None = None) -> float:
        """Say by how much a guess from the class is right more often than a blind one.

        ``against`` are the true shares, where the ones shown are others.
        """
        true = shares if against is None else against
        hits = float(((shares * true).sum(axis=1) * sizes).sum() / sizes.sum())
        return hits - float((self.overall**2).sum())

    def swapped(self, shares: Floats, sizes: Integers, models: Sequence[object]) -> tuple[Floats, float]:
        """Give the shares after swaps between classes, and the share of all values that moves.

        What a class has too much of is dealt out again as the file has it; other models are taken to need one swap.
        """
        most = np.maximum(sizes - 1, 1) / sizes
        moved = 0.0
        for model in models:
            if isinstance(model, AlphaK):
                bound = np.floor(model.alpha * sizes + 1e-9) / sizes
                excess = np.where(self.overall <= model.common, (shares - bound[:, None]).clip(0), 0.0)
            else:
                excess = (shares - most[:, None]).clip(0)
            shares = shares - excess + excess.sum(axis=1, keepdims=True) * self.overall
            moved += 2 * float((excess.sum(axis=1) * sizes).sum() / sizes.sum())
        return shares, min(1.0, moved)

    def chance_to_break(self, model: object, shares: Floats, sizes: Integers, *, drawn: bool) -> Floats:
        """Give the chance that each class breaks a model, as far as bins can tell.

        Where values are exchanged at random the shares are expected ones, and small classes miss them by chance.
        """
        if isinstance(model, LDiversity):
            if drawn:
                return np.asarray((shares ** sizes[:, None]).sum(axis=1).clip(0, 1))
            return np.asarray((shares > 0).sum(axis=1) < model.l, dtype=np.float64)
        if isinstance(model, AlphaK):
            protected = shares[:, self.overall <= model.common]
            most = protected.max(axis=1, initial=0.0)
            if drawn:
                return np.asarray(binom.sf(np.floor(model.alpha * sizes), sizes, most))
            return np.asarray(most > model.alpha, dtype=np.float64)
        if isinstance(model, TCloseness):
            apart = shares - self.overall
            if self.ordered:
                distance = np.abs(np.cumsum(apart, axis=1)).sum(axis=1) / max(1, self.width - 1)
            else:
                distance = np.maximum(apart, 0.0).sum(axis=1)
                if self.width == _LEVELS:
                    # The last one stands for all rarer values, of which a class has others than the file.
                    distance += shares[:, -1] - np.maximum(apart[:, -1], 0.0)
            return np.asarray(distance > model.t, dtype=np.float64)
        return np.zeros(len(shares))


def _binned(values: pl.Series) -> tuple[Integers, bool]:
    distinct, codes = distinct_values(values)
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        numbers = values.to_physical().cast(pl.Float64).fill_nan(None)
        known = numbers.drop_nulls().to_numpy()
        if len(distinct) > _BINS and len(known):
            edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS, method="lower"))
            bins = np.searchsorted(edges, numbers.fill_null(known[-1]).to_numpy(), "left")
        else:
            bins = numbers.rank("dense").fill_null(1).to_numpy().astype(np.int64) - 1
        gaps = numbers.is_null().to_numpy()
        return np.where(gaps, int(bins.max(initial=0)) + 1, bins).astype(np.int64), True
    counts = np.bincount(codes)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, _LEVELS - 1)[codes], False
