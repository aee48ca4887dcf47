"""Numeric columns as one matrix, and back into columns of the types they had.

What the perturbations of numbers share: reading the block, groups of records that are treated apart, records that
know the same columns, and the check of how far rounding moved what a method keeps; columns that others are predicted
from, ranks, and orthonormal columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units
from discreet.protect.treatment import existing


@dataclass(frozen=True)
class NumberBlock:
    """The numeric columns that a treatment changes.

    Attributes
    ----------
    table
        These columns and those read beside them, as they are in the file.
    names
        The columns that change.
    kinds
        The type that each of them has in the file.
    """

    table: pl.DataFrame
    names: tuple[str, ...]
    kinds: Mapping[str, pl.DataType]

    @classmethod
    def read(
        cls, data: Microdata, names: Sequence[str], *, beside: Sequence[str] = (), treatment: str
    ) -> NumberBlock:
        """Collect the columns; infinite numbers are refused, because no mean or spread exists beside them."""
        table = engine.collect(data, list(dict.fromkeys([*names, *beside])))
        kinds: dict[str, pl.DataType] = {}
        for name in names:
            if table[name].dtype.is_float() and table[name].is_infinite().any():
                raise ColumnError(
                    f"Column '{name}' holds infinite numbers, which {treatment} cannot change. "
                    "Make them missing, or top-code them first."
                )
            # The engine hands unsigned 32-bit numbers over as signed 64-bit ones.
            kinds[name] = pl.UInt32() if data.schema[name] == nw.UInt32 else table[name].dtype
        return cls(table, tuple(names), kinds)

    def once_a_unit(self, by: str | None, beside: Sequence[str] = ()) -> tuple[NumberBlock, Units | None]:
        """Take one record of each unit (a household), where its records have to change together."""
        if by is None:
            return self, None
        units = Units.of(self.table[by], self.table.height)
        units.check_same(self.table, [*self.names, *beside], by)
        return replace(self, table=self.table[units.first]), units

    def matrix(self) -> Floats:
        """Return the block with one row a record and NaN where a value is missing, columns contiguous."""
        block = np.empty((self.table.height, len(self.names)), order="F")
        for at, name in enumerate(self.names):
            block[:, at] = self.table[name].cast(pl.Float64).to_numpy()
        return block

    def column(self, name: str, values: Floats, *, round_integers: bool = True) -> pl.Series:
        """Make a column of new numbers, NaN being missing, in the type the column had.

        Whole numbers are rounded, and stay within what their type can hold; with ``round_integers=False`` they
        become decimal numbers.
        """
        # The sum tells whether there is any gap without another array as long as the column.
        fresh = pl.Series(name, values, nan_to_null=bool(np.isnan(values.sum())))
        kind = self.kinds[name]
        if kind.is_integer():
            if not round_integers:
                return fresh
            low, high = _bounds(kind)
            return fresh.round().clip(low, high).cast(kind)
        if isinstance(kind, pl.Decimal):
            return fresh.round(kind.scale).cast(kind)
        return fresh.cast(kind)

    def columns(self, matrix: Floats, *, round_integers: bool = True) -> dict[str, pl.Series]:
        """Make all columns of the block from a matrix of new numbers."""
        return {
            name: self.column(name, np.ascontiguousarray(matrix[:, at]), round_integers=round_integers)
            for at, name in enumerate(self.names)
        }

    def rounded(self, *, round_integers: bool = True) -> tuple[str, ...]:
        """Name the columns whose new numbers are rounded."""
        return tuple(
            name
            for name, kind in self.kinds.items()
            if kind != pl.Float64 and (round_integers or not kind.is_integer())
        )

    def constant(self) -> tuple[str, ...]:
        """Name the columns that do not vary."""
        return tuple(name for name in self.names if self.table[name].min() == self.table[name].max())


def _bounds(kind: pl.DataType) -> tuple[float, float]:
    """Give the range of a whole-number type, as far as a double can tell it."""
    bits = int("".join(c for c in str(kind) if c.isdigit()))
    low = 0.0 if str(kind).startswith("U") else -(2.0 ** (bits - 1))
    top = bits if str(kind).startswith("U") else bits - 1
    return low, (2.0**top - 1 if top <= 53 else float(np.nextafter(2.0**top, 0)))


def own_strata(
    data: Microdata, strata: str | Sequence[str] | None, names: Sequence[str], *, treatment: str
) -> tuple[str, ...]:
    """Return the columns that split the file into groups; none of them may be one that changes."""
    if strata is None:
        return ()
    found = existing(data, strata, treatment=treatment)
    both = [name for name in found if name in names]
    if both:
        raise ParameterError(f"'{both[0]}' cannot be changed by {treatment} and be among its strata.")
    return found


def stratum_codes(table: pl.DataFrame, strata: Sequence[str]) -> Integers:
    """Number the groups of records with equal values, from 0; missing is a value like any other.

    Examples
    --------
    >>> stratum_codes(pl.DataFrame({"a": ["x", None, "x"], "b": [1, 1, 1]}), ["a", "b"]).tolist()
    [1, 0, 1]
    """
    if not strata:
        return np.zeros(table.height, dtype=np.int64)
    ranks = table.select(pl.struct(strata).rank("dense")).to_series()
    return ranks.cast(pl.Int64).to_numpy() - 1


def groups(codes: Integers, least: int = 1, counted: Flags | None = None) -> tuple[list[Integers], int]:
    """Split the records by their stratum; strata of fewer than ``least`` (counted) records are put together.

    Returns the positions of the records of each group, and how many strata were put together. Where these are too
    few even together, they join the smallest stratum that is large enough.

    Examples
    --------
    >>> found, small = groups(np.array([0, 0, 1, 2]), least=2)
    >>> [group.tolist() for group in found], small
    ([[0, 1], [2, 3]], 2)
    """
    if not len(codes):
        return [], 0
    sizes = np.bincount(codes if counted is None else codes[counted], minlength=int(codes.max()) + 1)
    small = sizes < least
    label = np.arange(len(sizes))
    if small.any():
        pool = int(sizes[small].sum())
        home = len(sizes)
        if pool < least and (~small).any():
            home = int(np.where(small, np.iinfo(np.int64).max, sizes).argmin())
        label[small] = home
    merged = label[codes]
    order = np.argsort(merged, kind="stable")
    cuts = np.flatnonzero(np.diff(merged[order])) + 1
    return np.split(order, cuts), int(small.sum())


def alike(known: Flags) -> Iterator[tuple[Flags, Integers]]:
    """Give, for each pattern of known and missing columns, the columns that are known and the records.

    Examples
    --------
    >>> for columns, records in alike(np.array([[True, True], [True, False], [True, True]])):
    ...     print(columns.tolist(), records.tolist())
    [True, False] [1]
    [True, True] [0, 2]
    """
    if not len(known):
        return
    if known.all():
        yield np.ones(known.shape[1], dtype=bool), np.arange(len(known))
        return
    packed = np.packbits(known, axis=1)
    _, first, code = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    for at, records in enumerate(groups(code.ravel().astype(np.int64))[0]):
        yield known[first[at]], records


def to_records(columns: Mapping[str, pl.Series], units: Units | None) -> dict[str, pl.Series]:
    """Give every record of a unit the values of its unit."""
    if units is None:
        return dict(columns)
    return {name: column.gather(units.of_record) for name, column in columns.items()}


def unit_column(
    data: Microdata, by: str | None, changed: Sequence[str], *, treatment: str
) -> tuple[str, ...]:
    """Return the column whose equal values change together; it may not be one that changes."""
    if by in changed:
        raise ParameterError(
            f"'{by}' cannot be changed by {treatment} and say which records belong together."
        )
    return () if by is None else existing(data, by, treatment=treatment)


def weight_note(data: Microdata) -> tuple[str, ...]:
    """Say that what is kept is kept without weights, where the file has them."""
    if data.roles.weight is None:
        return ()
    return ("Survey weights were not used: weighted means and covariances are not kept.",)


def rounding_note(block: NumberBlock, *, round_integers: bool, what: str) -> tuple[str, ...]:
    """Say that whole numbers were rounded, where a method keeps something exactly that rounding blurs."""
    names = block.rounded(round_integers=round_integers)
    if not names:
        return ()
    listed = ", ".join(f"'{name}'" for name in names[:8]) + (" …" if len(names) > 8 else "")
    return (f"Rounding to the type of the columns ({listed}) moves {what} a little.",)


# Columns that others are predicted from, as numbers: categories become one column a level.


_MOST = 1_000
"""Predicting columns beyond which a dense matrix of them would take too much memory and time."""


@dataclass(frozen=True)
class Predictors:
    """The predicting columns of a file.

    Attributes
    ----------
    matrix
        One row a record; NaN where the column it comes from is missing.
    source
        For each column of the matrix, the position of the file's column it comes from.
    names
        The file's columns.
    """

    matrix: Floats
    source: Integers
    names: tuple[str, ...]

    @property
    def known(self) -> Flags:
        """Whether each record knows each of the file's columns."""
        if not self.names:
            return np.zeros((len(self.matrix), 0), dtype=bool)
        first = np.array([np.flatnonzero(self.source == at)[0] for at in range(len(self.names))])
        return np.asarray(~np.isnan(self.matrix[:, first]))

    def at(self, records: Integers) -> Predictors:
        """Return the predictors of some records."""
        return replace(self, matrix=self.matrix[records])

    @classmethod
    def read(
        cls,
        data: Microdata,
        names: Sequence[str] | None,
        changed: Sequence[str],
        *,
        ordered: bool,
        treatment: str,
    ) -> Predictors:
        """Read the columns: numbers and dates as they are, categories as one 0/1 column for each level but one.

        With ``ordered``, categories that have an order (Enum) count as numbers by their place in it.
        """
        names = () if not names else existing(data, names, treatment=treatment)
        both = [name for name in names if name in changed]
        if both:
            raise ParameterError(f"'{both[0]}' is both changed by {treatment} and given. Decide for one.")
        table = engine.collect(data, names) if names else pl.DataFrame()
        parts: list[Floats] = []
        source: list[int] = []
        for at, name in enumerate(names):
            made = _numbers(table[name], ordered)
            parts.append(made)
            source += [at] * made.shape[1]
            if len(source) > _MOST:
                raise ParameterError(
                    f"The columns given to {treatment} have too many levels together (more than {_MOST:,}, at "
                    f"'{name}'). Group the levels first, or leave the column out."
                )
        rows = table.height if names else engine.overview(data, ()).rows
        matrix = np.hstack(parts) if parts else np.zeros((rows, 0))
        return cls(matrix, np.array(source, dtype=np.int64), tuple(names))


def _numbers(column: pl.Series, ordered: bool) -> Floats:
    kind = column.dtype
    if kind.is_numeric() or kind == pl.Boolean:
        numbers = column.cast(pl.Float64)
    elif kind.is_temporal() or (ordered and isinstance(kind, pl.Enum)):
        numbers = column.to_physical().cast(pl.Float64)
    else:
        return _levels(column)
    if numbers.is_infinite().any():
        raise ColumnError(f"Column '{column.name}' holds infinite numbers. Make them missing first.")
    return numbers.to_numpy().reshape(-1, 1)


def _levels(column: pl.Series) -> Floats:
    """Make a 0/1 column for each level but the most frequent, and a column of zeros where there is no other."""
    text = column.cast(pl.String).rename("level")
    counts = text.drop_nulls().value_counts().sort(["count", "level"], descending=[True, False])
    others = counts["level"][1 : _MOST + 2]
    gone = text.is_null().to_numpy()
    made = np.zeros((len(text), max(len(others), 1)))
    if len(others):
        place = text.replace_strict(others, pl.Series(range(len(others))), default=-1, return_dtype=pl.Int64)
        spot = place.fill_null(-1).to_numpy()
        hit = np.flatnonzero(spot >= 0)
        made[hit, spot[hit]] = 1.0
    made[gone] = np.nan
    return made


# Numbers by their ranks: normal scores and rank correlations, with gaps where the data has them.


def normal_scores(values: Floats) -> Floats:
    """Give each known value the normal quantile of its rank, scaled to variance 1; NaN where it is missing.

    Examples
    --------
    >>> normal_scores(np.array([5.0, 1.0, np.nan, 9.0])).round(3).tolist()
    [0.0, -1.225, nan, 1.225]
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    known = ~np.isnan(values)
    scores = np.full(len(values), np.nan)
    if known.any():
        made = ndtri((rankdata(values[known]) - 0.5) / known.sum())
        spread = made.std()
        scores[known] = (made - made.mean()) / spread if spread > 0 else 0.0
    return scores


def rank_correlation(matrix: Floats) -> Floats:
    """Spearman's rank correlations; each pair of columns by the records that know both, 0 where one is constant.

    Examples
    --------
    >>> rank_correlation(np.array([[1.0, 10.0], [2.0, 1000.0], [3.0, 100.0]])).round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    from scipy.stats import rankdata

    size = matrix.shape[1]
    known = ~np.isnan(matrix)
    found = np.eye(size)
    whole = np.flatnonzero(known.all(axis=0))
    if len(whole):
        found[np.ix_(whole, whole)] = _correlation(rankdata(matrix[:, whole], axis=0))
    for i in range(size):
        for j in range(i):
            if i in whole and j in whole:
                continue
            both = known[:, i] & known[:, j]
            pair = rankdata(matrix[both][:, [i, j]], axis=0)
            found[i, j] = found[j, i] = _correlation(pair)[0, 1] if both.any() else 0.0
    np.fill_diagonal(found, 1.0)
    return found


def _correlation(matrix: Floats) -> Floats:
    centered = matrix - matrix.mean(axis=0)
    length = np.sqrt((centered**2).sum(axis=0))
    unit = centered / np.where(length > 0, length, 1.0)
    return np.asarray(unit.T @ unit)


# Orthonormal columns: read off a matrix, moved by noise, or drawn at random beside others.


def orthonormal(matrix: Floats, *, floor: float = 0.0) -> tuple[Floats, Floats]:
    """Write a matrix as U R, the columns of U orthonormal and as many as the matrix has dimensions.

    Directions shorter than rounding error, or than ``floor``, are left out.

    Examples
    --------
    >>> twice = np.array([[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
    >>> basis, factor = orthonormal(twice)
    >>> basis.shape, bool(np.allclose(basis @ factor, twice))
    ((3, 1), True)
    """
    if not matrix.size:
        return np.zeros((len(matrix), 0)), np.zeros((0, matrix.shape[1]))
    q, r = np.linalg.qr(matrix)
    left, values, right = np.linalg.svd(r, full_matrices=False)
    least = max(values[0] * max(matrix.shape) * np.finfo(float).eps, floor)
    rank = int((values > least).sum())
    return q @ left[:, :rank], values[:rank, None] * right[:rank]


def moved_basis(basis: Floats, level: float, rng: np.random.Generator) -> Floats:
    """Return the orthonormal matrix nearest to the basis plus centered noise of ``level`` times its size.

    Its columns sum to 0. The nearest orthonormal matrix treats all columns alike, so the outcome does not depend
    on which basis of the space was taken.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> basis, _ = orthonormal(np.array([[1.0], [-1.0], [0.0], [0.0]]))
    >>> moved = moved_basis(basis, 0.1, rng)
    >>> round(float(np.linalg.norm(moved)), 12), abs(round(float(moved.sum()), 12))
    (1.0, 0.0)
    """
    moved = basis + rng.standard_normal(basis.shape) * (level / np.sqrt(len(basis)))
    for _ in range(2):
        # The second round takes away what rounding left of the first.
        moved -= moved.mean(axis=0)
        values, vectors = np.linalg.eigh(moved.T @ moved)
        moved = moved @ (vectors / np.sqrt(values)) @ vectors.T
    return np.asarray(moved)


def beside(bases: list[Floats], columns: int, rng: np.random.Generator) -> Floats:
    """Draw orthonormal columns that sum to 0 and are orthogonal to given orthonormal ones, evenly among all such.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> basis, _ = orthonormal(np.array([[1.0], [-1.0], [0.0], [0.0]]))
    >>> drawn = beside([basis], 2, rng)
    >>> bool(np.allclose(drawn.T @ drawn, np.eye(2))), bool(np.allclose(basis.T @ drawn, 0))
    (True, True)
    """
    drawn = rng.standard_normal((len(bases[0]), columns))
    for _ in range(2):
        # Once more, because a draw that lies mostly within the given space loses digits the first time.
        drawn = outside(drawn, bases)
        drawn, triangle = np.linalg.qr(drawn)
        drawn = drawn * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return drawn


def outside(matrix: Floats, bases: list[Floats]) -> Floats:
    """Center a matrix and take away what lies in the span of (centered) orthonormal columns."""
    rest = matrix - matrix.mean(axis=0)
    for basis in bases:
        rest = rest - basis @ (basis.T @ rest)
    return np.asarray(rest - rest.mean(axis=0))
