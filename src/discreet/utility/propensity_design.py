"""What a propensity model reads: two files, one on top of the other, and the predictors made of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.engine.comparable import comparable, distinct_values
from discreet.microdata import Microdata

_WORTH_GROUPING = 0.5
_FEW_TO_GROUP = 2_000
_MANY_LEVELS, _RARE = 300, 5


@dataclass(frozen=True)
class Coded:
    """One column of both files: codes from 0 for a category (missing is a level), numbers else (missing is NaN)."""

    name: str
    kind: Literal["category", "number"]
    values: Codes | Floats
    levels: tuple[str, ...] = ()

    @property
    def gaps(self) -> Flags:
        """Which numbers are missing."""
        return np.isnan(self.values)

    def at(self, rows: Integers) -> Coded:
        """Keep some rows."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True)
class Stack:
    """An original and one release, stacked.

    Attributes
    ----------
    columns
        The coded columns, one value a *cell*. A cell is a record, or all records that are alike.
    released
        True for the records of the release; the original comes first.
    cell
        The cell of each record; None where each record is its own.
    weight
        Survey weights, scaled within each file to the number of its records; None without.
    notes
        What the reader must know about how the files were brought together.
    """

    columns: tuple[Coded, ...]
    released: Flags
    cell: Integers | None
    weight: Floats | None
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Records of both files."""
        return len(self.released)

    @property
    def released_records(self) -> int:
        """Records of the release."""
        return int(self.released.sum())

    @property
    def original_records(self) -> int:
        """Records of the original."""
        return self.records - self.released_records

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.records if self.cell is None else int(self.cell.max()) + 1

    @property
    def counts(self) -> Floats | None:
        """Records of each cell; None where each record is its own."""
        return None if self.cell is None else np.bincount(self.cell, minlength=self.cells).astype(np.float64)

    @property
    def share(self) -> float:
        """The share c of released records."""
        return self.released_records / self.records

    def masses(self, released: Flags | None = None) -> tuple[Floats, Floats]:
        """Sum the weights of the released records of each cell, and those of all its records."""
        _, ours, each = self.by_record(released)
        if self.cell is None:
            return ours, each
        summed = [np.bincount(self.cell, mass, minlength=self.cells) for mass in (ours, each)]
        return summed[0].astype(np.float64), summed[1].astype(np.float64)

    def by_record(self, released: Flags | None = None) -> tuple[Flags, Floats, Floats]:
        """Say of each record whether it is released, what it weighs if it is, and what it weighs."""
        labels = self.released if released is None else released
        each = np.ones(self.records) if self.weight is None else self.weight
        return labels, np.where(labels, each, 0.0), each

    @property
    def identical(self) -> bool:
        """Whether the two files hold the same records, each equally often."""
        if not self.columns:
            return True
        if self.weight is not None:
            return False
        if self.cell is not None:
            ours, every = self.masses()
            # Both sides are whole numbers below 2**53, so that equal shares are found equal.
            return bool((ours * self.original_records == (every - ours) * self.released_records).all())
        if self.original_records != self.released_records:
            return False
        prints = self.table().hash_rows(seed=0).to_numpy()
        before, after = prints[~self.released], prints[self.released]
        return bool(before.sum() == after.sum()) and bool((np.sort(before) == np.sort(after)).all())

    def table(self) -> pl.DataFrame:
        """Return the coded columns, one row a cell, as a table."""
        return pl.DataFrame({f"c{place}": column.values for place, column in enumerate(self.columns)})

    def design_effect(self, *, released: bool) -> float:
        """Return Kish's design effect of the weights, of the release or of all records."""
        if self.weight is None:
            return 1.0
        weight = self.weight[self.released] if released else self.weight
        return float(len(weight) * (weight**2).sum() / weight.sum() ** 2)


def stack(
    original: Microdata,
    released: Microdata,
    columns: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    weight: str | None = None,
    rows: str | None = None,
    aggregate: bool | Literal["auto"] = "auto",
) -> Stack:
    """Put two files on top of each other and code their columns once, for as many fits as are wanted.

    ``rows`` names a yes/no column of both files: only the records with yes are compared.
    """
    ours, theirs = (_collected(data, columns, weight, rows) for data in (original, released))
    from_release = np.arange(ours.height + theirs.height) >= ours.height
    notes: list[str] = []
    coded: list[Coded] = []
    constant: list[str] = []
    for name in columns:
        values, said = _one_type(ours[name], theirs[name], name)
        notes += said
        column = _coded(values, name, category=name in categorical)
        if column is None:
            constant.append(name)
        else:
            coded.append(column)
    if constant:
        notes.append(
            f"{', '.join(map(repr, constant))}: the same in every record of both files, so it tells nothing and was "
            "left out."
        )
    whole = Stack(tuple(coded), from_release, None, _weights(ours, theirs, weight), tuple(notes))
    return _grouped(whole, aggregate)


def _collected(data: Microdata, columns: Sequence[str], weight: str | None, rows: str | None) -> pl.DataFrame:
    engine.overview(data, ())
    wanted = [*columns, *(name for name in (weight, rows) if name and name in data.schema)]
    need_known([rows], data.schema, "It was named to say which records were synthesized.")
    frame = engine.collect(data, list(dict.fromkeys(wanted)))
    if rows is None:
        return frame
    if frame[rows].dtype != pl.Boolean or frame[rows].null_count():
        raise ColumnError(f"The column '{rows}' must say yes or no (true or false) for every record.")
    frame = frame.filter(pl.col(rows))
    if frame.is_empty():
        raise InputError(
            f"The column '{rows}' says no for every record of a file, so there is nothing to compare."
        )
    return frame


def _one_type(ours: pl.Series, theirs: pl.Series, name: str) -> tuple[pl.Series, list[str]]:
    """Bring a column of both files to one type; text becomes a dictionary, which is coded much faster."""
    texts = (pl.String, pl.Categorical, pl.Enum)
    if isinstance(ours.dtype, texts) and isinstance(theirs.dtype, texts):
        return pl.concat([part.cast(pl.Categorical).rename("v") for part in (ours, theirs)]), []
    if ours.dtype.is_numeric() and theirs.dtype.is_numeric():
        # A tree must not tell files apart by the last digit that another program wrote.
        ours, theirs = engine.stored_alike(ours, theirs)
    return comparable(ours, theirs, name)


def _coded(values: pl.Series, name: str, *, category: bool) -> Coded | None:
    """Code a column of both files; None where it never varies."""
    dtype = values.dtype
    if not category and (dtype.is_numeric() or dtype.is_temporal()):
        physical = values.to_physical() if dtype.is_temporal() else values
        numbers = physical.cast(pl.Float64).to_numpy().astype(np.float64)
        if np.isinf(numbers).any():
            raise ColumnError(
                f"Column '{name}' holds infinite numbers, which have no mean. Make them missing or finite first."
            )
        known = numbers[~np.isnan(numbers)]
        varies = len(known) and (len(known) < len(numbers) or known.min() < known.max())
        return Coded(name, "number", numbers) if varies else None
    levels, codes = _dictionary(values) if dtype == pl.Categorical else distinct_values(values)
    if len(levels) < 2:
        return None
    said = tuple("missing" if level is None else str(level) for level in levels.to_list())
    return Coded(name, "category", codes.astype(np.int32), said)


def _dictionary(values: pl.Series) -> tuple[pl.Series, Integers]:
    """List the levels in the order of their text, missing last, and code each entry by them."""
    held = values.to_physical()
    found = pl.DataFrame({"text": values, "code": held}).unique("code")
    found = found.with_columns(pl.col("text").cast(pl.String)).sort("text", nulls_last=True)
    known = found["code"].drop_nulls().to_numpy()
    place = np.full(int(known.max()) + 2 if len(known) else 1, len(known), dtype=np.int64)
    place[known] = np.arange(len(known))
    return found["text"], place[held.fill_null(len(place) - 1).to_numpy()]


def _weights(ours: pl.DataFrame, theirs: pl.DataFrame, weight: str | None) -> Floats | None:
    if weight is None:
        return None
    parts = []
    for frame in (ours, theirs):
        if weight not in frame.columns:
            parts.append(np.ones(frame.height))
            continue
        each = frame[weight].cast(pl.Float64).to_numpy()
        if not (np.isfinite(each) & (each > 0)).all():
            raise ColumnError(
                f"The weight column '{weight}' is missing, infinite or not above zero for some records. Mend it, or "
                "drop those records."
            )
        parts.append(each * (len(each) / each.sum()))
    return np.concatenate(parts)


def _grouped(whole: Stack, aggregate: bool | Literal["auto"]) -> Stack:
    """Make one cell of all records that are alike, where that saves work."""
    if aggregate is False or not whole.columns or (aggregate == "auto" and whole.records < _FEW_TO_GROUP):
        return whole
    table = whole.table()
    if aggregate == "auto":
        distinct = int(table.select(pl.struct(pl.all()).hash().approx_n_unique()).item())
        if distinct > _WORTH_GROUPING * whole.records:
            return whole
    names = table.columns
    rows = table.with_row_index("row")
    firsts = rows.group_by(names).agg(pl.col("row").min()).sort("row").with_row_index("cell")
    placed = rows.join(firsts.drop("row"), on=names, how="left", nulls_equal=True, maintain_order="left")
    cell = placed["cell"]
    at = firsts["row"].to_numpy().astype(np.int64)
    return replace(
        whole, columns=tuple(column.at(at) for column in whole.columns), cell=cell.to_numpy().astype(np.int64)
    )


# The predictors of a propensity model: columns for levels, numbers, gaps, squares and pairs, less the aliased ones.
#
# The matrix is never stored. Sums over its rows are taken from the coded records, a few entries a record, so that
# millions of records need no more memory than their codes.


_BLOCKS = 8
_FEW_ROWS = 20_000
_MOST_COLUMNS = 8_000
_DENSE_BYTES = 32_000_000
_ALIASED = 1e-9
_FELT = 500_000_000
_BY_ENTRY, _BY_BLAS = 1.0, 0.15  # nanoseconds of one product of two entries

T = TypeVar("T")


@dataclass(frozen=True)
class Term:
    """One column of the design: what it is called, and the variables it is made of."""

    name: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class _Source:
    """What one variable contributes: levels (with the first as reference) or one column of numbers."""

    variable: str
    terms: tuple[str, ...]
    codes: Codes | None = None
    numbers: Floats | None = None
    crossed: bool = True


@dataclass(frozen=True)
class Design:
    """Predictors of stacked records: sums over the rows of a matrix that is not stored.

    ``keep`` says which of the columns stay; aliased ones are dropped by `without_aliased`.
    """

    terms: tuple[Term, ...]
    codes: Codes
    begins: Codes
    code_column: Codes
    numbers: Floats
    number_column: Codes
    pair_column: Codes
    keep: Integers

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def size(self) -> int:
        """Number of columns, the intercept among them."""
        return len(self.keep)

    @property
    def kept_terms(self) -> list[Term]:
        """The terms that stay."""
        return [self.terms[at] for at in self.keep]

    @cached_property
    def _entries(self) -> int:
        mains = 1 + self.codes.shape[1] + self.numbers.shape[1]
        return int(mains + (mains * (mains - 1) // 2 if len(self.pair_column) else 0))

    @cached_property
    def _plan(self) -> tuple[Codes, Codes, Codes, Floats, Codes, Codes, Codes]:
        place = np.full(len(self.terms), -1, dtype=np.int32)
        place[self.keep] = np.arange(len(self.keep), dtype=np.int32)
        # A line for each source: laid out alike however many there are, so that the kernels are compiled once.
        return (
            self.codes.T,
            self.begins,
            self.code_column,
            self.numbers.T,
            self.number_column,
            self.pair_column,
            place,
        )

    @property
    def is_large(self) -> bool:
        """Whether another pass for the products of all columns would be felt."""
        return self.rows * min(self._entries**2, self.size**2) > _FELT

    def products(self, mass: Floats, pull: Floats) -> tuple[Floats, Floats]:
        """Return Z' diag(mass) Z and Z' pull."""
        from discreet.utility import propensity_kernels as kernels

        if self._entries**2 * _BY_ENTRY > self.size**2 * _BY_BLAS:
            return self._dense_products(mass, pull)
        parts = self._in_blocks(
            lambda first, last: kernels.products(
                first, last, self._entries, self.size, mass, pull, self._plan, True
            )
        )
        squares, pulled = parts[0]
        for more, further in parts[1:]:
            squares += more
            pulled += further
        return squares, pulled

    def pulls(self, pull: Floats) -> Floats:
        """Return Z' pull."""
        from discreet.utility import propensity_kernels as kernels

        parts = self._in_blocks(
            lambda first, last: kernels.products(
                first, last, self._entries, self.size, pull, pull, self._plan, False
            )[1]
        )
        total: Floats = np.sum(parts, axis=0)
        return total

    def predictions(self, beta: Floats) -> Floats:
        """Return Z beta."""
        from discreet.utility import propensity_kernels as kernels

        out = np.empty(self.rows)
        self._in_blocks(
            lambda first, last: kernels.predictions(first, last, self._entries, beta, out, self._plan)
        )
        return out

    def without_aliased(self, squares: Floats) -> Design:
        """Drop the columns that others already say, interactions first, by the products of all columns."""
        scale = np.sqrt(np.diag(squares))
        there = np.flatnonzero(scale > 0)
        unit = squares[np.ix_(there, there)] / np.outer(scale[there], scale[there])
        pairs = np.array([len(self.terms[self.keep[at]].variables) > 1 for at in there], dtype=bool)
        mains, crosses = np.flatnonzero(~pairs), np.flatnonzero(pairs)
        kept = mains[independent(unit[np.ix_(mains, mains)])]
        if len(crosses):
            inner = unit[np.ix_(kept, kept)]
            across = unit[np.ix_(kept, crosses)]
            left = unit[np.ix_(crosses, crosses)] - across.T @ np.linalg.solve(inner, across)
            kept = np.concatenate([kept, crosses[independent(left)]])
        return replace(self, keep=self.keep[np.sort(there[kept])])

    def _dense_products(self, mass: Floats, pull: Floats) -> tuple[Floats, Floats]:
        from discreet.utility import propensity_kernels as kernels

        squares, pulled = np.zeros((self.size, self.size)), np.zeros(self.size)
        step = max(64, _DENSE_BYTES // (8 * self.size))
        room = np.empty((min(step, self.rows), self.size))
        for first in range(0, self.rows, step):
            last = min(first + step, self.rows)
            block = room[: last - first]
            kernels.filled(first, last, self._entries, block, self._plan)
            pulled += pull[first:last] @ block
            weighted = np.sqrt(mass[first:last])[:, None] * block
            squares += weighted.T @ weighted
        return squares, pulled

    def _in_blocks(self, work: Callable[[int, int], T]) -> list[T]:
        """Run over blocks of rows, always the same ones, so that sums come out the same on any machine."""
        if self.rows < _FEW_ROWS:
            return [work(0, self.rows)]
        edges = np.linspace(0, self.rows, _BLOCKS + 1).astype(int)
        with ThreadPoolExecutor() as pool:
            return list(pool.map(work, edges[:-1].tolist(), edges[1:].tolist()))


def independent(products: Floats) -> Integers:
    """Find columns that span the same as all, from the products of columns of unit length.

    Examples
    --------
    >>> independent(np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8], [0.6, 0.8, 1.0]]))
    array([0, 1])
    """
    from scipy.linalg.lapack import dpstrf

    if not len(products):
        return np.empty(0, dtype=np.int64)
    _, order, rank, _ = dpstrf(np.asfortranarray(products), tol=_ALIASED)
    return np.sort(order[:rank].astype(np.int64) - 1)


def rank(design: Design, squares: Floats, variables: Sequence[str]) -> int:
    """Count the independent columns that use these variables only, the intercept among them."""
    names = set(variables)
    at = np.array(
        [place for place, term in enumerate(design.kept_terms) if set(term.variables) <= names],
        dtype=np.int64,
    )
    scale = np.sqrt(np.diag(squares)[at])
    return len(independent(squares[np.ix_(at, at)] / np.outer(scale, scale)))


def without_rare_levels(stacked: Stack) -> Stack:
    """Put the rare levels of columns with very many together: a coefficient for each would only tell files apart.

    Moments and numbers of cases as texts have a level in nearly every record.
    """
    columns, notes = [], []
    for column in stacked.columns:
        if len(column.levels) <= _MANY_LEVELS:
            columns.append(column)
            continue
        codes = column.values.astype(np.int64)
        often = np.bincount(codes, stacked.counts, minlength=len(column.levels))
        frequent = np.sort(np.argsort(-often, kind="stable")[:_MANY_LEVELS])
        frequent = frequent[often[frequent] >= _RARE]
        place = np.full(len(often), len(frequent), dtype=np.int32)
        place[frequent] = np.arange(len(frequent))
        if len(frequent):
            said = (*(column.levels[code] for code in frequent), "any other")
            columns.append(replace(column, values=place[codes], levels=said))
        notes.append(
            f"'{column.name}' has {len(column.levels):,} levels, most of them in fewer than {_RARE} records: "
            f"{len(often) - len(frequent):,} of them count as one."
        )
    return replace(stacked, columns=tuple(columns), notes=(*stacked.notes, *notes))


def designed(stacked: Stack, *, interactions: int, squares: bool) -> Design:
    """Lay out the predictors of stacked files."""
    counts = stacked.counts
    sources = [source for column in stacked.columns for source in _sources(column, squares, counts)]
    coded = [source for source in sources if source.codes is not None]
    counted = [source for source in sources if source.numbers is not None]
    terms = [Term("(intercept)", ())]
    begins: list[int] = []
    code_column: list[int] = []
    first_of: dict[int, int] = {}
    for source in coded:
        begins.append(len(code_column))
        first_of[id(source)] = len(terms)
        code_column += [-1, *range(len(terms), len(terms) + len(source.terms))]
        terms += [Term(name, (source.variable,)) for name in source.terms]
    number_column = []
    for source in counted:
        first_of[id(source)] = len(terms)
        number_column.append(len(terms))
        terms += [Term(name, (source.variable,)) for name in source.terms]
    pair_column = np.empty((0, 0), dtype=np.int32)
    if interactions:
        _not_too_many(sum(len(source.terms) for source in sources), stacked)
        pair_column = np.full((len(terms), len(terms)), -1, dtype=np.int32)
        for one, other, a, b in _pairs([*coded, *counted]):
            left, right = first_of[id(one)] + a, first_of[id(other)] + b
            pair_column[left, right] = pair_column[right, left] = len(terms)
            terms.append(Term(f"{terms[left].name} × {terms[right].name}", (one.variable, other.variable)))
    _not_too_many(len(terms), stacked)
    return Design(
        terms=tuple(terms),
        codes=_beside(
            [source.codes for source in coded if source.codes is not None], stacked.cells, np.int32
        ),
        begins=np.array(begins, dtype=np.int32),
        code_column=np.array(code_column or [-1], dtype=np.int32),
        numbers=_beside([s.numbers for s in counted if s.numbers is not None], stacked.cells, np.float64),
        number_column=np.array(number_column, dtype=np.int32),
        pair_column=pair_column,
        keep=np.arange(len(terms)),
    )


def _sources(column: Coded, squares: bool, counts: Floats | None) -> Iterator[_Source]:
    if column.kind == "category":
        names = tuple(f"{column.name}[{level}]" for level in column.levels[1:])
        yield _Source(column.name, names, codes=column.values.astype(np.int32, copy=False))
        return
    gaps = column.gaps
    known = column.values[~gaps]
    weights = None if counts is None else counts[~gaps]
    center = float(np.average(known, weights=weights))
    spread = float(np.sqrt(np.average((known - center) ** 2, weights=weights))) or 1.0
    numbers = np.where(gaps, 0.0, (column.values - center) / spread)
    if known.min() < known.max():
        yield _Source(column.name, (column.name,), numbers=numbers)
    if gaps.any():
        yield _Source(column.name, (f"{column.name}[missing]",), codes=gaps.astype(np.int32))
    if squares and len(np.unique(known[: 1 + 10_000])) > 2:
        yield _Source(
            column.name, (f"{column.name}²",), numbers=numbers**2 - (numbers**2).mean(), crossed=False
        )


def _pairs(sources: Sequence[_Source]) -> Iterator[tuple[_Source, _Source, int, int]]:
    """List the pairs of columns that can differ from zero."""
    for one, other in combinations([source for source in sources if source.crossed], 2):
        if one.variable == other.variable:
            continue
        if one.codes is not None and other.codes is not None:
            width = len(other.terms) + 1
            seen = np.bincount(
                one.codes.astype(np.int64) * width + other.codes, minlength=width * (len(one.terms) + 1)
            ).reshape(-1, width)[1:, 1:]
            for a, b in np.argwhere(seen > 0).tolist():
                yield one, other, a, b
        else:
            for a in range(len(one.terms)):
                for b in range(len(other.terms)):
                    yield one, other, a, b


def _beside(columns: Sequence[Array], rows: int, kind: type) -> Array:
    beside: Array = np.empty((rows, len(columns)), dtype=kind, order="F")
    for place, column in enumerate(columns):
        beside[:, place] = column
    return beside


def _not_too_many(columns: int, stacked: Stack) -> None:
    most = min(stacked.records - 1, _MOST_COLUMNS)
    if columns <= most:
        return
    widest = max(stacked.columns, key=lambda column: len(column.levels))
    said = f" '{widest.name}' alone has {len(widest.levels):,} levels." if widest.levels else ""
    raise ParameterError(
        f"The model has {columns:,} coefficients for {stacked.records:,} records of both files, and at most {most:,} "
        f"can be had.{said} Use interactions=0, name fewer or coarser columns=[…], or model='cart'."
    )
