"""An original and the files held against it, brought to the same columns in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, unknown_name
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import in_boxes
from discreet.numerics.distance.space import Distance, MissingRule, MixedSpace, Points, as_float
from discreet.pairs.columns import ComparedColumns, compared_columns
from discreet.pairs.precision import Agreed, Setting, check_precision, precise_alike


class SideBySide(NamedTuple):
    """Files in memory, numbers at one precision: columns, which of them are codes, tables, what was rounded."""

    compared: ComparedColumns
    categorical: tuple[str, ...]
    tables: list[pl.DataFrame]
    agreed: Agreed


def side_by_side(
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    columns: Sequence[str] | None,
    *,
    categorical: Sequence[str] = (),
    precision: Setting = None,
    writing_only: bool = False,
) -> SideBySide:
    """Bring an original, a release and, where there is one, a hold-out to the same columns and precision in memory.

    ``writing_only``: see `discreet.pairs.precision.precise_alike`.
    """
    others = [released, *([holdout] if holdout is not None else [])]
    compared = compared_columns(original, others, columns)
    codes = check_categorical(compared.names, categorical)
    check_precision(precision, original.columns)
    tables, agreed = precise_alike(
        tables_of([original, *others], compared.names),
        precision=precision,
        categorical=codes,
        writing_only=writing_only,
    )
    return SideBySide(compared, codes, tables, agreed)


def tables_of(files: Sequence[Microdata], names: Sequence[str]) -> list[pl.DataFrame]:
    """Bring the columns into memory; refuse a file without records."""
    for data in files:
        engine.overview(data, names)
    return [engine.collect(data, names) for data in files]


def placed(
    tables: Sequence[pl.DataFrame],
    *,
    distance: Distance,
    categorical: Sequence[str],
    missing: MissingRule = "category",
) -> tuple[MixedSpace, list[Points]]:
    """Fit the space on the first table (the original) and place all of them in it."""
    space = MixedSpace.fit(
        tables[0], *tables[1:], distance=distance, categorical=categorical, missing=missing
    )
    if not space.columns:
        raise ColumnError(
            f"No column of the original varies ({', '.join(repr(name) for name in space.constant)}), so no two "
            "records can be told apart. Name other columns with columns=[…]."
        )
    return space, [space.place(table) for table in tables]


def check_categorical(names: Sequence[str], categorical: Sequence[str]) -> tuple[str, ...]:
    """Refuse a categorical column that is not compared."""
    for name in categorical:
        if name not in names:
            raise ColumnError(f"{unknown_name(name, names)} It was named under 'categorical'.")
    return tuple(categorical)


def column_caveats(space: MixedSpace, tables: Sequence[pl.DataFrame], names: Sequence[str]) -> list[str]:
    """Say which columns could not count and how missing values did."""
    caveats = []
    if space.constant:
        caveats.append(
            f"Without spread in the original and left out of the distance: {', '.join(space.constant)}."
        )
    gone = sum(table.select(names).null_count().sum_horizontal().item() for table in tables)
    if gone:
        rule = (
            "counted as a value of their own"
            if space.missing == "category"
            else "left out, pair by pair, and the other columns counted for more"
        )
        caveats.append(f"{gone:,} missing values were {rule}.")
    return caveats


def plain_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Write a table so that equal values are equal whatever types two files gave them."""
    return table.select(
        pl.col(name).cast(pl.Float64)
        if dtype.is_numeric()
        else pl.col(name)
        if dtype.is_temporal()
        else pl.col(name).cast(pl.String)
        for name, dtype in table.schema.items()
    )


@dataclass(frozen=True)
class Tolerances:
    """What counts as a hit: equal categories, numbers within a share of the original's range."""

    numeric: tuple[str, ...]
    categories: tuple[str, ...]
    reach: Floats

    @classmethod
    def of(
        cls,
        original: pl.DataFrame,
        tables: Sequence[pl.DataFrame],
        categorical: Sequence[str],
        share: float,
    ) -> Tolerances:
        """Take the ranges of the original."""
        numeric = tuple(
            name
            for name, dtype in original.schema.items()
            if (dtype.is_numeric() or dtype.is_temporal()) and name not in categorical
        )
        known = _numbers(original, numeric)
        spans = [
            np.ptp(column[~np.isnan(column)]) if (~np.isnan(column)).any() else 0.0 for column in known.T
        ]
        others = tuple(name for name in tables[0].columns if name not in numeric)
        return cls(numeric, others, np.array(spans, dtype=np.float64) * share)

    def hits(self, targets: pl.DataFrame, candidates: pl.DataFrame) -> Flags:
        """Say for each target whether some candidate agrees with it; missing agrees with missing."""
        numbers, others = _numbers(targets, self.numeric), _numbers(candidates, self.numeric)
        ours, theirs = plain_rows(targets), plain_rows(candidates)
        gaps = [
            (pl.Series(np.isnan(a)), pl.Series(np.isnan(b))) for a, b in zip(numbers.T, others.T, strict=True)
        ]
        found = in_boxes(
            np.nan_to_num(numbers),
            np.nan_to_num(others),
            self.reach,
            equal=[*((ours[name], theirs[name]) for name in self.categories), *gaps],
            first_only=True,
        )
        return found.counts > 0


def _numbers(table: pl.DataFrame, names: Sequence[str]) -> Floats:
    columns = [as_float(table[name]) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.height, 0))
