"""What would a recipe cost, before it is tried? Column losses are known; what must be hidden is estimated from classes.

The codings of the columns are numbers in memory, so that the classes of a recipe are counted in milliseconds. Records
in classes that are too small, or that break a model, lose about so many cells each; how many is learned from the
recipes that were tried. What looking a person up teaches about their sensitive values is counted as well, and a
recipe pays for what exceeds the limit of the policy, for people who are found by a date or a place and two more
things, and for associations that a coding takes away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.engine.comparable import distinct_values
from discreet.protect import AlphaK, LDiversity, TCloseness
from discreet.workflow.associations_kept import WORTH_KEEPING, Associations, price_of_strain
from discreet.workflow.recipes import Frame, Recipe
from discreet.workflow.usual_treatments import CUT, GROUP

_CELLS_FOR_MODELS = 3.0  # where larger groups are to mend it; hidden records lose all their keys
_BINS = 12
_LEVELS = 300
_ALL = slice(None)
_NEARLY_ALL, _ERASED = 0.9, 0.05  # a key that nearly all records give up had better be coarser
_COMMONEST = 3
_PRICE = 3.0  # of learning more than is allowed, per unit: more than any column can cost
_SPARSE = 16  # so many numbers a record are counted in one array, which is faster than to sort them
_BLANK = (
    2.0  # how much more a suppressed cell costs than it loses: who is rare goes missing, and not at random
)
_WRONG = 4.0  # how much more a value of somebody else costs than one that is missing
_MARGIN = 0.92  # the part of the limit on learning that is aimed at, for suppression shifts it a little


@dataclass(frozen=True)
class Exposure:
    """What stands out in the classes of a recipe: records in ones that break a model, and what they teach.

    ``moved`` is the loss through sensitive values that swaps give to others, ``found`` the share of the people who are
    found by a date or a place and two more things, ``strain`` the part of associations that swaps take away, and
    ``cells`` the loss through cells that records of small classes give up.
    """

    broken: float
    learned: float
    moved: float = 0.0
    found: float = 0.0
    strain: float = 0.0
    cells: float = 0.0


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
    associations
        Those of the file that are worth keeping.
    cells
        How many more cells records of small classes lose than was reckoned, as learned so far.
    """

    frame: Frame
    sensitive: Mapping[str, pl.Series]
    weights: Mapping[str, float]
    associations: Associations
    cells: float = 1.0
    asked: int = 0
    _outcomes: dict[tuple[str, int], _Outcome] = field(default_factory=dict)
    _known: dict[tuple[tuple[tuple[str, int], ...], int, int], Exposure] = field(default_factory=dict)
    _pairs: dict[tuple[tuple[str, str], tuple[int, int]], float] = field(default_factory=dict)
    _entropies: dict[tuple[str, int], float] = field(default_factory=dict)
    _alone: dict[tuple[tuple[str, int], ...], Flags] = field(default_factory=dict)

    def of_columns(self, recipe: Recipe) -> float:
        """Give what the codings alone cost: a lower bound of the loss."""
        return sum(
            self.weights.get(name, 0.0) * self.frame.ladders[name].rungs[place].loss
            for column, place in recipe.rungs
            for name in (column, *self.frame.followers(column))
        )

    def strain(self, recipe: Recipe) -> float:
        """Predict which part is gone of the association that suffers most, by codings or by swaps."""
        rungs = {column: self.frame.ladders[column].rungs[place] for column, place in recipe.rungs}
        pairs = [pair for pair in self.associations.strong if pair[0] in rungs and pair[1] in rungs]
        for pair in pairs:
            at = (pair, (recipe.rung(pair[0]), recipe.rung(pair[1])))
            if at not in self._pairs:
                codes = (rungs[pair[0]].codes, rungs[pair[1]].codes)
                self._pairs[at] = self.associations.strain_of_both(pair, codes)
        together = [self._pairs[pair, (recipe.rung(pair[0]), recipe.rung(pair[1]))] for pair in pairs]
        return max([self.exposure(recipe).strain, *(rung.strain for rung in rungs.values()), *together])

    def loss(self, recipe: Recipe) -> float:
        """Predict the loss of a recipe, with what it would have to pay for learning and finding too much."""
        found, aims = self.exposure(recipe), self.frame.aims
        excess = max(0.0, found.learned - _MARGIN * aims.learned) + max(
            0.0, found.found - _MARGIN * aims.found
        )
        paid = _WRONG * found.moved + _PRICE * excess
        strained = price_of_strain(self.strain(recipe))
        return self.of_columns(recipe) + strained + _BLANK * self.hidden(recipe) + paid

    def hidden(self, recipe: Recipe) -> float:
        """Predict the loss through suppressed cells."""
        found = self.exposure(recipe)
        for_models = len(self.frame.keys) if recipe.hide else _CELLS_FOR_MODELS
        keys = [self.weights.get(key, 0.0) for key in self.frame.keys]
        broken = found.broken * for_models / max(1, self.records) * float(np.mean(keys or [0.0]))
        return found.cells * self.cells * (recipe.k > 1) + broken

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
            owners, sizes, cells = self._suppressed(recipe)
            swaps = self.frame.swaps[recipe.swap]
            learned, moved, strain = 0.0, 0.0, 0.0
            sound = np.ones(len(sizes))
            labels = [self.frame.ladders[key].rungs[recipe.rung(key)].codes for key in self.frame.keys]
            for name in self.sensitive:
                outcome = self._outcome(recipe, name)
                true = outcome.shares(owners, sizes)
                aimed = [model for model in swaps if model.columns == (name,)]
                if aimed:
                    spread, share = outcome.swapped(true, sizes, aimed)
                    moved += self.weights.get(name, 0.0) * share
                    strain = max(strain, outcome.strained((spread - true)[owners], labels))
                    learned = max(learned, outcome.learned(spread, sizes, against=true))
                    continue
                learned = max(learned, outcome.learned(true, sizes))
                for model in self.frame.aims.models:
                    if model.columns == (name,):
                        sound *= 1 - outcome.chance_to_break(model, true, sizes)
            broken = (1 - sound) @ sizes
            self._known[at] = Exposure(float(broken), learned, moved, self.found(recipe), strain, cells)
        return self._known[at]

    def _suppressed(self, recipe: Recipe) -> tuple[Integers, Integers, float]:
        """Let records of small classes give up one key after the other, the one that tells most first.

        Gives the classes that this makes, how many records each has, and the loss through the cells.
        """
        keys = sorted(self.frame.keys, key=lambda key: -self._entropy(key, recipe.rung(key)))
        owners, sizes = self._numbered([(key, recipe.rung(key)) for key in keys])
        left, lost, offset = np.flatnonzero((sizes < recipe.k)[owners]), 0.0, len(sizes)
        while len(left) and keys:
            gone = keys.pop(0)
            share = len(left) / self.records
            lost += self.weights.get(gone, 0.0) * share + (_ERASED if share > _NEARLY_ALL else 0.0)
            own, many = self._numbered([(key, recipe.rung(key)) for key in keys], left)
            owners[left] = own + offset
            offset += len(many)
            left = left[many[own] < recipe.k]
        there, owners = np.unique(owners, return_inverse=True)
        return owners, np.bincount(owners, minlength=len(there)), lost

    def _entropy(self, key: str, place: int) -> float:
        if (key, place) not in self._entropies:
            self._entropies[key, place] = self.frame.ladders[key].rungs[place].entropy
        return self._entropies[key, place]

    def found(self, recipe: Recipe) -> float:
        """Say which share of the records is alone with a date or a place and up to two more things that are known."""
        met = np.zeros(self.records, dtype=np.bool_)
        names = [*self.frame.known, *self.frame.keys]
        for place, name in enumerate(self.frame.known):
            for others in combinations(names[place + 1 :], min(2, len(names) - place - 1)):
                chosen = tuple((one, recipe.rung(one)) for one in (name, *others))
                if chosen not in self._alone:
                    owners, sizes = self._numbered(chosen)
                    self._alone[chosen] = sizes[owners] == 1
                met |= self._alone[chosen]
        return float(met.mean()) if len(met) else 0.0

    def _outcome(self, recipe: Recipe, column: str) -> _Outcome:
        """Give a sensitive column as the recipe codes it."""
        place = recipe.rung(column)
        if (column, place) not in self._outcomes:
            rung = None if column not in self.frame.ladders else self.frame.ladders[column].rungs[place]
            coarser = rung is not None and rung.kind in (CUT, GROUP)
            values = pl.Series(rung.codes).cast(pl.String) if coarser and rung else self.sensitive[column]
            self._outcomes[column, place] = _Outcome.of(values)
        return self._outcomes[column, place]

    def _numbered(
        self, chosen: Sequence[tuple[str, int]], rows: Integers | slice = _ALL
    ) -> tuple[Integers, Integers]:
        """Number the classes of some columns, and count the records of each."""
        many = self.records if isinstance(rows, slice) else len(rows)
        packed, room = np.zeros(many, dtype=np.int64), 1
        for column, place in chosen:
            rung = self.frame.ladders[column].rungs[place]
            width = rung.labels + 1
            if room > 2**62 // width:
                _, packed = np.unique(packed, return_inverse=True)
                room = int(packed.max(initial=0)) + 1
            packed = packed * width + rung.codes[rows]
            room *= width
        if room <= _SPARSE * max(1, many):
            counts = np.bincount(packed, minlength=room)
            there = counts > 0
            return (np.cumsum(there) - 1)[packed], counts[there]
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

    def shares(self, owners: Integers, sizes: Integers) -> Floats:
        """Give the share of each value in each class."""
        counts = np.bincount(owners * self.width + self.codes, minlength=len(sizes) * self.width)
        shares: Floats = counts.reshape(len(sizes), self.width) / sizes[:, None]
        return shares

    def learned(self, shares: Floats, sizes: Integers, *, against: Floats | None = None) -> float:
        """Say by how much a guess from the class is right more often than a blind one.

        ``against`` are the true shares, where the ones shown are others.
        """
        true = shares if against is None else against
        hits = float(((shares * true).sum(axis=1) * sizes).sum() / sizes.sum())
        return hits - float((self.overall**2).sum())

    def strained(self, change: Floats, labels: Sequence[Integers]) -> float:
        """Say which part is gone of what a key tells of the commonest values, of the key that loses most.

        ``change`` is by how much the share of each value changes in the class of each record.
        """
        lost = [0.0]
        common = np.argsort(-self.overall, kind="stable")[:_COMMONEST]
        for label in labels:
            many = np.bincount(label)
            told = np.zeros(2)
            for value in common:
                own = self.codes == value
                held = np.bincount(label, own), np.bincount(label, own + change[:, value])
                shares = [side / np.maximum(many, 1) - self.overall[value] for side in held]
                told += [float((many * share**2).sum()) / len(label) for share in shares]
            if told[0] >= WORTH_KEEPING**2 * float((self.overall[common] * (1 - self.overall[common])).sum()):
                lost.append(1 - (told[1] / told[0]) ** 0.5)
        return max(lost)

    def swapped(self, shares: Floats, sizes: Integers, models: Sequence[object]) -> tuple[Floats, float]:
        """Give the shares after swaps between classes, and the share of all values that moves.

        What a class has too much of gives way to other values as the file has them; other models are taken to need one
        swap.
        """
        most = np.maximum(sizes - 1, 1) / sizes
        moved = 0.0
        for model in models:
            if isinstance(model, AlphaK):
                bound = np.floor(model.alpha * sizes + 1e-9) / sizes
                excess = np.where(self.overall <= model.common, (shares - bound[:, None]).clip(0), 0.0)
            else:
                excess = (shares - most[:, None]).clip(0)
            others = np.where(excess > 0, 0.0, self.overall)
            others /= np.maximum(others.sum(axis=1, keepdims=True), 1e-12)
            shares = shares - excess + excess.sum(axis=1, keepdims=True) * others
            shares = shares + _given_for(excess, excess.sum(axis=1, keepdims=True) * others, shares, sizes)
            moved += 2 * float((excess.sum(axis=1) * sizes).sum() / sizes.sum())
        return shares, min(1.0, moved)

    def chance_to_break(self, model: object, shares: Floats, sizes: Integers) -> Floats:
        """Say for each class whether it breaks a model (1) or not (0), as far as bins can tell."""
        if isinstance(model, LDiversity):
            return np.asarray((shares > 0).sum(axis=1) < model.l, dtype=np.float64)
        if isinstance(model, AlphaK):
            protected = shares[:, self.overall <= model.common]
            most = protected.max(axis=1, initial=0.0)
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


def _given_for(excess: Floats, gained: Floats, shares: Floats, sizes: Integers) -> Floats:
    """Say how the shares change in the classes that give the values which others gain, for all counts stay."""
    net = sizes @ (gained - excess)
    giving = np.where((excess.sum(axis=1, keepdims=True) == 0) & (net > 0), shares, 0.0)
    given = giving * np.minimum(np.maximum(net, 0) / np.maximum(sizes @ giving, 1e-12), 1.0)
    back = np.maximum(-net, 0) / max(float(np.maximum(-net, 0).sum()), 1e-12)
    return np.asarray(given.sum(axis=1, keepdims=True) * back - given)


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
