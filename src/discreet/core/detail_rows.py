"""Rows of the detail tables of a measure, as findings and pictures need them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard

import narwhals as nw

if TYPE_CHECKING:
    from discreet.core.results import Measure

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def rows_of(measure: Measure | None, table: str, *needed: str) -> list[dict[str, Any]]:
    """Return the rows of a (small) detail table; none where it is missing or lacks a needed column."""
    if measure is None or table not in measure.detail:
        return []
    held = measure.detail[table]
    if not set(needed) <= set(columns_of(held)):
        return []
    return list(gathered(nw.from_native(held)).iter_rows(named=True))


def columns_of(table: Any) -> list[str]:
    """Return the column names of a table of any engine."""
    return list(nw.from_native(table).collect_schema())


def gathered(frame: Frame) -> nw.DataFrame[Any]:
    """Bring a (small) frame into memory."""
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def finite(value: Any) -> TypeGuard[int | float]:
    """Say whether a value is a number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> float | None:
    """Return a number that can be drawn, else None."""
    return float(value) if finite(value) else None
