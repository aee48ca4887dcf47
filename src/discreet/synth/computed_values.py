"""How is a number that was computed from others written into its column?

A formula gives 2.9999999999 where the file says 3, and 1.3333333333 where it says 1.33. A column of whole numbers takes
the nearest one, never the one below, and other columns take the decimals that they are written with.
"""

from __future__ import annotations

import polars as pl


def as_computed(values: pl.Series, dtype: pl.DataType, decimals: int | None = None) -> pl.Series:
    """Return computed values in the type of their column; what a formula cannot compute is missing.

    Parameters
    ----------
    values
        What a formula gave.
    dtype
        The type of the column.
    decimals
        Decimal places that the column is written with; None where there is no end to them.

    Examples
    --------
    >>> as_computed(pl.Series("n", [2.9999999999, float("inf")]), pl.Int64()).to_list()
    [3, None]
    """
    if not values.dtype.is_numeric():
        return values.cast(dtype, strict=False)
    numbers = values.cast(pl.Float64).fill_nan(None)
    numbers = numbers.set(numbers.is_infinite().fill_null(False), None)
    if dtype.is_integer() or dtype.is_temporal():
        decimals = 0
    if decimals is not None:
        numbers = numbers.round(decimals) + 0.0  # no negative zero
    if dtype.is_temporal():
        numbers = numbers.cast(pl.Int32 if dtype == pl.Date else pl.Int64, strict=False)
    return numbers.cast(dtype, strict=False)
