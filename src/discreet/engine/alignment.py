"""Two files that speak of the same keys: bring their class tables to one coding and one type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError
from discreet.engine.precision import agreed_grid, snapped

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


def comparable(
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
