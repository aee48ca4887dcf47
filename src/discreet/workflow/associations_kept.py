"""What will analysts miss? The associations of two columns that a release weakens most, and those that turn round.

The strength of an association is Cramér's V (numbers in tenths of the file), less what chance gives. Of an association
as much is kept as of V or of the mean square contingency behind it, whichever is more: fewer categories alone take
nothing away from the one, and uneven ones not from the other. Directions are those of the correlation of two columns
with an order, each released label standing for the mean of those who have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.wording import shown
from discreet.engine.comparable import as_text, distinct_values, plain_text
from discreet.workflow.coding_ladders import is_nominal

_TENTHS = 10
_LEVELS = 16
WORTH_KEEPING = 0.15  # Cramér's V and correlations below are hardly reported
_SLOPE = 0.05  # a correlation of the other sign that is smaller is none
_MOST_COLUMNS = 40
_FEWEST = 30
WEAKENED = 1 / 3
_HALVED = 1 / 2
_FELT = 0.1


@dataclass(frozen=True)
class Association:
    """Two columns, how strongly they hang together in the file and in the release, and what is lost of that.

    All is lost of one that turned round.
    """

    column: str
    other: str
    before: float
    after: float
    lost: float
    turned: bool = False

    @property
    def sentence(self) -> str:
        """What that means for whoever looks at the two columns."""
        figures = f"(strength {shown(round(self.before, 2))} before, {shown(round(self.after, 2))} after)"
        if self.turned:
            return f"'{self.column}' and '{self.other}' go the other way together than before"
        how = "hardly follows" if self.lost > 1 / 2 else "follows less closely"
        if self.lost > 1 / 2:
            return f"'{self.column}' {how} '{self.other}' any longer {figures}"
        return f"'{self.column}' {how} what '{self.other}' says {figures}"


@dataclass(frozen=True)
class Associations:
    """The associations of a file that are worth keeping."""

    codes: Mapping[str, Integers]
    scores: Mapping[str, Floats]
    strong: Mapping[tuple[str, str], _Strength]
    slopes: Mapping[tuple[str, str], float]

    @classmethod
    def of(cls, table: pl.DataFrame, names: Sequence[str]) -> Associations:
        """Find them among some columns of a file.

        Examples
        --------
        >>> people = pl.DataFrame({"age": list(range(20, 80)) * 4, "pay": list(range(60)) * 4, "luck": [0, 1] * 120})
        >>> list(Associations.of(people, people.columns).strong)
        [('age', 'pay')]
        """
        codes = {name: _coded(table[name]) for name in names[:_MOST_COLUMNS]}
        scores = {
            name: _ranks(table[name]) for name in codes if _has_order(table[name]) and not is_nominal(name)
        }
        known = np.ones(table.height, dtype=np.bool_)
        strong, slopes = {}, {}
        for one, other in combinations(codes, 2):
            strength = _Strength.of(codes[one], codes[other], known)
            if strength.by_levels >= WORTH_KEEPING:
                strong[one, other] = strength
            if one in scores and other in scores:
                slope = _correlation(scores[one], scores[other])
                if abs(slope) >= WORTH_KEEPING:
                    slopes[one, other] = slope
        return cls(codes, scores, strong, slopes)

    def strain(self, column: str, codes: Integers) -> float:
        """Say which part of an association of a column a coarser coding takes away, where it takes most."""
        lost = [0.0]
        for (one, other), before in self.strong.items():
            if column in (one, other):
                after = _Strength.of(codes, self.codes[other if column == one else one], codes > 0)
                lost.append(before.lost_in(after))
        return max(lost)

    def strain_of_both(self, pair: tuple[str, str], codes: tuple[Integers, Integers]) -> float:
        """Say which part of an association goes when both columns are coarser."""
        return self.strong[pair].lost_in(_Strength.of(*codes, codes[0] > 0))

    def kept(self, released: pl.DataFrame, but: Sequence[str] = ()) -> list[Association]:
        """Measure them in a release of the same records, those that lost most first; ``but`` are left aside."""
        there = [name for name in self.codes if name in released.columns and name not in but]
        codes = {name: _coded(released[name]) for name in there}
        scores = {
            name: _as_scores(released[name], self.scores[name]) for name in there if name in self.scores
        }
        found = []
        for (one, other), before in self.strong.items():
            if one in codes and other in codes:
                known = released[one].is_not_null().to_numpy() & released[other].is_not_null().to_numpy()
                after = _Strength.of(codes[one], codes[other], known)
                slope = self.slopes.get((one, other))
                turned = slope is not None and _has_turned(slope, _correlation(scores[one], scores[other]))
                lost = 1.0 if turned else before.lost_in(after)
                found.append(Association(one, other, before.by_levels, after.by_levels, lost, turned))
        return sorted(found, key=lambda one: (-one.lost, one.column, one.other))


def price_of_strain(lost: float) -> float:
    """Price the association that suffers most, in columns that are lost.

    A plan that halves an association comes after all that do not, and one that takes more than a third of it costs more
    than a whole column.

    Examples
    --------
    >>> [round(price_of_strain(lost), 2) for lost in (0.1, 0.4, 0.6)]
    [0.01, 0.14, 1.16]
    """
    return _FELT * (lost + (lost > WEAKENED) + 10 * (lost > _HALVED))


def _has_order(values: pl.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype in (pl.Date, pl.Datetime)


def _ranks(values: pl.Series) -> Floats:
    return values.to_physical().rank().fill_null(float("nan")).to_numpy().astype(np.float64)


def _as_scores(released: pl.Series, own: Floats) -> Floats:
    """Let every released value stand for the mean rank of those who have it."""
    if _has_order(released):
        return _ranks(released)
    table = pl.DataFrame({"label": as_text(plain_text(released)), "own": own}).with_columns(
        pl.col("own").fill_nan(None)
    )
    means = table.select(pl.col("own").mean().over("label")).to_series()
    return means.set(released.is_null(), None).fill_null(float("nan")).to_numpy()


def _coded(values: pl.Series) -> Integers:
    """Number the values: numbers by tenths, categories by themselves, the rarest together; missing ones are 0."""
    values = values.rename("value")
    if _has_order(values) and values.n_unique() > _LEVELS:
        ranks = (values.to_physical().rank("max") - 1) * (_TENTHS / max(len(values) - values.null_count(), 1))
        return np.asarray(ranks.floor().cast(pl.Int64).clip(0, _TENTHS - 1).fill_null(-1).to_numpy() + 1)
    levels, codes = distinct_values(as_text(plain_text(values)))
    counts = np.bincount(codes, minlength=len(levels)).astype(np.float64)
    counts[levels.is_null().to_numpy()] = np.inf
    place = np.empty(len(levels), dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(levels)) + (not levels.null_count())
    return np.minimum(place, _LEVELS)[codes]


@dataclass(frozen=True)
class _Strength:
    """The root of the mean square contingency beyond chance, and of its share of the most that there could be."""

    plain: float = 0.0
    by_levels: float = 0.0

    @classmethod
    def of(cls, one: Integers, other: Integers, known: Flags) -> _Strength:
        """Measure it where both are known."""
        known = known & (one > 0) & (other > 0)
        many = int(known.sum())
        if many < _FEWEST:
            return cls()
        width = int(other.max()) + 1
        cells = np.bincount(one[known] * width + other[known], minlength=(int(one.max()) + 1) * width)
        table = cells.reshape(-1, width).astype(np.float64)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        least = min(table.shape) - 1
        if least < 1:
            return cls()
        expected = table.sum(axis=1)[:, None] * table.sum(axis=0)[None, :]
        by_chance = (table.shape[0] - 1) * (table.shape[1] - 1) / many
        square = max(float((table**2 / expected).sum()) - 1 - by_chance, 0.0)
        return cls(square**0.5, (square / least) ** 0.5)

    def lost_in(self, after: _Strength) -> float:
        """Give the part that is gone."""
        return max(0.0, 1 - max(after.plain / self.plain, after.by_levels / self.by_levels))


def _has_turned(before: float, after: float) -> bool:
    return before * after < 0 and abs(after) >= _SLOPE


def _correlation(one: Floats, other: Floats) -> float:
    known = ~(np.isnan(one) | np.isnan(other))
    if known.sum() < _FEWEST or one[known].std() == 0 or other[known].std() == 0:
        return 0.0
    return float(np.corrcoef(one[known], other[known])[0, 1])
