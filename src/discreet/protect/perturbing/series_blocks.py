"""Whole series of readings as records to be grouped: one row each, placed by its readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError
from discreet.numerics.distance.space import Points
from discreet.protect.perturbing.record_blocks import filled, numbered

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


def one_row_each(table: pl.DataFrame, who: str, time: str, about: Sequence[str]) -> pl.DataFrame:
    """Give every series one row with what is the same in all its readings; refuse readings that do not make series."""
    if table.select(pl.col(who, time).is_null().any()).row(0) != (False, False):
        raise ColumnError(f"'{who}' and '{time}' say whose reading it is and when; neither may be missing.")
    if table.select(pl.struct(who, time).is_duplicated().any()).item():
        raise ColumnError(
            f"A series has several readings at one time. Sum or average them by '{who}' and '{time}'."
        )
    once = table.group_by(who, maintain_order=True).agg(
        pl.col(about).first(), *(pl.col(name).n_unique().alias(f"{name} ?") for name in about)
    )
    for name in about:
        if (once[f"{name} ?"] > 1).any():
            raise ColumnError(f"'{name}' must be the same in all rows of a series, and is not.")
    return once


def curves(
    table: pl.DataFrame, names: Sequence[str], series: Integers, time: str, *, standardize: bool | None
) -> tuple[Points, Metric]:
    """Place each series by its readings, one slot after the other and one column after the other."""
    from discreet.numerics.distance.distance_kernels import Metric

    slots = numbered(table, [time])
    shape = (int(series.max()) + 1, int(slots.max()) + 1)
    parts = []
    for name in names:
        part = np.full(shape, np.nan)
        part[series, slots] = table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        parts.append(part)
    points = filled(Points(np.hstack(parts), np.empty((shape[0], 0), dtype=np.int32)))
    if standardize:
        spread = points.numbers.std(axis=0)
        points = Points(points.numbers / np.where(spread > 0, spread, 1.0), points.codes)
    return points, Metric(np.ones(points.numbers.shape[1]), np.empty(0), True, False)
