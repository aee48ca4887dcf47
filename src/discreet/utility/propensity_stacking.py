"""Two files, one on top of the other: every column as codes or numbers, and which file a record came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.core.errors import ColumnError, InputError, unknown_name
from discreet.engine.comparable import comparable, distinct_values
from discreet.engine.precision import stored_alike
from discreet.microdata import Microdata

_WORTH_GROUPING = 0.5
_FEW_ROWS = 2_000


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
        labels = self.released if released is None else released
        each = np.ones(self.records) if self.weight is None else self.weight
        ours = np.where(labels, each, 0.0)
        if self.cell is None:
            return ours, each
        size = self.cells
        released_mass: Floats = np.bincount(self.cell, ours, minlength=size).astype(np.float64)
        every: Floats = np.bincount(self.cell, each, minlength=size).astype(np.float64)
        return released_mass, every

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
    if rows is not None and rows not in data.schema:
        raise ColumnError(
            f"{unknown_name(rows, data.columns)} It was named to say which records were synthesized."
        )
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
        ours, theirs = stored_alike(ours, theirs)
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
    if aggregate is False or not whole.columns or (aggregate == "auto" and whole.records < _FEW_ROWS):
        return whole
    table = whole.table()
    if aggregate == "auto":
        distinct = int(table.select(pl.struct(pl.all()).hash().approx_n_unique()).item())
        if distinct > _WORTH_GROUPING * whole.records:
            return whole
    names = table.columns
    rows = table.with_row_index("row")
    firsts = rows.group_by(names).agg(pl.col("row").min()).sort("row").with_row_index("cell")
    cell = rows.join(firsts.drop("row"), on=names, how="left", nulls_equal=True, maintain_order="left")[
        "cell"
    ]
    at = firsts["row"].to_numpy().astype(np.int64)
    return replace(
        whole, columns=tuple(column.at(at) for column in whole.columns), cell=cell.to_numpy().astype(np.int64)
    )
