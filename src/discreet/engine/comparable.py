"""How the values of one column of two files become comparable: one type, missing as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError, need_known
from discreet.engine.precision import (
    Grid,
    Setting,
    agreed_grid,
    equal_only_so,
    on_grid,
    rounding_note,
    snapped,
)
from discreet.microdata import Microdata


def must_be_released(released: Microdata, columns: Sequence[str], role: str) -> None:
    """Refuse a column that the released file does not have."""
    needed = f" The released file needs it: it is a {role} of the original. Rename it there, or leave it out."
    need_known(columns, released.columns, after=needed)


def comparable(
    ours: pl.Series,
    theirs: pl.Series,
    column: str,
    precision: Setting = "exact",
    grids: dict[str, Grid] | None = None,
) -> tuple[pl.Series, list[str]]:
    """Put the values of one column of two files one after the other, brought to one type and one precision.

    The grid that numbers were brought to is left in ``grids``.
    """
    ours, theirs = plain_text(ours), plain_text(theirs)
    both, notes = _of_one_type(ours, theirs, column)
    if not both.dtype.is_numeric():
        return both, notes
    left, right = (part if part.dtype.is_numeric() else part.cast(pl.Float64) for part in (ours, theirs))
    grid = agreed_grid(left, right, column, precision)
    if grid is None:
        return both, notes
    if grids is not None:
        grids[column] = grid
    count = equal_only_so(left, right, grid)
    return on_grid(both, grid), [*notes, *([rounding_note(column, grid, count)] if count else [])]


def _of_one_type(ours: pl.Series, theirs: pl.Series, column: str) -> tuple[pl.Series, list[str]]:
    left, right = ours.dtype, theirs.dtype
    notes: list[str] = []
    if left == right:
        return pl.concat([ours, theirs.rename(ours.name)]), notes
    if _is_number(left) and _is_number(right):
        common: Any = pl.Float64
    elif left.is_temporal() and right.is_temporal() and pl.Time not in (left, right):
        common = pl.Datetime("us")
    elif {left, right} <= {pl.Null, left} or {left, right} <= {pl.Null, right}:
        common = right if left == pl.Null else left
    elif pl.String in (left, right) and (_is_number(left) or _is_number(right)):
        common, note = number_or_text(ours, theirs, column)
        notes.append(note)
        if common == pl.String:
            ours, theirs = as_text(ours), as_text(theirs)
    else:
        raise ColumnError(
            f"Column '{column}' is {left} in the original and {right} in the release; the two cannot be compared. "
            "Read both files with the same type."
        )
    return pl.concat([part.cast(common).rename(ours.name) for part in (ours, theirs)]), notes


def as_text(series: pl.Series) -> pl.Series:
    """Write values as text; a whole number looks the same whatever type held it (57.0 is ``57``)."""
    if series.dtype == pl.Duration:
        return series.to_physical().cast(pl.String)
    text = series.cast(pl.String)
    if not series.dtype.is_float():
        return text
    whole = series.is_finite() & (series == series.round(0)) & (series.abs() < 2**53)
    return pl.select(
        pl.when(whole)
        .then(series.fill_nan(None).cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(text)
    ).to_series()


def distinct_values(series: pl.Series) -> tuple[pl.Series, Integers]:
    """List the distinct values in order, missing last, and for each entry the position of its value."""
    values = series.unique().sort(nulls_last=True).rename("v")
    return values, positions(series, values)


def positions(values: pl.Series, distinct: pl.Series) -> Integers:
    """Find each value, missing included, among the distinct ones."""
    places = pl.DataFrame({"value": distinct}).with_row_index("at")
    found = pl.DataFrame({"value": values}).join(
        places, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return found["at"].to_numpy().astype(np.int64)


def plain_text(series: pl.Series) -> pl.Series:
    """Take a category for its text."""
    return series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series


def _is_number(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.Boolean


def number_or_text(ours: pl.Series, theirs: pl.Series, column: str) -> tuple[Any, str]:
    """Decide how text and numbers meet, and say so: as numbers where all the text can be read so."""
    text = ours if ours.dtype == pl.String else theirs
    readable = (text.cast(pl.Float64, strict=False).is_null() == text.is_null()).all()
    kind, how = (pl.Float64, "numbers") if readable else (pl.String, "text")
    return kind, (
        f"'{column}' is {ours.dtype} in the original and {theirs.dtype} in the release; the two were compared as {how}."
    )


# Two files that speak of the same keys: bring their class tables to one coding and one type.


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def recoded(table: pl.DataFrame, name: str, key: str, codes: Mapping[Any, Any] | None) -> pl.DataFrame:
    """Translate one column of a class table; a value without a translation becomes missing."""
    if not codes:
        return table
    try:
        return table.with_columns(pl.col(name).replace_strict(codes, default=None).alias(name))
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise ColumnError(
            f"The recoding of '{key}' has codes of another type than the column, which is {table.schema[name]}, or of "
            "several types. Write old and new codes as they stand in the two files."
        ) from error


def comparable_keys(
    ours: pl.DataFrame, theirs: pl.DataFrame, name: str, key: str, files: tuple[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Bring one key column of two tables to one type, so that equal values are found equal; refuse two codings."""
    left, right = ours.schema[name], theirs.schema[name]
    if left.is_numeric() and right.is_numeric():
        common: Any = left if left == right else pl.Float64
    elif isinstance(left, _TEXTS) and isinstance(right, _TEXTS):
        common = pl.String
    elif left == right:
        common = left
    else:
        raise ColumnError(
            f"The key '{key}' is {left} in the {files[0]} and {right} in the {files[1]}; the two cannot be compared. "
            "Read both with the same type, or say with recoding= which values belong together."
        )
    ours, theirs = (table.with_columns(pl.col(name).cast(common)) for table in (ours, theirs))
    if common in (pl.Float64, pl.Float32):
        # The classes of the first file keep their values; those of the second meet them at the precision of both.
        grid = agreed_grid(ours[name].cast(left), theirs[name].cast(right), key)
        if grid is not None:
            theirs = theirs.with_columns(snapped(ours[name], theirs[name], grid).cast(common).alias(name))
    if ours.select(name).drop_nulls().join(theirs.select(name), on=name, how="semi").is_empty():
        raise ColumnError(
            f"The key '{key}' has no value in common between the {files[0]} and the {files[1]}: they are coded "
            "differently. Say with recoding= which values belong together."
        )
    return ours, theirs
