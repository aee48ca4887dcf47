"""Move numbers onto the right side of a linear inequality, by the least amount."""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet.expressions import Expression


def projected(
    frame: pl.DataFrame, left: Expression, operator: str, right: Expression, fixed: frozenset[str]
) -> pl.DataFrame:
    """Return the frame with each record moved onto ``left operator right`` where it is off.

    The step of each column is its slope in the gap between the sides, found by moving it by one; so it is exact for
    sums and differences, and left alone where the gap is no plain sum of columns.
    """
    names = [
        name
        for name in dict.fromkeys([*left.columns, *right.columns])
        if name not in fixed and frame.schema[name].is_numeric()
    ]
    if not names:
        return frame
    gap = (left.value.cast(pl.Float64) - right.value.cast(pl.Float64)).alias("gap")
    if operator in (">", ">="):
        gap = -gap
    whole = frame.with_columns(pl.col(names).cast(pl.Float64))
    here = whole.select(gap).to_series().to_numpy()
    slopes = {}
    for name in names:
        moved = [
            whole.with_columns(pl.col(name) + step).select(gap).to_series().to_numpy() - here
            for step in (1.0, 2.0)
        ]
        known = ~np.isnan(moved[0])
        slope = float(np.median(moved[0][known])) if known.any() else 0.0
        scale = 1e-6 * np.maximum(np.abs(here[known]), 1.0)
        if (np.abs(moved[0][known] - slope) > scale).any() or (
            np.abs(moved[1][known] - 2 * slope) > 2 * scale
        ).any():
            return frame
        slopes[name] = slope
    length = sum(slope**2 for slope in slopes.values())
    if length == 0:
        return frame
    excess = np.where(np.isnan(here), 0.0, np.maximum(here, 0.0)) / length
    columns = []
    for name, slope in slopes.items():
        values = whole[name] - pl.Series(excess * slope)
        dtype = frame.schema[name]
        if dtype.is_integer():
            # Whole numbers go to the next one on the right side.
            off = pl.Series(excess > 0)
            stepped = (values - 1e-9).ceil() if slope < 0 else (values + 1e-9).floor()
            columns.append(
                pl.select(
                    pl.when(off).then(stepped).otherwise(whole[name]).cast(dtype).alias(name)
                ).to_series()
            )
        else:
            columns.append(values.cast(dtype).alias(name))
    return frame.with_columns(columns)
