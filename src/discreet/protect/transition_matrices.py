"""Transition matrices of categories: how they are made, what they keep, and what they give away.

Entry (i, j) of a matrix is the chance that a value i is released as j. A matrix is invariant for counts t when
t times the matrix is t again: the expected counts of the released values are the counts of the file. The laws of a
release, block by block, are made of such matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import dp
from discreet.core.arrays import Floats, Integers, Words
from discreet.core.constraints import Share
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.randomness import KeyedDraws
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.protect.coded_columns import coded, crossed
from discreet.protect.global_recoding import fitted_to
from discreet.protect.records_of_classes import changed

if TYPE_CHECKING:
    from discreet.protect.pram import Pram


def even_change(size: int, change: float) -> Floats:
    """Make the matrix that changes every value with the same chance, to any other with the same chance.

    Examples
    --------
    >>> even_change(3, 0.2)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    if size < 2:
        return np.ones((size, size))
    matrix = np.full((size, size), change / (size - 1))
    np.fill_diagonal(matrix, 1.0 - change)
    return matrix


def two_stage_invariant(first: Floats, counts: npt.ArrayLike) -> Floats:
    """Follow a matrix by the one that undoes it on average, which keeps the expected counts.

    Q = P R with R_kl = p_lk t_l / sum_m p_mk t_m (Gouweleeuw et al. 1998): R draws a value from those that P may
    have come from, so that nobody is told the direction of the change.

    Parameters
    ----------
    first
        The matrix P, one row for each category.
    counts
        How often each category occurs; above zero.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([50.0, 30.0, 20.0])
    >>> made = two_stage_invariant(even_change(3, 0.2), counts)
    >>> np.allclose(counts @ made, counts)
    True
    """
    joint = first * np.asarray(counts, dtype=np.float64)[:, None]
    reached = joint.sum(axis=0)
    back = joint.T[reached > 0] / reached[reached > 0, None]
    made: Floats = first[:, reached > 0] @ back
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def one_step_invariant(counts: npt.ArrayLike, theta: float) -> Floats:
    """Make the invariant matrix with P_ii = 1 - theta t_min / t_i and equal chances for all other values.

    Examples
    --------
    >>> one_step_invariant([50, 30, 20], 0.3).round(2)
    array([[0.88, 0.06, 0.06],
           [0.1 , 0.8 , 0.1 ],
           [0.15, 0.15, 0.7 ]])
    """
    known = np.asarray(counts, dtype=np.float64)
    size = len(known)
    if size < 2:
        return np.ones((size, size))
    leaving = theta * known.min() / known
    matrix: Floats = np.repeat((leaving / (size - 1))[:, None], size, axis=1)
    np.fill_diagonal(matrix, 1.0 - leaving)
    return matrix


def local_epsilon(matrix: Floats) -> float:
    """Work out the local differential privacy of a matrix: how much a released value can favor one origin.

    The largest log ratio of two entries of a column; infinite where a released value rules an origin out.

    Examples
    --------
    >>> round(local_epsilon(one_step_invariant([50, 30, 20], 0.3)), 6)
    2.590267
    >>> local_epsilon(np.eye(2))
    inf
    """
    reached = matrix[:, matrix.max(axis=0, initial=0.0) > 0]
    if len(matrix) < 2 or not reached.size:
        return 0.0
    low = reached.min(axis=0)
    if (low <= 0).any():
        return float("inf")
    return float(np.log(reached.max(axis=0) / low).max())


def whole_weights(matrix: Floats) -> npt.NDArray[np.uint64]:
    """Write every row of a matrix in whole parts of 2^62, from which values are drawn exactly.

    Chances are rounded down and the largest takes the rest; rows of zeros stay as they are.

    Examples
    --------
    >>> whole_weights(np.array([[0.25, 0.75]])).tolist() == [[2**60, 3 * 2**60]]
    True
    """
    parts = np.asarray(
        [[math.floor(Fraction(float(chance)) * 2**62) for chance in row] for row in matrix], dtype=np.uint64
    ).reshape(matrix.shape)
    full = np.flatnonzero(parts.any(axis=1))
    left = np.uint64(2**62) - parts[full].sum(axis=1, dtype=np.uint64)
    parts[full, parts[full].argmax(axis=1)] += left
    return parts


def whole_local_epsilon(weights: npt.NDArray[np.uint64]) -> float:
    """Work out the local epsilon of whole weights, as `local_epsilon` does for chances, without rounding it down.

    Examples
    --------
    >>> round(whole_local_epsilon(whole_weights(np.array([[0.75, 0.25], [0.25, 0.75]]))), 6)
    1.098612
    """
    named = weights[weights.any(axis=1)]
    reached = named[:, named.any(axis=0)]
    if len(named) < 2 or not reached.size:
        return 0.0
    low, high = reached.min(axis=0), reached.max(axis=0)
    if not low.all():
        return float("inf")
    worst = max(Fraction(int(top), int(bottom)) for top, bottom in zip(high, low, strict=True))
    return math.nextafter(math.log(worst), math.inf) if worst > 1 else 0.0


def theta_for_epsilon(counts: npt.ArrayLike, epsilon: float, *, column: str = "the column") -> float:
    """Find the strength at which `one_step_invariant` has this local epsilon.

    On (0, (c-1)/c] for c categories epsilon falls as theta rises, so the answer is unique.

    Examples
    --------
    >>> round(theta_for_epsilon([50, 30, 20], 3.0), 6)
    0.213503
    """
    size = len(np.asarray(counts))
    if size < 2:
        return 0.0
    low, high = 0.0, (size - 1) / size
    least = local_epsilon(one_step_invariant(counts, high))
    if epsilon < least:
        raise ParameterError(
            f"epsilon={epsilon:g} is not reachable for {column} with this invariant matrix; the least is "
            f"{least:.4f}. Merge rare values first, or give a matrix of your own with invariant=False."
        )
    for _ in range(200):
        middle = (low + high) / 2
        if local_epsilon(one_step_invariant(counts, middle)) > epsilon:
            low = middle
        else:
            high = middle
    return high


def expected_change(matrix: Floats, counts: npt.ArrayLike) -> float:
    """Work out the share of the values that a matrix is expected to change (rows and columns alike).

    Examples
    --------
    >>> round(expected_change(even_change(3, 0.2), [50, 30, 20]), 6)
    0.2
    """
    known = np.asarray(counts, dtype=np.float64)
    total = known.sum()
    return float(known @ (1.0 - np.diag(matrix)[: len(known)]) / total) if total else 0.0


# The laws of post-randomization: which value becomes which, with what chance, and tables to draw from.


Chance = Annotated[float, Share()]
Chances = Chance | Mapping[str, Chance]

_MOST_LEVELS = 2_000
_MOST_ENTRIES = 50_000_000
_ROW = "discreet row"


class Block:
    """One column, or several crossed, with its levels, its laws and what they amount to."""

    def __init__(
        self,
        asked: Pram,
        names: Sequence[str],
        table: pl.DataFrame,
        groups: Integers | None,
        records: Integers | None = None,
    ) -> None:
        self.records = records
        self.names, self.table, self.asked = tuple(names), table.select(names), asked
        self.counted = table
        self.label = " × ".join(names)
        self.gone = np.zeros(table.height, dtype=np.bool_)
        if asked.missing == "keep" and sum(self.table.null_count().row(0)):
            self.gone = self.table.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        whole = not self.gone.any()
        present = self.table if whole else self.table.filter(pl.Series(~self.gone))
        if len(self.names) == 1:
            codes, distinct = coded(present.to_series())
            self.levels = distinct.to_frame()
        else:
            codes, self.levels = crossed(present)
        self.codes = codes if whole else np.full(table.height, -1, dtype=np.int64)
        if not whole:
            self.codes[~self.gone] = codes
        self.groups = groups
        if self.levels.height > _MOST_LEVELS:
            raise ColumnError(
                f"'{self.label}' has {self.levels.height:,} different values, more than the {_MOST_LEVELS:,} that "
                "pram draws from. Recode or band it first."
            )
        self._set_laws()

    def _set_laws(self) -> None:
        """Make the matrix of every group, in the order of the levels."""
        first = self._own_matrix()
        self.weights: npt.NDArray[np.uint64] | None = None
        size = self.levels.height
        many = 1 if self.groups is None or not len(self.groups) else int(self.groups.max()) + 1
        if many * size * size > _MOST_ENTRIES:
            raise ParameterError(
                f"'{self.label}' has {size:,} values in {many:,} strata: too many matrices. Use coarser strata."
            )
        self.rows = self.codes if self.groups is None else self.groups * size + self.codes
        if self.gone.any():
            self.rows = np.where(self.gone, -1, self.rows)
        # Missing values are row -1; shifted by one they are counted first, and left out.
        holes = int(self.gone.any())
        # A row of the table is one record, or a combination of values with the number of records that have it.
        tally = np.bincount(
            self.rows + 1 if holes else self.rows, weights=self.records, minlength=many * size + holes
        ).astype(np.int64)
        counts = tally[holes:].reshape(many, size)
        self.laws = np.zeros((many, size, size))
        moved, epsilons = 0.0, [0.0]
        for group in range(many):
            there = np.flatnonzero(counts[group])
            known = counts[group, there]
            law = self._law(first, there, known)
            targets = there if law.shape[1] == len(there) else np.arange(size)
            self.laws[group][np.ix_(there, targets)] = law
            moved += expected_change(self.laws[group][np.ix_(there, there)], known) * known.sum()
            epsilons.append(local_epsilon(law))
        if first is not None and not self.asked.invariant:
            self.weights = whole_weights(first)
            epsilons = [whole_local_epsilon(self.weights)]
        total = counts.sum()
        self.expected = float(moved / total) if total else 0.0
        self.epsilon = max(epsilons)

    def _law(self, first: Floats | None, there: Integers, counts: Integers) -> Floats:
        asked, size = self.asked, len(there)
        if first is not None:
            return two_stage_invariant(first[there], counts) if asked.invariant else first[there]
        theta = _of(asked.theta, self.label)
        target = _of(asked.epsilon, self.label)
        if target is not None and size > 1:
            theta = theta_for_epsilon(counts, target, column=f"'{self.label}'")
        if theta is not None or target is not None:
            return one_step_invariant(counts, theta or 0.0)
        chance = _of(asked.change, self.label)
        if chance is None:
            raise ParameterError(
                f"change does not name '{self.label}'. Give it a number, or leave it out of pram."
            )
        matrix = even_change(size, chance)
        return two_stage_invariant(matrix, counts) if asked.invariant and size else matrix

    def _own_matrix(self) -> Floats | None:
        """Read the matrix the user gave for this column; values only named in it become levels."""
        given = (self.asked.matrix or {}).get(self.label)
        if given is None:
            return None
        column = self.levels.to_series()
        sources = _typed(list(given), column)
        targets = _typed(list(dict.fromkeys(to for row in given.values() for to in row)), column)
        named = pl.concat([sources, targets]).unique(maintain_order=True)
        lost = int((~column.is_in(sources.implode(), nulls_equal=True)).sum())
        if lost:
            raise ColumnError(
                f"The matrix for '{self.label}' has no row for {lost:,} of its values. Give every value a row."
            )
        if self.asked.invariant:
            fresh = named.filter(~named.is_in(column.implode(), nulls_equal=True))
            self.levels = pl.concat([column, fresh]).to_frame()
        else:
            # The order of the matrix, not of the file: which values did not occur must not show in a list of levels.
            self.levels = named.alias(column.name).to_frame()
        place = {value: at for at, value in enumerate(self.levels.to_series().to_list())}
        if len(column):
            moved = np.asarray([place[value] for value in column.to_list()], dtype=np.int64)
            self.codes = np.where(self.codes < 0, -1, moved[np.maximum(self.codes, 0)])
        matrix = np.zeros((len(place), len(place)))
        for source, row in zip(sources.to_list(), given.values(), strict=True):
            for target, chance in zip(_typed(list(row), column).to_list(), row.values(), strict=True):
                matrix[place[source], place[target]] += chance / sum(row.values())
        return matrix

    def randomized(self, stream: Stream) -> dict[str, pl.Series]:
        """Draw the new values of every record."""
        from discreet.numerics.alias_tables import alias_tables, draw

        if not self.levels.height:
            return {name: self.table[name] for name in self.names}
        if self.weights is not None:
            drawn = np.full(self.table.height, -1, dtype=np.int64)
            drawn[~self.gone] = dp.weighted_rows(self.weights, self.codes[~self.gone], stream.words())
        else:
            cut, other = alias_tables(self.laws.reshape(-1, self.levels.height))
            drawn = draw(self.rows, stream().random(self.table.height), cut, other)
        if not self.gone.any():
            return {name: self.levels[name].gather(drawn) for name in self.names}
        stay = pl.Series(self.gone)
        at = np.maximum(drawn, 0)
        return {
            name: self.table[name].zip_with(stay, self.levels[name].gather(at)).alias(name)
            for name in self.names
        }

    def described(self) -> dict[str, Any]:
        """Give levels and matrices for the internal log."""
        return {
            "levels": [list(row) if len(row) > 1 else row[0] for row in self.levels.rows()],
            "matrices": self.laws,
        }


@dataclass(frozen=True)
class Lookup:
    """What a batch of records needs to draw from the laws of a block: whose law is which, and tables to draw from."""

    names: tuple[str, ...]
    known: pl.DataFrame
    levels: pl.DataFrame
    cut: Floats
    other: npt.NDArray[np.int32]
    draws: KeyedDraws

    @classmethod
    def of(cls, block: Block, strata: Sequence[str], draws: KeyedDraws) -> Lookup:
        """Make the tables of a block."""
        from discreet.numerics.alias_tables import alias_tables

        cut, other = alias_tables(block.laws.reshape(-1, max(block.levels.height, 1)))
        known = block.counted.select(*block.names, *strata).with_columns(pl.Series(_ROW, block.rows))
        return cls(block.names, known, block.levels, cut, other, draws)

    def drawn(self, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        """Draw the new values of a batch."""
        from discreet.numerics.alias_tables import draw

        if not self.levels.height:
            return {name: table[name] for name in self.names}
        keys = [name for name in self.known.columns if name != _ROW]
        typed = table.select(pl.col(name).cast(self.known.schema[name]) for name in keys)
        found = typed.join(self.known, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if found[_ROW].null_count():
            # Without a law it would be released as it is.
            raise changed()
        rows = found[_ROW].to_numpy()
        at = draw(rows, self.draws.uniforms(records), self.cut, self.other)
        stay = pl.Series(at < 0)
        fresh = {name: self.levels[name].gather(np.maximum(at, 0)) for name in self.names}
        if not stay.any():
            return fresh
        return {name: found[name].zip_with(stay, column).alias(name) for name, column in fresh.items()}


def looked_up(lookups: Sequence[Lookup], table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
    """Draw the new values of a batch from the laws of all blocks."""
    columns: dict[str, pl.Series] = {}
    for lookup in lookups:
        columns |= lookup.drawn(table, records)
    return columns


def _of(given: float | Mapping[str, float] | None, column: str) -> float | None:
    if isinstance(given, Mapping):
        return given.get(column)
    return given


def _typed(values: Sequence[Any], column: pl.Series) -> pl.Series:
    """Bring values of a matrix to the type of its column (plan files hold text only)."""
    wrong = f"The matrix for '{column.name}' names values that its type, {type_name(column.dtype)}, does not have."
    if column.dtype == pl.Boolean:
        return pl.Series([str(value).lower() == "true" for value in values], dtype=pl.Boolean)
    texts = column.dtype in (pl.Categorical, pl.Enum, pl.String)
    given = pl.Series([str(value) for value in values]) if texts else pl.Series(list(values))
    return fitted_to(given, column.dtype, wrong)
